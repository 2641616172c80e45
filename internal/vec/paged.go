package vec

import (
	"goatb/internal/asm/attend"
	"goatb/internal/asm/vecmath"
)

// ScaleMax replaces s by s*scale and returns the largest result. NaN elements
// are passed over by the maximum, which is -Inf when there is no other.
func ScaleMax(s []float32, scale float32) float32 {
	if top, ok := attend.ScaleMax(s, scale); ok {
		return top
	}
	Scale(s, s, scale)
	return Max(s)
}

// ScaleAddMax replaces s by s*scale+bias, the product rounded before the sum,
// and returns the maximum as ScaleMax does. s and bias have equal lengths.
func ScaleAddMax(s []float32, scale float32, bias []float32) float32 {
	Blend(scale, s, 1, bias[:len(s)])
	return Max(s)
}

// Blend replaces y by a*y+b*x, both products rounded before the sum. x and y
// have equal lengths.
func Blend(a float32, y []float32, b float32, x []float32) {
	x = x[:len(y)]
	if vecmath.Blend(y, a, y, b, x) {
		return
	}
	for i, v := range y {
		y[i] = float32(a*v) + float32(b*x[i])
	}
}

// Int8Floats widens len(dst) elements of src.
func Int8Floats(dst []float32, src []int8) {
	src = src[:len(dst)]
	if vecmath.WidenI8(dst, src) {
		return
	}
	for i, v := range src {
		dst[i] = float32(v)
	}
}
