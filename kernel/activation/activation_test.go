package activation

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/kernel/kerneltest"
	"goatb/tensor"
)

var floatTypes = []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16}

// special are values that every function meets in its first elements.
var special = []float64{0, 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), 1e-42, -1e-7, 6e-8, -20, 20, -90, 90, -500, 500}

func values(seed uint64, t tensor.DType, n int64) ([]byte, []float64) {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	v := make([]float64, n)
	for i := range v {
		v[i] = r.NormFloat64() * 4
	}
	if n > 100 {
		copy(v, special)
	}
	b := tensor.FromFloat64s(t, v)
	return b, decode(t, b)
}

func decode(t tensor.DType, b []byte) []float64 {
	v, err := tensor.Float64s(b, t)
	if err != nil {
		panic(err)
	}
	return v
}

// requireClose checks got against exact values: off by at most places last
// places of type d, and equal where not finite.
func requireClose(t *testing.T, d tensor.DType, want []float64, got []byte, places float64, what string) {
	t.Helper()
	rounded := decode(d, tensor.FromFloat64s(d, want))
	bits, least := 23, -126
	switch d {
	case tensor.Float16:
		bits, least = 10, -14
	case tensor.BFloat16:
		bits = 7
	}
	for i, g := range decode(d, got) {
		w := want[i]
		if math.IsNaN(w) || math.IsInf(rounded[i], 0) || math.IsInf(g, 0) || math.IsNaN(g) {
			require.Equal(t, fmt.Sprint(rounded[i]), fmt.Sprint(g), "%s %s: element %d", what, d, i)
			continue
		}
		exp := least
		if w != 0 {
			exp = max(exp, math.Ilogb(w))
		}
		require.LessOrEqual(t, math.Abs(g-w), places*math.Ldexp(1, exp-bits), "%s %s: element %d: got %v, want %v", what, d, i, g, w)
	}
}

func run(t *testing.T, table kernel.Table, p kernel.Problem, in [][]byte, inPlace map[int]int) []byte {
	t.Helper()
	var out []byte
	for _, k := range table {
		require.NoError(t, k.Supports(&p))
		out = kerneltest.Run(t, kerneltest.Case{Kernel: k, Problem: p, In: in, InPlace: inPlace})[0]
	}
	return out
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func silu(x float64) float64 {
	if x < -700 {
		return 0
	}
	return x * sigmoid(x)
}

// refs are the functions by their definition; negative infinity has its limit.
var refs = [numFuncs]func(x float64) float64{
	Relu: func(x float64) float64 { return max(x, 0) },
	GeluTanh: func(x float64) float64 {
		if x < -30 {
			return 0
		}
		z := math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x)
		return x / (1 + math.Exp(-2*z))
	},
	GeluErf: func(x float64) float64 {
		if x < -30 {
			return 0
		}
		return 0.5 * x * math.Erfc(-x/math.Sqrt2)
	},
	Swish: func(x float64) float64 {
		if x < -400 {
			return 0
		}
		return x * sigmoid(1.702*x)
	},
	Sigmoid: sigmoid,
	Log:     math.Log,
}

// f32Places are the largest errors in float32, those of package vec. Far out in
// the tail two exponents are off: that of GeluTanh, and that of Swish by 1.702
// as float32, which is off by 2^-25 and multiplies x.
var f32Places = [numFuncs]float64{Relu: 0.5, GeluTanh: 165, GeluErf: 5, Swish: 100, Sigmoid: 2.5, Log: 0.9}

func TestUnary(t *testing.T) {
	for _, d := range floatTypes {
		for f, ref := range refs {
			for i, n := range []int64{1, 63, 64, 1000, 1024, 1025, 9000} {
				data, x := values(uint64(i), d, n)
				want := make([]float64, n)
				for j := range x {
					want[j] = ref(x[j])
				}
				desc := []tensor.Desc{tensor.Of(d, n)}
				p := kernel.Problem{In: desc, Out: desc, Params: Params{Func(f), 1.702}}
				out := run(t, Unary, p, [][]byte{data}, nil)
				places := 0.53
				if d == tensor.Float32 {
					places = f32Places[f]
				}
				requireClose(t, d, want, out, places, fmt.Sprint("function ", f))
				assert.Equal(t, out, run(t, Unary, p, [][]byte{data}, map[int]int{0: 0}), "in place")
			}
		}
	}
}

