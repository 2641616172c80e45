package shape

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

func f16(dims ...int64) tensor.Desc { return tensor.Of(tensor.Float16, dims...) }
func f32(dims ...int64) tensor.Desc { return tensor.Of(tensor.Float32, dims...) }
func i32(dims ...int64) tensor.Desc { return tensor.Of(tensor.Int32, dims...) }

func TestInferShape(t *testing.T) {
	for _, c := range []struct {
		spec operation.Spec
		in   []tensor.Desc
		want []tensor.Desc
	}{
		{Transpose{Perm: []int64{2, 0, 1}}, []tensor.Desc{f16(3, 4, 5)}, []tensor.Desc{f16(5, 3, 4)}},
		{Transpose{Perm: []int64{0}}, []tensor.Desc{f16(7)}, []tensor.Desc{f16(7)}},
		{Concat{ConcatDim: -1}, []tensor.Desc{f16(3, 4), f16(3, 2)}, []tensor.Desc{f16(3, 6)}},
		{Concat{ConcatDim: 0}, []tensor.Desc{f16(3, 4), f16(1, 4)}, []tensor.Desc{f16(4, 4)}},
		{Split{SplitDim: -1, SplitNum: 3}, []tensor.Desc{f16(2, 9)}, []tensor.Desc{f16(2, 3), f16(2, 3), f16(2, 3)}},
		{Split{SplitDim: 0, SplitNum: 2, SplitSizes: []int64{1, 4}}, []tensor.Desc{f16(5, 9)}, []tensor.Desc{f16(1, 9), f16(4, 9)}},
		{Slice{Offsets: []int64{-4, 1}, Size: []int64{2, -1}}, []tensor.Desc{f16(5, 9)}, []tensor.Desc{f16(2, 8)}},
		{Gather{Axis: 1}, []tensor.Desc{f16(2, 9, 3), i32(4, 5)}, []tensor.Desc{f16(2, 4, 5, 3)}},
		{Gather{Axis: 2, BatchDims: 1}, []tensor.Desc{f16(2, 9, 3), i32(2, 5)}, []tensor.Desc{f16(2, 9, 5)}},
		{Gather{Axis: 2, BatchDims: 2}, []tensor.Desc{f16(2, 9, 3), i32(2, 9)}, []tensor.Desc{f16(2, 9)}},
		{Softmax{Axes: []int64{1, -1}}, []tensor.Desc{f32(2, 9, 3)}, []tensor.Desc{f32(2, 9, 3)}},
		{IndexAdd{IndexAddAll, -2}, []tensor.Desc{f16(2, 9), i32(3), f16(3, 9), f16(1)}, []tensor.Desc{f16(2, 9)}},
		{IndexAdd{IndexAddAll, 1}, []tensor.Desc{f32(2, 9, 4), i32(30), f32(2, 30, 4), f32(1)}, []tensor.Desc{f32(2, 9, 4)}},
		{IndexAdd{IndexAddValid, 0}, []tensor.Desc{f16(2, 9), i32(3), f16(3, 9), i32(1)}, []tensor.Desc{f16(2, 9)}},
		{Sort{Num: []int64{4}}, []tensor.Desc{f16(2, 9)}, []tensor.Desc{f16(2, 4), i32(2, 4)}},
		{Sort{Num: []int64{9}}, []tensor.Desc{f32(9)}, []tensor.Desc{f32(9), i32(9)}},
	} {
		got, err := operation.InferShape(c.spec, operation.Native(), c.in)
		require.NoError(t, err, "%+v", c.spec)
		assert.Equal(t, c.want, got, "%+v", c.spec)
	}
}

