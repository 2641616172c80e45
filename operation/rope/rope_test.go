package rope

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/operation"
	"goatb/operation/optest"
	"goatb/status"
	"goatb/tensor"
)

func decode(param []byte) (operation.Spec, error) { return operation.Decode(param, DefaultRope()) }

func TestRows(t *testing.T) { optest.CheckRows(t, "rope", decode, 40) }

func TestGoldens(t *testing.T) { optest.CheckGoldens(t, "RopeOperation", decode) }

func TestDefaults(t *testing.T) {
	got, err := decode([]byte(`{}`))
	require.NoError(t, err)
	assert.Equal(t, DefaultRope(), got)
}

const f32 = tensor.Float32

// descs are the inputs with the given shapes, f32 and int32.
func descs(q, k, cos, sin []int64) []tensor.Desc {
	return []tensor.Desc{tensor.Of(f32, q...), tensor.Of(f32, k...), tensor.Of(f32, cos...), tensor.Of(f32, sin...), tensor.Of(tensor.Int32, 1)}
}

func TestRefusals(t *testing.T) {
	type dims = []int64
	for _, c := range []struct {
		name string
		rope Rope
		in   []tensor.Desc
		code status.Code
	}{
		{"good", Rope{RotaryCoeff: 2}, descs(dims{3, 8}, dims{3, 4}, dims{3, 4}, dims{3, 4}), status.OK},
		{"good, rank 4", Rope{RotaryCoeff: 4}, descs(dims{1, 3, 2, 4}, dims{3, 1, 1, 4}, dims{3, 4}, dims{3, 4}), status.OK},
		{"good, more k heads", Rope{RotaryCoeff: 2}, descs(dims{3, 8}, dims{3, 12}, dims{3, 4}, dims{3, 4}), status.OK},
		{"rank of q", Rope{RotaryCoeff: 2}, descs(dims{3, 2, 4}, dims{3, 4}, dims{3, 4}, dims{3, 4}), status.ErrInvalidTensorDim},
		{"tokens", Rope{RotaryCoeff: 2}, descs(dims{3, 4}, dims{2, 4}, dims{3, 4}, dims{3, 4}), status.ErrInvalidTensorSize},
		{"sin", Rope{RotaryCoeff: 2}, descs(dims{3, 4}, dims{3, 4}, dims{3, 4}, dims{3, 2}), status.ErrInvalidTensorSize},
		{"k heads", Rope{RotaryCoeff: 2}, descs(dims{3, 8}, dims{3, 6}, dims{3, 4}, dims{3, 4}), status.ErrInvalidTensorDim},
		{"q heads", Rope{RotaryCoeff: 2}, descs(dims{3, 6}, dims{3, 4}, dims{3, 4}, dims{3, 4}), status.ErrInvalidTensorDim},
		{"coefficient 4 of 6", Rope{RotaryCoeff: 4}, descs(dims{3, 6}, dims{3, 6}, dims{3, 6}, dims{3, 6}), status.ErrInvalidParam},
		{"coefficient 0", Rope{}, descs(dims{3, 6}, dims{3, 6}, dims{3, 6}, dims{3, 6}), status.ErrInvalidParam},
		{"odd width", Rope{RotaryCoeff: 3}, descs(dims{3, 6}, dims{3, 6}, dims{3, 3}, dims{3, 3}), status.ErrInvalidParam},
		{"cos format", Rope{RotaryCoeff: 2, CosFormat: 2}, descs(dims{3, 4}, dims{3, 4}, dims{3, 4}, dims{3, 4}), status.ErrInvalidParam},
		{"narrow head", Rope{RotaryCoeff: 2, HeadDim: 2}, descs(dims{3, 4}, dims{3, 4}, dims{3, 4}, dims{3, 4}), status.ErrInvalidParam},
		{"negative head", Rope{RotaryCoeff: 2, HeadDim: -4}, descs(dims{3, 4}, dims{3, 4}, dims{3, 4}, dims{3, 4}), status.ErrInvalidTensorDim},
		{"rows of cos", Rope{RotaryCoeff: 2}, descs(dims{3, 4}, dims{3, 4}, dims{2, 4}, dims{2, 4}), status.ErrInvalidTensorSize},
		{"two widths", Rope{RotaryCoeff: 2}, descs(dims{1, 3, 2, 4}, dims{1, 3, 2, 4}, dims{3, 2}, dims{3, 2}), status.ErrInvalidTensorDim},
	} {
		_, err := operation.InferShape(c.rope, operation.Native(), c.in)
		assert.Equal(t, c.code, status.CodeOf(err), "%s: %v", c.name, err)
	}
	_, err := operation.InferShape(Rope{RotaryCoeff: 2}, operation.Native(), descs(dims{1, 3, 2, 4}, dims{1, 3, 2, 4}, dims{3, 2}, dims{3, 2}))
	assert.ErrorContains(t, err, "4 wide and cos is 2 wide", "both widths are named")
}

