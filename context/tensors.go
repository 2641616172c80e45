package context

import (
	stdctx "context"

	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// DTypeOf returns the element type whose Go type is T: tensor.F16 and
// tensor.BF16 for the half types.
func DTypeOf[T device.Element]() tensor.DType {
	switch any(*new(T)).(type) {
	case tensor.F16:
		return tensor.Float16
	case tensor.BF16:
		return tensor.BFloat16
	case float32:
		return tensor.Float32
	case float64:
		return tensor.Float64
	case int8:
		return tensor.Int8
	case int16:
		return tensor.Int16
	case int32:
		return tensor.Int32
	case int64:
		return tensor.Int64
	case uint8:
		return tensor.Uint8
	case uint16:
		return tensor.Uint16
	case uint32:
		return tensor.Uint32
	case uint64:
		return tensor.Uint64
	}
	return tensor.Undefined
}

// NewTensor reserves device memory for a tensor, zero filled.
func NewTensor(c *Context, d tensor.Desc) (device.Tensor, error) {
	if err := tensor.CheckDesc(&d); err != nil {
		return device.Tensor{}, err
	}
	b, err := c.Alloc(d.Bytes())
	if err != nil {
		return device.Tensor{}, err
	}
	return device.Tensor{Desc: d, Data: b.At(0, d.Bytes())}, nil
}

// FromSlice makes a device tensor with a copy of data, which is row-major with
// the given dimensions. It returns when the copy is done.
func FromSlice[T device.Element](c *Context, data []T, dims ...int64) (device.Tensor, error) {
	return fromBytes(c, device.BytesOf(data), tensor.Of(DTypeOf[T](), dims...))
}

// FromFloats makes a float tensor of any float type from float32 values,
// rounding each once to nearest even.
func FromFloats(c *Context, t tensor.DType, data []float32, dims ...int64) (device.Tensor, error) {
	if !t.IsFloat() || t == tensor.Float64 {
		return device.Tensor{}, status.Errorf(status.ErrInvalidTensorDType, "want f32, f16 or bf16, got %s", t)
	}
	b := device.BytesOf(make([]uint64, (int64(len(data))*t.Size()+7)/8))[:int64(len(data))*t.Size()]
	kernel.StoreFloats(b, data, t)
	return fromBytes(c, b, tensor.Of(t, dims...))
}

func fromBytes(c *Context, b []byte, d tensor.Desc) (device.Tensor, error) {
	if int64(len(b)) != d.Bytes() {
		return device.Tensor{}, status.Errorf(status.ErrInvalidTensorSize, "want %d bytes for %s, got %d", d.Bytes(), d, len(b))
	}
	t, err := NewTensor(c, d)
	if err != nil {
		return device.Tensor{}, err
	}
	return t, Write(stdctx.Background(), c, &t, b)
}

// Wrap makes a device tensor over memory that the caller owns, such as a mapped
// file or a slice, without a copy. The memory must stay in place and unchanged
// while work uses it.
func Wrap[T device.Element](data []T, dims ...int64) (device.Tensor, error) {
	d := tensor.Of(DTypeOf[T](), dims...)
	b := device.BytesOf(data)
	if int64(len(b)) != d.Bytes() || len(b) == 0 {
		return device.Tensor{}, status.Errorf(status.ErrInvalidTensorSize, "want %d bytes for %s, got %d", d.Bytes(), d, len(b))
	}
	return device.Tensor{Desc: d, Data: device.Wrap(b)}, nil
}

// Host makes a host tensor: values that operations read on the host, such as
// sequence lengths. The slice is read during Setup and Execute; the caller may
// change it between calls.
func Host[T device.Element](data []T, dims ...int64) device.Tensor {
	if len(dims) == 0 {
		dims = []int64{int64(len(data))}
	}
	return device.Tensor{Desc: tensor.Of(DTypeOf[T](), dims...), Host: device.BytesOf(data)}
}

// Write copies bytes into a device tensor, in order with the work on stream 0,
// and waits for the copy.
func Write(ctx stdctx.Context, c *Context, t *device.Tensor, data []byte) error {
	return c.transfer(ctx, t.Data, device.WrapHost(data))
}

// Read copies a device tensor's bytes into data, after the work enqueued on
// stream 0, and waits for the copy.
func Read(ctx stdctx.Context, c *Context, data []byte, t *device.Tensor) error {
	return c.transfer(ctx, device.WrapHost(data), t.Data)
}

func (c *Context) transfer(ctx stdctx.Context, dst, src device.Buffer) error {
	if err := c.Enter(LaunchSide); err != nil {
		return err
	}
	defer c.Leave(LaunchSide)
	s := c.env.Streams[0]
	if err := s.Copy(dst, src); err != nil {
		return err
	}
	return s.Synchronize(ctx)
}

// ToSlice returns a copy of a device tensor's elements, after the work enqueued
// on stream 0. Errors of that work are returned here. T must be the tensor's
// element type.
func ToSlice[T device.Element](ctx stdctx.Context, c *Context, t device.Tensor) ([]T, error) {
	if want := DTypeOf[T](); want != t.Desc.DType {
		return nil, status.Errorf(status.ErrInvalidTensorDType, "want a %s tensor, got %s", want, t.Desc)
	}
	out := make([]T, t.Desc.Numel())
	return out, Read(ctx, c, device.BytesOf(out), &t)
}

// ToFloats returns a float tensor's elements widened to float32, after the work
// enqueued on stream 0.
func ToFloats(ctx stdctx.Context, c *Context, t device.Tensor) ([]float32, error) {
	if !t.Desc.DType.IsFloat() || t.Desc.DType == tensor.Float64 {
		return nil, status.Errorf(status.ErrInvalidTensorDType, "want a f32, f16 or bf16 tensor, got %s", t.Desc)
	}
	raw := device.BytesOf(make([]uint64, (t.Desc.Bytes()+7)/8))[:t.Desc.Bytes()]
	if err := Read(ctx, c, raw, &t); err != nil {
		return nil, err
	}
	out := make([]float32, t.Desc.Numel())
	kernel.LoadFloats(out, raw, t.Desc.DType)
	return out, nil
}
