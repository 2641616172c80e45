package vec

import (
	"math"

	"goatb/internal/asm/vecmath"
)

// Lowest is where the maxima of Soften begin: no score is less than it but -Inf,
// which less it is -Inf.
const Lowest = -math.MaxFloat32

// Soften makes count rows of n scores, stride apart, into weights of a softmax:
// tops[i] becomes the largest of itself, which is finite, and the elements of row
// i times scale, other than NaN; they become e^(s·scale-tops[i]), and sums[i] their
// sum. The product is rounded. In assembly a weight is 0 for less than e^-87, since
// arithmetic with subnormal numbers is slow, and a sum keeps 16 partial sums, which
// the package's order says how to join. The rows that are done together do not matter.
func Soften(s []float32, n, count, stride int, scale float32, tops, sums []float32) {
	if vecmath.Soften(s, n, count, stride, scale, tops, sums) {
		return
	}
	for i := range count {
		row := s[i*stride:][:n]
		Scale(row, row, scale)
		tops[i] = max(tops[i], Max(row))
		sums[i] = expSum(row, row, tops[i])
	}
}

// ShareRows writes len(sums) rows of equal lengths that follow each other, each times
// 1 over its sum, rounded, and 0 for a sum of 0. dst and src have equal lengths and
// overlap nowhere, or everywhere.
func ShareRows(dst, src, sums []float32) {
	if len(src) == 0 || vecmath.ShareRows(dst, src, sums) {
		return
	}
	n := len(src) / len(sums)
	for i, sum := range sums {
		share, d, s := 1/sum, dst[i*n:][:n], src[i*n:][:n]
		if sum == 0 {
			clear(d)
			continue
		}
		for j, x := range s {
			d[j] = x * share
		}
	}
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