// badInfer lists what InferShape refuses on both profiles.
var badInfer = []struct {
	name string
	spec operation.Spec
	in   []tensor.Desc
	code status.Code
	text string
}{
	{"perm short", Transpose{Perm: []int64{0}}, []tensor.Desc{f16(2, 3)}, status.ErrInvalidParam, "want 2 axes"},
	{"perm empty", Transpose{}, []tensor.Desc{f16(2)}, status.ErrInvalidParam, "want 1 axes"},
	{"perm range", Transpose{Perm: []int64{0, 2}}, []tensor.Desc{f16(2, 3)}, status.ErrInvalidParam, "perm[1]: want an axis from 0 to 1, got 2"},
	{"perm negative", Transpose{Perm: []int64{0, -1}}, []tensor.Desc{f16(2, 3)}, status.ErrInvalidParam, "got -1"},
	{"perm twice", Transpose{Perm: []int64{1, 1}}, []tensor.Desc{f16(2, 3)}, status.ErrInvalidParam, "axis 1 is there twice"},
	{"concat axis", Concat{ConcatDim: 2}, []tensor.Desc{f16(2, 3), f16(2, 3)}, status.ErrInvalidParam, "concatDim: want an axis from -2 to 1"},
	{"concat axis below", Concat{ConcatDim: -3}, []tensor.Desc{f16(2, 3), f16(2, 3)}, status.ErrInvalidParam, "got -3"},
	{"concat rank", Concat{}, []tensor.Desc{f16(2, 3), f16(2, 3, 1)}, status.ErrInvalidTensorDim, "input 1 (b)"},
	{"concat dims", Concat{}, []tensor.Desc{f16(2, 3), f16(2, 4)}, status.ErrInvalidTensorDim, "want the shape [2,3] but on axis 0"},
	{"split axis", Split{SplitDim: 2, SplitNum: 2}, []tensor.Desc{f16(4, 4)}, status.ErrInvalidParam, "splitDim"},
	{"split uneven", Split{SplitNum: 3}, []tensor.Desc{f16(4, 4)}, status.ErrInvalidTensorDim, "want a multiple of 3 on axis 0"},
	{"split sizes from the end", Split{SplitDim: -1, SplitNum: 2, SplitSizes: []int64{2, 2}}, []tensor.Desc{f16(4, 4)}, status.ErrInvalidParam, "at least 0 with splitSizes"},
	{"split count", Split{SplitNum: 3, SplitSizes: []int64{2, 2}}, []tensor.Desc{f16(4, 4)}, status.ErrInvalidParam, "want 3 sizes, got 2"},
	{"split zero", Split{SplitNum: 2, SplitSizes: []int64{4, 0}}, []tensor.Desc{f16(4, 4)}, status.ErrInvalidParam, "splitSizes[1]: want 1 to 0"},
	{"split sum", Split{SplitNum: 2, SplitSizes: []int64{2, 1}}, []tensor.Desc{f16(4, 4)}, status.ErrInvalidParam, "want a sum of 4, got 3"},
	{"split overflow", Split{SplitNum: 2, SplitSizes: []int64{math.MaxInt64, math.MaxInt64}}, []tensor.Desc{f16(4, 4)}, status.ErrInvalidParam, "want 1 to 4"},
	{"slice lists", Slice{Offsets: []int64{0}, Size: []int64{1, 1}}, []tensor.Desc{f16(4, 4)}, status.ErrInvalidParam, "want 2 entries each"},
	{"slice offset", Slice{Offsets: []int64{-5, 0}, Size: []int64{1, 1}}, []tensor.Desc{f16(4, 4)}, status.ErrInvalidParam, "offsets[0]: want -4 to 3, got -5"},
	{"slice offset beyond", Slice{Offsets: []int64{0, math.MaxInt64}, Size: []int64{1, 1}}, []tensor.Desc{f16(4, 4)}, status.ErrInvalidParam, "offsets[1]"},
	{"slice size", Slice{Offsets: []int64{0, 0}, Size: []int64{1, -2}}, []tensor.Desc{f16(4, 4)}, status.ErrInvalidParam, "size[1]"},
	{"slice size beyond", Slice{Offsets: []int64{0, -1}, Size: []int64{1, 2}}, []tensor.Desc{f16(4, 4)}, status.ErrInvalidParam, "want -1 to 1 at offset 3, got 2"},
	{"gather axis", Gather{Axis: 2}, []tensor.Desc{f16(4, 4), i32(3)}, status.ErrInvalidParam, "axis: want at most 1"},
	{"gather batch", Gather{Axis: 2, BatchDims: 2}, []tensor.Desc{f16(4, 4, 4), i32(4)}, status.ErrInvalidParam, "batchDims: want at most 1"},
	{"gather rank", Gather{}, []tensor.Desc{f16(2, 2, 2, 2, 2), i32(2, 2, 2, 2, 2)}, status.ErrInvalidTensorDimNum, "got 9"},
	{"gather batch dims", Gather{Axis: 1, BatchDims: 1}, []tensor.Desc{f16(2, 4), i32(3, 4)}, status.ErrInvalidTensorDim, "input 1 (indices)"},
	{"gather index type", Gather{}, []tensor.Desc{f16(2, 4), f16(3)}, status.ErrInvalidTensorIniMatch, "GatherOperation"},
	{"softmax empty", Softmax{}, []tensor.Desc{f32(2, 3)}, status.ErrInvalidParam, "at least one"},
	{"softmax overflow", Softmax{Axes: []int64{math.MaxInt64 - 1, math.MaxInt64}}, []tensor.Desc{f32(2, 3)}, status.ErrInvalidParam, "axes[0]"},
	{"softmax last first", Softmax{Axes: []int64{-1, 0}}, []tensor.Desc{f32(2, 3)}, status.ErrInvalidParam, "axes[1]: want 2 behind 1, got 0"},
	{"softmax twice", Softmax{Axes: []int64{0, 0}}, []tensor.Desc{f32(2, 3)}, status.ErrInvalidParam, "axes[1]"},
	{"softmax falling", Softmax{Axes: []int64{1, 0}}, []tensor.Desc{f32(2, 3)}, status.ErrInvalidParam, "axes[1]"},
	{"softmax gap", Softmax{Axes: []int64{0, 2}}, []tensor.Desc{f32(2, 3, 4)}, status.ErrInvalidParam, "axes[1]"},
	{"softmax range", Softmax{Axes: []int64{-2}}, []tensor.Desc{f32(2, 3)}, status.ErrInvalidParam, "axes[0]: want -1 to 1"},
	{"softmax type", Softmax{Axes: []int64{0}}, []tensor.Desc{i32(2, 3)}, status.ErrInvalidTensorIniMatch, "SoftmaxOperation"},
	{"index add axis", IndexAdd{IndexAddAll, 2}, []tensor.Desc{f16(2, 9), i32(3), f16(3, 9), f16(1)}, status.ErrInvalidParam, "axis: want an axis from -2 to 1"},
	{"index add axis below", IndexAdd{IndexAddAll, math.MinInt64}, []tensor.Desc{f16(2, 9), i32(3), f16(3, 9), f16(1)}, status.ErrInvalidParam, "axis"},
	{"index add indices", IndexAdd{IndexAddAll, 0}, []tensor.Desc{f16(2, 9), i32(1, 3), f16(3, 9), f16(1)}, status.ErrInvalidTensorSize, "input 1 (indices): want rank 1"},
	{"index add updates", IndexAdd{IndexAddAll, 0}, []tensor.Desc{f16(2, 9), i32(3), f16(1, 3, 9), f16(1)}, status.ErrInvalidTensorSize, "input 2 (updates): want rank 2"},
	{"index add alpha", IndexAdd{IndexAddAll, 0}, []tensor.Desc{f16(2, 9), i32(3), f16(3, 9), f16(1, 1)}, status.ErrInvalidTensorSize, "input 3 (alpha): want rank 1"},
	{"index add count", IndexAdd{IndexAddAll, 0}, []tensor.Desc{f16(2, 9), i32(3), f16(4, 9), f16(1)}, status.ErrInvalidTensorDim, "want the shape [3,9]"},
	{"index add width", IndexAdd{IndexAddAll, 0}, []tensor.Desc{f16(2, 9), i32(3), f16(3, 8), f16(1)}, status.ErrInvalidTensorDim, "want the shape [3,9]"},
	{"index add alphas", IndexAdd{IndexAddAll, 0}, []tensor.Desc{f16(2, 9), i32(3), f16(3, 9), f16(2)}, status.ErrInvalidTensorDim, "want one element"},
	{"index add type", IndexAdd{IndexAddAll, 0}, []tensor.Desc{i32(2, 9), i32(3), i32(3, 9), i32(1)}, status.ErrInvalidTensorIniMatch, "IndexAddOperation"},
	{"index add valid rank", IndexAdd{IndexAddValid, 0}, []tensor.Desc{f16(2, 9, 1), i32(3), f16(3, 9, 1), i32(1)}, status.ErrInvalidTensorSize, "input 0 (var): want rank 2"},
	{"index add valid bf16 rank", IndexAdd{IndexAddValid, 0}, []tensor.Desc{tensor.Of(tensor.BFloat16, 2, 9), i32(3), tensor.Of(tensor.BFloat16, 3, 9), i32(1, 1)}, status.ErrInvalidTensorDim, "input 3 (validNum): want rank 1"},
	{"index add valid number", IndexAdd{IndexAddValid, 0}, []tensor.Desc{f16(2, 9), i32(3), f16(3, 9), i32(2)}, status.ErrInvalidTensorDim, "input 3 (validNum): want one element"},
	{"sort empty", Sort{}, []tensor.Desc{f32(2, 3)}, status.ErrInvalidParam, "num: want one number, got 0"},
	{"sort two", Sort{Num: []int64{1, 1}}, []tensor.Desc{f32(2, 3)}, status.ErrInvalidParam, "want one number, got 2"},
	{"sort zero", Sort{Num: []int64{0}}, []tensor.Desc{f32(2, 3)}, status.ErrInvalidParam, "num[0]: want 1 to 3"},
	{"sort negative", Sort{Num: []int64{math.MinInt64}}, []tensor.Desc{f32(2, 3)}, status.ErrInvalidParam, "num[0]: want 1 to 3"},
	{"sort more", Sort{Num: []int64{4}}, []tensor.Desc{f32(2, 3)}, status.ErrInvalidParam, "num[0]: want 1 to 3 for f32[2,3], got 4"},
	{"sort long", Sort{Num: []int64{4}}, []tensor.Desc{f16(1 << 31)}, status.ErrInvalidTensorDim, "want at most 2147483647 elements"},
	{"sort type", Sort{Num: []int64{1}}, []tensor.Desc{i32(2, 3)}, status.ErrInvalidTensorIniMatch, "SortOperation"},
	{"no input", Softmax{Axes: []int64{0}}, nil, status.ErrInvalidInTensorNum, "want 1 inputs, got 0"},
}

