package softmax

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/kernel/kerneltest"
	"goatb/tensor"
)

// bound is the error against float64 that a type allows, relative to 1: what
// package vec says of the last place of the result, which is at most 1, and for
// f32 the rounding of the reciprocal, the product and the sum.
var bound = map[tensor.DType]float64{tensor.Float32: 3e-7, tensor.Float16: 1.1 * 0x1p-12, tensor.BFloat16: 1.1 * 0x1p-9}

// encode stores floats as type t.
func encode(t tensor.DType, v []float32) []byte {
	b := device.BytesOf(make([]uint64, (int64(len(v))*t.Size()+7)/8))[:int64(len(v))*t.Size()]
	kernel.StoreFloats(b, v, t)
	return b
}

func decode(t tensor.DType, b []byte) []float32 {
	v := make([]float32, int64(len(b))/t.Size())
	kernel.LoadFloats(v, b, t)
	return v
}

// reference is the softmax in float64.
func reference(x []float32, v View) []float64 {
	y := make([]float64, len(x))
	for o := range v.Outer {
		for i := range v.Inner {
			at := func(k int64) int64 { return (o*v.Length+k)*v.Inner + i }
			top, sum := math.Inf(-1), 0.0
			for k := range v.Length {
				top = max(top, float64(x[at(k)]))
			}
			if math.IsInf(top, -1) {
				continue
			}
			for k := range v.Length {
				y[at(k)] = math.Exp(float64(x[at(k)]) - top)
				sum += y[at(k)]
			}
			for k := range v.Length {
				y[at(k)] /= sum
			}
		}
	}
	return y
}

func problem(t tensor.DType, v View) kernel.Problem {
	d := []tensor.Desc{tensor.Of(t, v.Outer, v.Length, v.Inner)}
	return kernel.Problem{In: d, Out: d, Params: v}
}

func compare(t *testing.T, dt tensor.DType, want []float64, got []byte) {
	t.Helper()
	for i, g := range decode(dt, got) {
		if math.IsNaN(want[i]) {
			require.True(t, math.IsNaN(float64(g)), "element %d: want NaN, got %g", i, g)
			continue
		}
		require.InDelta(t, want[i], float64(g), bound[dt], "element %d", i)
	}
}

var views = []View{
	{1, 1, 1}, {3, 1, 1}, {1, 7, 1}, {5, 64, 1}, {17, 33, 1}, {4, 1000, 1}, {2, Chunk + 5, 1},
	{1, 2, 3}, {3, 5, 16}, {2, 16, 17}, {2, 100, 33}, {1, 4096, 19}, {1, 2 * Chunk, 2}, {200, 3, 5},
}

func TestSoftmax(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for dt := range bound {
		for _, v := range views {
			x := make([]float32, v.Outer*v.Length*v.Inner)
			for i := range x {
				x[i] = float32(rng.NormFloat64()) * 8
				if rng.IntN(9) == 0 {
					x[i] = float32(math.Inf(-1))
				}
			}
			in := encode(dt, x)
			want := reference(decode(dt, in), v)
			p := problem(dt, v)
			var first []byte
			for _, k := range Whole {
				if k.Supports(&p) != nil {
					require.NotEqual(t, int64(1), v.Inner)
					continue
				}
				out := kerneltest.Run(t, kerneltest.Case{Kernel: k, Problem: p, In: [][]byte{in}})[0]
				compare(t, dt, want, out)
				same := kerneltest.Run(t, kerneltest.Case{Kernel: k, Problem: p, In: [][]byte{in}, InPlace: map[int]int{0: 0}})[0]
				require.Equal(t, out, same, "%s in place", k.Name())
				if dt != tensor.Float32 {
					continue // columns are computed in float32, with a smaller error
				}
				if first == nil {
					first = out
				}
				require.Equal(t, first, out, "%s differs", k.Name())
			}
		}
	}
}

