package parts

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/kernel/kerneltest"
	"goatb/status"
	"goatb/tensor"
)

// Parts of huge scores join without overflow, an unseen part changes nothing
// and two unseen ones give zeros.
func TestJoin(t *testing.T) {
	total, top, sum := []float32{1}, float32(1000), float32(1)
	Join(total, &top, &sum, []float32{3}, 1000, 1)
	Finish(total, total, []float32{sum})
	assert.Equal(t, float32(1000), top)
	assert.Equal(t, float32(2), sum, "log-sum-exp 1000 + ln 2")
	assert.Equal(t, float32(2), total[0])

	total, top, sum = []float32{1}, 0, 1
	Join(total, &top, &sum, []float32{3}, 200, 1)
	Finish(total, total, []float32{sum})
	assert.Equal(t, []float32{3, 200, 1}, []float32{total[0], top, sum}, "e^200 is beyond float32")

	total, top, sum = []float32{7}, 5, 2
	Join(total, &top, &sum, []float32{9}, 0, 0)
	assert.Equal(t, []float32{7, 5, 2}, []float32{total[0], top, sum})

	total, top, sum = []float32{7}, 0, 0
	Join(total, &top, &sum, []float32{9}, 4, 3)
	assert.Equal(t, []float32{9, 4, 3}, []float32{total[0], top, sum})

	total, sum = []float32{7}, 0
	Join(total, &top, &sum, []float32{9}, 0, 0)
	Finish(total, total, []float32{sum})
	assert.Equal(t, []float32{0, 0}, []float32{total[0], sum})
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]int64{0: 0, 1: 1, Len: 1, Len + 1: 2, 2*Len + 1: 3} {
		assert.Equal(t, want, Count(n), "%d positions", n)
	}
}

func TestFits(t *testing.T) {
	assert.True(t, Fits(1, 1<<17, 126), "64 MiB")
	assert.False(t, Fits(1, 1<<17+1, 126))
	assert.False(t, Fits(1<<50, 1<<50, 1<<10), "no overflow")
	assert.True(t, Fits(0, 1<<50, 8))
}

// row is a row with the parts that it has.
type row struct {
	values    [][]float32
	tops, ls  []float32
	reference []float64
}

// draw makes a row of n parts; some saw nothing, and some lie far from others.
func draw(r *rand.Rand, n, size int64) row {
	var x row
	for range n {
		v := make([]float32, size)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		top, l := float32(r.NormFloat64()*30), 1+10*r.Float32()
		if r.IntN(4) == 0 {
			top, l = float32(math.Inf(-1)), 0
			clear(v)
		}
		x.values, x.tops, x.ls = append(x.values, v), append(x.tops, top), append(x.ls, l)
	}
	x.join(size)
	return x
}

// join computes the row's output in float64 without rescaling.
func (x *row) join(size int64) {
	x.reference = make([]float64, size)
	most, sum := math.Inf(-1), 0.0
	for i, l := range x.ls {
		if l != 0 {
			most = max(most, float64(x.tops[i]))
		}
	}
	for i, l := range x.ls {
		if l == 0 {
			continue
		}
		w := math.Exp(float64(x.tops[i]) - most)
		sum += float64(l) * w
		for c, v := range x.values[i] {
			x.reference[c] += float64(v) * w
		}
	}
	for c := range x.reference {
		if sum != 0 {
			x.reference[c] /= sum
		}
	}
}

// problem lays rows out in memory full of NaN, with room for `room` parts.
func problem(rows []row, room, size int64, out tensor.DType) (kernel.Problem, []byte) {
	d := Desc(int64(len(rows)), room, size)
	f := make([]float32, d.Numel())
	for i := range f {
		f[i] = float32(math.NaN())
	}
	mem := device.BytesOf(f)
	v := ViewOf(mem, room, size)
	for r, x := range rows {
		for i := range x.values {
			v.Put(int64(r), int64(i), x.values[i], x.tops[i], x.ls[i])
		}
		v.End(int64(r), int64(len(x.values)))
	}
	return kernel.Problem{In: []tensor.Desc{d}, Out: []tensor.Desc{tensor.Of(out, int64(len(rows)), size)}, Params: struct{}{}}, mem
}

