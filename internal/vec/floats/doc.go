// Package floats computes with arrays of f32, f16 and bf16 that lie in memory
// as bytes. It computes in float32 and rounds once, to nearest even. Where there
// is assembly a call reads and writes its arrays once; plain Go goes through
// float32 a step at a time. Errors, orders of sums and limits are those of
// package vec.
//
// Arrays hold whole elements, aligned to their size. An output may be exactly
// the memory of an input of its type. The last parameter, buf, is memory for
// plain Go where the comment does not say otherwise: of BufferElements elements,
// or twice as many as an array has.
package floats

import (
	"unsafe"

	"goatb/internal/asm/vecmath"
	"goatb/internal/vec"
	"goatb/tensor"
)

// Element is the element type of an array: F32, F16 or BF16.
type Element = vecmath.Element

// Element types.
const (
	F32  = vecmath.F32
	F16  = vecmath.F16
	BF16 = vecmath.BF16
)

// Of returns the element type of a tensor, and whether it is one.
func Of(t tensor.DType) (e Element, ok bool) {
	switch t {
	case tensor.Float32:
		return F32, true
	case tensor.Float16:
		return F16, true
	case tensor.BFloat16:
		return BF16, true
	}
	return 0, false
}

const (
	// BufferElements is the size of buffers.
	BufferElements = 2 * step
	// step is the number of elements that plain Go converts at a time.
	step = 256
)

// view returns the elements of an array.
func view[T any](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(T))))
}

// widen converts min(step, len(src)) elements to buf.
func widen(e Element, buf []float32, src []uint16) []float32 {
	x := buf[:min(step, len(src))]
	if e == F16 {
		tensor.F16ToF32(x, view[tensor.F16](bytesOf(src)))
	} else {
		tensor.BF16ToF32(x, view[tensor.BF16](bytesOf(src)))
	}
	return x
}

// narrow converts all of x.
func narrow(e Element, dst []uint16, x []float32) {
	if e == F16 {
		tensor.F32ToF16(view[tensor.F16](bytesOf(dst)), x)
	} else {
		tensor.F32ToBF16(view[tensor.BF16](bytesOf(dst)), x)
	}
}

func bytesOf(s []uint16) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), 2*len(s))
}

// Widen stores src as float32.
func Widen(e Element, dst []float32, src []byte) {
	switch e {
	case F16:
		tensor.F16ToF32(dst, view[tensor.F16](src))
	case BF16:
		tensor.BF16ToF32(dst, view[tensor.BF16](src))
	default:
		copy(dst, view[float32](src))
	}
}

// At returns element i of an array.
func At(e Element, a []byte, i int64) float32 {
	switch e {
	case F16:
		return view[tensor.F16](a)[i].Float32()
	case BF16:
		return view[tensor.BF16](a)[i].Float32()
	}
	return view[float32](a)[i]
}

// Add stores a+b as float32.
func Add(e Element, dst []float32, a, b []byte, buf []float32) {
	if e == F32 {
		vec.Add(dst, view[float32](a), view[float32](b))
		return
	}
	x, y := view[uint16](a), view[uint16](b)
	for len(x) > 0 {
		d := dst[:min(step, len(x))]
		Widen(e, d, bytesOf(x[:len(d)]))
		vec.Add(d, d, widen(e, buf, y))
		dst, x, y = dst[len(d):], x[len(d):], y[len(d):]
	}
}
