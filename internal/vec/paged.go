package vec

import "goatb/internal/asm/vecmath"

// ScoreRows computes the inner products of rows of q with rows of k:
//
//	dst[r*ldd+j] = Σ_i q[r*ldq+i]*k[j*ldk+i]   r < rows, j < cols, i < d
//
// Every sum is in the package's lane order, so an element does not depend on
// how many rows and columns are asked for at once.
func ScoreRows(dst []float32, ldd int, q []float32, ldq, rows int, k []float32, ldk, cols, d int) {
	for r := range rows {
		Dots(F32, dst[r*ldd:][:cols], q[r*ldq:][:d], k, ldk)
	}
}

// MixRows adds weighted rows of v to rows of acc:
//
//	acc[r*lda+i] += Σ_j p[r*ldp+j]*v[j*ldv+i]   r < rows, j < cols, i < d
//
// The rounded products are added one after the other in the order of j, so
// mixing columns in several calls gives the same bits as in one.
func MixRows(acc []float32, lda int, p []float32, ldp, rows int, v []float32, ldv, cols, d int) {
	for r := range rows {
		Mix(F32, acc[r*lda:][:d], p[r*ldp:][:cols], v, ldv)
	}
}

// ScaleMax replaces s by s*scale and returns the largest result. NaN elements
// are passed over by the maximum, which is -Inf when there is no other.
func ScaleMax(s []float32, scale float32) float32 {
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
