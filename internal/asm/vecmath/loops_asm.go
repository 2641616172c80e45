//go:build amd64 && !noasm

package vecmath

import "unsafe"

// start returns the address of a slice.
func start[T any](s []T) *byte { return (*byte)(unsafe.Pointer(unsafe.SliceData(s))) }

// Unary writes f(src) to dst.
func Unary[T Row](f Func, e Element, dst, src []T) bool {
	w := active()
	if w == none {
		return false
	}
	loop := unaryLoops[w][e][f]
	if loop == nil {
		return false
	}
	loop(start(dst[:len(src)]), start(src), len(src))
	return true
}

// Binary writes f(a, b) to dst.
func Binary[T Row](f Func2, e Element, dst, a, b []T) bool {
	w, n := active(), len(a)
	if w == none {
		return false
	}
	binaryLoops[w][e][f](start(dst[:n]), start(a), start(b[:n]), n)
	return true
}

// SwiGLUGrad writes dy·up·s·(1+gate·(1-s)) and dy·gate·s with s = sigmoid(gate).
func SwiGLUGrad[T Row](e Element, dgate, dup, dy, gate, up []T) bool {
	w, n := active(), len(gate)
	if w == none {
		return false
	}
	swigluGradLoops[w][e](start(dgate[:n]), start(dup[:n]), start(dy[:n]), start(gate), start(up[:n]), n)
	return true
}

// Scalar writes f(src, s) to dst.
func Scalar[T Row](f ScalarFunc, e Element, dst, src []T, s float32) bool {
	w, n := active(), len(src)
	if w == none {
		return false
	}
	scalarLoops[w][e][f](start(dst[:n]), start(src), n, s)
	return true
}

// Part writes f(src) to dst and returns the number of elements that it did. It
// stops before 8 or 16 elements one of which is out of f's range.
func Part(f PartFunc, dst, src []float32) (done int, ok bool) {
	w, n := active(), len(src)
	d, s := unsafe.SliceData(dst[:n]), unsafe.SliceData(src)
	switch {
	case w == none:
		return 0, false
	case f == Sin && w == avx512:
		return sinAVX512(d, s, n), true
	case f == Sin:
		return sinAVX2(d, s, n), true
	case f == Cos && w == avx512:
		return cosAVX512(d, s, n), true
	case f == Cos:
		return cosAVX2(d, s, n), true
	case w == avx512:
		return logAVX512(d, s, n), true
	}
	return logAVX2(d, s, n), true
}

// Swish writes src/(1+e^(-scale·src)), for scales that SwishScale allows.
func Swish[T Row](e Element, dst, src []T, scale float32) bool {
	w, n := active(), len(src)
	if w == none || !SwishScale(e, scale) {
		return false
	}
	high := widest / scale
	swishLoops[w][e](start(dst[:n]), start(src), n, scale, -high, high)
	return true
}

// Reduce returns f(a). Sums are in the order of internal/vec.
func Reduce[T Row](f Reduction, e Element, a []T) (r float32, ok bool) {
	w := active()
	if w == none {
		return 0, false
	}
	return reduceLoops[w][e][f](start(a), len(a)), true
}

// ExpSum writes e^(src-max), the difference rounded to float32, and returns
// the sum of what it wrote in the order of internal/vec.
func ExpSum[T Row](e Element, dst []float32, src []T, max float32) (sum float32, ok bool) {
	w, n := active(), len(src)
	if w == none {
		return 0, false
	}
	return expSumLoops[w][e](unsafe.SliceData(dst[:n]), start(src), n, max), true
}

// Soften makes count rows of n scores, stride apart, into weights. tops[i] becomes
// the largest of itself and the elements of row i times scale, other than NaN.
// These become e^(s·scale-tops[i]), the product and the difference rounded, or 0
// for less than e^-87. sums[i] becomes their sum, of 16 partial sums.
func Soften(s []float32, n, count, stride int, scale float32, tops, sums []float32) bool {
	w := active()
	if w == none {
		return false
	}
	if n == 0 || count == 0 {
		clear(sums[:count])
		return true
	}
	_, _, _ = s[(count-1)*stride+n-1], tops[count-1], sums[count-1]
	loop := softenAVX2
	if w == avx512 {
		loop = softenAVX512
	}
	loop(&s[0], n, count, 4*stride, scale, &tops[0], &sums[0])
	return true
}

// ShareRows writes rows of equal lengths that follow each other, each times 1 over its
// sum, and 0 for a sum of 0. There is an element at least.
func ShareRows(dst, src, sums []float32) bool {
	n, count := len(src)/len(sums), len(sums)
	_ = dst[:len(src)]
	switch active() {
	case avx512:
		shareRowsAVX512(&dst[0], &src[0], &sums[0], n, count)
	case avx2:
		shareRowsAVX2(&dst[0], &src[0], &sums[0], n, count)
	default:
		return false
	}
	return true
}

