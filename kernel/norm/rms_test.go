package norm

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

var floatTypes = []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16}

func decode(t tensor.DType, b []byte) []float64 {
	v, err := tensor.Float64s(b, t)
	if err != nil {
		panic(err)
	}
	return v
}

func values(seed uint64, t tensor.DType, n int64, spread float64) ([]byte, []float64) {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	v := make([]float64, n)
	for i := range v {
		v[i] = r.NormFloat64() * spread
	}
	b := tensor.FromFloat64s(t, v)
	return b, decode(t, b)
}

// lastPlace is the distance of neighbours of v in type d.
func lastPlace(d tensor.DType, v float64) float64 {
	bits, least := 23, -126
	switch d {
	case tensor.Float16:
		bits, least = 10, -14
	case tensor.BFloat16:
		bits = 7
	}
	if v != 0 {
		least = max(least, math.Ilogb(v))
	}
	return math.Ldexp(1, least-bits)
}

// rmsCase is a problem of RMS: which operands are there, their types and sizes.
type rmsCase struct {
	params                         RMSParams
	x, gamma, y                    tensor.DType
	rows, width                    int64
	residual, bias, beta, sum, std bool
}

func (c *rmsCase) problem() kernel.Problem {
	row := func(there bool, d tensor.DType) tensor.Desc {
		if !there {
			return tensor.Desc{}
		}
		return tensor.Of(d, c.width)
	}
	all := func(there bool, d tensor.DType) tensor.Desc {
		if !there {
			return tensor.Desc{}
		}
		return tensor.Of(d, c.rows, c.width)
	}
	p := kernel.Problem{
		In:     []tensor.Desc{all(true, c.x), all(c.residual, c.x), row(c.bias, c.gamma), row(true, c.gamma), row(c.beta, c.gamma)},
		Out:    []tensor.Desc{all(true, c.y), all(c.sum, c.x), {}},
		Params: c.params,
	}
	if c.std {
		p.Out[2] = tensor.Of(tensor.Float32, c.rows)
	}
	return p
}

// inputs gives random data, nil and zeros for what is absent.
func (c *rmsCase) inputs(p *kernel.Problem, spread float64) ([][]byte, [][]float64) {
	data, v := make([][]byte, len(p.In)), make([][]float64, len(p.In))
	for i := range p.In {
		if p.In[i].Empty() {
			continue
		}
		s := 1.0
		if i <= rmsBias {
			s = spread
		}
		data[i], v[i] = values(uint64(i)*7+uint64(c.width), p.In[i].DType, p.In[i].Numel(), s)
	}
	return data, v
}

func at(v []float64, i int64) float64 {
	if v == nil {
		return 0
	}
	return v[i]
}

// check compares a result with the definition. Float32 arithmetic may be off by
// a few times 2^-24 of the magnitudes that were added up.
func (c *rmsCase) check(t *testing.T, v [][]float64, out [][]byte) {
	t.Helper()
	y := decode(c.y, out[0])
	for r := range c.rows {
		s, mag, mean := make([]float64, c.width), make([]float64, c.width), 0.0
		for j := range c.width {
			e := r*c.width + j
			s[j] = v[rmsX][e] + at(v[rmsResidual], e) + at(v[rmsBias], j)
			mag[j] = math.Abs(v[rmsX][e]) + math.Abs(at(v[rmsResidual], e)) + math.Abs(at(v[rmsBias], j))
			mean += s[j] * s[j] / float64(c.width)
		}
		rstd := 1 / math.Sqrt(mean+float64(c.params.Eps))
		for j := range c.width {
			e, g := r*c.width+j, v[rmsGamma][j]
			if c.params.OnePlus {
				g++
			}
			want := s[j]*rstd*g + at(v[rmsBeta], j)
			slack := 0x1p-21 * (mag[j]*rstd*math.Abs(g) + math.Abs(at(v[rmsBeta], j)))
			if c.params.HalfSteps {
				slack += 0.51 * lastPlace(tensor.Float16, s[j]*rstd) * math.Abs(g)
			}
			require.LessOrEqual(t, math.Abs(y[e]-want), slack+0.5*lastPlace(c.y, want), "%+v: row %d element %d: got %v, want %v", *c, r, j, y[e], want)
			if c.sum {
				sum := decode(c.x, out[1][e*c.x.Size():(e+1)*c.x.Size()])[0]
				require.LessOrEqual(t, math.Abs(sum-s[j]), 0x1p-22*mag[j]+0.5*lastPlace(c.x, s[j]), "%+v: sum of row %d", *c, r)
			}
		}
		if c.std {
			require.InEpsilon(t, rstd, decode(tensor.Float32, out[2][4*r:4*r+4])[0], 1e-6, "%+v: rstd of row %d", *c, r)
		}
	}
}