func TestInferShapeRefuses(t *testing.T) {
	for _, c := range badInfer {
		t.Run(c.name, func(t *testing.T) {
			for _, p := range []*operation.Profile{operation.Native(), operation.Board910B()} {
				_, err := operation.InferShape(c.spec, p, c.in)
				require.ErrorIs(t, err, c.code, p.Name())
				assert.ErrorContains(t, err, c.text)
				assert.ErrorContains(t, err, c.spec.Signature().Name)
			}
		})
	}
}

func TestSetupRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		spec    operation.Spec
		in, out []tensor.Desc
		native  status.Code
		board   status.Code
	}{
		{"concat", Concat{}, []tensor.Desc{f16(2, 3), f16(2, 3)}, []tensor.Desc{f16(3, 4)}, status.ErrInvalidTensorDim, status.ErrInvalidTensorDim},
		{"concat rank", Concat{}, []tensor.Desc{f16(2, 3), f16(2, 3)}, []tensor.Desc{f16(12)}, status.ErrInvalidTensorDim, status.ErrInvalidTensorDim},
		{"slice", Slice{[]int64{0, 0}, []int64{1, 2}}, []tensor.Desc{f16(2, 3)}, []tensor.Desc{f16(2, 1)}, status.ErrInvalidTensorDim, status.ErrInvalidTensorDim},
		{"gather rank", Gather{}, []tensor.Desc{f16(2, 3), i32(4)}, []tensor.Desc{f16(12)}, status.ErrInvalidTensorDimNum, status.ErrInvalidTensorDimNum},
		{"gather dims", Gather{}, []tensor.Desc{f16(2, 3), i32(4)}, []tensor.Desc{f16(3, 4)}, status.ErrInvalidTensorDim, status.ErrInvalidTensorDim},
		{"index add rank", IndexAdd{IndexAddAll, 0}, []tensor.Desc{f16(2, 9), i32(3), f16(3, 9), f16(1)}, []tensor.Desc{f16(1, 2, 9)}, status.ErrInvalidTensorDimNum, status.ErrInvalidTensorDimNum},
		{"index add dims", IndexAdd{IndexAddAll, 0}, []tensor.Desc{f16(2, 9), i32(3), f16(3, 9), f16(1)}, []tensor.Desc{f16(3, 9)}, status.ErrInvalidTensorDim, status.ErrInvalidTensorDim},
		{"index add wide", IndexAdd{IndexAddValid, 0}, []tensor.Desc{f16(2, 8193), i32(3), f16(3, 8193), i32(1)}, []tensor.Desc{f16(2, 8193)}, status.OK, status.ErrInvalidTensorDim},
		{"sort rank", Sort{[]int64{2}}, []tensor.Desc{f16(2, 3)}, []tensor.Desc{f16(4), i32(4)}, status.ErrInvalidTensorDimNum, status.ErrInvalidTensorDimNum},
		{"sort dims", Sort{[]int64{2}}, []tensor.Desc{f16(2, 3)}, []tensor.Desc{f16(2, 2), i32(2, 3)}, status.ErrInvalidTensorDim, status.ErrInvalidTensorDim},
		{"sort index type", Sort{[]int64{2}}, []tensor.Desc{f16(2, 3)}, []tensor.Desc{f16(2, 2), tensor.Of(tensor.Int64, 2, 2)}, status.ErrInvalidTensorIniMatch, status.ErrInvalidTensorIniMatch},
		{"transpose", Transpose{[]int64{1, 0}}, []tensor.Desc{f16(2, 3)}, []tensor.Desc{f16(6)}, status.ErrInvalidTensorDim, status.OK},
		{"softmax", Softmax{[]int64{0}}, []tensor.Desc{f32(2, 3)}, []tensor.Desc{f32(6)}, status.ErrInvalidTensorDim, status.OK},
		{"split", Split{SplitNum: 2}, []tensor.Desc{f16(4, 3)}, []tensor.Desc{f16(6), f16(3, 2)}, status.ErrInvalidTensorDim, status.OK},
		{"transpose size", Transpose{[]int64{1, 0}}, []tensor.Desc{f16(2, 3)}, []tensor.Desc{f16(3, 3)}, status.ErrInvalidTensorDim, status.ErrInvalidTensorDim},
		{"slice empty", Slice{[]int64{0}, []int64{0}}, []tensor.Desc{f16(2)}, []tensor.Desc{f16(0)}, status.ErrInvalidTensorSize, status.ErrInvalidTensorSize},
		{"outputs", Split{SplitNum: 2}, []tensor.Desc{f16(4, 3)}, []tensor.Desc{f16(2, 3)}, status.ErrInvalidInTensorNum, status.ErrInvalidInTensorNum},
		{"output type", Transpose{[]int64{1, 0}}, []tensor.Desc{f16(2, 3)}, []tensor.Desc{f32(3, 2)}, status.ErrInvalidTensorIniMatch, status.ErrInvalidTensorIniMatch},
	} {
		t.Run(c.name, func(t *testing.T) {
			for p, want := range map[*operation.Profile]status.Code{operation.Native(): c.native, operation.Board910B(): c.board} {
				err := operation.CheckSetup(c.spec, p, c.in, c.out, nil)
				if want == status.OK {
					require.NoError(t, err, p.Name())
				} else {
					require.ErrorIs(t, err, want, p.Name())
				}
			}
		})
	}
}

