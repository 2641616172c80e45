package kernel

import (
	"goatb/device"
	"goatb/tensor"
)

// LoadFloats widens len(dst) elements of a float tensor (f32, f16, bf16) to
// float32. src holds at least that many elements of type t.
func LoadFloats(dst []float32, src []byte, t tensor.DType) {
	switch t {
	case tensor.Float16:
		tensor.F16ToF32(dst, device.View[tensor.F16](src)[:len(dst)])
	case tensor.BFloat16:
		tensor.BF16ToF32(dst, device.View[tensor.BF16](src)[:len(dst)])
	default:
		copy(dst, device.View[float32](src)[:len(dst)])
	}
}

// StoreFloats rounds src once to type t (to nearest even) and stores it.
func StoreFloats(dst []byte, src []float32, t tensor.DType) {
	switch t {
	case tensor.Float16:
		tensor.F32ToF16(device.View[tensor.F16](dst)[:len(src)], src)
	case tensor.BFloat16:
		tensor.F32ToBF16(device.View[tensor.BF16](dst)[:len(src)], src)
	default:
		copy(device.View[float32](dst)[:len(src)], src)
	}
}

// Floats returns n elements of a float tensor as float32, without a copy for
// f32 and in buf, which has room for n, for the others.
func Floats(buf []float32, src []byte, t tensor.DType, n int64) []float32 {
	if t == tensor.Float32 {
		return device.View[float32](src)[:n:n]
	}
	LoadFloats(buf[:n], src, t)
	return buf[:n:n]
}

// Room returns where to compute n elements that Flush will store to dst: the
// memory of dst itself for f32, and buf, which has room for n, for the others.
func Room(buf []float32, dst []byte, t tensor.DType, n int64) []float32 {
	if t == tensor.Float32 {
		return device.View[float32](dst)[:n:n]
	}
	return buf[:n:n]
}

// Flush stores to dst what was computed in the memory that Room returned for
// it, rounded once to nearest even.
func Flush(dst []byte, room []float32, t tensor.DType) {
	if t != tensor.Float32 {
		StoreFloats(dst, room, t)
	}
}