func runRMS(t *testing.T, p kernel.Problem, in [][]byte, inPlace map[int]int) [][]byte {
	t.Helper()
	var out [][]byte
	for _, k := range RMS {
		require.NoError(t, k.Supports(&p))
		got := kerneltest.Run(t, kerneltest.Case{Kernel: k, Problem: p, In: in, InPlace: inPlace})
		if out != nil {
			require.Equal(t, out, got, k.Name())
		}
		out = got
	}
	return out
}

func TestRMS(t *testing.T) {
	sizes := [][2]int64{{1, 1}, {1, 64}, {3, 7}, {40, 33}, {5, 1000}, {2, 4097}}
	for _, d := range floatTypes {
		for _, g := range []tensor.DType{d, tensor.Float32} {
			for _, s := range sizes {
				base := rmsCase{params: RMSParams{Eps: 1e-5}, x: d, gamma: g, y: d, rows: s[0], width: s[1]}
				full, temp, plus := base, base, base
				full.residual, full.bias, full.sum = true, true, true
				temp.y, temp.beta, temp.residual, temp.std = tensor.Float32, true, true, true
				plus.params.OnePlus, plus.std, plus.beta = true, true, true
				for _, c := range []rmsCase{base, full, temp, plus} {
					p := c.problem()
					in, v := c.inputs(&p, 2)
					c.check(t, v, runRMS(t, p, in, nil))
				}
			}
		}
	}
}

func TestRMSInPlace(t *testing.T) {
	for _, d := range floatTypes {
		c := rmsCase{params: RMSParams{Eps: 1e-5}, x: d, gamma: d, y: d, rows: 9, width: 65, residual: true, bias: true, sum: true}
		p := c.problem()
		in, _ := c.inputs(&p, 2)
		apart := runRMS(t, p, in, nil)
		assert.Equal(t, apart, runRMS(t, p, in, map[int]int{0: rmsX, 1: rmsResidual}), "%s", d)
		assert.Equal(t, apart, runRMS(t, p, in, map[int]int{0: rmsResidual, 1: rmsX}), "%s", d)
	}
}

// TestRMSAroundTheCaches computes with a last-level cache that holds nothing.
func TestRMSAroundTheCaches(t *testing.T) {
	for _, d := range floatTypes {
		for _, width := range []int64{1, 65, 1000} {
			c := rmsCase{params: RMSParams{Eps: 1e-5}, x: d, gamma: d, y: d, rows: 7, width: width}
			p := c.problem()
			in, _ := c.inputs(&p, 2)
			want := runRMS(t, p, in, nil)
			p.Machine = kernel.Machine{L1: 32 << 10, L2: 1 << 20, L3: 1}
			assert.Equal(t, want, runRMS(t, p, in, nil), "%s", d)
			assert.Equal(t, want, runRMS(t, p, in, map[int]int{0: rmsX}), "%s in place", d)
		}
	}
}

func TestRMSHalfSteps(t *testing.T) {
	for _, width := range []int64{1, 33, 4096} {
		c := rmsCase{params: RMSParams{Eps: 1e-5, HalfSteps: true}, x: tensor.Float16, gamma: tensor.Float16, y: tensor.Float16, rows: 3, width: width}
		p := c.problem()
		in, v := c.inputs(&p, 2)
		out := runRMS(t, p, in, nil)
		c.check(t, v, out)
		c.params.HalfSteps = false
		p = c.problem()
		if width == 4096 {
			assert.NotEqual(t, out, runRMS(t, p, in, nil), "rounding in between shows")
		}
	}
}

func TestRMSRowDoesNotDependOnItsBatch(t *testing.T) {
	c := rmsCase{params: RMSParams{Eps: 1e-5}, x: tensor.BFloat16, gamma: tensor.BFloat16, y: tensor.BFloat16, rows: 37, width: 130}
	p := c.problem()
	in, _ := c.inputs(&p, 2)
	all := runRMS(t, p, in, nil)[0]
	c.rows = 1
	p = c.problem()
	n := c.width * 2
	in[0] = in[0][20*n : 21*n]
	assert.Equal(t, all[20*n:21*n], runRMS(t, p, in, nil)[0])
}