// TestMerge compares with float64; what lies behind a row's parts is not read.
func TestMerge(t *testing.T) {
	tolerance := map[tensor.DType]float64{tensor.Float32: 2e-6, tensor.Float16: 1e-3, tensor.BFloat16: 8e-3}
	r := rand.New(rand.NewPCG(1, 2))
	for out, tol := range tolerance {
		for _, size := range []int64{1, 5, 16, 33, 128} {
			var rows []row
			for range 1 + r.IntN(40) {
				rows = append(rows, draw(r, r.Int64N(7), size))
			}
			p, mem := problem(rows, 6, size, out)
			b := kerneltest.Run(t, kerneltest.Case{Kernel: merge, Problem: p, In: [][]byte{mem}})[0]
			got, err := tensor.Float64s(b, out)
			require.NoError(t, err)
			for i, x := range rows {
				for c, want := range x.reference {
					require.InDelta(t, want, got[int64(i)*size+int64(c)], tol*max(1, math.Abs(want)), "row %d, element %d", i, c)
				}
			}
		}
	}
}

// TestMergeKeepsNaN has a part that is NaN in one row of two.
func TestMergeKeepsNaN(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	nan := float32(math.NaN())
	for bad := range 3 {
		x, y := draw(r, 3, 4), draw(r, 3, 4)
		x.values[bad], x.tops[bad], x.ls[bad] = []float32{nan, nan, nan, nan}, 1, nan
		p, mem := problem([]row{x, y}, 3, 4, tensor.Float32)
		got := device.View[float32](kerneltest.Run(t, kerneltest.Case{Kernel: merge, Problem: p, In: [][]byte{mem}})[0])
		for i, v := range got {
			assert.Equal(t, i < 4, v != v, "element %d: %v", i, v)
		}
	}
}

func TestMergeRefuses(t *testing.T) {
	for name, change := range map[string]func(*kernel.Problem){
		"no input":    func(p *kernel.Problem) { p.In = nil },
		"no output":   func(p *kernel.Problem) { p.Out = nil },
		"rank":        func(p *kernel.Problem) { p.In[0] = tensor.Of(tensor.Float32, 3, 4, 1, 10) },
		"type":        func(p *kernel.Problem) { p.In[0].DType = tensor.Float16 },
		"no values":   func(p *kernel.Problem) { p.In[0] = Desc(12, 4, 0) },
		"output":      func(p *kernel.Problem) { p.Out[0] = tensor.Of(tensor.Float32, 12, 9) },
		"output type": func(p *kernel.Problem) { p.Out[0].DType = tensor.Int8 },
	} {
		t.Run(name, func(t *testing.T) {
			p := kernel.Problem{In: []tensor.Desc{Desc(12, 4, 8)}, Out: []tensor.Desc{tensor.Of(tensor.Float32, 3, 4, 8)}, Params: struct{}{}}
			require.NoError(t, merge.Supports(&p))
			change(&p)
			assert.ErrorIs(t, merge.Supports(&p), status.ErrInvalidParam)
		})
	}
}

// TestSteadyStateAllocatesNothing repeats tiling and run.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	p, mem := problem([]row{draw(r, 3, 8), draw(r, 2, 8)}, 3, 8, tensor.Float16)
	p.Machine = kernel.Machine{Cores: 1}
	tiling := device.BytesOf(make([]uint64, merge.TilingSize(&p)/8))
	a := device.Args{Blocks: 1, Tiling: tiling, Scratch: device.Wrap(device.BytesOf(make([]uint64, merge.Scratch(&p)/8)))}
	a.Buffers = []device.Buffer{device.Wrap(mem), device.Wrap(device.BytesOf(make([]uint64, p.Out[0].Bytes()/8)))}
	run := merge.Program().Run
	assert.Zero(t, testing.AllocsPerRun(20, func() {
		if _, err := merge.Tile(&p, tiling); err != nil {
			t.Error(err)
		}
		if err := run(&a, 0); err != nil {
			t.Error(err)
		}
	}))
}
