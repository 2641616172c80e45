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
	// bound is the largest error of the assembly in ulp, at x more by slack(x).
	bound float64
	slack func(x float64) float64
	// limit bounds |x| of the samples, 0 for all floats.
	limit float64
}

// plainBound is the largest error of plain Go in ulp.
const plainBound = 0.6

// allows returns the largest error that is allowed at x.
func (u *unary) allows(x float64) float64 {
	switch {
	case plain():
		return plainBound
	case u.slack != nil && x < 0:
		return u.bound + u.slack(x)
	}
	return u.bound
}

func swishRef(scale float64) func(float64) float64 {
	return func(x float64) float64 {
		if z := scale * x; z < -700 {
			return math.Copysign(0, x)
		}
		return x / (1 + math.Exp(-scale*x))
	}
}

// The bounds are those of the comments of the functions.
var unaries = []unary{
	{name: "exp", f: Exp, ref: math.Exp, bound: 1.1},
	{name: "sigmoid", f: Sigmoid, ref: func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, bound: 2.2},
	{name: "silu", f: Silu, ref: swishRef(1), bound: 2.2},
	{name: "swish 1.702", f: func(d, s []float32) { Swish(d, s, 1.702) }, ref: swishRef(float64(float32(1.702))), bound: 2.6},
	{name: "swish 90", f: func(d, s []float32) { Swish(d, s, 90) }, ref: swishRef(90), bound: 2.6},
	{name: "swish -0.5", f: func(d, s []float32) { Swish(d, s, -0.5) }, ref: swishRef(-0.5), bound: 0.6},
	{name: "tanh", f: Tanh, ref: math.Tanh, bound: 2.6},
	{name: "gelu tanh", f: GeluTanh, ref: func(x float64) float64 {
		z := 2 * math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x)
		if z < -700 {
			return math.Copysign(0, x)
		}
		return x / (1 + math.Exp(-z))
	}, bound: 2.7, slack: func(x float64) float64 {
		return 1.8 * min(90, max(0, -2*math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	}},
	{name: "gelu erf", f: GeluErf, ref: func(x float64) float64 {
		if x < -30 {
			return math.Copysign(0, x)
		}
		return x * 0.5 * math.Erfc(-x/math.Sqrt2)
	}, bound: 5.2},
	{name: "log", f: Log, ref: math.Log, bound: 0.9},
	{name: "sin", f: Sin, ref: math.Sin, bound: 2.2, limit: 1 << 21},
	{name: "cos", f: Cos, ref: math.Cos, bound: 2.2, limit: 1 << 21},
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
	const batch = 4096
	step := uint64(2411) // a prime, so that all exponents and low bits occur
	if testing.Short() {
		step = 240_997 // another
	}
	src, dst := make([]float32, 0, batch), make([]float32, batch)
	for _, u := range unaries {
		t.Run("f="+u.name, func(t *testing.T) {
			eachLevel(t, func(t *testing.T) {
				worst, over, at := 0.0, math.Inf(-1), float32(0)
				for bits := uint64(0); bits < 1<<32; {
					src = src[:0]
					for ; len(src) < batch && bits < 1<<32; bits += step {
						if x := math.Float32frombits(uint32(bits)); u.limit == 0 || math.Abs(float64(x)) <= u.limit {
							src = append(src, x)
						}
					}
					u.f(dst, src)
					for i, x := range src {
						e := ulps(dst[i], u.ref(float64(x)))
						worst = max(worst, e)
						if o := e - u.allows(float64(x)); !(o <= over) {
							over, at = o, x
						}
					}
				}
				t.Logf("largest error %.4f ulp", worst)
				assert.LessOrEqual(t, over, 0.0, "at %v", at)
			})
		})
	}
}

func TestUnarySpecialValues(t *testing.T) { eachLevel(t, checkUnarySpecialValues) }

func checkUnarySpecialValues(t *testing.T) {
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
			if src[i] == tiny && want == tiny/2 {
				continue // a tie between 0 and tiny
			}
			assert.Equal(t, want, src[i], "%s value %d", c.name, i)
		}
	}
}

func TestExpOf(t *testing.T) {
	for _, x := range []float32{0, 1, -1, 88.7, 88.8, -87.5, -103.9, -104, 104, 1e30, -1e30} {
		assert.LessOrEqual(t, ulps(ExpOf(x), math.Exp(float64(x))), plainBound, "at %v", x)
	}
	assert.True(t, math.IsNaN(float64(ExpOf(float32(math.NaN())))))
}

// expSumBound is the largest error of e^d in ulp.
func expSumBound(d float64) float64 {
	if plain() {
		return plainBound
	}
	return 2.0 + 1.3*math.Abs(d)
}

func TestExpSum(t *testing.T) { eachLevel(t, checkExpSum) }

func checkExpSum(t *testing.T) {
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
		assert.InDelta(t, sum, got, sum*0x1p-22, "length %d", n)
		for i, x := range src {
			d := float64(x) - float64(largest)
			require.LessOrEqual(t, ulps(dst[i], math.Exp(d)), expSumBound(d), "length %d element %d", n, i)
		}
	}
}

func TestExpSumMasked(t *testing.T) { eachLevel(t, checkExpSumMasked) }

func checkExpSumMasked(t *testing.T) {
	inf := float32(math.Inf(1))
	row := []float32{-inf, 0, -inf, -200, 1}
	got := ExpSum(row, row, 1)
	assert.InDelta(t, 1+math.Exp(-1), got, 1e-7)
	assert.LessOrEqual(t, ulps(row[1], math.Exp(-1)), expSumBound(1))
	assert.Equal(t, []float32{0, row[1], 0, 0, 1}, row)

	all := []float32{-inf, -inf, -inf}
	assert.Zero(t, ExpSum(all, all, -inf))
	assert.Equal(t, []float32{0, 0, 0}, all)

	bad := []float32{0, float32(math.NaN()), 1}
	assert.True(t, math.IsNaN(float64(ExpSum(bad, bad, 1))))
	assert.True(t, math.IsNaN(float64(bad[1])))
}

func TestSwiGLU(t *testing.T) { eachLevel(t, checkSwiGLU) }

func checkSwiGLU(t *testing.T) {
	gate := []float32{1, -3, 0, 50, -800, 800, float32(math.Inf(1)), float32(math.Inf(-1))}
	up := []float32{2, 0.5, 9, -1, 3, 3, 2, 2}
	dst := make([]float32, len(gate))
	SwiGLU(dst, gate, up)
	for i := range gate {
		want := swishRef(1)(float64(gate[i])) * float64(up[i])
		bound := plainBound
		if !plain() {
			bound = 3.7
		}
		assert.LessOrEqual(t, ulps(dst[i], want), bound, "element %d: got %v, want %v", i, dst[i], want)
	}
	SwiGLU(gate, gate, up)
	assert.Equal(t, dst, gate, "in place")
}

func TestSwiGLUGrad(t *testing.T) { eachLevel(t, checkSwiGLUGrad) }

func checkSwiGLUGrad(t *testing.T) {
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
