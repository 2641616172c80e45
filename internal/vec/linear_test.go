package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// lengths cover the empty slice, tails of every unrolling and long rows.
var lengths = []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 130, 1023, 4096}

func randoms(r *rand.Rand, n int) []float32 {
	a := make([]float32, n)
	for i := range a {
		a[i] = r.Float32()*4 - 2
	}
	return a
}

// laneSum adds terms in the order that the package comment promises.
func laneSum(terms []float32) float32 {
	var s [64]float32
	for i, v := range terms {
		s[i%64] += v
	}
	for n := 32; n > 0; n /= 2 {
		for l := range n {
			s[l] += s[l+n]
		}
	}
	return s[0]
}

func TestSumsFollowTheDocumentedOrder(t *testing.T) { eachLevel(t, checkSumsFollowTheDocumentedOrder) }

func checkSumsFollowTheDocumentedOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range lengths {
		a, b := randoms(r, n), randoms(r, n)
		prod, sq := make([]float32, n), make([]float32, n)
		var exact, scale float64
		for i := range a {
			prod[i], sq[i] = a[i]*b[i], a[i]*a[i]
			exact += float64(a[i]) * float64(b[i])
			scale += math.Abs(float64(a[i]) * float64(b[i]))
		}
		assert.Equal(t, laneSum(prod), Dot(a, b), "dot of %d", n)
		assert.Equal(t, laneSum(a), Sum(a), "sum of %d", n)
		assert.Equal(t, laneSum(sq), SumSquares(a), "sum of %d squares", n)
		// n additions of half an ulp of the running sum bound the error.
		assert.InDelta(t, exact, float64(Dot(a, b)), scale*float64(n+1)*0x1p-24, "dot of %d", n)
	}
}

func TestElementwise(t *testing.T) { eachLevel(t, checkElementwise) }

func checkElementwise(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range lengths {
		a, b := randoms(r, n), randoms(r, n)
		sum, mul, scaled, axpy := make([]float32, n), make([]float32, n), make([]float32, n), append([]float32(nil), b...)
		Add(sum, a, b)
		Mul(mul, a, b)
		Scale(scaled, a, 1.25)
		Axpy(0.3, a, axpy)
		for i := range a {
			p := float32(0.3 * a[i]) // rounded: not one fused operation
			assert.Equal(t, [4]float32{a[i] + b[i], a[i] * b[i], a[i] * 1.25, b[i] + p},
				[4]float32{sum[i], mul[i], scaled[i], axpy[i]}, "element %d of %d", i, n)
		}
	}
}

func TestElementwiseInPlace(t *testing.T) { eachLevel(t, checkElementwiseInPlace) }

func checkElementwiseInPlace(t *testing.T) {
	a := []float32{1, 2, 3, 4, 5}
	Add(a, a, a)
	assert.Equal(t, []float32{2, 4, 6, 8, 10}, a)
	Mul(a, a, a)
	assert.Equal(t, []float32{4, 16, 36, 64, 100}, a)
	Scale(a, a, 0.5)
	assert.Equal(t, []float32{2, 8, 18, 32, 50}, a)
}

func TestExtremes(t *testing.T) { eachLevel(t, checkExtremes) }

func checkExtremes(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	cases := []struct {
		a      []float32
		max    float32
		maxAbs float32
	}{
		{nil, -inf, 0},
		{[]float32{-3}, -3, 3},
		{[]float32{-3, -2, -7, -1, -9}, -1, 9},
		{[]float32{nan, nan, nan, nan, nan}, -inf, 0},
		{[]float32{nan, 1, nan, -4, nan, 2}, 2, 4},
		{[]float32{1, 2, 3, -inf}, 3, inf},
		{[]float32{1, inf, 3, 4, 5}, inf, inf},
		{[]float32{0, 0, 0, 0, 0, 0, 8}, 8, 8},
	}
	for _, c := range cases {
		assert.Equal(t, c.max, Max(c.a), "max of %v", c.a)
		assert.Equal(t, c.maxAbs, MaxAbs(c.a), "max magnitude of %v", c.a)
	}
}

func TestDotI8(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range lengths {
		a, b := make([]int8, n), make([]int8, n)
		want := int32(0)
		for i := range a {
			a[i], b[i] = int8(r.IntN(256)-128), int8(r.IntN(256)-128)
			want += int32(a[i]) * int32(b[i])
		}
		assert.Equal(t, want, DotI8(a, b), "length %d", n)
	}
	a := make([]int8, 131071)
	for i := range a {
		a[i] = -128
	}
	assert.Equal(t, int32(131071*16384), DotI8(a, a), "the largest sum that fits")
}

func TestShortSecondOperandPanics(t *testing.T) { eachLevel(t, checkShortSecondOperandPanics) }

func checkShortSecondOperandPanics(t *testing.T) {
	assert.Panics(t, func() { Dot(make([]float32, 9), make([]float32, 8)) })
	assert.Panics(t, func() { DotI8(make([]int8, 9), make([]int8, 8)) })
}

func BenchmarkLinear(b *testing.B) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{64, 4096} {
		x, y := randoms(r, n), randoms(r, n)
		var sink float32
		for _, f := range []struct {
			name string
			run  func()
		}{
			{"dot", func() { sink += Dot(x, y) }},
			{"sum", func() { sink += Sum(x) }},
			{"max", func() { sink += Max(x) }},
			{"maxabs", func() { sink += MaxAbs(x) }},
			{"axpy", func() { Axpy(1e-9, x, y) }},
		} {
			b.Run(fmt.Sprintf("op=%s/n=%d", f.name, n), func(b *testing.B) {
				b.SetBytes(int64(4 * n))
				for b.Loop() {
					f.run()
				}
			})
		}
	}
}
