package conformance

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/tensor"
)

// plan makes the data of a row.
func plan(t *testing.T, set map[string]string) *inputs {
	t.Helper()
	in, err := newInputs(rowOf(t, set))
	require.NoError(t, err)
	return in
}

func TestDataOfARowAreAlwaysTheSame(t *testing.T) {
	set := map[string]string{"InNum": "2", "InDType": "float16;int64", "InFormat": "nd;nd", "InShape": "50;60", "DataGenType": "random;random", "DataGenRange": "-2,2;0,9"}
	a, b := plan(t, set), plan(t, set)
	second := a.tensor(1)
	assert.Equal(t, b.tensor(0), a.tensor(0), "whatever the order of asking")
	assert.Equal(t, b.tensor(1), second)
	assert.NotEqual(t, second.Ints()[:10], second.Ints()[10:20])
	for _, v := range a.tensor(0).Floats() {
		assert.True(t, v >= -2 && v <= 2, v)
	}
	for _, v := range second.Ints() {
		assert.True(t, v >= 0 && v < 9, v)
	}
}

func TestKindsOfData(t *testing.T) {
	in := plan(t, map[string]string{
		"InNum": "5", "InDType": "bf16;int8;bool;double;uint32", "InFormat": "nd;nd;nd;nd;nd", "InShape": "3;3;3;3;3",
		"DataGenType": "one;random;random;zero;random", "DataGenRange": "5,6;-3,-3;0.5,0.5;1,1;7.9,7.9",
	})
	assert.Equal(t, []float64{1, 1, 1}, in.tensor(0).Floats())
	assert.Equal(t, []int64{-3, -3, -3}, in.tensor(1).Ints())
	assert.Equal(t, []int64{1, 1, 1}, in.tensor(2).Ints(), "a half is not zero")
	assert.Equal(t, []float64{0, 0, 0}, in.tensor(3).Floats())
	assert.Equal(t, []int64{7, 7, 7}, in.tensor(4).Ints(), "towards zero")
}

func TestGatherDataStayInside(t *testing.T) {
	in := plan(t, map[string]string{
		"OpName": "GatherOperation", "OpParam": `{"axis":1}`, "InNum": "2", "InDType": "float16;int64", "InFormat": "nd;nd", "InShape": "2,5;400",
		"DataGenType": "customize;customize", "DataGenRange": "-100,100;0,100",
	})
	seen := map[int64]bool{}
	for _, v := range in.tensor(1).Ints() {
		require.True(t, v >= 0 && v < 5, v)
		seen[v] = true
	}
	assert.Len(t, seen, 5)
}

func TestSlotsAreDistinct(t *testing.T) {
	for _, c := range []struct{ param, formats, types, shapes string }{
		{`{}`, "nd;nd;nd;nd;nd", "float16;float16;float16;float16;int32", "60,2,8;60,2,8;8,8,2,8;8,8,2,8;60"},
		{`{"kvCacheCfg":2}`, "nd;nd;fractal_nz;fractal_nz;nd", "float16;float16;float16;float16;int32", "60,2,8;60,2,8;4,1,16,16;4,1,16,16;60"},
		{`{"kvCacheCfg":1}`, "nd;nd;nd", "float16;float16;int32", "60,2,8;8,8,2,8;60"},
	} {
		n := map[bool]string{true: "3", false: "5"}[c.formats == "nd;nd;nd"]
		in := plan(t, map[string]string{
			"OpName": "ReshapeAndCacheOperation", "OpParam": c.param, "InNum": n, "InDType": c.types, "InFormat": c.formats, "InShape": c.shapes,
			"DataGenType": "customize", "DataGenRange": "",
		})
		slots := in.tensor(len(in.descs) - 1).Ints()
		seen := map[int64]bool{}
		for _, s := range slots {
			require.True(t, s >= 0 && s < 64, s)
			seen[s] = true
		}
		assert.Len(t, seen, 60, c.param)
	}
}

func TestLinearScales(t *testing.T) {
	row := func(param, scale string) *inputs {
		return plan(t, map[string]string{
			"OpName": "LinearOperation", "OpParam": param, "InNum": "3", "InDType": "int8;int8;" + scale, "InFormat": "nd;nd;nd", "InShape": "2,4;3,4;3",
			"DataGenType": "customize;customize;customize", "DataGenRange": "-5,5;-5,5;-2,2",
		})
	}
	assert.Equal(t, tensor.Int64, row(`{"hasBias":false,"outDataType":1}`, "float").descs[2].DType)
	assert.Equal(t, tensor.Uint64, row(`{"hasBias":false,"outDataType":1}`, "uint64").descs[2].DType)
	assert.Equal(t, tensor.Float32, row(`{"hasBias":false,"outDataType":27}`, "int64").descs[2].DType)
	assert.Equal(t, tensor.Float32, row(`{"hasBias":false,"outDataType":1,"quantMode":2}`, "int64").descs[2].DType)
	assert.Equal(t, tensor.Int64, row(`{"hasBias":false}`, "int64").descs[2].DType, "no scale without quantisation")
	for _, v := range row(`{"hasBias":false,"outDataType":1}`, "int64").tensor(2).Ints() {
		assert.Zero(t, v>>32, "a float32 in the low bits")
	}
}

func TestAttentionLengthsFit(t *testing.T) {
	in := plan(t, map[string]string{
		"OpName": "SelfAttentionOperation", "OpParam": `{"headNum":2,"calcType":3}`, "InNum": "4", "InDType": "float16;float16;float16;int32", "InFormat": "nd;nd;nd;nd",
		"InShape": "11,4;11,4;11,4;3", "DataGenType": "customize",
	})
	assert.Equal(t, []int64{4, 4, 3}, in.tensor(3).Ints())
	assert.True(t, in.ownOutputs)

	in = plan(t, map[string]string{
		"OpName": "PagedAttentionOperation", "OpParam": `{"headNum":2,"maskType":1}`, "InNum": "6", "InDType": "float16;float16;float16;int32;int32;float16",
		"InFormat": "nd;nd;nd;nd;nd;nd", "InShape": "3,2,4;6,16,2,4;6,16,2,4;3,4;3;3,1,50", "DataGenType": "customize",
	})
	for _, v := range in.tensor(3).Ints() {
		assert.True(t, v >= 0 && v < 6, "block %d", v)
	}
	for _, v := range in.tensor(4).Ints() {
		assert.True(t, v > 0 && v <= 50, "length %d", v)
	}
}
