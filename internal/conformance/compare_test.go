package conformance

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"goatb/device"
	"goatb/internal/conformance/reference"
	"goatb/tensor"
)

// of makes a float tensor of type dt.
func of(dt tensor.DType, v ...float32) *Tensor {
	t := reference.Zeros(tensor.Of(dt, int64(len(v))))
	switch dt {
	case tensor.Float16:
		for i, x := range v {
			device.View[tensor.F16](t.Data)[i] = tensor.F16From(x)
		}
	case tensor.BFloat16:
		for i, x := range v {
			device.View[tensor.BF16](t.Data)[i] = tensor.BF16From(x)
		}
	default:
		copy(device.View[float32](t.Data), v)
	}
	return &t
}

// ints makes an integer tensor.
func ints(dt tensor.DType, v ...int64) *Tensor {
	t := reference.Zeros(tensor.Of(dt, int64(len(v))))
	setInts(&t, func(i int) int64 { return v[i] })
	return &t
}

// exact makes a float64 tensor.
func exact(v ...float64) *Tensor {
	t := reference.OfFloats(tensor.Of(tensor.Float64, int64(len(v))), v)
	return &t
}

func TestCompare(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		name           string
		actual, golden *Tensor
		t              float64
		ok             bool
	}{
		{"equal", of(tensor.Float32, 1, -2), of(tensor.Float32, 1, -2), 0, true},
		{"unequal", of(tensor.Float32, 1, -2), of(tensor.Float32, 1, -2.0001), 0, false},
		{"small values have an absolute bound", of(tensor.Float32, 0.25+0x1p-9), of(tensor.Float32, 0.25), 0x1p-9, true},
		{"just above it", of(tensor.Float32, 0.25+0x1p-9+0x1p-20), of(tensor.Float32, 0.25), 0x1p-9, false},
		{"large values have a relative bound", of(tensor.Float32, 64+64*0x1p-9), of(tensor.Float32, 64), 0x1p-9, true},
		{"just above that", of(tensor.Float32, 64+64*0x1p-9+0x1p-10), of(tensor.Float32, 64), 0x1p-9, false},
		{"one bad element of many", of(tensor.Float32, 0, 0, 0, 1), of(tensor.Float32, 0, 0, 0, 0), 0x1p-9, false},
		{"widened golden", of(tensor.Float16, 1), of(tensor.Float32, 1.0004), 0x1p-11, true},
		{"both infinite", of(tensor.Float16, inf, -inf), of(tensor.Float32, inf, -inf), 0, true},
		{"both NaN", of(tensor.Float16, nan), of(tensor.Float32, nan), 0, true},
		{"NaN counts as 0", of(tensor.Float32, 0), of(tensor.Float32, nan), 0, true},
		{"not finite", of(tensor.Float32, nan), of(tensor.Float32, 0), 1e9, false},
		{"infinite", of(tensor.Float32, inf), of(tensor.Float32, 0), 1e9, false},
		{"beyond the actual type", of(tensor.Float16, inf), exact(65520), 0, true},
		{"within the actual type", of(tensor.Float16, inf), exact(65519), 0, false},
		{"quantised", ints(tensor.Int8, 100, -3), exact(101, -4), 1, true},
		{"quantised too far", ints(tensor.Int8, 100), exact(102), 1, false},
		{"quantised large values get no relative bound", ints(tensor.Int8, 100), ints(tensor.Int8, 50), 1, false},
		{"integers", ints(tensor.Int64, math.MaxInt64), ints(tensor.Int64, math.MaxInt64), 0, true},
		{"integers that float64 cannot tell apart", ints(tensor.Int64, math.MaxInt64), ints(tensor.Int64, math.MaxInt64-1), 0, false},
		{"booleans", ints(tensor.Bool, 1, 0), ints(tensor.Int8, 1, 0), 0, true},
		{"counts", of(tensor.Float32, 1), of(tensor.Float32, 1, 1), 1, false},
	} {
		d := compare(c.actual, c.golden, c.t)
		assert.Equal(t, c.ok, d.why == "", "%s: %s", c.name, d.why)
	}
}

func TestCompareReportsTheLargestError(t *testing.T) {
	d := compare(of(tensor.Float32, 1, 2.5, 3.25), of(tensor.Float32, 1, 2, 4), 1e-3)
	assert.Equal(t, 0.25, d.worst)
	assert.Equal(t, int64(1), d.index)
	assert.Equal(t, "element 1: want 2, got 2.5", d.why)
}

func TestTolerance(t *testing.T) {
	for _, c := range []struct {
		class class
		dt    tensor.DType
		sum   int64
		want  float64
	}{
		{classMove, tensor.Float16, 0, 0}, {classCast, tensor.Float32, 0, 0}, {classInteger, tensor.Int8, 0, 0},
		{classFloat, tensor.Float16, 2047, 0x1p-8}, {classFloat, tensor.Float16, 2048, 0x1p-7},
		{classFloat, tensor.BFloat16, 0, 0x1p-7}, {classFloat, tensor.BFloat16, 4096, 0x1p-6},
		{classFloat, tensor.Float32, 0, 0x1p-11}, {classFloat, tensor.Float32, 2048, 0x1p-10}, {classFloat, tensor.Float32, 16384, 0x1p-9},
		{classFloat, tensor.Int32, 0, 0}, {classFloat, tensor.Int8, 0, 0},
		{classQuant, tensor.Int8, 0, 1}, {classQuant, tensor.Float16, 0, 0x1p-8}, {classQuant, tensor.Float32, 0, 0x1p-11},
		{classVectorFusion, tensor.Float16, 0, 0x1p-9}, {classVectorFusion, tensor.BFloat16, 0, 0x1p-7}, {classVectorFusion, tensor.Float32, 0, 0x1p-12},
		{classAttentionStyle, tensor.Float16, 0, 0x1p-9}, {classAttentionStyle, tensor.Int8, 0, 0},
	} {
		assert.Equal(t, c.want, c.class.tolerance(c.dt, c.sum), "%+v", c)
	}
}

func TestClassOf(t *testing.T) {
	x := []Tensor{*of(tensor.Float32, 1)}
	x[0].Desc = tensor.Of(tensor.Float32, 3000, 7)
	for _, c := range []struct {
		op, param string
		class     class
		sum       int64
	}{
		{"LinearOperation", `{}`, classFloat, 7},
		{"LinearOperation", `{"transposeA":true}`, classFloat, 3000},
		{"ElewiseOperation", `{"elewiseType":19}`, classQuant, 0},
		{"ElewiseOperation", `{"elewiseType":8}`, classFloat, 0},
		{"ElewiseOperation", `{"elewiseType":16}`, classInteger, 0},
		{"ActivationOperation", `{"activationType":4}`, classVectorFusion, 0},
		{"ActivationOperation", `{"activationType":2}`, classFloat, 0},
		{"RmsNormOperation", `{"layerType":2,"normParam":{"quantType":2}}`, classVectorFusion, 0},
		{"RmsNormOperation", `{"layerType":2,"preNormParam":{"quantType":2}}`, classQuant, 0},
		{"SliceOperation", ``, classMove, 0},
	} {
		got, sum := classOf(&reference.Input{Op: c.op, Param: []byte(c.param), In: x})
		assert.Equal(t, c.class, got, "%s %s", c.op, c.param)
		assert.Equal(t, c.sum, sum, "%s %s", c.op, c.param)
	}
}
