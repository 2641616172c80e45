package reference

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/tensor"
)

// f32 makes a float32 tensor.
func f32(v []float32, dims ...int64) Tensor {
	return Tensor{Desc: tensor.Of(tensor.Float32, dims...), Data: device.BytesOf(v)}
}

func i32(v []int32, dims ...int64) Tensor {
	return Tensor{Desc: tensor.Of(tensor.Int32, dims...), Data: device.BytesOf(v)}
}

func TestEvalByHand(t *testing.T) {
	inf := float32(math.Inf(-1))
	for _, c := range []struct {
		op, param string
		in        []Tensor
		want      [][]float64
	}{
		{"SoftmaxOperation", `{"axes":[-1]}`, []Tensor{f32([]float32{0, 0, inf, inf, inf, 1}, 3, 2)}, [][]float64{{0.5, 0.5, 0, 0, 0, 1}}},
		{"TransposeOperation", `{"perm":[1,0]}`, []Tensor{f32([]float32{1, 2, 3, 4, 5, 6}, 2, 3)}, [][]float64{{1, 4, 2, 5, 3, 6}}},
		{"ConcatOperation", `{"concatDim":-1}`, []Tensor{f32([]float32{1, 2}, 2, 1), f32([]float32{3, 4, 5, 6}, 2, 2)}, [][]float64{{1, 3, 4, 2, 5, 6}}},
		{"SplitOperation", `{"splitDim":1,"splitSizes":[1,2]}`, []Tensor{f32([]float32{1, 2, 3, 4, 5, 6}, 2, 3)}, [][]float64{{1, 4}, {2, 3, 5, 6}}},
		{"SliceOperation", `{"offsets":[-1,1],"size":[1,-1]}`, []Tensor{f32([]float32{1, 2, 3, 4, 5, 6}, 2, 3)}, [][]float64{{5, 6}}},
		{"GatherOperation", ``, []Tensor{f32([]float32{1, 2, 3, 4}, 2, 2), i32([]int32{1, -1, 2, 0}, 4)}, [][]float64{{3, 4, 0, 0, 0, 0, 1, 2}}},
		{"SortOperation", `{"num":[3]}`, []Tensor{f32([]float32{1, 2, 2, -inf, float32(math.NaN()), -inf}, 2, 3)}, [][]float64{{2, 2, 1, math.NaN(), math.Inf(1), math.Inf(1)}, {1, 2, 0, 1, 0, 2}}},
		{"IndexAddOperation", `{"indexType":1,"axis":-2}`, []Tensor{f32([]float32{1, 2, 3, 4}, 2, 2), i32([]int32{1, 1}, 2), f32([]float32{1, 2, 3, 4}, 2, 2), f32([]float32{2}, 1)}, [][]float64{{1, 2, 11, 16}}},
		{"IndexAddOperation", `{"indexType":2}`, []Tensor{f32([]float32{1, 2, 3, 4}, 2, 2), i32([]int32{1, 1}, 2), f32([]float32{1, 2, 3, 4}, 2, 2), i32([]int32{1}, 1)}, [][]float64{{1, 2, 4, 6}}},
		{"LinearOperation", `{"hasBias":false}`, []Tensor{f32([]float32{1, 2, 3, 4}, 2, 2), f32([]float32{1, 0, 2, 1}, 2, 2)}, [][]float64{{1, 4, 3, 10}}},
		{"LinearOperation", `{"hasBias":true,"transposeB":false}`, []Tensor{f32([]float32{1, 2}, 1, 2), f32([]float32{1, 0, 2, 1}, 2, 2), f32([]float32{10, 20}, 2)}, [][]float64{{15, 22}}},
		{"ElewiseOperation", `{"elewiseType":10}`, []Tensor{f32([]float32{1, 2, 3, 4}, 2, 2), f32([]float32{2, 4}, 2, 1)}, [][]float64{{0.5, 1, 0.75, 1}}},
		{"ElewiseOperation", `{"elewiseType":19}`, []Tensor{f32([]float32{-127, 63.5, 0.4, 0.6}, 1, 4)}, [][]float64{{-127, 64, 0, 1}, {1}}},
		{"RmsNormOperation", `{"layerType":1,"normParam":{"epsilon":0}}`, []Tensor{f32([]float32{3, 3}, 1, 2), f32([]float32{1, 2}, 2)}, [][]float64{{1, 2}}},
		{"RopeOperation", `{"rotaryCoeff":2}`, []Tensor{f32([]float32{1, 2}, 1, 2), f32([]float32{3, 4}, 1, 2), f32([]float32{0, 0}, 1, 2), f32([]float32{1, 1}, 1, 2), i32([]int32{1}, 1)}, [][]float64{{-2, 1}, {-4, 3}}},
		{"ActivationOperation", `{"activationType":1}`, []Tensor{f32([]float32{-1, 2}, 2)}, [][]float64{{0, 2}}},
		{"SelfAttentionOperation", `{"headNum":1,"calcType":3,"maskType":9}`, []Tensor{f32([]float32{0, 0}, 2, 1), f32([]float32{5, 7}, 2, 1), f32([]float32{1, 3}, 2, 1), i32([]int32{2}, 1)}, [][]float64{{1, 2}}},
		{"PagedAttentionOperation", `{"headNum":1,"qkScale":1,"kvHeadNum":1}`, []Tensor{f32([]float32{0}, 1, 1, 1), f32(make([]float32, 4), 2, 2, 1, 1), f32([]float32{1, 2, 3, 6}, 2, 2, 1, 1), i32([]int32{1, 0}, 1, 2), i32([]int32{3}, 1)}, [][]float64{{10.0 / 3}}},
		{"ReshapeAndCacheOperation", `{"kvCacheCfg":1}`, []Tensor{f32([]float32{7, 8, 9}, 3, 1, 1), f32([]float32{1, 2, 3, 4}, 2, 2, 1, 1), i32([]int32{3, -1, 0}, 3)}, [][]float64{{9, 2, 3, 7}}},
	} {
		out, err := Eval(&Input{Op: c.op, Param: []byte(c.param), In: c.in})
		require.NoError(t, err, c.op)
		require.Len(t, out, len(c.want), c.op)
		for i, want := range c.want {
			assert.InDeltaSlice(t, want, out[i].Floats(), 1e-12, "%s %s output %d", c.op, c.param, i)
		}
	}
}

