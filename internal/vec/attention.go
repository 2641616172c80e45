package vec

import (
	"math"

	"goatb/internal/asm/vecmath"
)

// Clamp limits the elements of a to lo..hi; NaN stays NaN.
func Clamp(a []float32, lo, hi float32) {
	if vecmath.Clamp(a, a, lo, hi) {
		return
	}
	for i, v := range a {
		if v < lo {
			a[i] = lo
		} else if v > hi {
			a[i] = hi
		}
	}
}

// RoundInt8 replaces the elements of a by a*scale rounded to the nearest
// integer that an int8 holds, ties to even; NaN stays NaN.
func RoundInt8(a []float32, scale float32) {
	if vecmath.RoundScaled(a, a, scale, math.MinInt8, math.MaxInt8) {
		return
	}
	for i, v := range a {
		r := math.RoundToEven(float64(v * scale))
		if r > math.MaxInt8 {
			r = math.MaxInt8
		} else if r < math.MinInt8 {
			r = math.MinInt8
		}
		a[i] = float32(r)
	}
}
