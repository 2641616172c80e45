//go:build amd64 && !noasm

package vecmath

import "unsafe"

// group is the number of elements that conversions and quantisations do at a
// time; they leave the elements behind the last group to the caller.
const group = 16

// WidenF16 widens as many elements of src as it returns. NaN becomes quiet.
func WidenF16[H ~uint16](dst []float32, src []H) int {
	n := len(src) &^ (group - 1)
	if n == 0 {
		return 0
	}
	d, s := &dst[:n][0], (*uint16)(unsafe.Pointer(&src[0]))
	switch width() {
	case 512:
		widenF16AVX512(d, s, n)
	case 256:
		widenF16AVX2(d, s, n)
	default:
		return 0
	}
	return n
}

// WidenBF16 widens as many elements of src as it returns.
func WidenBF16[H ~uint16](dst []float32, src []H) int {
	n := len(src) &^ (group - 1)
	if n == 0 {
		return 0
	}
	d, s := &dst[:n][0], (*uint16)(unsafe.Pointer(&src[0]))
	switch width() {
	case 512:
		widenBF16AVX512(d, s, n)
	case 256:
		widenBF16AVX2(d, s, n)
	default:
		return 0
	}
	return n
}

// WidenI8 widens as many elements of src as it returns.
func WidenI8(dst []float32, src []int8) int {
	n := len(src) &^ (group - 1)
	if n == 0 {
		return 0
	}
	d, s := &dst[:n][0], &src[0]
	switch width() {
	case 512:
		widenI8AVX512(d, s, n)
	case 256:
		widenI8AVX2(d, s, n)
	default:
		return 0
	}
	return n
}

// NarrowF16 rounds as many elements of src as it returns, to nearest even. NaN
// becomes quiet.
func NarrowF16[H ~uint16](dst []H, src []float32) int {
	n := len(src) &^ (group - 1)
	if n == 0 {
		return 0
	}
	d, s := (*uint16)(unsafe.Pointer(&dst[:n][0])), &src[0]
	switch width() {
	case 512:
		narrowF16AVX512(d, s, n)
	case 256:
		narrowF16AVX2(d, s, n)
	default:
		return 0
	}
	return n
}

// NarrowBF16 rounds as many elements of src as it returns, to nearest even. NaN
// becomes quiet.
func NarrowBF16[H ~uint16](dst []H, src []float32) int {
	n := len(src) &^ (group - 1)
	if n == 0 {
		return 0
	}
	d, s := (*uint16)(unsafe.Pointer(&dst[:n][0])), &src[0]
	switch width() {
	case 512:
		narrowBF16AVX512(d, s, n)
	case 256:
		narrowBF16AVX2(d, s, n)
	default:
		return 0
	}
	return n
}

// QuantMul quantises as many elements of src as it returns: src·scale+offset,
// in float64, rounded half to even and limited to low..127; NaN gives 0.
func QuantMul(dst []int8, src []float32, scale, offset, low float64) int {
	n := len(src) &^ (group - 1)
	if n == 0 {
		return 0
	}
	d, s := &dst[:n][0], &src[0]
	switch width() {
	case 512:
		quantMulAVX512(d, s, n, scale, offset, low)
	case 256:
		quantMulAVX2(d, s, n, scale, offset, low)
	default:
		return 0
	}
	return n
}

// QuantShare quantises as many elements of src as it returns: src·127/top for
// |src| <= top, top > 0, rounded half to even; NaN gives 0.
func QuantShare(dst []int8, src []float32, top float32) int {
	n := len(src) &^ (group - 1)
	if n == 0 {
		return 0
	}
	d, s := &dst[:n][0], &src[0]
	switch share := 127 / float64(top); width() {
	case 512:
		quantShareAVX512(d, s, n, share)
	case 256:
		quantShareAVX2(d, s, n, share)
	default:
		return 0
	}
	return n
}

// QuantDiv quantises as many elements of src as it returns: src/scale+offset
// for integer offsets, rounded half to even and limited to low..127; NaN gives
// 0. It stops at a scale of magnitude below 2^-100.
func QuantDiv(dst []int8, src, scale, offset []float32, low float32) int {
	n := len(src) &^ (group - 1)
	if n == 0 {
		return 0
	}
	d, s, c, o := &dst[:n][0], &src[0], &scale[:n][0], &offset[:n][0]
	switch width() {
	case 512:
		return quantDivAVX512(d, s, c, o, n, low)
	case 256:
		return quantDivAVX2(d, s, c, o, n, low)
	}
	return 0
}
