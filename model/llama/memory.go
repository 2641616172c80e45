package llama

import (
	"context"
	"errors"
	"slices"

	"goatb/atb"
	"goatb/device"
	"goatb/operation/linear"
	"goatb/tensor"
)

// memory allocates on a context's device and remembers what it must free.
type memory struct {
	c   *atb.Context
	dev device.Device
	own []device.Buffer
}

func (m *memory) tensor(t atb.DType, dims ...int64) (atb.Tensor, error) {
	x, err := atb.NewTensor(m.c, tensor.Of(t, dims...))
	if err == nil {
		m.own = append(m.own, x.Data)
	}
	return x, err
}

// floats makes a tensor of values, rounded to the type t.
func (m *memory) floats(t atb.DType, data []float32, dims ...int64) (atb.Tensor, error) {
	x, err := atb.FromFloats(m.c, t, data, dims...)
	if err == nil {
		m.own = append(m.own, x.Data)
	}
	return x, err
}

// packed packs a weight [n, k] and frees the tensor that it came from.
func (m *memory) packed(x atb.Tensor) (atb.Tensor, error) {
	p, err := linear.PackWeight(context.Background(), m.c, x, true)
	if err != nil {
		return p, err
	}
	m.own = append(m.own, p.Data)
	m.own = slices.DeleteFunc(m.own, func(b device.Buffer) bool { return b.Allocation() == x.Data.Allocation() })
	return p, m.dev.Free(device.Whole(x.Data.Allocation()))
}

func (m *memory) alloc(size int64) (device.Buffer, error) {
	b, err := m.c.Alloc(size)
	if err == nil {
		m.own = append(m.own, b)
	}
	return b, err
}

// allocHost reserves host memory that copies read and write.
func (m *memory) allocHost(size int64) (device.Buffer, error) {
	b, err := m.dev.AllocHost(size)
	if err == nil {
		m.own = append(m.own, b)
	}
	return b, err
}

// free frees everything; memory that its device has freed is left out.
func (m *memory) free() error {
	var errs []error
	for _, b := range m.own {
		if b.Live() {
			errs = append(errs, m.dev.Free(device.Whole(b.Allocation())))
		}
	}
	m.own = nil
	return errors.Join(errs...)
}
