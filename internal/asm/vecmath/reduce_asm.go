//go:build amd64 && !noasm

package vecmath

import "unsafe"

// Reduce returns f(a). Sums are in the order of internal/vec.
func Reduce(f Reduction, a []float32) (r float32, ok bool) {
	w := width()
	if w == 0 || len(a) == 0 {
		return 0, false
	}
	p, n := &a[0], len(a)
	switch f {
	case Sum:
		if w == 512 {
			return sumAVX512(p, n), true
		}
		return sumAVX2(p, n), true
	case Max:
		if w == 512 {
			return largestAVX512(p, n), true
		}
		return largestAVX2(p, n), true
	default:
		if w == 512 {
			return largestAbsAVX512(p, n), true
		}
		return largestAbsAVX2(p, n), true
	}
}

// ExpSum writes e^(src-max), the difference rounded to float32, and returns
// the sum of what it wrote in the order of internal/vec.
func ExpSum(dst, src []float32, max float32) (sum float32, ok bool) {
	n := len(src)
	if n == 0 {
		return 0, false
	}
	d, s := &dst[:n][0], &src[0]
	switch width() {
	case 512:
		return expSumAVX512(d, s, n, max), true
	case 256:
		return expSumAVX2(d, s, n, max), true
	}
	return 0, false
}

// rowsFit panics unless rows holds count rows of n elements, stride elements
// apart.
func rowsFit[T Row](rows []T, stride, n, count int) *T {
	return &rows[:(count-1)*stride+n][0]
}

// shortest is the number of elements of a row from which on AVX2 reads rows of
// less than 32 bits.
const shortest = 8

// Dots writes the inner products of x with len(dst) rows of e, stride elements
// apart, to dst, in the order of internal/vec.
func Dots[T Row](e Element, dst, x []float32, rows []T, stride int) bool {
	n, count, w := len(x), len(dst), width()
	if w == 0 || n == 0 || count == 0 || w == 256 && e != F32 && n < shortest {
		return false
	}
	d, q, r := &dst[0], &x[0], unsafe.Pointer(rowsFit(rows, stride, n, count))
	step := stride * int(unsafe.Sizeof(rows[0]))
	switch {
	case e == F32 && w == 512:
		dotsF32AVX512(d, q, (*float32)(r), n, count, step)
	case e == F32:
		dotsF32AVX2(d, q, (*float32)(r), n, count, step)
	case e == F16 && w == 512:
		dotsF16AVX512(d, q, (*uint16)(r), n, count, step)
	case e == F16:
		dotsF16AVX2(d, q, (*uint16)(r), n, count, step)
	case e == BF16 && w == 512:
		dotsBF16AVX512(d, q, (*uint16)(r), n, count, step)
	case e == BF16:
		dotsBF16AVX2(d, q, (*uint16)(r), n, count, step)
	case w == 512:
		dotsI8AVX512(d, q, (*int8)(r), n, count, step)
	default:
		dotsI8AVX2(d, q, (*int8)(r), n, count, step)
	}
	return true
}

// Mix adds len(weights) rows of e, stride elements apart, each times its
// weight, to acc, one after the other; every product is rounded before the sum.
func Mix[T Row](e Element, acc, weights []float32, rows []T, stride int) bool {
	n, count, w := len(acc), len(weights), width()
	if w == 0 || n == 0 || count == 0 || w == 256 && e != F32 && n < shortest {
		return false
	}
	a, p, r := &acc[0], &weights[0], unsafe.Pointer(rowsFit(rows, stride, n, count))
	step := stride * int(unsafe.Sizeof(rows[0]))
	switch {
	case e == F32 && w == 512:
		mixF32AVX512(a, p, (*float32)(r), n, count, step)
	case e == F32:
		mixF32AVX2(a, p, (*float32)(r), n, count, step)
	case e == F16 && w == 512:
		mixF16AVX512(a, p, (*uint16)(r), n, count, step)
	case e == F16:
		mixF16AVX2(a, p, (*uint16)(r), n, count, step)
	case e == BF16 && w == 512:
		mixBF16AVX512(a, p, (*uint16)(r), n, count, step)
	case e == BF16:
		mixBF16AVX2(a, p, (*uint16)(r), n, count, step)
	case w == 512:
		mixI8AVX512(a, p, (*int8)(r), n, count, step)
	default:
		mixI8AVX2(a, p, (*int8)(r), n, count, step)
	}
	return true
}
