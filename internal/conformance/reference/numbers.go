package reference

import (
	"math"

	"goatb/device"
	"goatb/tensor"
)

// Floats returns the elements of t as float64; booleans are 0 and 1.
func (t Tensor) Floats() []float64 {
	v := make([]float64, t.Desc.Numel())
	switch t.Desc.DType {
	case tensor.Float16:
		for i, x := range device.View[tensor.F16](t.Data)[:len(v)] {
			v[i] = float64(x.Float32())
		}
	case tensor.BFloat16:
		for i, x := range device.View[tensor.BF16](t.Data)[:len(v)] {
			v[i] = float64(x.Float32())
		}
	case tensor.Float32:
		widen(v, device.View[float32](t.Data))
	case tensor.Float64:
		copy(v, device.View[float64](t.Data))
	case tensor.Uint64:
		widen(v, device.View[uint64](t.Data))
	default:
		widen(v, t.Ints())
	}
	return v
}

// Ints returns the elements of an integer or boolean tensor as int64.
func (t Tensor) Ints() []int64 {
	v := make([]int64, t.Desc.Numel())
	switch t.Desc.DType {
	case tensor.Int8:
		widen(v, device.View[int8](t.Data))
	case tensor.Uint8, tensor.Bool:
		widen(v, t.Data)
	case tensor.Int16:
		widen(v, device.View[int16](t.Data))
	case tensor.Uint16:
		widen(v, device.View[uint16](t.Data))
	case tensor.Int32:
		widen(v, device.View[int32](t.Data))
	case tensor.Uint32:
		widen(v, device.View[uint32](t.Data))
	case tensor.Uint64:
		widen(v, device.View[uint64](t.Data))
	default:
		copy(v, device.View[int64](t.Data))
	}
	return v
}

// number is what widen converts.
type number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// widen converts src, which has at least len(dst) elements.
func widen[D int64 | float64, S number](dst []D, src []S) {
	for i, x := range src[:len(dst)] {
		dst[i] = D(x)
	}
}

// OfFloats makes a float64 tensor of d's shape.
func OfFloats(d tensor.Desc, v []float64) Tensor {
	d.DType, d.Format = tensor.Float64, tensor.ND
	return Tensor{Desc: d, Data: device.BytesOf(v)}
}

// OfInts makes an int64 tensor of d's shape.
func OfInts(d tensor.Desc, v []int64) Tensor {
	d.DType, d.Format = tensor.Int64, tensor.ND
	return Tensor{Desc: d, Data: device.BytesOf(v)}
}

// Zeros makes a tensor of zeros.
func Zeros(d tensor.Desc) Tensor {
	return Tensor{Desc: d, Data: Bytes(d.Bytes())}
}

// Bytes makes n zero bytes that are 8-byte aligned.
func Bytes(n int64) []byte {
	if n == 0 {
		return nil
	}
	return device.BytesOf(make([]uint64, (n+7)/8))[:n]
}

// Round rounds x once to type t; other types than the half ones and float32
// leave it as it is.
func Round(t tensor.DType, x float64) float64 {
	switch t {
	case tensor.Float16:
		return float64(tensor.F16From(toOdd(x)).Float32())
	case tensor.BFloat16:
		return float64(tensor.BF16From(toOdd(x)).Float32())
	case tensor.Float32:
		return float64(float32(x))
	}
	return x
}

// toOdd rounds to float32 so that a second rounding to a half type is the same
// as one rounding of x: an inexact result gets an odd last bit.
func toOdd(x float64) float32 {
	f := float32(x)
	if float64(f) == x || math.IsNaN(x) || math.IsInf(float64(f), 0) {
		return f
	}
	b := math.Float32bits(f)
	if b&1 == 1 {
		return f
	}
	if (float64(f) < x) == (x > 0) {
		return math.Float32frombits(b + 1)
	}
	return math.Float32frombits(b - 1)
}

// quantise rounds to the nearest int8, halves to even.
func quantise(x float64) float64 {
	return math.RoundToEven(min(max(x, -128), 127))
}
