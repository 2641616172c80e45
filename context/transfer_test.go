package context_test

import (
	stdctx "context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/status"
	"goatb/tensor"
)

func TestTensorsFromBadValues(t *testing.T) {
	c := open(t)
	made := func(_ device.Tensor, err error) error { return err }
	for _, tt := range []struct {
		err  error
		code status.Code
		want string
	}{
		{made(atbctx.FromSlice(c, []float32{1, 2})), status.ErrInvalidTensorDim, "from slice: want the dimensions of 2 f32 values, 1 to 8 of them, got none"},
		{made(atbctx.FromSlice(c, []int32{1, 2}, 1, 1, 1, 1, 1, 1, 1, 1, 2)), status.ErrInvalidTensorDim, "from slice: want rank 1 to 8, got 9"},
		{made(atbctx.FromSlice(c, []int32{1, 2}, 2, 0)), status.ErrInvalidTensorSize, "from slice: want every dimension at least 1 and a size within int64, got int32[2,0]"},
		{made(atbctx.FromSlice(c, []int32{1, 2}, -1, -2)), status.ErrInvalidTensorSize, "from slice: want every dimension at least 1 and a size within int64, got int32[-1,-2]"},
		{made(atbctx.FromSlice(c, []int32{1, 2}, 1<<40, 1<<40)), status.ErrInvalidTensorSize, "within int64"},
		{made(atbctx.FromSlice(c, []int32{1, 2}, 3)), status.ErrInvalidTensorSize, "from slice: want 3 values for int32[3], got 2"},
		{made(atbctx.FromSlice[int8](c, nil, 3)), status.ErrInvalidTensorSize, "from slice: want 3 values for int8[3], got 0"},
		{made(atbctx.FromFloats(c, tensor.Float16, []float32{1}, 3)), status.ErrInvalidTensorSize, "from floats: want 3 values for f16[3], got 1"},
		{made(atbctx.FromFloats(c, tensor.Int8, []float32{1}, 1)), status.ErrInvalidTensorDType, "from floats: want f32, f16 or bf16, got int8"},
		{made(atbctx.Wrap([]float64{1}, 1, 2)), status.ErrInvalidTensorSize, "wrap: want 2 values for f64[1,2], got 1"},
		{made(atbctx.Wrap[int32](nil)), status.ErrInvalidTensorDim, "wrap: want the dimensions of 0 int32 values"},
		{made(atbctx.NewTensor(c, tensor.Desc{})), status.ErrInvalidTensorDim, "new tensor: want rank 1 to 8, got 0"},
	} {
		require.ErrorIs(t, tt.err, tt.code, tt.want)
		assert.ErrorContains(t, tt.err, tt.want)
	}
}

// token is a number type of a user's own.
type token int32

func TestOwnNumberTypes(t *testing.T) {
	c := open(t)
	assert.Equal(t, tensor.Int32, atbctx.DTypeOf[token]())
	x, err := atbctx.FromSlice(c, []token{1, 2}, 2)
	require.NoError(t, err)
	got, err := atbctx.ToSlice[token](t.Context(), c, x)
	require.NoError(t, err)
	assert.Equal(t, []token{1, 2}, got)
}

func TestBadTransfers(t *testing.T) {
	c := open(t)
	ctx := t.Context()
	x, err := atbctx.FromSlice(c, []float32{1, 2, 3, 4}, 2, 2)
	require.NoError(t, err)
	h := atbctx.Host([]int32{1, 2})
	freed, err := atbctx.FromSlice(c, []int32{1, 2}, 2)
	require.NoError(t, err)
	require.NoError(t, c.Free(freed.Data))
	other := x
	other.Desc = tensor.Of(tensor.Float32, 3)
	nothing := device.Tensor{Desc: x.Desc}
	huge := device.Tensor{Desc: tensor.Of(tensor.Float32, 1<<60, 1<<60), Data: x.Data}
	floats := func(t device.Tensor) error { _, err := atbctx.ToSlice[float32](ctx, c, t); return err }
	ints := func(t device.Tensor) error { _, err := atbctx.ToSlice[int32](ctx, c, t); return err }
	singles := func(ctx stdctx.Context, t device.Tensor) error { _, err := atbctx.ToFloats(ctx, c, t); return err }
	var none stdctx.Context
	for _, tt := range []struct {
		err  error
		code status.Code
		want string
	}{
		{atbctx.Write(ctx, c, &x, make([]byte, 12)), status.ErrInvalidTensorSize, "write: want the 4 values (16 bytes) of tensor f32[2,2], got 3 values (12 bytes)"},
		{atbctx.Write(ctx, c, &x, make([]byte, 17)), status.ErrInvalidTensorSize, "write: want the 4 values (16 bytes) of tensor f32[2,2], got 17 bytes"},
		{atbctx.Read(ctx, c, nil, &x), status.ErrInvalidTensorSize, "read: want the 4 values (16 bytes) of tensor f32[2,2], got 0 values (0 bytes)"},
		{floats(other), status.ErrInvalidTensorSize, "to slice: the tensor f32[3] wants 12 bytes of memory, it has 16"},
		{floats(huge), status.ErrInvalidTensorSize, "to slice: the tensor f32[1152921504606846976,1152921504606846976] wants 0 bytes of memory, it has 16"},
		{ints(x), status.ErrInvalidTensorDType, "to slice: a slice of int32 holds int32, the tensor is f32[2,2]"},
		{ints(h), status.ErrInvalidTensorAddr, "to slice: the tensor int32[2] has no memory on the device: it is a host tensor, whose values lie in its Host"},
		{ints(freed), status.ErrInvalidTensorAddr, "to slice: the memory of tensor int32[2] was freed"},
		{floats(nothing), status.ErrInvalidTensorAddr, "has no memory on the device: make it with NewTensor or FromSlice"},
		{singles(ctx, other), status.ErrInvalidTensorSize, "to floats: the tensor f32[3] wants 12 bytes of memory, it has 16"},
		{singles(ctx, h), status.ErrInvalidTensorDType, "to floats: want a tensor of f32, f16 or bf16, got int32[2]"},
		{singles(none, x), status.ErrInvalidParam, "want argument ctx, got nil"},
		{atbctx.Write(none, c, &x, make([]byte, 16)), status.ErrInvalidParam, "write: want argument ctx, got nil"},
		{atbctx.Read(ctx, c, make([]byte, 16), nil), status.ErrInvalidParam, "read: want argument tensor, got nil"},
		{c.Synchronize(none), status.ErrInvalidParam, "synchronize: want argument ctx, got nil"},
	} {
		require.ErrorIs(t, tt.err, tt.code, tt.want)
		assert.ErrorContains(t, tt.err, tt.want)
	}
	got, err := atbctx.ToSlice[float32](ctx, c, x)
	require.NoError(t, err)
	assert.Equal(t, []float32{1, 2, 3, 4}, got)
}

func TestZeroContext(t *testing.T) {
	var c atbctx.Context
	_, err := c.Alloc(8)
	require.ErrorIs(t, err, status.ErrInvalidContextAddr)
	assert.ErrorContains(t, err, "the context is a zero Context: make one with NewContext")
	assert.ErrorIs(t, c.Synchronize(t.Context()), status.ErrInvalidContextAddr)
	assert.Zero(t, c.Stats())
	assert.NoError(t, c.Close())
}
