package indexadd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/internal/cpu"
	"goatb/kernel"
	"goatb/kernel/kerneltest"
	"goatb/status"
	"goatb/tensor"
)

// ulp bounds the relative error of one rounding.
var ulp = map[tensor.DType]float64{tensor.Float32: 0x1p-24, tensor.Float16: 0x1p-11, tensor.BFloat16: 0x1p-8}

// adding is a call on a variable viewed as [outer, rows, inner].
type adding struct {
	dtype                     tensor.DType
	outer, rows, inner, count int64
	alpha                     bool
	valid                     int32 // -1 for none
}

func (c *adding) problem() kernel.Problem {
	x := tensor.Of(c.dtype, c.outer, c.rows, c.inner)
	p := kernel.Problem{
		In:     []tensor.Desc{tensor.Of(tensor.Int32, c.count), tensor.Of(c.dtype, c.outer, c.count, c.inner), {}, {}, x},
		Out:    []tensor.Desc{x},
		Params: Params{Axis: 1},
	}
	if c.alpha {
		p.In[Alpha] = tensor.Of(c.dtype, 1)
	}
	if c.valid >= 0 {
		p.In[Valid] = tensor.Of(tensor.Int32, 1)
	}
	return p
}

func encode(dt tensor.DType, v []float32) []byte {
	b := device.BytesOf(make([]uint64, len(v)))[:int64(len(v))*dt.Size()]
	kernel.StoreFloats(b, v, dt)
	return b
}

func decode(dt tensor.DType, b []byte) []float32 {
	v := make([]float32, int64(len(b))/dt.Size())
	kernel.LoadFloats(v, b, dt)
	return v
}

// draw makes operands with many indices that are equal.
func (c *adding) draw(rng *rand.Rand) [][]byte {
	normal := func(n int64) []byte {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		return encode(c.dtype, v)
	}
	indices := make([]int32, c.count)
	for j := range indices {
		indices[j] = int32(rng.Int64N(rng.Int64N(c.rows) + 1))
	}
	in := [][]byte{device.BytesOf(indices), normal(c.outer * c.count * c.inner), nil, nil, normal(c.outer * c.rows * c.inner)}
	if c.alpha {
		in[Alpha] = normal(1)
	}
	if c.valid >= 0 {
		in[Valid] = device.BytesOf([]int32{c.valid})
	}
	return in
}

// want adds in float64 and returns the sums with bounds of their errors.
func (c *adding) want(in [][]byte) (sums, bounds []float64) {
	x, u, indices := decode(c.dtype, in[Variable]), decode(c.dtype, in[Updates]), device.View[int32](in[Indices])[:c.count]
	alpha, n := 1.0, c.count
	if c.alpha {
		alpha = float64(decode(c.dtype, in[Alpha])[0])
	}
	if c.valid >= 0 {
		n = int64(c.valid)
	}
	sums, bounds = make([]float64, len(x)), make([]float64, len(x))
	for i, v := range x {
		sums[i], bounds[i] = float64(v), math.Abs(float64(v))
	}
	terms := make([]float64, len(x))
	for o := range c.outer {
		for j := range n {
			for k := range c.inner {
				at := (o*c.rows+int64(indices[j]))*c.inner + k
				v := alpha * float64(u[(o*c.count+j)*c.inner+k])
				sums[at] += v
				bounds[at] += math.Abs(v)
				terms[at]++
			}
		}
	}
	for i := range bounds {
		// Every partial sum and product is rounded once, the result once more.
		bounds[i] = bounds[i]*(terms[i]+1)*0x1p-23 + math.Abs(sums[i])*ulp[c.dtype]
		if terms[i] == 0 {
			bounds[i] = 0
		}
	}
	return sums, bounds
}