// halves are rows and half widths around pieces.
var halves = [][2]int64{{1, 1}, {3, 5}, {7, 64}, {2, 1024}, {1, 5000}, {33, 100}}

func TestSwiGLU(t *testing.T) {
	for _, d := range floatTypes {
		for i, s := range halves {
			rows, h := s[0], s[1]
			data, x := values(uint64(i), d, rows*2*h)
			want := make([]float64, rows*h)
			for j := range want {
				r, c := int64(j)/h, int64(j)%h
				want[j] = silu(x[r*2*h+c]) * x[r*2*h+h+c]
			}
			p := kernel.Problem{In: []tensor.Desc{tensor.Of(d, rows, 2*h)}, Out: []tensor.Desc{tensor.Of(d, rows, h)}, Params: struct{}{}}
			places := 0.53
			if d == tensor.Float32 {
				places = 4 // package vec's silu and a product
			}
			requireClose(t, d, want, run(t, SwiGLU, p, [][]byte{data}, nil), places, "swiglu")
		}
	}
}

func TestSwiGLUGrad(t *testing.T) {
	for _, d := range floatTypes {
		for i, s := range halves {
			rows, h := s[0], s[1]
			data, x := values(uint64(i), d, rows*2*h)
			grad, dy := values(uint64(i)+20, d, rows*h)
			want := make([]float64, rows*2*h)
			for j := range dy {
				r, c := int64(j)/h, int64(j)%h
				a, b := x[r*2*h+c], x[r*2*h+h+c]
				gate := min(max(a, -300), 300)
				s := sigmoid(gate)
				want[r*2*h+c] = dy[j] * b * (s + gate*s*(1-s))
				want[r*2*h+h+c] = dy[j] * max(a, -300) * s
			}
			p := kernel.Problem{In: []tensor.Desc{tensor.Of(d, rows, h), tensor.Of(d, rows, 2*h)}, Out: []tensor.Desc{tensor.Of(d, rows, 2*h)}, Params: struct{}{}}
			out := run(t, SwiGLUGrad, p, [][]byte{grad, data}, nil)
			// 1+gate·(1-s) cancels near its zero at -1.28: the float32 result
			// there keeps an absolute error of 2^-30.
			requireClose(t, d, want, out, 2, "swiglu gradient")
			assert.Equal(t, out, run(t, SwiGLUGrad, p, [][]byte{grad, data}, map[int]int{0: 1}), "in place of x")
		}
	}
}

func TestFirstHalfIsTheGate(t *testing.T) {
	p := kernel.Problem{In: []tensor.Desc{tensor.Of(tensor.Float32, 1, 2)}, Out: []tensor.Desc{tensor.Of(tensor.Float32, 1, 1)}, Params: struct{}{}}
	out := run(t, SwiGLU, p, [][]byte{tensor.FromFloat64s(tensor.Float32, []float64{1, 2})}, nil)
	assert.InDelta(t, 1.4621172, decode(tensor.Float32, out)[0], 1e-7)
}