// apply runs the operation on f32 data.
func apply(t *testing.T, r Rope, in []tensor.Desc, data ...[]float64) (q, k []float64) {
	t.Helper()
	c := optest.Case{Spec: r, In: in}
	for _, v := range data {
		c.Data = append(c.Data, tensor.FromFloat64s(f32, v))
	}
	c.Data = append(c.Data, make([]byte, 4))
	out := optest.Run(t, c).Out
	q, err := tensor.Float64s(out[0], f32)
	require.NoError(t, err)
	k, err = tensor.Float64s(out[1], f32)
	require.NoError(t, err)
	return q, k
}

func angles(pos float64, inv ...float64) (cos, sin []float64) {
	for _, f := range inv {
		cos, sin = append(cos, math.Cos(pos*f)), append(sin, math.Sin(pos*f))
	}
	return cos, sin
}

func TestStyles(t *testing.T) {
	x := []float64{1, 2, 3, 4}
	one := []int64{1, 4}
	cos, sin := angles(7, 1, 0.01, 1, 0.01)
	q, _ := apply(t, Rope{RotaryCoeff: 2}, descs(one, one, one, one), x, x, cos, sin)
	assert.InDeltaSlice(t, []float64{-1.2170575, 1.7153306, 2.9186934, 4.1300897}, q, 1e-6, "halves")

	cos, sin = angles(7, 1, 1, 0.01, 0.01)
	q, _ = apply(t, Rope{RotaryCoeff: 4}, descs(one, one, one, one), x, x, cos, sin)
	assert.InDeltaSlice(t, []float64{-0.5600709, 2.1647911, 2.7128816, 4.2000325}, q, 1e-6, "neighbours: 4 is the width")
}

func TestPartOfTheHead(t *testing.T) {
	x := []float64{5, 6, 7, 8}
	cos, sin := angles(2, 1, 1)
	for _, shape := range [][]int64{{1, 4}, {1, 1, 1, 4}} {
		in := descs(shape, shape, []int64{1, 2}, []int64{1, 2})
		q, k := apply(t, Rope{RotaryCoeff: 2, HeadDim: 4}, in, x, x, cos, sin)
		assert.InDeltaSlice(t, []float64{-7.5365187, 2.0496061, 7, 8}, q, 1e-6)
		assert.Equal(t, q, k)
	}
}

// TestOwnNumberOfHeads turns q and k of different head counts together and
// apart.
func TestOwnNumberOfHeads(t *testing.T) {
	q, k := make([]float64, 2*4*16), make([]float64, 2*2*16)
	for i := range q {
		q[i] = math.Sin(float64(i))
	}
	for i := range k {
		k[i] = math.Cos(float64(3 * i))
	}
	cos, sin := make([]float64, 32), make([]float64, 32)
	for i := range cos {
		cos[i], sin[i] = math.Cos(float64(i)), math.Sin(float64(i))
	}
	r, angle := Rope{RotaryCoeff: 2}, []int64{2, 16}
	both, kBoth := apply(t, r, descs([]int64{2, 64}, []int64{2, 32}, angle, angle), q, k, cos, sin)
	qAlone, _ := apply(t, r, descs([]int64{2, 64}, []int64{2, 64}, angle, angle), q, q, cos, sin)
	_, kAlone := apply(t, r, descs([]int64{2, 32}, []int64{2, 32}, angle, angle), k, k, cos, sin)
	assert.Equal(t, qAlone, both)
	assert.Equal(t, kAlone, kBoth)
}

func TestInPlace(t *testing.T) {
	in := descs([]int64{2, 8}, []int64{2, 4}, []int64{2, 4}, []int64{2, 4})
	c := optest.Case{Spec: Rope{RotaryCoeff: 2}, In: in}
	for i := range in {
		v := make([]float64, in[i].Numel())
		for j := range v {
			v[j] = float64(i*7+j) / 5
		}
		c.Data = append(c.Data, tensor.FromFloat64s(in[i].DType, v))
	}
	apart := optest.Run(t, c).Out
	c.InPlace = map[int]int{0: inQ, 1: inK}
	assert.Equal(t, apart, optest.Run(t, c).Out)
}
