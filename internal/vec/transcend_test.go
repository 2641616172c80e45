package vec

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unary is a function under test with its float64 reference.
type unary struct {
	name string
	f    func(dst, src []float32)
	ref  func(x float64) float64
	// limit bounds |x| of the samples, 0 for all floats.
	limit float64
}

func swishRef(scale float64) func(float64) float64 {
	return func(x float64) float64 {
		if z := scale * x; z < -700 {
			return math.Copysign(0, x)
		}
		return x / (1 + math.Exp(-scale*x))
	}
}

var unaries = []unary{
	{"exp", Exp, math.Exp, 0},
	{"sigmoid", Sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 0},
	{"silu", Silu, swishRef(1), 0},
	{"swish 1.702", func(d, s []float32) { Swish(d, s, 1.702) }, swishRef(float64(float32(1.702))), 0},
	{"swish -0.5", func(d, s []float32) { Swish(d, s, -0.5) }, swishRef(-0.5), 0},
	{"tanh", Tanh, math.Tanh, 0},
	{"gelu tanh", GeluTanh, func(x float64) float64 {
		z := 2 * math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x)
		if z < -700 {
			return math.Copysign(0, x)
		}
		return x / (1 + math.Exp(-z))
	}, 0},
	{"gelu erf", GeluErf, func(x float64) float64 {
		if x < -30 {
			return math.Copysign(0, x)
		}
		return x * 0.5 * math.Erfc(-x/math.Sqrt2)
	}, 0},
	{"log", Log, math.Log, 0},
	{"sin", Sin, math.Sin, 1 << 21},
	{"cos", Cos, math.Cos, 1 << 21},
}

// ulps is the distance of got from the exact value in units of the exact
// value's last float32 place.
func ulps(got float32, exact float64) float64 {
	g := float64(got)
	if math.IsNaN(exact) || math.IsNaN(g) {
		if math.IsNaN(exact) == math.IsNaN(g) {
			return 0
		}
		return math.Inf(1)
	}
	if float32(exact) == got {
		if math.IsInf(g, 0) {
			return 0
		}
	} else if math.IsInf(g, 0) {
		return math.Inf(1)
	}
	exp := math.Ilogb(exact)
	if exact == 0 || exp < -126 {
		exp = -126
	}
	return math.Abs(g-exact) / math.Ldexp(1, exp-23)
}

func TestUnaryError(t *testing.T) {
	const (
		batch = 4096
		step  = 1201 // a prime, so that all exponents and low bits occur
	)
	src, dst := make([]float32, 0, batch), make([]float32, batch)
	for _, u := range unaries {
		t.Run(u.name, func(t *testing.T) {
			worst, at := 0.0, float32(0)
			for bits := uint64(0); bits < 1<<32; {
				src = src[:0]
				for ; len(src) < batch && bits < 1<<32; bits += step {
					if x := math.Float32frombits(uint32(bits)); u.limit == 0 || math.Abs(float64(x)) <= u.limit {
						src = append(src, x)
					}
				}
				u.f(dst, src)
				for i, x := range src {
					if e := ulps(dst[i], u.ref(float64(x))); !(e <= worst) {
						worst, at = e, x
					}
				}
			}
			t.Logf("largest error %.4f ulp at %v", worst, at)
			assert.Less(t, worst, 0.6, "at %v", at)
		})
	}
}

func TestUnarySpecialValues(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	zero, minus := float32(0), float32(math.Copysign(0, -1))
	tiny := math.Float32frombits(1)
	for _, c := range []struct {
		name string
		f    func(dst, src []float32)
		// want holds the results for NaN, Inf, -Inf, 0, -0 and the smallest
		// subnormal.
		want [6]float32
	}{
		{"exp", Exp, [6]float32{nan, inf, 0, 1, 1, 1}},
		{"sigmoid", Sigmoid, [6]float32{nan, 1, 0, 0.5, 0.5, 0.5}},
		{"silu", Silu, [6]float32{nan, inf, minus, zero, minus, tiny / 2}},
		{"tanh", Tanh, [6]float32{nan, 1, -1, zero, zero, tiny}},
		{"gelu tanh", GeluTanh, [6]float32{nan, inf, minus, zero, minus, tiny / 2}},
		{"gelu erf", GeluErf, [6]float32{nan, inf, minus, zero, zero, tiny / 2}},
		{"log", Log, [6]float32{nan, inf, nan, -inf, -inf, float32(-149 * math.Ln2)}},
		{"sin", Sin, [6]float32{nan, nan, nan, zero, minus, tiny}},
		{"cos", Cos, [6]float32{nan, nan, nan, 1, 1, 1}},
	} {
		src := []float32{nan, inf, -inf, zero, minus, tiny}
		c.f(src, src)
		for i, want := range c.want {
			if math.IsNaN(float64(want)) {
				assert.True(t, math.IsNaN(float64(src[i])), "%s value %d: got %v", c.name, i, src[i])
				continue
			}
			assert.Equal(t, want, src[i], "%s value %d", c.name, i)
		}
	}
}

