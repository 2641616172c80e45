package reuse

import (
	"encoding/binary"
	"math/rand/v2"

	"goatb/atb"
	"goatb/device"
	"goatb/kernel"
	"goatb/tensor"
)

// operand is the content of an input before there is a context. The zero operand
// is an absent tensor.
type operand struct {
	desc atb.Desc
	data []byte
	// host says that the values are on the host, too.
	host bool
}

// bytesFor makes room for a tensor.
func bytesFor(d atb.Desc) []byte {
	return device.BytesOf(make([]uint64, (d.Bytes()+7)/8))[:d.Bytes()]
}

// source draws operands. Host values come from a stream of their own, so that
// they can stay while everything else changes.
type source struct{ device, host *rand.Rand }

func newSource(device, host uint64) *source {
	return &source{rand.New(rand.NewPCG(device, 1)), rand.New(rand.NewPCG(host, 2))}
}

// real draws numbers of a float type.
func (s *source) real(t atb.DType, dims ...int64) operand {
	d := tensor.Of(t, dims...)
	v := make([]float32, d.Numel())
	for i := range v {
		v[i] = float32(s.device.NormFloat64()) + 0.125
	}
	o := operand{desc: d, data: bytesFor(d)}
	kernel.StoreFloats(o.data, v, t)
	return o
}

func (s *source) f32(dims ...int64) operand { return s.real(tensor.Float32, dims...) }
func (s *source) f16(dims ...int64) operand { return s.real(tensor.Float16, dims...) }

// int8 draws all values.
func (s *source) int8(dims ...int64) operand {
	d := tensor.Of(tensor.Int8, dims...)
	o := operand{desc: d, data: bytesFor(d)}
	for i := range o.data {
		o.data[i] = byte(s.device.IntN(256))
	}
	return o
}

// bits draws int8 zeros and ones.
func (s *source) bits(dims ...int64) operand {
	o := s.int8(dims...)
	for i := range o.data {
		o.data[i] &= 1
	}
	return o
}

// int32s makes an int32 operand.
func int32s(v []int64, dims ...int64) operand {
	d := tensor.Of(tensor.Int32, dims...)
	o := operand{desc: d, data: bytesFor(d)}
	for i, x := range v {
		binary.LittleEndian.PutUint32(o.data[4*i:], uint32(x))
	}
	return o
}

// below draws int32 values below n.
func (s *source) below(n int64, dims ...int64) operand {
	v := make([]int64, tensor.ShapeOf(dims...).Numel())
	for i := range v {
		v[i] = s.device.Int64N(n)
	}
	return int32s(v, dims...)
}

// distinct draws n different int32 values below `below`.
func (s *source) distinct(n, below int64) operand {
	v := make([]int64, n)
	for i, x := range s.device.Perm(int(below))[:n] {
		v[i] = int64(x)
	}
	return int32s(v, n)
}

// lengths draws n host values from lo to hi.
func (s *source) lengths(n, lo, hi int64) operand {
	v := make([]int64, n)
	for i := range v {
		v[i] = lo + s.host.Int64N(hi-lo+1)
	}
	o := int32s(v, n)
	o.host = true
	return o
}

// shares draws n host values of at least 1 whose sum is total.
func (s *source) shares(n, total int64) operand {
	v := make([]int64, n)
	for i := range v {
		v[i] = 1
	}
	for range total - n {
		v[s.host.Int64N(n)]++
	}
	o := int32s(v, n)
	o.host = true
	return o
}
