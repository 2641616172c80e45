//go:build amd64 && !noasm

package vecmath

import (
	"math"
	"unsafe"
)

// WidenF16 widens src to dst. NaN becomes quiet.
func WidenF16[H ~uint16](dst []float32, src []H) bool {
	n := len(src)
	d, s := start(dst[:n]), start(src)
	switch active() {
	case avx512:
		widenF16AVX512(d, s, n)
	case avx2:
		widenF16AVX2(d, s, n)
	default:
		return false
	}
	return true
}

// WidenBF16 widens src to dst.
func WidenBF16[H ~uint16](dst []float32, src []H) bool {
	n := len(src)
	d, s := start(dst[:n]), start(src)
	switch active() {
	case avx512:
		widenBF16AVX512(d, s, n)
	case avx2:
		widenBF16AVX2(d, s, n)
	default:
		return false
	}
	return true
}

// WidenI8 widens src to dst.
func WidenI8(dst []float32, src []int8) bool {
	n := len(src)
	d, s := start(dst[:n]), start(src)
	switch active() {
	case avx512:
		widenI8AVX512(d, s, n)
	case avx2:
		widenI8AVX2(d, s, n)
	default:
		return false
	}
	return true
}

// NarrowF16 rounds src to nearest even. NaN becomes quiet.
func NarrowF16[H ~uint16](dst []H, src []float32) bool {
	n := len(src)
	d, s := start(dst[:n]), start(src)
	switch active() {
	case avx512:
		narrowF16AVX512(d, s, n)
	case avx2:
		narrowF16AVX2(d, s, n)
	default:
		return false
	}
	return true
}

// NarrowBF16 rounds src to nearest even. NaN becomes quiet.
func NarrowBF16[H ~uint16](dst []H, src []float32) bool {
	n := len(src)
	d, s := start(dst[:n]), start(src)
	switch active() {
	case avx512:
		narrowBF16AVX512(d, s, n)
	case avx2:
		narrowBF16AVX2(d, s, n)
	default:
		return false
	}
	return true
}

// group is the number of elements that quantisations do at a time; they leave
// the elements behind the last group to the caller.
const group = 16

// QuantMul quantises as many elements of src as it returns: src·scale+offset,
// in float64, rounded half to even and limited to low..127; NaN gives 0.
func QuantMul(dst []int8, src []float32, scale, offset, low float64) int {
	n := len(src) &^ (group - 1)
	d, s := unsafe.SliceData(dst[:n]), unsafe.SliceData(src)
	switch active() {
	case avx512:
		quantMulAVX512(d, s, n, scale, offset, low)
	case avx2:
		quantMulAVX2(d, s, n, scale, offset, low)
	default:
		return 0
	}
	return n
}

// QuantShare quantises as many elements of src as it returns: src·127/top for
// |src| <= top, top > 0, rounded half to even; NaN gives 0. It does no 16-bit
// elements where 127/top exceeds float32.
func QuantShare[T Row](e Element, dst []int8, src []T, top float32) int {
	w, n := active(), len(src)&^(group-1)
	if w == none {
		return 0
	}
	share := 127 / float64(top)
	d := unsafe.SliceData(dst[:n])
	if e == F32 {
		quantShareLoops[w](d, (*float32)(unsafe.Pointer(unsafe.SliceData(src))), n, share)
		return n
	}
	if share > math.MaxFloat32 {
		return 0
	}
	quantHalvesLoops[w][e-F16](d, (*uint16)(unsafe.Pointer(unsafe.SliceData(src))), n, float32(share))
	return n
}

// QuantDiv quantises as many elements of src as it returns: src/scale+offset
// for integer offsets, rounded half to even and limited to low..127; NaN gives
// 0. It stops at a scale of magnitude below 2^-100.
func QuantDiv(dst []int8, src, scale, offset []float32, low float32) int {
	n := len(src) &^ (group - 1)
	d, s, c, o := unsafe.SliceData(dst[:n]), unsafe.SliceData(src), unsafe.SliceData(scale[:n]), unsafe.SliceData(offset[:n])
	switch active() {
	case avx512:
		return quantDivAVX512(d, s, c, o, n, low)
	case avx2:
		return quantDivAVX2(d, s, c, o, n, low)
	}
	return 0
}
