package tensor_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"goatb/status"
	"goatb/tensor"
)

func TestPanelsSize(t *testing.T) {
	for _, c := range []struct {
		elem  tensor.DType
		dims  []int64
		bytes int64
	}{
		{tensor.Float32, []int64{32, 64}, 4 * 32 * 64},
		{tensor.Float32, []int64{33, 64}, 4 * 64 * 64},
		{tensor.Float32, []int64{1, 1}, 128},
		{tensor.Float16, []int64{3, 1, 7}, 3 * 2 * 32 * 7},
		{tensor.BFloat16, []int64{32, 7}, 2 * 32 * 8},
		{tensor.Int8, []int64{32, 8}, 32*8 + 128},
		{tensor.Int8, []int64{2, 40, 9}, 2 * 2 * (32*12 + 128)},
		{tensor.Int32, []int64{32, 8}, 0},
		{tensor.Float32, []int64{32}, 0},
		{tensor.Float32, []int64{1, 1, 32, 8}, 0},
		{tensor.Float32, []int64{32, 0}, 0},
		{tensor.Float32, []int64{32, math.MaxInt64 / 32}, 0},
		{tensor.Float32, []int64{math.MaxInt64, 1}, 0},
		{tensor.Float32, []int64{1 << 42, 1 << 20, 1}, 0},
	} {
		d := tensor.Of(c.elem, c.dims...)
		d.Format = tensor.Panels
		assert.Equal(t, c.bytes, d.Bytes(), "%s", d)
	}
	d := tensor.Desc{DType: tensor.Int32, Format: tensor.Panels, Shape: tensor.ShapeOf(3, 4)}
	assert.ErrorIs(t, tensor.CheckDesc(&d), status.ErrInvalidTensorSize)
	assert.Equal(t, "int32@panels[3,4]", d.String())
}
