//go:build amd64 && !noasm

package vecmath

import "unsafe"

// Dots writes the inner products of x with len(dst) rows of e, stride elements
// apart, to dst, in the order of internal/vec.
func Dots[T Row](e Element, dst, x []float32, rows []T, stride int) bool {
	n, count, w := len(x), len(dst), active()
	if w == none {
		return false
	}
	if count == 0 {
		return true
	}
	d, q, r := unsafe.SliceData(dst), unsafe.SliceData(x), start(rows[:(count-1)*stride+n])
	stride *= int(unsafe.Sizeof(*new(T)))
	switch {
	case e == F32 && w == avx512:
		dotsF32AVX512(d, q, r, n, count, stride)
	case e == F32:
		dotsF32AVX2(d, q, r, n, count, stride)
	case e == F16 && w == avx512:
		dotsF16AVX512(d, q, r, n, count, stride)
	case e == F16:
		dotsF16AVX2(d, q, r, n, count, stride)
	case e == BF16 && w == avx512:
		dotsBF16AVX512(d, q, r, n, count, stride)
	case e == BF16:
		dotsBF16AVX2(d, q, r, n, count, stride)
	case w == avx512:
		dotsI8AVX512(d, q, r, n, count, stride)
	default:
		dotsI8AVX2(d, q, r, n, count, stride)
	}
	return true
}

// Mix adds len(weights) rows of e, stride elements apart, each times its
// weight, to acc, one after the other; every product is rounded before the sum.
func Mix[T Row](e Element, acc, weights []float32, rows []T, stride int) bool {
	n, count, w := len(acc), len(weights), active()
	if w == none {
		return false
	}
	if count == 0 {
		return true
	}
	a, p, r := unsafe.SliceData(acc), unsafe.SliceData(weights), start(rows[:(count-1)*stride+n])
	stride *= int(unsafe.Sizeof(*new(T)))
	switch {
	case e == F32 && w == avx512:
		mixF32AVX512(a, p, r, n, count, stride)
	case e == F32:
		mixF32AVX2(a, p, r, n, count, stride)
	case e == F16 && w == avx512:
		mixF16AVX512(a, p, r, n, count, stride)
	case e == F16:
		mixF16AVX2(a, p, r, n, count, stride)
	case e == BF16 && w == avx512:
		mixBF16AVX512(a, p, r, n, count, stride)
	case e == BF16:
		mixBF16AVX2(a, p, r, n, count, stride)
	case w == avx512:
		mixI8AVX512(a, p, r, n, count, stride)
	default:
		mixI8AVX2(a, p, r, n, count, stride)
	}
	return true
}
