package device

import (
	"unsafe"

	"goatb/status"
	"goatb/tensor"
)

// Tensor is a descriptor with data: device data, host data, or both. Host data
// are the values that tilings read on the host (sequence lengths); they are
// read during Setup and Execute, never after Execute has returned.
type Tensor struct {
	Desc tensor.Desc
	// Data is the tensor in device memory.
	Data Buffer
	// Host is the tensor in host memory, little-endian as Desc says.
	Host []byte
}

// Empty reports whether t stands for an absent optional tensor.
func (t *Tensor) Empty() bool { return t == nil || t.Data.IsNil() && t.Host == nil && t.Desc.Empty() }

// Element is a Go type that a tensor's elements can have.
type Element interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// BytesOf views a slice's memory as bytes, without a copy.
func BytesOf[T Element](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}

// address is where addressable memory starts, for comparison only.
func (a *Allocation) address() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(a.bytes))) }

// View views bytes as elements of T, without a copy; a tail shorter than an
// element is left out. The memory must be aligned for T.
func View[T Element](b []byte) []T {
	var z T
	n := len(b) / int(unsafe.Sizeof(z))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// AppendValues appends the host values of t to dst as int64. Only int32,
// uint32 and int64 tensors hold such values. Errors: ErrInvalidTensorAddr when
// t is nil, has no host data, or another number of values than its shape,
// ErrInvalidTensorDType.
func (t *Tensor) AppendValues(dst []int64) ([]int64, error) {
	if t == nil {
		return dst, status.Errorf(status.ErrInvalidTensorAddr, "host values: the tensor is nil")
	}
	want := t.Desc.Bytes()
	if int64(len(t.Host)) != want || want == 0 {
		return dst, t.wrongHostData()
	}
	host := t.Host
	switch t.Desc.DType {
	case tensor.Int32:
		for _, v := range View[int32](host) {
			dst = append(dst, int64(v))
		}
	case tensor.Uint32:
		for _, v := range View[uint32](host) {
			dst = append(dst, int64(v))
		}
	case tensor.Int64:
		dst = append(dst, View[int64](host)...)
	default:
		return dst, status.Errorf(status.ErrInvalidTensorDType, "want int32, uint32 or int64 host values, got %s", t.Desc.DType)
	}
	return dst, nil
}

// wrongHostData is the error of host data that do not fit the descriptor.
func (t *Tensor) wrongHostData() error {
	size := t.Desc.DType.Size()
	if size == 0 || int64(len(t.Host))%size != 0 {
		return status.Errorf(status.ErrInvalidTensorAddr, "want host data of %d bytes for %s, got %d", t.Desc.Bytes(), t.Desc, len(t.Host))
	}
	return status.Errorf(status.ErrInvalidTensorAddr, "want host data of %d values for %s, got %d values", t.Desc.Numel(), t.Desc, int64(len(t.Host))/size)
}
