package rope

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/kernel"
	"goatb/kernel/kerneltest"
	"goatb/tensor"
)

func decode(t tensor.DType, b []byte) []float64 {
	v, err := tensor.Float64s(b, t)
	if err != nil {
		panic(err)
	}
	return v
}

func round(t tensor.DType, v float64) float64 {
	return decode(t, tensor.FromFloat64s(t, []float64{v}))[0]
}

func values(seed uint64, t tensor.DType, n int64) ([]byte, []float64) {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	v := make([]float64, n)
	for i := range v {
		v[i] = r.NormFloat64()
	}
	b := tensor.FromFloat64s(t, v)
	return b, decode(t, b)
}

// ropeCase is a problem: types, sizes and parameters.
type ropeCase struct {
	x, angle                                  tensor.DType
	tokens, headsQ, headsK, head, width, coef int64
}

func (c *ropeCase) problem() kernel.Problem {
	q, k := tensor.Of(c.x, c.tokens, c.headsQ*c.head), tensor.Of(c.x, c.tokens, c.headsK*c.head)
	angle := tensor.Of(c.angle, c.tokens, c.width)
	return kernel.Problem{In: []tensor.Desc{q, k, angle, angle}, Out: []tensor.Desc{q, k}, Params: Params{Coeff: c.coef, Head: c.head}}
}

func (c *ropeCase) inputs() ([][]byte, [][]float64) {
	p := c.problem()
	data, v := make([][]byte, 4), make([][]float64, 4)
	for i := range data {
		data[i], v[i] = values(uint64(i)+uint64(c.head), p.In[i].DType, p.In[i].Numel())
	}
	return data, v
}

// turned is the definition: element i of a head with its partner in its group.
func (c *ropeCase) turned(x, cos, sin []float64, i int64) (product, cross float64) {
	if i >= c.width {
		return x[i], 0
	}
	half := c.width / c.coef
	g, within := i/(2*half)*2*half, i%(2*half)
	if within < half {
		return x[i] * cos[i], -x[g+within+half] * sin[i]
	}
	return x[i] * cos[i], x[g+within-half] * sin[i]
}

func (c *ropeCase) check(t *testing.T, v [][]float64, out [][]byte) {
	t.Helper()
	steps := c.x == tensor.Float16 && c.angle == tensor.Float16
	for o, heads := range []int64{c.headsQ, c.headsK} {
		got := decode(c.x, out[o])
		for e := range got {
			vec, i := int64(e)/c.head, int64(e)%c.head
			token := vec / heads
			x := v[o][vec*c.head : (vec+1)*c.head]
			a, b := c.turned(x, v[2][token*c.width:(token+1)*c.width], v[3][token*c.width:(token+1)*c.width], i)
			if steps {
				want := round(tensor.Float16, round(tensor.Float16, a)+round(tensor.Float16, b))
				require.Equal(t, want, got[e], "%+v output %d element %d", *c, o, e)
				continue
			}
			// Two products and a sum in float32, then one rounding.
			slack := 0x1p-23*(math.Abs(a)+math.Abs(b)) + math.Abs(round(c.x, a+b)-(a+b))
			require.LessOrEqual(t, math.Abs(got[e]-a-b), slack*1.01, "%+v output %d element %d: got %v, want %v", *c, o, e, got[e], a+b)
		}
	}
}

func runAll(t *testing.T, p kernel.Problem, in [][]byte, inPlace map[int]int) [][]byte {
	t.Helper()
	var out [][]byte
	for _, k := range Apply {
		require.NoError(t, k.Supports(&p))
		got := kerneltest.Run(t, kerneltest.Case{Kernel: k, Problem: p, In: in, InPlace: inPlace})
		if out != nil {
			require.Equal(t, out, got, k.Name())
		}
		out = got
	}
	return out
}

func TestApply(t *testing.T) {
	types := [][2]tensor.DType{
		{tensor.Float32, tensor.Float32}, {tensor.Float16, tensor.Float16}, {tensor.Float16, tensor.Float32},
		{tensor.BFloat16, tensor.BFloat16}, {tensor.BFloat16, tensor.Float32},
	}
	for _, d := range types {
		for _, c := range []ropeCase{
			{tokens: 1, headsQ: 1, headsK: 1, head: 2, width: 2, coef: 2},
			{tokens: 5, headsQ: 4, headsK: 2, head: 64, width: 64, coef: 2},
			{tokens: 3, headsQ: 2, headsK: 4, head: 64, width: 64, coef: 4},
			{tokens: 7, headsQ: 3, headsK: 1, head: 18, width: 18, coef: 18},
			{tokens: 7, headsQ: 3, headsK: 1, head: 24, width: 24, coef: 6},
			{tokens: 1, headsQ: 32, headsK: 8, head: 128, width: 128, coef: 2},
			{tokens: 5, headsQ: 8, headsK: 4, head: 8, width: 8, coef: 8},
			{tokens: 5, headsQ: 19, headsK: 3, head: 8, width: 8, coef: 8},
			{tokens: 3, headsQ: 5, headsK: 9, head: 14, width: 14, coef: 14},
			{tokens: 6, headsQ: 2, headsK: 2, head: 12, width: 8, coef: 2},
			{tokens: 6, headsQ: 2, headsK: 2, head: 13, width: 8, coef: 8},
		} {
			c.x, c.angle = d[0], d[1]
			in, v := c.inputs()
			out := runAll(t, c.problem(), in, nil)
			c.check(t, v, out)
			assert.Equal(t, out, runAll(t, c.problem(), in, map[int]int{0: 0, 1: 1}), "%+v in place", c)
		}
	}
}

