package vec

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/tensor"
)

// sizes are lengths around every unrolling.
var sizes = []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 64, 100}

func randomFloats(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 11))
	s := make([]float32, n)
	for i := range s {
		s[i] = float32(r.NormFloat64())
	}
	return s
}

func TestArithmetic(t *testing.T) { eachLevel(t, checkArithmetic) }

func checkArithmetic(t *testing.T) {
	for _, n := range sizes {
		a, b, g := randomFloats(1, n), randomFloats(2, n), randomFloats(3, n)
		for _, c := range []struct {
			name string
			f    func(dst []float32)
			want func(i int) float32
		}{
			{"sub", func(d []float32) { Sub(d, a, b) }, func(i int) float32 { return a[i] - b[i] }},
			{"div", func(d []float32) { Div(d, a, b) }, func(i int) float32 { return a[i] / b[i] }},
			{"neg", func(d []float32) { Neg(d, a) }, func(i int) float32 { return -a[i] }},
			{"relu", func(d []float32) { Relu(d, a) }, func(i int) float32 { return max(a[i], 0) }},
			{"scale mul", func(d []float32) { ScaleMul(d, a, 0.3, g) }, func(i int) float32 { return a[i] * 0.3 * g[i] }},
			{"scale mul add", func(d []float32) { ScaleMulAdd(d, a, 0.3, g, b) }, func(i int) float32 { return float32(a[i]*0.3*g[i]) + b[i] }},
		} {
			dst := make([]float32, n)
			c.f(dst)
			for i := range dst {
				require.Equal(t, c.want(i), dst[i], "%s of length %d, element %d", c.name, n, i)
			}
		}
	}
}

func TestReluKeepsNaN(t *testing.T) { eachLevel(t, checkReluKeepsNaN) }

func checkReluKeepsNaN(t *testing.T) {
	x := []float32{float32(math.NaN()), float32(math.Inf(-1)), float32(math.Inf(1))}
	Relu(x, x)
	assert.True(t, math.IsNaN(float64(x[0])))
	assert.Equal(t, []float32{0, float32(math.Inf(1))}, x[1:])
}

func TestRoundF16(t *testing.T) {
	step := uint64(641)
	if testing.Short() {
		step *= 101
	}
	for bits := uint64(0); bits < 1<<32; bits += step {
		x := math.Float32frombits(uint32(bits))
		if math.Abs(float64(x)) > 0x1p115 && !math.IsInf(float64(x), 0) {
			continue
		}
		want := tensor.F16From(x).Float32()
		got := roundF16(x)
		if math.IsNaN(float64(want)) {
			require.True(t, math.IsNaN(float64(got)), "at %v", x)
			continue
		}
		require.Equal(t, want, got, "at %v", x)
	}
}

func TestRoundF16Ties(t *testing.T) { eachLevel(t, checkRoundF16Ties) }

func checkRoundF16Ties(t *testing.T) {
	src := []float32{1 + 0x1p-11, 1 + 3*0x1p-11, -1 - 0x1p-11, 65504, 65519.9, 65520, -65520, 0x1p-24, 0x1p-25, 0x1.8p-24, 0x1.8p-25}
	want := make([]float32, len(src))
	for i, x := range src {
		want[i] = tensor.F16From(x).Float32()
	}
	RoundF16(src, src)
	assert.Equal(t, want, src)
}

func TestRotate(t *testing.T) { eachLevel(t, checkRotate) }

func checkRotate(t *testing.T) {
	exact := func(x float32) float32 { return x }
	f16 := func(x float32) float32 { return tensor.F16From(x).Float32() }
	for _, c := range []struct {
		name  string
		f     func(dst, x, cos, sin []float32)
		round func(float32) float32
		other func(i, n int) int
	}{
		{"half", RotateHalf, exact, func(i, n int) int { return (i + n/2) % n }},
		{"pairs", RotatePairs, exact, func(i, _ int) int { return i ^ 1 }},
		{"half f16", RotateHalfF16, f16, func(i, n int) int { return (i + n/2) % n }},
		{"pairs f16", RotatePairsF16, f16, func(i, _ int) int { return i ^ 1 }},
	} {
		for _, n := range []int{2, 4, 6, 16, 64, 130} {
			x, cos, sin := randomFloats(4, n), randomFloats(5, n), randomFloats(6, n)
			for _, s := range [][]float32{x, cos, sin} {
				for i := range s {
					s[i] = c.round(s[i])
				}
			}
			want := make([]float32, n)
			for i := range want {
				o := c.other(i, n)
				turned := c.round(x[o] * sin[i])
				if o > i {
					turned = -turned
				}
				want[i] = c.round(c.round(x[i]*cos[i]) + turned)
			}
			got := make([]float32, n)
			c.f(got, x, cos, sin)
			require.Equal(t, want, got, "%s of width %d", c.name, n)
			c.f(x, x, cos, sin)
			require.Equal(t, want, x, "%s of width %d in place", c.name, n)
		}
	}
}

