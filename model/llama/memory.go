package llama

import (
	"errors"

	"goatb/atb"
	"goatb/device"
	"goatb/tensor"
)

// memory allocates on a context's device and remembers what it must free.
type memory struct {
	c   *atb.Context
	dev device.Device
	own []device.Buffer
}

func (m *memory) tensor(t atb.DType, dims ...int64) (atb.Tensor, error) {
	return m.of(tensor.Of(t, dims...))
}

func (m *memory) of(d tensor.Desc) (atb.Tensor, error) {
	x, err := atb.NewTensor(m.c, d)
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

// bytes is the size of everything.
func (m *memory) bytes() (n int64) {
	for _, b := range m.own {
		n += b.Allocation().Size()
	}
	return n
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
