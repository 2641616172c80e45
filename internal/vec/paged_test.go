package vec

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestScaleMax(t *testing.T) { eachLevel(t, checkScaleMax) }

func checkScaleMax(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		s, bias []float32
	}{
		{nil, nil},
		{[]float32{1, -3, 2}, []float32{0, 100, -1}},
		{[]float32{nan, 1}, []float32{0, 0}},
		{[]float32{nan, nan}, []float32{0, 0}},
		{[]float32{1, 2}, []float32{-inf, -inf}},
		{[]float32{1, 2, 3, 4, 5}, []float32{0, 0, 0, 0, -inf}},
	} {
		scaled, biased := append([]float32{}, c.s...), append([]float32{}, c.s...)
		wantTop, wantBiased := -inf, -inf
		gotTop, gotBiased := ScaleMax(scaled, 2), ScaleAddMax(biased, 2, c.bias)
		for i, v := range c.s {
			require.Equal(t, math.Float32bits(2*v), math.Float32bits(scaled[i]))
			require.Equal(t, math.Float32bits(2*v+c.bias[i]), math.Float32bits(biased[i]))
			if 2*v > wantTop {
				wantTop = 2 * v
			}
			if 2*v+c.bias[i] > wantBiased {
				wantBiased = 2*v + c.bias[i]
			}
		}
		assert.Equal(t, wantTop, gotTop, "%v", c.s)
		assert.Equal(t, wantBiased, gotBiased, "%v + %v", c.s, c.bias)
	}
}

func TestBlend(t *testing.T) { eachLevel(t, checkBlend) }

func checkBlend(t *testing.T) {
	y := []float32{1, 2, -3}
	Blend(0.5, y, 2, []float32{10, 20, 30})
	assert.Equal(t, []float32{20.5, 41, 58.5}, y)
}

func TestInt8Floats(t *testing.T) { eachLevel(t, checkInt8Floats) }

func checkInt8Floats(t *testing.T) {
	src := make([]int8, 256)
	for i := range src {
		src[i] = int8(i - 128)
	}
	dst := make([]float32, 256)
	Int8Floats(dst, src)
	for i, v := range src {
		require.Equal(t, float32(v), dst[i])
	}
}