var addings = []adding{
	{tensor.Float32, 1, 1, 1, 1, true, -1},
	{tensor.Float32, 1, 5, 7, 3, false, -1},
	{tensor.Float16, 1, 3, 130, 40, true, -1},
	{tensor.BFloat16, 1, 1, 1, 5000, false, 4999},
	{tensor.Float16, 1, 2, 2*piece + 77, 9, true, -1},
	{tensor.Float32, 1, 4, 4*piece + 1, 6, false, 5},
	{tensor.BFloat16, 1, 900, 33, 2000, false, 1500},
	{tensor.Float32, 70, 4, 5, 30, true, -1},
	{tensor.Float16, 300, 10, 1, 20, true, -1},
	{tensor.BFloat16, 3, 40, 65, 70, true, 0},
}

func TestAdd(t *testing.T) {
	for _, level := range cpu.Levels(cpu.Detected()) {
		restore := cpu.Limit(level)
		for i, c := range addings {
			t.Run(fmt.Sprintf("%s/%+v", level, c), func(t *testing.T) {
				in := c.draw(rand.New(rand.NewPCG(uint64(i), 25)))
				out := kerneltest.Run(t, kerneltest.Case{Kernel: chains, Problem: c.problem(), In: in, InPlace: map[int]int{0: Variable}})
				sums, bounds := c.want(in)
				for k, v := range decode(c.dtype, out[0]) {
					require.InDelta(t, sums[k], float64(v), bounds[k], "element %d", k)
				}
			})
		}
		restore()
	}
}

// TestSharesGiveTheSameBits cuts one problem in every way.
func TestSharesGiveTheSameBits(t *testing.T) {
	c := adding{tensor.Float16, 8, 6, 640, 50, true, -1}
	in, p := c.draw(rand.New(rand.NewPCG(3, 25))), c.problem()
	var first []byte
	for _, key := range []share{byOuter, byColumns, byRows} {
		for _, blocks := range []int{1, 3, 6} {
			p.Machine = kernel.Machine{Cores: 16}
			tilingBytes := device.BytesOf(make([]uint64, chains.TilingSize(&p)/8))
			_, err := chains.Tile(&p, tilingBytes)
			require.NoError(t, err)
			m := measure(&p, Params{Axis: 1})
			x := append([]byte(nil), in[Variable]...)
			a := device.Args{Tiling: tilingBytes, Key: uint64(key), Blocks: blocks, Scratch: device.Wrap(device.BytesOf(make([]int32, int64(blocks)*m.scratchWords())))}
			for _, b := range [][]byte{in[Indices], in[Updates], in[Alpha], nil, x, x} {
				a.Buffers = append(a.Buffers, device.Wrap(b))
			}
			for b := range blocks {
				require.NoError(t, chains.Program().Run(&a, b))
			}
			if first == nil {
				first = x
			}
			require.Equal(t, first, x, "key %d, %d blocks", key, blocks)
		}
	}
}

func TestAddReportsWhatDoesNotFit(t *testing.T) {
	for _, tt := range []struct {
		indices []int32
		valid   int32
		text    string
	}{
		{[]int32{0, 4, 9}, 3, "index 4 at position 1 is outside 0 to 3"},
		{[]int32{0, 3, -1}, 3, "index -1 at position 2 is outside 0 to 3"},
		{[]int32{0, 3, -1}, 4, "want 0 to 3 valid indices, got 4"},
		{[]int32{0, 3, -1}, -1, "want 0 to 3 valid indices, got -1"},
	} {
		c := adding{tensor.Float32, 1, 4, 2, 3, false, 3}
		in, p := c.draw(rand.New(rand.NewPCG(4, 25))), c.problem()
		p.Machine.Cores = 1
		tilingBytes := device.BytesOf(make([]uint64, chains.TilingSize(&p)/8))
		g, err := chains.Tile(&p, tilingBytes)
		require.NoError(t, err)
		x := append([]byte(nil), in[Variable]...)
		a := device.Args{Tiling: tilingBytes, Key: g.Key, Blocks: 1, Scratch: device.Wrap(device.BytesOf(make([]uint64, chains.Scratch(&p)/8+1)))}
		for _, b := range [][]byte{device.BytesOf(tt.indices), in[Updates], nil, device.BytesOf([]int32{tt.valid}), x, x} {
			a.Buffers = append(a.Buffers, device.Wrap(b))
		}
		err = chains.Program().Run(&a, 0)
		require.ErrorIs(t, err, status.ErrRuntimeFail)
		assert.ErrorContains(t, err, tt.text)
		assert.Equal(t, in[Variable], x, "nothing is written")
	}
	// What is not valid may be anything.
	c := adding{tensor.Float32, 1, 4, 2, 3, false, 1}
	in := c.draw(rand.New(rand.NewPCG(4, 25)))
	device.View[int32](in[Indices])[2] = -7
	out := kerneltest.Run(t, kerneltest.Case{Kernel: chains, Problem: c.problem(), In: in, InPlace: map[int]int{0: Variable}})
	sums, _ := c.want(in)
	for k, v := range decode(c.dtype, out[0]) {
		assert.InDelta(t, sums[k], float64(v), 1e-6)
	}
}