func roundRef(v, low float64) int8 {
	if math.IsNaN(v) {
		return 0
	}
	return int8(math.RoundToEven(min(max(v, low), 127)))
}

func TestQuant(t *testing.T) { eachLevel(t, checkQuant) }

func checkQuant(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	src := []float32{0, 0.5, 1.5, 2.5, -0.5, -1.5, 126.4, 126.5, 127, 127.5, 300, -126.5, -127.4, -127.5, -128, -128.6, -300, inf, -inf, nan, 1e-40}
	src = append(src, randomFloats(9, 200)...)
	for i := 21; i < len(src); i++ {
		src[i] *= 60
	}
	n := len(src)
	got, scale, offset := make([]int8, n), make([]float32, n), make([]float32, n)
	for _, low := range []int8{-128, -127} {
		for _, c := range []struct{ scale, offset float32 }{{1, 0}, {0.5, 3}, {3, -100}, {-2, 7}} {
			QuantMul(got, src, c.scale, c.offset, low)
			for i, x := range src {
				require.Equal(t, roundRef(float64(x)*float64(c.scale)+float64(c.offset), float64(low)), got[i], "mul %v, element %v", c, x)
				scale[i], offset[i] = c.scale, c.offset
			}
			QuantDiv(got, src, scale, offset, low)
			for i, x := range src {
				require.Equal(t, roundRef(float64(x)/float64(c.scale)+float64(c.offset), float64(low)), got[i], "div %v, element %v", c, x)
			}
		}
	}
}

func TestQuantSymmetric(t *testing.T) { eachLevel(t, checkQuantSymmetric) }

func checkQuantSymmetric(t *testing.T) {
	got := make([]int8, 4)
	QuantSymmetric(got, []float32{1, -2, 0.5, float32(math.NaN())}, 2)
	assert.Equal(t, []int8{64, -127, 32, 0}, got)
	QuantSymmetric(got, []float32{3.4e38, -3.4e38, 1.7e38, 1}, 3.4e38)
	assert.Equal(t, []int8{127, -127, 64, 0}, got, "no overflow: 63.5 to even")
	QuantSymmetric(got, []float32{0, 0, 0, 0}, 0)
	assert.Equal(t, []int8{0, 0, 0, 0}, got)
}

func BenchmarkQuant(b *testing.B) {
	const n = 4096
	src, ones, zeros, dst := randomFloats(1, n), make([]float32, n), make([]float32, n), make([]int8, n)
	for i := range ones {
		ones[i] = 1
	}
	b.Run("f=mul", func(b *testing.B) {
		b.SetBytes(5 * n)
		for b.Loop() {
			QuantMul(dst, src, 30, 0, -128)
		}
	})
	b.Run("f=div", func(b *testing.B) {
		b.SetBytes(5 * n)
		for b.Loop() {
			QuantDiv(dst, src, ones, zeros, -128)
		}
	})
	b.Run("f=symmetric", func(b *testing.B) {
		b.SetBytes(5 * n)
		for b.Loop() {
			QuantSymmetric(dst, src, 4)
		}
	})
}

func BenchmarkRotate(b *testing.B) {
	const n = 128
	x, cos, sin := randomFloats(1, n), randomFloats(2, n), randomFloats(3, n)
	dst := make([]float32, n)
	for _, c := range []struct {
		name string
		f    func(dst, x, cos, sin []float32)
	}{{"half", RotateHalf}, {"pairs", RotatePairs}, {"half f16", RotateHalfF16}, {"pairs f16", RotatePairsF16}} {
		b.Run("f="+c.name, func(b *testing.B) {
			b.SetBytes(8 * n)
			for b.Loop() {
				c.f(dst, x, cos, sin)
			}
		})
	}
}