func TestBoardTables(t *testing.T) {
	for _, c := range []struct {
		spec operation.Spec
		in   []tensor.Desc
	}{
		{Transpose{[]int64{1, 0}}, []tensor.Desc{f32(2, 3)}},
		{Concat{}, []tensor.Desc{f32(2, 3), f32(2, 3)}},
		{Split{SplitNum: 2}, []tensor.Desc{f32(2, 3)}},
		{Split{SplitNum: 3}, []tensor.Desc{tensor.Of(tensor.Int64, 3)}},
		{Slice{[]int64{0}, []int64{1}}, []tensor.Desc{tensor.Of(tensor.Int64, 3)}},
	} {
		_, err := operation.InferShape(c.spec, operation.Board910B(), c.in)
		require.ErrorIs(t, err, status.ErrInvalidTensorIniMatch, "%+v", c.spec)
		_, err = operation.InferShape(c.spec, operation.Native(), c.in)
		require.NoError(t, err, "%+v", c.spec)
	}
}

func TestValidate(t *testing.T) {
	for _, s := range []operation.Spec{
		Split{}, Split{SplitNum: 1}, Split{SplitNum: 4}, Gather{Axis: -1}, Gather{BatchDims: -1}, Gather{Axis: 1, BatchDims: 2},
		IndexAdd{}, IndexAdd{IndexType: 3}, IndexAdd{IndexType: -1}, IndexAdd{IndexAddValid, 1}, IndexAdd{IndexAddValid, -1},
	} {
		require.ErrorIs(t, s.Validate(), status.ErrInvalidParam, "%+v", s)
	}
	for _, s := range []operation.Spec{
		DefaultTranspose(), DefaultConcat(), DefaultSplit(), DefaultSlice(), DefaultGather(), DefaultSoftmax(), DefaultSort(), Gather{Axis: 3, BatchDims: 3},
	} {
		require.NoError(t, s.Validate(), "%+v", s)
	}
}