func TestAddRefuses(t *testing.T) {
	c := adding{tensor.Float16, 2, 4, 3, 5, true, 2}
	good := c.problem()
	require.NoError(t, chains.Supports(&good))
	for name, change := range map[string]func(p *kernel.Problem){
		"inputs":  func(p *kernel.Problem) { p.In = p.In[:4] },
		"output":  func(p *kernel.Problem) { p.Out = []tensor.Desc{tensor.Of(tensor.Float16, 2, 4, 4)} },
		"type":    func(p *kernel.Problem) { p.In[Variable].DType = tensor.Int32; p.Out[0].DType = tensor.Int32 },
		"axis":    func(p *kernel.Problem) { p.Params = Params{Axis: 3} },
		"below":   func(p *kernel.Problem) { p.Params = Params{Axis: -1} },
		"indices": func(p *kernel.Problem) { p.In[Indices].DType = tensor.Int64 },
		"count":   func(p *kernel.Problem) { p.In[Indices] = tensor.Of(tensor.Int32, 6) },
		"updates": func(p *kernel.Problem) { p.In[Updates].DType = tensor.Float32 },
		"alpha":   func(p *kernel.Problem) { p.In[Alpha] = tensor.Of(tensor.Float16, 2) },
		"valid":   func(p *kernel.Problem) { p.In[Valid] = tensor.Of(tensor.Int64, 1) },
		"params":  func(p *kernel.Problem) { p.Params = 1 },
	} {
		p := c.problem()
		change(&p)
		assert.Error(t, chains.Supports(&p), name)
	}
}

func TestAddAllocatesNothing(t *testing.T) {
	for _, dt := range []tensor.DType{tensor.Float32, tensor.BFloat16} {
		c := adding{dt, 2, 16, 700, 20, true, 19}
		in := c.draw(rand.New(rand.NewPCG(6, 25)))
		data := map[int][]byte{}
		for i, b := range in {
			if b != nil {
				data[i] = b
			}
		}
		data[inputs] = in[Variable]
		assert.Zero(t, testing.AllocsPerRun(10, kerneltest.Launch(t, Add, c.problem(), data)))
	}
}

func BenchmarkAdd(b *testing.B) {
	for _, c := range []adding{
		{tensor.Float16, 1, 1024, 2048, 8192, false, 8192},
		{tensor.Float32, 1, 512, 512, 1024, true, -1},
		{tensor.BFloat16, 4096, 10, 1, 20, true, -1},
	} {
		b.Run(fmt.Sprintf("type=%s/outer=%d/rows=%d/inner=%d/n=%d", c.dtype, c.outer, c.rows, c.inner, c.count), func(b *testing.B) {
			data := map[int][]byte{}
			for i, x := range c.draw(rand.New(rand.NewPCG(7, 25))) {
				if x != nil {
					data[i] = x
				}
			}
			data[inputs] = data[Variable]
			run := kerneltest.Launch(b, Add, c.problem(), data)
			for b.Loop() {
				run()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.outer*c.count*c.inner), "ns/element")
		})
	}
}
