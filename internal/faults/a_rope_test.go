package faults_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/operation/rope"
	"goatb/status"
	"goatb/tensor"
)

// angles are the cosines and sines of a position for a rotary width: pair i
// turns by pos/base^(2i/width), and has entries i and i+width/2 with halves,
// 2i and 2i+1 with neighbours.
func angles(pos float64, width int64, neighbours bool) (cos, sin []float64) {
	cos, sin = make([]float64, width), make([]float64, width)
	for i := range width / 2 {
		s, c := math.Sincos(pos * math.Pow(10000, -2*float64(i)/float64(width)))
		a, b := i, i+width/2
		if neighbours {
			a, b = 2*i, 2*i+1
		}
		cos[a], cos[b], sin[a], sin[b] = c, c, s, s
	}
	return cos, sin
}

// turned is a head with its first elements turned, in float64.
func turned(x []float64, pos float64, width int64, neighbours bool) []float64 {
	cos, sin := angles(pos, width, neighbours)
	y := append([]float64(nil), x...)
	for i := range width / 2 {
		a, b := i, i+width/2
		if neighbours {
			a, b = 2*i, 2*i+1
		}
		y[a], y[b] = x[a]*cos[a]-x[b]*sin[a], x[b]*cos[b]+x[a]*sin[b]
	}
	return y
}

// turn runs a rope on q and k of one token, [1, heads*head] each.
func turn(t testing.TB, r rope.Rope, pos float64, width int64, q, k []float64) (outQ, outK []float64) {
	t.Helper()
	cos, sin := angles(pos, width, r.RotaryCoeff == width)
	c := newBed(t).ready(r, f32(q, 1, int64(len(q))), f32(k, 1, int64(len(k))), f32(cos, 1, width), f32(sin, 1, width), ints([]int32{1}))
	c.again()
	return c.out(0), c.out(1)
}

// A13: the head size was passed in the place of the rotary width, which one
// style did not notice since it did not use the value.
func TestA13(t *testing.T) {
	x := []float64{5, 6, 7, 8}
	q, k := turn(t, rope.Rope{RotaryCoeff: 2, HeadDim: 4}, 2, 2, x, x)
	assert.InDeltaSlice(t, []float64{-7.5365187, 2.0496061, 7, 8}, q, tight, "of a width of 2 halves and neighbours are one style")
	assert.Equal(t, q, k)
	x = []float64{1, 2, 3, 4, 5, 6, 7, 8}
	for _, coeff := range []int64{2, 4} {
		want := turned(x, 2, 4, coeff == 4)
		q, _ := turn(t, rope.Rope{RotaryCoeff: coeff, HeadDim: 8}, 2, 4, x, x)
		assert.InDeltaSlice(t, want, q, 4*tight, "coefficient %d", coeff)
		assert.Equal(t, x[4:], q[4:], "what is not turned is copied")
	}
}

// A15: a configuration gave a rotary width instead of a factor, and cosines of
// half a head met whole heads.
func TestA15(t *testing.T) {
	b := newBed(t)
	cos, sin := angles(2, 2, false)
	in := b.putAll([]operand{f32(counting(4), 1, 1, 1, 4), f32(counting(4), 1, 1, 1, 4), f32(cos, 1, 2), f32(sin, 1, 2), ints([]int32{1})})
	op := b.op(rope.Rope{RotaryCoeff: 2})
	_, err := op.Setup(atb.VariantPack{In: in, Out: in[:2]}, b.c)
	require.ErrorIs(t, err, status.ErrInvalidTensorDim)
	assert.ErrorContains(t, err, "RopeOperation: setup: ")
	assert.ErrorContains(t, err, "the last axis is 4 wide and cos is 2 wide")

	q, _ := turn(t, rope.Rope{RotaryCoeff: 2}, 2, 2, []float64{5, 6, 7, 8}, []float64{5, 6, 7, 8})
	want := flat(turned([]float64{5, 6}, 2, 2, false), turned([]float64{7, 8}, 2, 2, false))
	assert.InDeltaSlice(t, want, q, 2*tight, "flat rows are heads as wide as cos")
}

// A17: queries and keys of different head counts failed in one call.
func TestA17(t *testing.T) {
	q := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	k := []float64{-1, -2, -3, -4, -5, -6, -7, -8}
	for _, coeff := range []int64{2, 4} {
		r := rope.Rope{RotaryCoeff: coeff}
		gotQ, gotK := turn(t, r, 3, 4, q, k)
		aloneQ, _ := turn(t, r, 3, 4, q, q)
		_, aloneK := turn(t, r, 3, 4, k, k)
		assert.Equal(t, aloneQ, gotQ)
		assert.Equal(t, aloneK, gotK)
		var want []float64
		for _, h := range rowsOf(q, 4) {
			want = append(want, turned(h, 3, 4, coeff == 4)...)
		}
		assert.InDeltaSlice(t, want, gotQ, 8*tight)
	}
}

// turnedAt turns one head of float32 halves or neighbours at a position.
func turnedAt(t testing.TB, coeff int64, pos float64, x []float64) []float64 {
	t.Helper()
	q, _ := turn(t, rope.Rope{RotaryCoeff: coeff}, pos, int64(len(x)), x, x)
	return q
}

// H21: neighbours were turned as if they were halves.
func TestH21(t *testing.T) {
	x := []float64{1, 2, 3, 4}
	assert.InDeltaSlice(t, []float64{-1.2170575, 1.7153306, 2.9186934, 4.1300897}, turnedAt(t, 2, 7, x), 2*tight)
	assert.InDeltaSlice(t, []float64{-0.5600709, 2.1647911, 2.7128816, 4.2000325}, turnedAt(t, 4, 7, x), 2*tight)
}

// H23: frequencies kept in bfloat16 drifted with the position. The operation
// takes cosines and sines as they are: float32 ones stay float32 beside half
// precision heads.
func TestH23(t *testing.T) {
	const width, pos = 128, 4096
	x := make([]float64, width)
	x[1], x[1+width/2] = 1, 0.5
	want := turned(x, pos, width, false)
	got := turnedAt(t, 2, pos, x)
	assert.InDelta(t, want[1], got[1], tight)
	assert.InDelta(t, want[1+width/2], got[1+width/2], tight)

	cos, sin := angles(pos, width, false)
	for dtype, ulp := range map[atb.DType]float64{tensor.Float16: 0x1p-11, tensor.BFloat16: 0x1p-8} {
		in := []operand{floats(dtype, x, 1, width), floats(dtype, x, 1, width), f32(cos, 1, width), f32(sin, 1, width), ints([]int32{1})}
		got := newBed(t).run(rope.Rope{RotaryCoeff: 2}, in...)
		for _, i := range []int{1, 1 + width/2} {
			assert.InDelta(t, want[i], got[i], ulp*math.Abs(want[i]), "%s, one rounding", dtype)
		}
	}
}