func TestSoftmaxEdges(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	x := []float32{
		-inf, -inf, -inf,
		1, nan, 2,
		inf, 0, 1,
		-inf, 0, -inf,
		3e38, -3e38, 3e38,
		-inf, nan, -inf,
	}
	n := float64(nan)
	want := []float64{0, 0, 0, n, n, n, n, n, n, 0, 1, 0, 0.5, 0, 0.5, n, n, n}
	v := View{6, 3, 1}
	p := problem(tensor.Float32, v)
	for _, k := range Whole {
		compare(t, tensor.Float32, want, kerneltest.Run(t, kerneltest.Case{Kernel: k, Problem: p, In: [][]byte{encode(tensor.Float32, x)}})[0])
	}
}

// runParts runs the three launches.
func runParts(t *testing.T, dt tensor.DType, v View, in []byte) []byte {
	t.Helper()
	n := chunks(v.Length)
	x, e, c := tensor.Of(dt, v.Outer, v.Length), tensor.Of(tensor.Float32, v.Outer, v.Length), tensor.Of(tensor.Float32, v.Outer, n)
	run := func(table kernel.Table, in, out []tensor.Desc, data ...[]byte) [][]byte {
		return kerneltest.Run(t, kerneltest.Case{Kernel: table[0], Problem: kernel.Problem{In: in, Out: out, Params: v}, In: data})
	}
	top := run(Max, []tensor.Desc{x}, []tensor.Desc{c}, in)[0]
	parts := run(Exp, []tensor.Desc{x, c}, []tensor.Desc{e, c}, in, top)
	return run(Normalise, []tensor.Desc{e, c}, []tensor.Desc{x}, parts[0], parts[1])[0]
}

func TestPartsGiveTheBitsOfOneLaunch(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 2))
	for dt := range bound {
		for _, v := range []View{{1, 4*Chunk + 17, 1}, {3, 2 * Chunk, 1}, {2, 5, 1}} {
			x := make([]float32, v.Outer*v.Length)
			for i := range x {
				x[i] = float32(rng.NormFloat64()) * 3
			}
			if v.Outer > 1 {
				for i := range v.Length {
					x[i] = float32(math.Inf(-1))
				}
			}
			in := encode(dt, x)
			p := problem(dt, v)
			want := kerneltest.Run(t, kerneltest.Case{Kernel: rows, Problem: p, In: [][]byte{in}, Workers: []int{1}})[0]
			require.Equal(t, want, runParts(t, dt, v, in), "%s %v", dt, v)
		}
	}
}

func TestPartsOnlyForFewLongRows(t *testing.T) {
	m := kernel.Machine{Cores: 4}
	for _, c := range []struct {
		v    View
		want bool
	}{
		{View{1, 16 * Chunk, 1}, true}, {View{3, 4 * Chunk, 1}, true}, {View{4, 16 * Chunk, 1}, false},
		{View{1, 7 * Chunk, 1}, false}, {View{1, 16 * Chunk, 2}, false}, {View{1, 100, 1}, false},
	} {
		_, ok := Parts(m, c.v)
		assert.Equal(t, c.want, ok, "%v", c.v)
	}
}

func TestRefusals(t *testing.T) {
	good := problem(tensor.Float32, View{2, 3, 4})
	for name, change := range map[string]func(p *kernel.Problem){
		"type":     func(p *kernel.Problem) { p.In = []tensor.Desc{tensor.Of(tensor.Int32, 24)} },
		"output":   func(p *kernel.Problem) { p.Out = []tensor.Desc{tensor.Of(tensor.Float16, 24)} },
		"count":    func(p *kernel.Problem) { p.Out = nil },
		"view":     func(p *kernel.Problem) { p.Params = View{2, 3, 5} },
		"zero":     func(p *kernel.Problem) { p.Params = View{0, 3, 4} },
		"overflow": func(p *kernel.Problem) { p.Params = View{1 << 32, 1 << 32, 24} },
	} {
		p := good
		change(&p)
		for _, k := range Whole {
			assert.Error(t, k.Supports(&p), "%s: %s", name, k.Name())
		}
		for _, table := range []kernel.Table{Max, Exp, Normalise} {
			assert.Error(t, table[0].Supports(&p), "%s: %s", name, table[0].Name())
		}
	}
	require.NoError(t, columns.Supports(&good))
	assert.ErrorContains(t, rows.Supports(&good), "stride")
	assert.ErrorContains(t, chunkMax.Supports(&good), "stride")
}
