package activation

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

func decode(param []byte) (operation.Spec, error) {
	return operation.Decode(param, DefaultActivation())
}

func TestRows(t *testing.T) { optest.CheckRows(t, "activation", decode, 100) }

func TestGoldens(t *testing.T) { optest.CheckGoldens(t, "ActivationOperation", decode) }

func TestValidate(t *testing.T) {
	for _, a := range []Activation{{}, {Type: Relu}, {Type: 10, Dim: -1}, {Type: -1, Dim: -1}, {Type: SwiGLUForward, Dim: 1}, {Type: Gelu, Dim: -1, GeluMode: 2}} {
		assert.ErrorIs(t, a.Validate(), status.ErrInvalidParam, "%+v", a)
	}
	for k := Relu; k <= FasterGelu; k++ {
		assert.NoError(t, Of(k).Validate())
	}
}

func TestDefaultsOfJSON(t *testing.T) {
	got, err := decode([]byte(`{"activationType":4}`))
	require.NoError(t, err)
	assert.Equal(t, Of(Swish), got)
	got, err = decode([]byte(`{"activationType":2,"geluMode":1,"scale":3}`))
	require.NoError(t, err)
	assert.Equal(t, Activation{Type: Gelu, Scale: 3, Dim: -1, GeluMode: GeluErf}, got)
}

var f32, f16 = tensor.Float32, tensor.Float16

func TestShapes(t *testing.T) {
	for _, c := range []struct {
		name string
		spec Activation
		in   []tensor.Desc
		want tensor.Desc
		code status.Code
	}{
		{"unary", Of(Relu), []tensor.Desc{tensor.Of(f16, 3, 5)}, tensor.Of(f16, 3, 5), status.OK},
		{"swiglu", Of(SwiGLUForward), []tensor.Desc{tensor.Of(f32, 3, 10)}, tensor.Of(f32, 3, 5), status.OK},
		{"swiglu of one column", Of(SwiGLUForward), []tensor.Desc{tensor.Of(f32, 3, 1)}, tensor.Desc{}, status.ErrInvalidTensorDim},
		{"gradient", Of(SwiGLUBackward), []tensor.Desc{tensor.Of(f32, 3, 5), tensor.Of(f32, 3, 10)}, tensor.Of(f32, 3, 10), status.OK},
		{"gradient of other width", Of(SwiGLUBackward), []tensor.Desc{tensor.Of(f32, 3, 5), tensor.Of(f32, 3, 5)}, tensor.Desc{}, status.ErrInvalidTensorDim},
		{"gradient of other rank", Of(SwiGLUBackward), []tensor.Desc{tensor.Of(f32, 5), tensor.Of(f32, 1, 10)}, tensor.Desc{}, status.ErrInvalidTensorDim},
		{"integers", Of(Relu), []tensor.Desc{tensor.Of(tensor.Int8, 3)}, tensor.Desc{}, status.ErrInvalidTensorIniMatch},
		{"two inputs", Of(Relu), []tensor.Desc{tensor.Of(f32, 3), tensor.Of(f32, 3)}, tensor.Desc{}, status.ErrInvalidInTensorNum},
	} {
		out, err := operation.InferShape(c.spec, operation.Native(), c.in)
		assert.Equal(t, c.code, status.CodeOf(err), "%s: %v", c.name, err)
		if c.code == status.OK {
			assert.Equal(t, []tensor.Desc{c.want}, out, c.name)
		}
	}
	odd := []tensor.Desc{tensor.Of(f32, 2, 5)}
	err := operation.CheckSetup(Of(SwiGLUForward), operation.Native(), odd, []tensor.Desc{tensor.Of(f32, 2, 2)}, nil)
	assert.ErrorIs(t, err, status.ErrInvalidTensorDim)
}

func TestBoardHasNoReluOfF16(t *testing.T) {
	in := []tensor.Desc{tensor.Of(f16, 4)}
	_, err := operation.InferShape(Of(Relu), operation.Board910B(), in)
	assert.ErrorIs(t, err, status.ErrInvalidTensorIniMatch)
	for k := Relu; k <= FasterGelu; k++ {
		if k == SwiGLUBackward {
			continue
		}
		_, err := operation.InferShape(Of(k), operation.Board910B(), []tensor.Desc{tensor.Of(tensor.BFloat16, 4)})
		assert.NoError(t, err, "type %d takes bf16", k)
	}
}

// values runs an operation on f32 rows.
func values(t *testing.T, s operation.Spec, in ...[]float64) []float64 {
	t.Helper()
	c := optest.Case{Spec: s}
	for _, v := range in {
		c.In = append(c.In, tensor.Of(f32, 1, int64(len(v))))
		c.Data = append(c.Data, tensor.FromFloat64s(f32, v))
	}
	got, err := tensor.Float64s(optest.Run(t, c).Out[0], f32)
	require.NoError(t, err)
	return got
}

func TestFunctions(t *testing.T) {
	x := []float64{-30, -3, -1, -0.25, 0, 0.5, 2, 30}
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	for k, f := range map[Type]func(float64) float64{
		Relu: func(x float64) float64 { return max(x, 0) },
		Gelu: func(x float64) float64 { return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) },
		FastGelu: func(x float64) float64 {
			return x * math.Exp(0.851*(x-math.Abs(x))) / (1 + math.Exp(-1.702*math.Abs(x)))
		},
		Swish:      func(x float64) float64 { return x * sigmoid(x) },
		Sigmoid:    sigmoid,
		FasterGelu: func(x float64) float64 { return x * sigmoid(1.702*math.Abs(x)) * math.Exp(0.851*(x-math.Abs(x))) },
		Log:        math.Log,
	} {
		for i, y := range values(t, Of(k), x) {
			if want := f(x[i]); math.IsNaN(want) {
				assert.True(t, math.IsNaN(y), "type %d at %v", k, x[i])
			} else {
				assert.InDelta(t, want, y, 1e-6*math.Max(1, math.Abs(x[i])), "type %d at %v", k, x[i])
			}
		}
	}
	erf := Of(Gelu)
	erf.GeluMode = GeluErf
	assert.InDelta(t, 0.8413447, values(t, erf, []float64{1})[0], 1e-6)
	assert.InDelta(t, 0.8411920, values(t, Of(Gelu), []float64{1})[0], 1e-6)
}

func TestScaleBelongsToTheOperation(t *testing.T) {
	steep := Of(Swish)
	steep.Scale = 4
	for range 2 {
		assert.InDelta(t, 0.7310586, values(t, Of(Swish), []float64{1})[0], 1e-6)
		assert.InDelta(t, 0.9820138, values(t, steep, []float64{1})[0], 1e-6)
	}
}

func TestFirstHalfIsTheGate(t *testing.T) {
	assert.InDelta(t, 1.4621172, values(t, Of(SwiGLUForward), []float64{1, 2})[0], 1e-6)
}

// TestGradientByDifferences compares the backward with the forward's slopes.
func TestGradientByDifferences(t *testing.T) {
	x, dy := []float64{1.5, -0.7, 0.3, -2}, []float64{0.5, -3}
	got := values(t, Of(SwiGLUBackward), dy, x)
	f := func(x []float64) float64 {
		silu := func(v float64) float64 { return v / (1 + math.Exp(-v)) }
		return dy[0]*silu(x[0])*x[2] + dy[1]*silu(x[1])*x[3]
	}
	for i := range x {
		up, down := append([]float64(nil), x...), append([]float64(nil), x...)
		up[i] += 1e-5
		down[i] -= 1e-5
		assert.InDelta(t, (f(up)-f(down))/2e-5, got[i], 1e-5, "slope %d", i)
	}
}
