package faults_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/operation/activation"
	"goatb/operation/attention"
	"goatb/operation/elementwise"
	"goatb/operation/norm"
	"goatb/tensor"
)

// H01: a sum of squares was kept in float16 and overflowed.
func TestH01(t *testing.T) {
	x, gamma := floats(tensor.Float16, repeat(300, 4), 1, 4), floats(tensor.Float16, repeat(1, 4), 4)
	assert.Equal(t, repeat(1, 4), newBed(t).run(norm.RMS(norm.Plain, 1e-5), x, gamma))
	half := norm.RMS(norm.Plain, 1e-5)
	half.Norm.PrecisionMode = norm.PrecisionHalf
	assert.Equal(t, repeat(1, 4), newBed(t).run(half, x, gamma))
}

// H03: as H01 for a norm of a sum, over a wide row.
func TestH03(t *testing.T) {
	const width = 2048
	x, gamma := floats(tensor.Float16, repeat(90, width), 1, width), floats(tensor.Float16, repeat(1, width), width)
	c := newBed(t).ready(norm.RMS(norm.Pre, 1e-5), x, x, gamma)
	assert.Equal(t, repeat(1, width), c.again())
	assert.Equal(t, repeat(180, width), c.out(1), "the sum")
	assert.Equal(t, repeat(1, width), newBed(t).run(norm.RMS(norm.Post, 1e-5), x, x, gamma))
}

// H05: small values were normalised with an epsilon that came from their type.
func TestH05(t *testing.T) {
	for _, dtype := range []atb.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
		x := floats(dtype, repeat(0.05, 8), 1, 8)
		v := x.values()[0] // 0.05 as the type has it
		got := newBed(t).run(norm.RMS(norm.Plain, 1e-5), x, floats(dtype, repeat(1, 8), 8))
		want := v / math.Sqrt(v*v+1e-5)
		assert.InDelta(t, 0.9980060, want, 1e-5)
		ulp := map[atb.DType]float64{tensor.Float32: tight, tensor.Float16: 0x1p-11, tensor.BFloat16: 0x1p-8}[dtype]
		assert.InDeltaSlice(t, repeat(want, 8), got, ulp, "%s", dtype)
	}
}

// H07: a triangle and a mask together hid a row, which became NaN.
func TestH07(t *testing.T) {
	spec := t3Self(attention.SelfPAEncoder, attention.SelfMaskNorm)
	spec.IsTriuMask = 1
	mask := []float64{-inf, 0, 0, -inf, 0, 0, 0, 0, 0}
	in := []operand{f32(flat(t3Q, t3Q, t3Q), 3, 2), f32(flat(t3K...), 3, 2), f32(flat(t3V...), 3, 2)}
	got := newBed(t).run(spec, append(in, f32(mask, 3, 3), lengths(3))...)
	assert.InDeltaSlice(t, flat([]float64{0, 0}, t3V[1], t3Over[3]), got, tight)
}

// H09: masks of large finite values made junk of a row that they hide as a
// whole. They are finite: the row weighs all keys alike.
func TestH09(t *testing.T) {
	// The last value of a type makes every score the same number in that type.
	for _, tt := range []struct {
		dtype atb.DType
		value float64
	}{{tensor.Float16, -65504}, {tensor.Float32, -65504}, {tensor.Float32, -1e9}, {tensor.Float32, -math.MaxFloat32}, {tensor.BFloat16, 1}, {tensor.BFloat16, -3e38}} {
		mask := floats(tt.dtype, append(repeat(tt.value, 3), 0, 0, tt.value, 0, 0, 0), 3, 3)
		in := []operand{f32(flat(t3Q, t3Q, t3Q), 3, 2), f32(flat(t3K...), 3, 2), f32(flat(t3V...), 3, 2)}
		got := newBed(t).run(t3Self(attention.SelfPAEncoder, attention.SelfMaskNorm), append(in, mask, lengths(3))...)
		assert.InDeltaSlice(t, flat([]float64{3, 4}, t3Over[2], t3Over[3]), got, tight, "%s mask of %g", tt.dtype, tt.value)
	}
}

// H17: a row of zeros gave the scale 0, and a quotient by it NaN.
func TestH17(t *testing.T) {
	for _, dtype := range []atb.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
		x := floats(dtype, []float64{0, 0, 0, 1, -2, 0.5}, 2, 3)
		c := newBed(t).ready(elementwise.Of(elementwise.DynamicQuant), x)
		assert.Equal(t, []float64{0, 0, 0, 64, -127, 32}, c.again(), "%s", dtype)
		scale := c.out(1)
		require.Len(t, scale, 2)
		assert.False(t, math.IsNaN(scale[0]) || math.IsInf(scale[0], 0))
		assert.InDelta(t, 2.0/127, scale[1], 1e-8)

		dynamic := norm.RMS(norm.Plain, 1e-5)
		dynamic.Norm.QuantType, dynamic.Norm.DynamicQuant = norm.QuantInt8, norm.DynamicSymmetric
		weight := floats(dtype, []float64{1, 1, 1}, 3)
		c = newBed(t).ready(dynamic, x, weight, floats(dtype, []float64{0, 0, 0}, 3))
		assert.Equal(t, []float64{0, 0, 0, 64, -127, 32}, c.again(), "norm, %s", dtype)
		scale = c.out(1)
		assert.False(t, math.IsNaN(scale[0]) || math.IsInf(scale[0], 0))
	}
}

// H19: which half is the gate was not said. It is the first.
func TestH19(t *testing.T) {
	for _, dtype := range []atb.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
		got := newBed(t).run(activation.Of(activation.SwiGLUForward), floats(dtype, []float64{1, 2}, 1, 2))
		assert.InDeltaSlice(t, []float64{1.4621172}, got, map[atb.DType]float64{tensor.Float32: tight, tensor.Float16: 0x1p-11, tensor.BFloat16: 0x1p-8}[dtype])
	}
	// The gradient knows the same halves.
	got := newBed(t).run(activation.Of(activation.SwiGLUBackward), f32([]float64{1}, 1, 1), f32([]float64{1, 2}, 1, 2))
	s := 1 / (1 + math.Exp(-1))
	assert.InDeltaSlice(t, []float64{2 * (s + s*(1-s)), s}, got, tight)
}