func TestEvalReportsWhatItCannotDo(t *testing.T) {
	_, err := Eval(&Input{Op: "NonzeroOperation"})
	assert.ErrorIs(t, err, ErrNone)
	_, err = Eval(&Input{Op: "ElewiseOperation", Param: []byte(`{"elewiseType":99}`), In: []Tensor{f32([]float32{1}, 1)}})
	assert.ErrorIs(t, err, ErrNone)
	_, err = Eval(&Input{Op: "SoftmaxOperation", Param: []byte(`{"axes":[]}`), In: []Tensor{f32([]float32{1}, 1)}})
	assert.ErrorContains(t, err, "failed on these operands")
	_, err = Eval(&Input{Op: "LinearOperation", Param: []byte(`{`), In: []Tensor{f32([]float32{1}, 1)}})
	assert.Error(t, err)
}

// TestRoundOnce uses values that a rounding by way of float32 would move across
// the middle of two half-precision numbers.
func TestRoundOnce(t *testing.T) {
	for _, c := range []struct {
		dt      tensor.DType
		x, want float64
	}{
		{tensor.Float16, 1 + 0x1p-11, 1},
		{tensor.Float16, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-10},
		{tensor.Float16, 1 + 0x1p-11 - 0x1p-40, 1},
		{tensor.Float16, -(1 + 3*0x1p-11 - 0x1p-40), -(1 + 0x1p-10)},
		{tensor.BFloat16, 1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-7},
		{tensor.BFloat16, 1 + 3*0x1p-8 - 0x1p-40, 1 + 0x1p-7},
		{tensor.Float16, 65520, math.Inf(1)},
		{tensor.Float32, 1 + 0x1p-24, 1},
		{tensor.Float64, 1 + 0x1p-40, 1 + 0x1p-40},
	} {
		assert.Equal(t, c.want, Round(c.dt, c.x), "%s %g", c.dt, c.x)
	}
	assert.True(t, math.IsNaN(Round(tensor.Float16, math.NaN())))
}