// TestKnownRotations pins both styles at known numbers: position 7, base 10000.
func TestKnownRotations(t *testing.T) {
	angles := func(pos float64, inv ...float64) (cos, sin []float64) {
		for _, f := range inv {
			cos, sin = append(cos, math.Cos(pos*f)), append(sin, math.Sin(pos*f))
		}
		return cos, sin
	}
	for _, c := range []struct {
		name  string
		x     []float64
		pos   float64
		inv   []float64
		coeff int64
		want  []float64
	}{
		{"halves", []float64{1, 2, 3, 4}, 7, []float64{1, 0.01, 1, 0.01}, 2, []float64{-1.2170575, 1.7153306, 2.9186934, 4.1300897}},
		{"pairs", []float64{1, 2, 3, 4}, 7, []float64{1, 1, 0.01, 0.01}, 4, []float64{-0.5600709, 2.1647911, 2.7128816, 4.2000325}},
		{"the first two of four", []float64{5, 6, 7, 8}, 2, []float64{1, 1}, 2, []float64{-7.5365187, 2.0496061, 7, 8}},
	} {
		cos, sin := angles(c.pos, c.inv...)
		x, angle := tensor.Of(tensor.Float32, 1, 4), tensor.Of(tensor.Float32, 1, int64(len(c.inv)))
		data := tensor.FromFloat64s(tensor.Float32, c.x)
		p := kernel.Problem{In: []tensor.Desc{x, x, angle, angle}, Out: []tensor.Desc{x, x}, Params: Params{Coeff: c.coeff, Head: 4}}
		out := runAll(t, p, [][]byte{data, data, tensor.FromFloat64s(tensor.Float32, cos), tensor.FromFloat64s(tensor.Float32, sin)}, nil)
		assert.InDeltaSlice(t, c.want, decode(tensor.Float32, out[0]), 1e-6, c.name)
	}
}

func TestNotFinitePassesThrough(t *testing.T) {
	c := ropeCase{x: tensor.Float16, angle: tensor.Float16, tokens: 1, headsQ: 1, headsK: 1, head: 4, width: 4, coef: 2}
	in, _ := c.inputs()
	copy(in[0], tensor.FromFloat64s(tensor.Float16, []float64{math.Inf(1), math.NaN()}))
	copy(in[1], tensor.FromFloat64s(tensor.Float16, []float64{65504, 1}))
	copy(in[2], tensor.FromFloat64s(tensor.Float16, []float64{2, 1, 1, 1}))
	out := runAll(t, c.problem(), in, nil)
	q, k := decode(tensor.Float16, out[0]), decode(tensor.Float16, out[1])
	assert.True(t, math.IsInf(q[0], 1))
	assert.True(t, math.IsNaN(q[1]))
	assert.True(t, math.IsInf(k[0], 1), "65504·2 is beyond f16")
}

func TestRefusals(t *testing.T) {
	good := ropeCase{x: tensor.Float16, angle: tensor.Float16, tokens: 2, headsQ: 2, headsK: 1, head: 8, width: 8, coef: 2}
	for name, spoil := range map[string]func(p *kernel.Problem){
		"odd coefficient": func(p *kernel.Problem) { p.Params = Params{Coeff: 3, Head: 8} },
		"no coefficient":  func(p *kernel.Problem) { p.Params = Params{Coeff: 0, Head: 8} },
		"no divisor":      func(p *kernel.Problem) { p.Params = Params{Coeff: 6, Head: 8} },
		"narrow head":     func(p *kernel.Problem) { p.Params = Params{Coeff: 2, Head: 4} },
		"heads":           func(p *kernel.Problem) { p.In[opQ] = tensor.Of(tensor.Float16, 2, 12) },
		"tokens":          func(p *kernel.Problem) { p.In[opK] = tensor.Of(tensor.Float16, 3, 8) },
		"cos and sin":     func(p *kernel.Problem) { p.In[opSin] = tensor.Of(tensor.Float16, 2, 4) },
		"types":           func(p *kernel.Problem) { p.In[opK].DType = tensor.BFloat16 },
		"output":          func(p *kernel.Problem) { p.Out[0] = tensor.Of(tensor.Float32, 2, 16) },
	} {
		p := good.problem()
		require.NoError(t, apply.Supports(&p))
		spoil(&p)
		assert.Error(t, apply.Supports(&p), name)
	}
}