// constant is a problem of equal elements.
func constant(d tensor.DType, width int64, x, eps float64) (kernel.Problem, [][]byte) {
	c := rmsCase{params: RMSParams{Eps: float32(eps)}, x: d, gamma: d, y: d, rows: 1, width: width}
	p := c.problem()
	xs, ones := make([]float64, width), make([]float64, width)
	for i := range xs {
		xs[i], ones[i] = x, 1
	}
	return p, [][]byte{tensor.FromFloat64s(d, xs), nil, nil, tensor.FromFloat64s(d, ones), nil}
}

func TestRMSRange(t *testing.T) {
	for _, c := range []struct {
		name      string
		dtype     tensor.DType
		x, eps    float64
		want, tol float64
	}{
		{"squares beyond f16", tensor.Float16, 300, 1e-5, 1, 1e-3},
		{"small bf16 with its own eps", tensor.BFloat16, 0.05, 1e-5, 0.9980060, 0x1p-8},
		{"squares beyond f32", tensor.Float32, 1e30, 1e-5, 1, 1e-6},
		{"squares below f32", tensor.Float32, 1e-30, 1e-12, 1e-24, 1e-29},
		{"zeros", tensor.Float16, 0, 1e-5, 0, 0},
	} {
		p, in := constant(c.dtype, 4, c.x, c.eps)
		for _, y := range decode(c.dtype, runRMS(t, p, in, nil)[0]) {
			assert.InDelta(t, c.want, y, c.tol, c.name)
		}
	}
}

func TestRMSResidualBeyondHalfSquares(t *testing.T) {
	c := rmsCase{params: RMSParams{Eps: 1e-5}, x: tensor.Float16, gamma: tensor.Float16, y: tensor.Float16, rows: 1, width: 2048, residual: true, sum: true}
	p := c.problem()
	_, in := constant(tensor.Float16, 2048, 90, 1e-5)
	in[rmsResidual] = in[rmsX]
	out := runRMS(t, p, in, nil)
	assert.InDelta(t, 1, decode(tensor.Float16, out[0])[2047], 1e-3)
	assert.Equal(t, 180.0, decode(tensor.Float16, out[1])[0])
}

func TestRMSNotFinite(t *testing.T) {
	for _, d := range floatTypes {
		p, in := constant(d, 5, 1, 1e-5)
		for _, bad := range []float64{math.NaN(), math.Inf(1)} {
			copy(in[0], tensor.FromFloat64s(d, []float64{bad}))
			y := decode(d, runRMS(t, p, in, nil)[0])
			assert.True(t, math.IsNaN(y[0]), "%s: Inf/Inf and NaN give NaN", d)
			if math.IsInf(bad, 0) {
				assert.Equal(t, []float64{0, 0, 0, 0}, y[1:], "%s: 1/Inf", d)
			}
		}
	}
}

func TestRMSRefuses(t *testing.T) {
	good := rmsCase{params: RMSParams{Eps: 1e-5}, x: tensor.Float16, gamma: tensor.Float16, y: tensor.Float16, rows: 2, width: 4, beta: true, std: true}
	for name, spoil := range map[string]func(p *kernel.Problem){
		"width":     func(p *kernel.Problem) { p.In[rmsGamma] = tensor.Of(tensor.Float16, 3) },
		"no gamma":  func(p *kernel.Problem) { p.In[rmsGamma] = tensor.Desc{} },
		"integers":  func(p *kernel.Problem) { p.In[rmsX].DType = tensor.Int8 },
		"beta":      func(p *kernel.Problem) { p.In[rmsBeta] = tensor.Of(tensor.Float16, 5) },
		"no output": func(p *kernel.Problem) { p.Out[0] = tensor.Desc{} },
		"rstd type": func(p *kernel.Problem) { p.Out[2].DType = tensor.Float16 },
		"rstd size": func(p *kernel.Problem) { p.Out[2] = tensor.Of(tensor.Float32, 3) },
		"steps":     func(p *kernel.Problem) { p.Params = RMSParams{HalfSteps: true} },
		"operands":  func(p *kernel.Problem) { p.In = p.In[:4] },
	} {
		p := good.problem()
		require.NoError(t, rms.Supports(&p))
		spoil(&p)
		assert.Error(t, rms.Supports(&p), name)
	}
}
