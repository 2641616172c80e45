package floats

import (
	"goatb/internal/asm/vecmath"
	"goatb/internal/vec"
)

// SumSquares returns the sum of the squares of a in the lane order of package
// vec. buf has room for a.
func SumSquares(e Element, a []byte, buf []float32) float32 {
	if e == F32 {
		return vec.SumSquares(view[float32](a))
	}
	x := view[uint16](a)
	if sum, ok := vecmath.Reduce(vecmath.SumSquares, e, x); ok {
		return sum
	}
	Widen(e, buf[:len(x)], a)
	return vec.SumSquares(buf[:len(x)])
}

// Max returns the largest element of a, -Inf without one; NaN are passed over.
func Max(e Element, a []byte, buf []float32) float32 {
	if e == F32 {
		return vec.Max(view[float32](a))
	}
	x := view[uint16](a)
	if top, ok := vecmath.Reduce(vecmath.Max, e, x); ok {
		return top
	}
	top := vec.Max(nil)
	for len(x) > 0 {
		u := widen(e, buf, x)
		top = max(top, vec.Max(u))
		x = x[len(u):]
	}
	return top
}

// MaxAbs returns the largest magnitude in a, 0 without one; NaN are passed over.
func MaxAbs(e Element, a []byte, buf []float32) float32 {
	if e == F32 {
		return vec.MaxAbs(view[float32](a))
	}
	x := view[uint16](a)
	if top, ok := vecmath.Reduce(vecmath.MaxAbs, e, x); ok {
		return top
	}
	top := float32(0)
	for len(x) > 0 {
		u := widen(e, buf, x)
		top = max(top, vec.MaxAbs(u))
		x = x[len(u):]
	}
	return top
}

// QuantSymmetric stores src·127/top as int8, rounded half to even, for a top that no
// magnitude in src exceeds; a top of 0 gives zeros, NaN gives 0. dst is as long as src.
func QuantSymmetric(e Element, dst []int8, src []byte, top float32, buf []float32) {
	if e == F32 {
		vec.QuantSymmetric(dst, view[float32](src), top)
		return
	}
	x, n := view[uint16](src), 0
	if top > 0 {
		n = vecmath.QuantShare(e, dst, x, top)
	}
	for dst, x = dst[n:], x[n:]; len(x) > 0; {
		u := widen(e, buf, x)
		vec.QuantSymmetric(dst, u, top)
		dst, x = dst[len(u):], x[len(u):]
	}
}

// ExpSum stores e^(src-max) as float32 and returns the sum; see package vec.
func ExpSum(e Element, dst []float32, src []byte, max float32) float32 {
	if e == F32 {
		return vec.ExpSum(dst, view[float32](src), max)
	}
	return vec.ExpSumHalves(e, dst, view[uint16](src), max)
}

// LongestRow is the largest length of a row that Softmax takes.
const LongestRow = 8 << 10

// Softmax stores the softmax of rows of n elements that follow each other, and
// zeros for a row of -Inf; a NaN or +Inf makes its row NaN. For float32 it gives
// what Max, ExpSum and ScaleTo by 1 over the sum give for each row; 16-bit
// results have the error of gates. It returns false where there is no assembly, or
// n is above LongestRow. buf has room for a row.
func Softmax(e Element, dst, src []byte, n int, buf []float32) bool {
	switch {
	case n > LongestRow:
		return false
	case e == F32:
		return vecmath.Softmax(e, view[float32](dst), view[float32](src), n, nil)
	}
	return vecmath.Softmax(e, view[uint16](dst), view[uint16](src), n, buf)
}
