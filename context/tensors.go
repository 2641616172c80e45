package context

import (
	stdctx "context"
	"reflect"

	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// DTypeOf returns the element type whose Go type is T: tensor.F16 and
// tensor.BF16 for the half types, else the one that T's numbers are.
func DTypeOf[T device.Element]() tensor.DType {
	switch any(*new(T)).(type) {
	case tensor.F16:
		return tensor.Float16
	case tensor.BF16:
		return tensor.BFloat16
	}
	return dtypeOfKind[reflect.TypeFor[T]().Kind()]
}

var dtypeOfKind = map[reflect.Kind]tensor.DType{
	reflect.Float32: tensor.Float32, reflect.Float64: tensor.Float64,
	reflect.Int8: tensor.Int8, reflect.Int16: tensor.Int16, reflect.Int32: tensor.Int32, reflect.Int64: tensor.Int64,
	reflect.Uint8: tensor.Uint8, reflect.Uint16: tensor.Uint16, reflect.Uint32: tensor.Uint32, reflect.Uint64: tensor.Uint64,
}

// NewTensor reserves device memory for a tensor, zero filled.
func NewTensor(c *Context, d tensor.Desc) (device.Tensor, error) {
	if err := tensor.CheckDesc(&d); err != nil {
		return device.Tensor{}, status.Place(err, status.ErrInvalidTensorSize, "new tensor", "", "")
	}
	b, err := c.Alloc(d.Bytes())
	if err != nil {
		return device.Tensor{}, err
	}
	return device.Tensor{Desc: d, Data: b.At(0, d.Bytes())}, nil
}

// FromSlice makes a device tensor with a copy of data, which is row-major with
// the given dimensions. It returns when the copy is done. Errors:
// ErrInvalidTensorDim and ErrInvalidTensorSize for dimensions that no tensor has
// and for another number of values than they make, ErrInvalidContextAddr, and
// those of the device.
func FromSlice[T device.Element](c *Context, data []T, dims ...int64) (device.Tensor, error) {
	d := tensor.Of(DTypeOf[T](), dims...)
	if err := wantValues("from slice", len(data), &d); err != nil {
		return device.Tensor{}, err
	}
	return fromBytes(c, device.BytesOf(data), d)
}

// wantValues checks that a descriptor is one of a tensor of n elements.
func wantValues(call string, n int, d *tensor.Desc) error {
	err := tensor.CheckDesc(d)
	switch {
	case err != nil && d.Rank() == 0:
		err = status.Errorf(err.Code, "want the dimensions of %d %s values, 1 to %d of them, got none", n, d.DType, tensor.MaxRank)
	case err == nil && int64(n) != d.Numel():
		err = status.Errorf(status.ErrInvalidTensorSize, "want %d values for %s, got %d", d.Numel(), d, n)
	}
	return status.Place(err, status.ErrInvalidTensorSize, call, "", "")
}

// FromFloats makes a float tensor of any float type from float32 values,
// rounding each once to nearest even.
func FromFloats(c *Context, t tensor.DType, data []float32, dims ...int64) (device.Tensor, error) {
	if !t.IsFloat() || t == tensor.Float64 {
		return device.Tensor{}, status.Errorf(status.ErrInvalidTensorDType, "from floats: want f32, f16 or bf16, got %s", t)
	}
	d := tensor.Of(t, dims...)
	if err := wantValues("from floats", len(data), &d); err != nil {
		return device.Tensor{}, err
	}
	b := device.BytesOf(make([]uint64, (int64(len(data))*t.Size()+7)/8))[:int64(len(data))*t.Size()]
	kernel.StoreFloats(b, data, t)
	return fromBytes(c, b, d)
}

func fromBytes(c *Context, b []byte, d tensor.Desc) (device.Tensor, error) {
	t, err := NewTensor(c, d)
	if err != nil {
		return device.Tensor{}, err
	}
	return t, Write(stdctx.Background(), c, &t, b)
}

// Wrap makes a device tensor over memory that the caller owns, such as a mapped
// file or a slice, without a copy. The memory must stay in place and unchanged
// while work uses it. Errors: as FromSlice's for data and dimensions.
func Wrap[T device.Element](data []T, dims ...int64) (device.Tensor, error) {
	d := tensor.Of(DTypeOf[T](), dims...)
	if err := wantValues("wrap", len(data), &d); err != nil {
		return device.Tensor{}, err
	}
	return device.Tensor{Desc: d, Data: device.Wrap(device.BytesOf(data))}, nil
}

// Host makes a host tensor: values that operations read on the host, such as
// sequence lengths. Without dimensions it has one, the number of values. The slice
// is read during Setup and Execute, which refuse another number of values than the
// dimensions make; the caller may change it between calls.
func Host[T device.Element](data []T, dims ...int64) device.Tensor {
	if len(dims) == 0 {
		dims = []int64{int64(len(data))}
	}
	return device.Tensor{Desc: tensor.Of(DTypeOf[T](), dims...), Host: device.BytesOf(data)}
}

// Write copies bytes into a device tensor, in order with the work on stream 0,
// and waits for the copy. Errors: ErrInvalidParam for a nil ctx or tensor,
// ErrInvalidTensorAddr for a tensor without memory on the device,
// ErrInvalidTensorSize for another number of bytes than the tensor's,
// ErrInvalidContextAddr, those of ctx and of earlier work.
func Write(ctx stdctx.Context, c *Context, t *device.Tensor, data []byte) error {
	return c.transfer(ctx, "write", t, data, func(s device.Stream, host device.Buffer) error { return s.Copy(t.Data, host) })
}

// Read copies a device tensor's bytes into data, after the work enqueued on
// stream 0, and waits for the copy. Errors: as Write.
func Read(ctx stdctx.Context, c *Context, data []byte, t *device.Tensor) error {
	return c.transfer(ctx, "read", t, data, func(s device.Stream, host device.Buffer) error { return s.Copy(host, t.Data) })
}

// transfer enqueues a copy between a tensor and host memory and waits for it.
func (c *Context) transfer(ctx stdctx.Context, call string, t *device.Tensor, data []byte, enqueue func(device.Stream, device.Buffer) error) error {
	if err := status.Given(call, "ctx", ctx, "tensor", t); err != nil {
		return err
	}
	if err := c.Enter(LaunchSide); err != nil {
		return status.Place(err, status.ErrInvalidContextAddr, call, "", "")
	}
	defer c.Leave(LaunchSide)
	if err := checkTransfer(t, len(data)); err != nil {
		return status.Place(err, status.ErrInvalidTensorSize, call, "", "")
	}
	s := c.env.Streams[0]
	if err := enqueue(s, device.WrapHost(data)); err != nil {
		return status.Place(err, status.ErrDeviceFail, call, "", "")
	}
	return s.Synchronize(ctx)
}

// checkTransfer checks that n bytes are a tensor's on the device.
func checkTransfer(t *device.Tensor, n int) error {
	want, size := t.Desc.Bytes(), t.Desc.DType.Size()
	switch {
	case t.Data.IsNil() && t.Host != nil:
		return status.Errorf(status.ErrInvalidTensorAddr, "the tensor %s has no memory on the device: it is a host tensor, whose values lie in its Host", t.Desc)
	case t.Data.IsNil():
		return status.Errorf(status.ErrInvalidTensorAddr, "the tensor %s has no memory on the device: make it with NewTensor or FromSlice", t.Desc)
	case !t.Data.Live():
		return status.Errorf(status.ErrInvalidTensorAddr, "the memory of tensor %s was freed", t.Desc)
	case t.Desc == (tensor.Desc{}) && int64(n) == t.Data.Size():
		return nil // plain memory
	case t.Desc == (tensor.Desc{}):
		return status.Errorf(status.ErrInvalidTensorSize, "want %d bytes, the memory of a tensor without a descriptor, got %d", t.Data.Size(), n)
	case t.Data.Size() != want:
		return status.Errorf(status.ErrInvalidTensorSize, "the tensor %s wants %d bytes of memory, it has %d", t.Desc, want, t.Data.Size())
	case int64(n) == want:
		return nil
	}
	if int64(n)%size == 0 {
		return status.Errorf(status.ErrInvalidTensorSize, "want the %d values (%d bytes) of tensor %s, got %d values (%d bytes)", t.Desc.Numel(), want, t.Desc, int64(n)/size, n)
	}
	return status.Errorf(status.ErrInvalidTensorSize, "want the %d values (%d bytes) of tensor %s, got %d bytes", t.Desc.Numel(), want, t.Desc, n)
}

// ToSlice returns a copy of a device tensor's elements, after the work enqueued
// on stream 0. Errors of that work are returned here. T must be the tensor's
// element type. Errors: ErrInvalidTensorDType, ErrInvalidTensorSize for a
// descriptor that no tensor has, and as Write.
func ToSlice[T device.Element](ctx stdctx.Context, c *Context, t device.Tensor) ([]T, error) {
	if want := DTypeOf[T](); want != t.Desc.DType {
		return nil, status.Errorf(status.ErrInvalidTensorDType, "to slice: a slice of %T holds %s, the tensor is %s", *new(T), want, t.Desc)
	}
	if err := checkTransfer(&t, int(t.Desc.Bytes())); err != nil {
		return nil, status.Place(err, status.ErrInvalidTensorSize, "to slice", "", "")
	}
	out := make([]T, t.Desc.Numel())
	if err := Read(ctx, c, device.BytesOf(out), &t); err != nil {
		return nil, err
	}
	return out, nil
}

// ToFloats returns a float tensor's elements widened to float32, after the work
// enqueued on stream 0. Errors: as ToSlice.
func ToFloats(ctx stdctx.Context, c *Context, t device.Tensor) ([]float32, error) {
	if !t.Desc.DType.IsFloat() || t.Desc.DType == tensor.Float64 {
		return nil, status.Errorf(status.ErrInvalidTensorDType, "to floats: want a tensor of f32, f16 or bf16, got %s", t.Desc)
	}
	if err := checkTransfer(&t, int(t.Desc.Bytes())); err != nil {
		return nil, status.Place(err, status.ErrInvalidTensorSize, "to floats", "", "")
	}
	raw := device.BytesOf(make([]uint64, (t.Desc.Bytes()+7)/8))[:t.Desc.Bytes()]
	if err := Read(ctx, c, raw, &t); err != nil {
		return nil, err
	}
	out := make([]float32, t.Desc.Numel())
	kernel.LoadFloats(out, raw, t.Desc.DType)
	return out, nil
}