func TestRefusals(t *testing.T) {
	d := func(t tensor.DType, dims ...int64) tensor.Desc { return tensor.Of(t, dims...) }
	for _, c := range []struct {
		table   kernel.Table
		params  any
		in, out []tensor.Desc
	}{
		{Unary, Params{}, []tensor.Desc{d(tensor.Int8, 4)}, []tensor.Desc{d(tensor.Int8, 4)}},
		{Unary, Params{}, []tensor.Desc{d(tensor.Float32, 4)}, []tensor.Desc{d(tensor.Float16, 4)}},
		{Unary, Params{}, []tensor.Desc{d(tensor.Float32, 4)}, []tensor.Desc{d(tensor.Float32, 5)}},
		{Unary, Params{Func: numFuncs}, []tensor.Desc{d(tensor.Float32, 4)}, []tensor.Desc{d(tensor.Float32, 4)}},
		{SwiGLU, struct{}{}, []tensor.Desc{d(tensor.Float32, 4)}, []tensor.Desc{d(tensor.Float32, 4)}},
		{SwiGLU, struct{}{}, []tensor.Desc{d(tensor.Float32, 5)}, []tensor.Desc{d(tensor.Float32, 2)}},
		{SwiGLUGrad, struct{}{}, []tensor.Desc{d(tensor.Float32, 2, 2), d(tensor.Float32, 2, 4)}, []tensor.Desc{d(tensor.Float32, 2, 2)}},
		{SwiGLUGrad, struct{}{}, []tensor.Desc{d(tensor.Float32, 2, 2)}, []tensor.Desc{d(tensor.Float32, 2, 4)}},
	} {
		p := kernel.Problem{In: c.in, Out: c.out, Params: c.params}
		_, _, err := c.table.Select(&p, kernel.Filter{})
		assert.Error(t, err, "%v -> %v", c.in, c.out)
	}
}

// launch prepares one block of a kernel on plain memory.
func launch(t testing.TB, table kernel.Table, p kernel.Problem) func() {
	p.Machine = kernel.Machine{Cores: 1}
	k, _, err := table.Select(&p, kernel.Filter{})
	require.NoError(t, err)
	var a device.Args
	for _, descs := range [][]tensor.Desc{p.In, p.Out} {
		for i := range descs {
			b, _ := values(uint64(i), descs[i].DType, descs[i].Numel())
			a.Buffers = append(a.Buffers, device.Wrap(b))
		}
	}
	a.Scratch = device.Wrap(device.BytesOf(make([]uint64, (k.Scratch(&p)+7)/8)))
	a.Tiling = device.BytesOf(make([]uint64, k.TilingSize(&p)/8))
	g, err := k.Tile(&p, a.Tiling)
	require.NoError(t, err)
	a.Key, a.Blocks = g.Key, g.Blocks
	run := k.Program().Run
	return func() {
		if err := run(&a, 0); err != nil {
			t.Error(err)
		}
	}
}

func cases(d tensor.DType, rows, h int64) map[string]struct {
	table kernel.Table
	p     kernel.Problem
} {
	type c = struct {
		table kernel.Table
		p     kernel.Problem
	}
	wide, half := []tensor.Desc{tensor.Of(d, rows, 2*h)}, []tensor.Desc{tensor.Of(d, rows, h)}
	return map[string]c{
		"swiglu":      {SwiGLU, kernel.Problem{In: wide, Out: half, Params: struct{}{}}},
		"swiglu-grad": {SwiGLUGrad, kernel.Problem{In: append(half[:1:1], wide...), Out: wide, Params: struct{}{}}},
		"gelu":        {Unary, kernel.Problem{In: half, Out: half, Params: Params{Func: GeluTanh}}},
		"relu":        {Unary, kernel.Problem{In: half, Out: half, Params: Params{Func: Relu}}},
	}
}

func TestRunsDoNotAllocate(t *testing.T) {
	for _, d := range floatTypes {
		for name, c := range cases(d, 2, 1500) {
			assert.Zero(t, testing.AllocsPerRun(10, launch(t, c.table, c.p)), "%s %s", name, d)
		}
	}
}

func BenchmarkActivation(b *testing.B) {
	for _, d := range floatTypes {
		for _, s := range [][2]int64{{1, 64}, {1, 11008}, {64, 4096}} {
			all := cases(d, s[0], s[1])
			for _, name := range slices.Sorted(maps.Keys(all)) {
				c := all[name]
				b.Run(fmt.Sprintf("f=%s/dtype=%s/rows=%d/h=%d", name, d, s[0], s[1]), func(b *testing.B) {
					run, bytes := launch(b, c.table, c.p), c.p.Out[0].Bytes()
					for i := range c.p.In {
						bytes += c.p.In[i].Bytes()
					}
					b.SetBytes(bytes)
					for b.Loop() {
						run()
					}
				})
			}
		}
	}
}