func TestExpOfIsExp(t *testing.T) {
	for _, x := range []float32{0, 1, -1, 88.7, 88.8, -87.5, -103.9, -104, 104, 1e30, -1e30} {
		dst := []float32{x}
		Exp(dst, dst)
		assert.Equal(t, dst[0], ExpOf(x), "at %v", x)
	}
	assert.True(t, math.IsNaN(float64(ExpOf(float32(math.NaN())))))
}

func TestExpSum(t *testing.T) {
	inf := float32(math.Inf(1))
	for n := range 40 {
		src, dst := make([]float32, n), make([]float32, n)
		largest, sum := -inf, 0.0
		for i := range src {
			src[i] = float32(math.Sin(float64(7*i))) * 20
			largest = max(largest, src[i])
		}
		for _, x := range src {
			sum += math.Exp(float64(x) - float64(largest))
		}
		got := ExpSum(dst, src, largest)
		assert.InDelta(t, sum, got, sum*0x1p-23, "length %d", n)
		for i, x := range src {
			require.LessOrEqual(t, ulps(dst[i], math.Exp(float64(x)-float64(largest))), 0.6, "length %d element %d", n, i)
		}
	}
}

func TestExpSumMasked(t *testing.T) {
	inf := float32(math.Inf(1))
	row := []float32{-inf, 0, -inf, -200, 1}
	got := ExpSum(row, row, 1)
	assert.InDelta(t, 1+math.Exp(-1), got, 1e-7)
	assert.Equal(t, []float32{0, float32(math.Exp(-1)), 0, 0, 1}, row)

	all := []float32{-inf, -inf, -inf}
	assert.Zero(t, ExpSum(all, all, -inf))
	assert.Equal(t, []float32{0, 0, 0}, all)

	bad := []float32{0, float32(math.NaN()), 1}
	assert.True(t, math.IsNaN(float64(ExpSum(bad, bad, 1))))
	assert.True(t, math.IsNaN(float64(bad[1])))
}

func TestSwiGLU(t *testing.T) {
	gate := []float32{1, -3, 0, 50, -800, 800, float32(math.Inf(1)), float32(math.Inf(-1))}
	up := []float32{2, 0.5, 9, -1, 3, 3, 2, 2}
	dst := make([]float32, len(gate))
	SwiGLU(dst, gate, up)
	for i := range gate {
		want := swishRef(1)(float64(gate[i])) * float64(up[i])
		assert.LessOrEqual(t, ulps(dst[i], want), 0.6, "element %d: got %v, want %v", i, dst[i], want)
	}
	SwiGLU(gate, gate, up)
	assert.Equal(t, dst, gate, "in place")
}

func TestSwiGLUGrad(t *testing.T) {
	gate := []float32{1, -3, 0, 50, -800, 800, 0.001}
	up := []float32{2, 0.5, 9, -1, 3, 3, -7}
	dy := []float32{1, -2, 3, 0.25, 5, 6, 1e-3}
	dgate, dup := make([]float32, len(gate)), make([]float32, len(gate))
	SwiGLUGrad(dgate, dup, dy, gate, up)
	for i := range gate {
		g, u, d := float64(gate[i]), float64(up[i]), float64(dy[i])
		s := 1 / (1 + math.Exp(-g))
		assert.InEpsilon(t, 1+d*u*(s+g*s*(1-s)), 1+float64(dgate[i]), 1e-6, "dgate %d", i)
		assert.InEpsilon(t, 1+d*g*s, 1+float64(dup[i]), 1e-6, "dup %d", i)
	}
	SwiGLUGrad(gate, up, dy, gate, up)
	assert.Equal(t, dgate, gate, "in place")
	assert.Equal(t, dup, up, "in place")

	inf := float32(math.Inf(1))
	gate, up, dy = []float32{inf, -inf}, []float32{3, 3}, []float32{2, 2}
	SwiGLUGrad(gate, up, dy, gate, up)
	assert.Equal(t, []float32{6, 0}, gate, "limits of dgate")
	assert.Equal(t, []float32{inf, 0}, up, "limits of dup")
}

func BenchmarkUnary(b *testing.B) {
	src, dst := make([]float32, 4096), make([]float32, 4096)
	for i := range src {
		src[i] = float32(math.Abs(math.Sin(float64(i)))) * 8
	}
	for _, u := range unaries {
		b.Run("f="+u.name, func(b *testing.B) {
			b.SetBytes(8 * int64(len(src)))
			for b.Loop() {
				u.f(dst, src)
			}
		})
	}
	b.Run("f=expsum", func(b *testing.B) {
		b.SetBytes(8 * int64(len(src)))
		for b.Loop() {
			ExpSum(dst, src, 8)
		}
	})
	b.Run("f=swiglu", func(b *testing.B) {
		b.SetBytes(12 * int64(len(src)))
		for b.Loop() {
			SwiGLU(dst, src, src)
		}
	})
}
