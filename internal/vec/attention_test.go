package vec

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestClamp(t *testing.T) { eachLevel(t, checkClamp) }

func checkClamp(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	a := []float32{-2, -1, 0.5, 1, 2, inf, -inf, nan}
	Clamp(a, -1, 1)
	assert.Equal(t, []float32{-1, -1, 0.5, 1, 1, 1, -1}, a[:7])
	assert.True(t, math.IsNaN(float64(a[7])))
	Clamp(nil, 0, 0)
}

func TestRoundInt8(t *testing.T) { eachLevel(t, checkRoundInt8) }

func checkRoundInt8(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	a := []float32{0.25, 0.75, 1.25, -0.25, -0.75, 63.5, 64, -64.25, 1e30, inf, -inf, nan}
	RoundInt8(a, 2)
	assert.Equal(t, []float32{0, 2, 2, float32(math.Copysign(0, -1)), -2, 127, 127, -128, 127, 127, -128}, a[:11])
	assert.True(t, math.IsNaN(float64(a[11])))
}