// Softmax writes the softmax of rows of n elements that follow each other, a
// whole number of them in src. exps has room for a row where e is not F32. A row
// of -Inf gives zeros.
func Softmax[T Row](e Element, dst, src []T, n int, exps []float32) bool {
	w, count := active(), len(src)/max(n, 1)
	if w == none {
		return false
	}
	if count == 0 {
		return true
	}
	d, s, step := start(dst[:count*n]), start(src), 0
	x := unsafe.SliceData(exps)
	if e == F32 {
		x, step = (*float32)(unsafe.Pointer(d)), 4*n
	} else {
		_ = exps[n-1]
	}
	softmaxLoops[w][e](d, s, x, n, count, step)
	return true
}

// ScaleTo writes src·s as elements of type e.
func ScaleTo[T Row](e Element, dst []T, src []float32, s float32) bool {
	w, n := active(), len(src)
	if w == none {
		return false
	}
	scaleToLoops[w][e](start(dst[:n]), start(src), n, s)
	return true
}

// ScaleMul writes (a·s)·gain; dst and a have type e.
func ScaleMul[T Row](e Element, dst, a []T, s float32, gain []float32) bool {
	w, n := active(), len(a)
	if w == none {
		return false
	}
	scaleMulLoops[w][e](start(dst[:n]), start(a), start(gain[:n]), n, s)
	return true
}

// ScaleMulTo writes (a·s)·gain as elements of type e.
func ScaleMulTo[T Row](e Element, dst []T, a []float32, s float32, gain []float32) bool {
	w, n := active(), len(a)
	if w == none {
		return false
	}
	scaleMulToLoops[w][e](start(dst[:n]), start(a), start(gain[:n]), n, s)
	return true
}

// ScaleMulAdd writes (a·s)·gain + b; every product is rounded before the sum.
func ScaleMulAdd(dst, a []float32, s float32, gain, b []float32) bool {
	n := len(a)
	d, x, g, y := unsafe.SliceData(dst[:n]), unsafe.SliceData(a), unsafe.SliceData(gain[:n]), unsafe.SliceData(b[:n])
	switch active() {
	case avx512:
		scaleMulAddAVX512(d, x, g, y, n, s)
	case avx2:
		scaleMulAddAVX2(d, x, g, y, n, s)
	default:
		return false
	}
	return true
}

// Blend writes a·y + b·x; every product is rounded before the sum.
func Blend(dst []float32, a float32, y []float32, b float32, x []float32) bool {
	n := len(y)
	d, p, q := start(dst[:n]), start(y), start(x[:n])
	switch active() {
	case avx512:
		blendF32AVX512(d, p, q, n, a, b)
	case avx2:
		blendF32AVX2(d, p, q, n, a, b)
	default:
		return false
	}
	return true
}

// Clamp writes src limited to low..high; NaN stays NaN.
func Clamp(dst, src []float32, low, high float32) bool {
	n := len(src)
	d, s := start(dst[:n]), start(src)
	switch active() {
	case avx512:
		clampF32AVX512(d, s, n, low, high)
	case avx2:
		clampF32AVX2(d, s, n, low, high)
	default:
		return false
	}
	return true
}

// RoundScaled writes src·scale rounded to an integer, ties to even, and limited
// to low..high; NaN stays NaN.
func RoundScaled(dst, src []float32, scale, low, high float32) bool {
	n := len(src)
	d, s := start(dst[:n]), start(src)
	switch active() {
	case avx512:
		roundScaledF32AVX512(d, s, n, scale, low, high)
	case avx2:
		roundScaledF32AVX2(d, s, n, scale, low, high)
	default:
		return false
	}
	return true
}

// Rotate turns the pairs of count vectors of x, stride elements apart, by the
// angles whose cosines and sines are given for each element of a vector; their
// number is even.
func Rotate[T Row](r Rotation, e Element, dst, x []T, count, stride int, cos, sin []float32) bool {
	w, n := active(), len(cos)
	if w == none {
		return false
	}
	loop := rotateLoops[w][e][r]
	if loop == nil {
		return false
	}
	if count == 0 || n == 0 {
		return true
	}
	reach := (count-1)*stride + n
	d, p := start(dst[:reach]), start(x[:reach])
	if r == Halves || r == HalvesSteps {
		n /= 2
	}
	loop(d, p, unsafe.SliceData(cos), unsafe.SliceData(sin[:len(cos)]), n, count, stride*int(unsafe.Sizeof(*new(T))))
	return true
}