func TestJSON(t *testing.T) {
	for _, c := range []struct {
		got  func() (operation.Spec, error)
		want operation.Spec
	}{
		{decode(`{"perm":[1,0],"rsv":[0]}`, DefaultTranspose(), "perm"), Transpose{Perm: []int64{1, 0}}},
		{decode(`{"concatDim":-2}`, DefaultConcat()), Concat{ConcatDim: -2}},
		{decode(`{"splitDim":1,"splitSizes":[1,5]}`, DefaultSplit()), Split{SplitDim: 1, SplitNum: 2, SplitSizes: []int64{1, 5}}},
		{decode(`{"offsets":[1],"size":[-1]}`, DefaultSlice()), Slice{Offsets: []int64{1}, Size: []int64{-1}}},
		{decode(`{"axis":2,"batchDims":1}`, DefaultGather()), Gather{Axis: 2, BatchDims: 1}},
		{decode(`{"indexType":2}`, DefaultIndexAdd(), "indexType"), IndexAdd{IndexType: IndexAddValid}},
		{decode(`{"indexType":1,"axis":-1}`, DefaultIndexAdd(), "indexType"), IndexAdd{IndexAddAll, -1}},
		{decode(`{"num":[3]}`, DefaultSort(), "num"), Sort{Num: []int64{3}}},
		{decode(`{"axes":[-1]}`, DefaultSoftmax()), Softmax{Axes: []int64{-1}}},
	} {
		got, err := c.got()
		require.NoError(t, err)
		assert.Equal(t, c.want, got)
	}
	_, err := decode(`{"splitNum":4}`, DefaultSplit())()
	require.ErrorIs(t, err, status.ErrInvalidParam)
}

func decode[P operation.Spec](text string, def P, required ...string) func() (operation.Spec, error) {
	return func() (operation.Spec, error) { return operation.Decode([]byte(text), def, required...) }
}
