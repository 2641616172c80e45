package elementwise

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/kernel"
	"goatb/operation"
	"goatb/operation/optest"
	"goatb/status"
	"goatb/tensor"
)

func decode(param []byte) (operation.Spec, error) {
	return operation.Decode(param, DefaultElewise(), "elewiseType")
}

func TestRows(t *testing.T) { optest.CheckRows(t, "elewise", decode, 192) }

func TestGoldens(t *testing.T) { optest.CheckGoldens(t, "ElewiseOperation", decode) }

func TestJSON(t *testing.T) {
	got, err := decode([]byte(`{"elewiseType":6}`))
	require.NoError(t, err)
	assert.Equal(t, Of(Quant), got)
	got, err = decode([]byte(`{"elewiseType":2,"outTensorType":27,"mulsParam":{"varAttr":0.5},"quantParam":{"inputOffset":-3}}`))
	require.NoError(t, err)
	assert.Equal(t, Elewise{Muls, tensor.BFloat16, MulsParam{0.5}, QuantParam{InputScale: 1, InputOffset: -3}}, got)
	_, err = decode([]byte(`{"elewiseType":2,"varAttr":9}`))
	assert.ErrorContains(t, err, "mulsParam.varAttr", "an older form, which ATB lets pass without effect")
	_, err = decode([]byte(`{}`))
	assert.ErrorIs(t, err, status.ErrInvalidParam, "elewiseType is required")
}

func TestValidate(t *testing.T) {
	for _, e := range []Elewise{{}, {Type: 21}, {Type: -1}, {Type: DynamicQuant, Quant: QuantParam{Asymmetric: true}}, {Type: Cast, OutTensorType: 99}} {
		assert.ErrorIs(t, e.Validate(), status.ErrInvalidParam, "%+v", e)
	}
	for k := Cast; k <= Tanh; k++ {
		assert.NoError(t, Of(k).Validate())
	}
}

const (
	f32  = tensor.Float32
	f16  = tensor.Float16
	bf16 = tensor.BFloat16
	i8   = tensor.Int8
)

func TestShapes(t *testing.T) {
	d := tensor.Of
	to := func(t tensor.DType) Elewise { return Elewise{Type: Cast, OutTensorType: t} }
	for _, c := range []struct {
		name string
		spec Elewise
		in   []tensor.Desc
		want []tensor.Desc
		code status.Code
	}{
		{"cast by default, f32", Of(Cast), []tensor.Desc{d(f32, 2)}, []tensor.Desc{d(f16, 2)}, status.OK},
		{"cast by default, int64", Of(Cast), []tensor.Desc{d(tensor.Int64, 2)}, []tensor.Desc{d(f32, 2)}, status.OK},
		{"cast f16 to bf16", to(bf16), []tensor.Desc{d(f16, 2)}, []tensor.Desc{d(bf16, 2)}, status.OK},
		{"cast f32 to bool", to(tensor.Bool), []tensor.Desc{d(f32, 2)}, []tensor.Desc{d(tensor.Bool, 2)}, status.OK},
		{"cast to complex", to(tensor.Complex64), []tensor.Desc{d(f32, 2)}, nil, status.ErrInvalidParam},
		{"add, broadcast", Of(Add), []tensor.Desc{d(f32, 2, 1), d(f32, 3)}, []tensor.Desc{d(f32, 2, 3)}, status.OK},
		{"add, no broadcast", Of(Add), []tensor.Desc{d(f32, 2, 2), d(f32, 3)}, nil, status.ErrInvalidTensorDim},
		{"add, two types", Of(Add), []tensor.Desc{d(f32, 2), d(f16, 2)}, nil, status.ErrInvalidTensorIniMatch},
		{"add, too large", Of(Add), []tensor.Desc{d(i8, 1<<30, 1), d(i8, 1, 1<<30)}, nil, status.ErrInvalidTensorDim},
		{"less", Of(Less), []tensor.Desc{d(f32, 2, 1), d(f32, 3)}, []tensor.Desc{d(i8, 2, 3)}, status.OK},
		{"not", Of(LogicalNot), []tensor.Desc{d(tensor.Bool, 2)}, []tensor.Desc{d(tensor.Bool, 2)}, status.OK},
		{"quant of any width", Of(Quant), []tensor.Desc{d(f32, 2, 33)}, []tensor.Desc{d(i8, 2, 33)}, status.OK},
		{"quant per channel", Of(QuantPerChannel), []tensor.Desc{d(bf16, 2, 3), d(f32, 3), d(i8, 3)}, []tensor.Desc{d(i8, 2, 3)}, status.OK},
		{"quant without offset", Of(QuantPerChannel), []tensor.Desc{d(f16, 2, 3), d(f16, 1), {}}, []tensor.Desc{d(i8, 2, 3)}, status.OK},
		{"scale of other width", Of(QuantPerChannel), []tensor.Desc{d(f16, 2, 3), d(f16, 4), {}}, nil, status.ErrInvalidTensorDim},
		{"offset larger than x", Of(QuantPerChannel), []tensor.Desc{d(f16, 3), d(f16, 3), d(i8, 2, 3)}, nil, status.ErrInvalidTensorDim},
		{"dequant", Of(DequantPerChannel), []tensor.Desc{d(i8, 2, 3), d(bf16, 3), d(i8, 1)}, []tensor.Desc{d(bf16, 2, 3)}, status.OK},
		{"dynamic quant", Of(DynamicQuant), []tensor.Desc{d(f32, 2, 3, 4)}, []tensor.Desc{d(i8, 2, 3, 4), d(f32, 2, 3)}, status.OK},
		{"dynamic quant of rank 1", Of(DynamicQuant), []tensor.Desc{d(f32, 4)}, nil, status.ErrInvalidTensorDimNum},
	} {
		out, err := operation.InferShape(c.spec, operation.Native(), c.in)
		assert.Equal(t, c.code, status.CodeOf(err), "%s: %v", c.name, err)
		assert.Equal(t, c.want, out, c.name)
	}
}

// run runs an operation on values of the given descriptors, nil for an absent
// one, and returns the outputs as float64.
func run(t *testing.T, c optest.Case, in ...[]float64) [][]float64 {
	t.Helper()
	for i, v := range in {
		if v == nil {
			c.Data = append(c.Data, nil)
			continue
		}
		c.Data = append(c.Data, tensor.FromFloat64s(c.In[i].DType, v))
	}
	out, err := operation.InferShape(c.Spec, operation.Native(), c.In)
	require.NoError(t, err)
	var res [][]float64
	for i, b := range optest.Run(t, c).Out {
		v, err := tensor.Float64s(b, out[i].DType)
		require.NoError(t, err)
		res = append(res, v)
	}
	return res
}

func TestEveryType(t *testing.T) {
	x, y := []float64{0.5, -2, 0, 3}, []float64{4, -2, 1, 0.5}
	two := []tensor.Desc{tensor.Of(f32, 4), tensor.Of(f32, 4)}
	bytes := []tensor.Desc{tensor.Of(i8, 4), tensor.Of(i8, 4)}
	muls := Of(Muls)
	muls.Muls.VarAttr = 0.25
	quant := Of(Quant)
	quant.Quant = QuantParam{InputScale: 5, InputOffset: 2}
	for _, c := range []struct {
		spec Elewise
		in   []tensor.Desc
		data [][]float64
		want []float64
	}{
		{Of(Cast), two[:1], [][]float64{x}, x},
		{muls, two[:1], [][]float64{x}, []float64{0.125, -0.5, 0, 0.75}},
		{Of(Cos), two[:1], [][]float64{x}, []float64{math.Cos(0.5), math.Cos(2), 1, math.Cos(3)}},
		{Of(Sin), two[:1], [][]float64{x}, []float64{math.Sin(0.5), math.Sin(-2), 0, math.Sin(3)}},
		{Of(Neg), two[:1], [][]float64{x}, []float64{-0.5, 2, 0, -3}},
		{quant, two[:1], [][]float64{x}, []float64{4, -8, 2, 17}},
		{Of(LogicalNot), bytes[:1], [][]float64{{5, 0, -1, 0}}, []float64{0, 1, 0, 1}},
		{Of(Add), two, [][]float64{x, y}, []float64{4.5, -4, 1, 3.5}},
		{Of(Mul), two, [][]float64{x, y}, []float64{2, 4, 0, 1.5}},
		{Of(RealDiv), two, [][]float64{x, y}, []float64{0.125, 1, 0, 6}},
		{Of(LogicalAnd), bytes, [][]float64{{1, 0, -1, 0}, {2, 2, 0, 0}}, []float64{1, 0, 0, 0}},
		{Of(LogicalOr), bytes, [][]float64{{1, 0, -1, 0}, {2, 2, 0, 0}}, []float64{1, 1, 1, 0}},
		{Of(Less), two, [][]float64{x, y}, []float64{1, 0, 1, 0}},
		{Of(Greater), two, [][]float64{x, y}, []float64{0, 0, 0, 1}},
		{Of(Sub), two, [][]float64{x, y}, []float64{-3.5, 0, -1, 2.5}},
		{Of(Equal), two, [][]float64{x, y}, []float64{0, 1, 0, 0}},
		{Of(QuantPerChannel), []tensor.Desc{two[0], two[1], bytes[0]}, [][]float64{x, {0.25, 0.5, 1, 0.01}, {0, 1, 2, 0}}, []float64{2, -3, 2, 127}},
		{Of(DequantPerChannel), []tensor.Desc{bytes[0], two[0], bytes[0]}, [][]float64{{1, -2, 3, 4}, {0.25, 0.5, 1, 10}, {0, 1, 2, -1}}, []float64{0.25, -1.5, 1, 50}},
		{Of(DynamicQuant), []tensor.Desc{tensor.Of(f32, 1, 4)}, [][]float64{{1, -4, 0, 2}}, []float64{32, -127, 0, 64}},
		{Of(Tanh), two[:1], [][]float64{x}, []float64{math.Tanh(0.5), math.Tanh(-2), 0, math.Tanh(3)}},
	} {
		got := run(t, optest.Case{Spec: c.spec, In: c.in}, c.data...)
		assert.InDeltaSlice(t, c.want, got[0], 1e-6, "type %d", c.spec.Type)
	}
}

func TestDynamicQuantOfAZeroRow(t *testing.T) {
	got := run(t, optest.Case{Spec: Of(DynamicQuant), In: []tensor.Desc{tensor.Of(f32, 2, 3)}}, []float64{0, 0, 0, 1, -2, 0.5})
	assert.Equal(t, []float64{0, 0, 0, 64, -127, 32}, got[0])
	assert.InDeltaSlice(t, []float64{0, 2.0 / 127}, got[1], 1e-9)
}

func TestQuantMinNeg127(t *testing.T) {
	per := Of(QuantPerChannel)
	in := []tensor.Desc{tensor.Of(f32, 2), tensor.Of(f32, 1), {}}
	for low, o := range map[float64]kernel.Options{-128: {}, -127: {QuantMinNeg127: true}} {
		got := run(t, optest.Case{Spec: Of(Quant), In: in[:1], Options: o}, []float64{-500, 500})
		assert.Equal(t, []float64{low, 127}, got[0])
		got = run(t, optest.Case{Spec: per, In: in, Options: o}, []float64{-500, 500}, []float64{1}, nil)
		assert.Equal(t, []float64{low, 127}, got[0])
	}
}

// TestShapesOfOneVolume broadcasts predicates of equal volume and other strides.
func TestShapesOfOneVolume(t *testing.T) {
	x := make([]float64, 64)
	y := make([]float64, 16)
	for i := range x {
		x[i] = float64(i)
	}
	for i := range y {
		y[i] = float64(100 * i)
	}
	full := tensor.Of(f32, 4, 4, 2, 2)
	rows := run(t, optest.Case{Spec: Of(Add), In: []tensor.Desc{full, tensor.Of(f32, 4, 1, 2, 2)}}, x, y)[0]
	cols := run(t, optest.Case{Spec: Of(Add), In: []tensor.Desc{full, tensor.Of(f32, 1, 4, 2, 2)}}, x, y)[0]
	for i := range x {
		outer, inner := i/16*4+i%4, i/4%4*4+i%4
		assert.Equal(t, x[i]+y[outer], rows[i])
		assert.Equal(t, x[i]+y[inner], cols[i])
	}
}

func TestIntegersWrap(t *testing.T) {
	int32s := []tensor.Desc{tensor.Of(tensor.Int32, 1), tensor.Of(tensor.Int32, 1)}
	got := run(t, optest.Case{Spec: Of(Add), In: int32s}, []float64{math.MaxInt32}, []float64{1})
	assert.Equal(t, []float64{math.MinInt32}, got[0])
	got = run(t, optest.Case{Spec: Elewise{Type: Cast, OutTensorType: i8}, In: int32s[:1]}, []float64{300})
	assert.Equal(t, []float64{44}, got[0])
}

func TestRealDivByZeroIsInfinite(t *testing.T) {
	in := []tensor.Desc{tensor.Of(f16, 2), tensor.Of(f16, 2)}
	got := run(t, optest.Case{Spec: Of(RealDiv), In: in}, []float64{1, -1}, []float64{0, 0})
	assert.Equal(t, []float64{math.Inf(1), math.Inf(-1)}, got[0])
	got = run(t, optest.Case{Spec: Of(Mul), In: in}, []float64{60000, 1}, []float64{2, 2})
	assert.Equal(t, []float64{math.Inf(1), 2}, got[0], "no saturation")
}

func TestParametersBelongToTheOperation(t *testing.T) {
	x := optest.Case{In: []tensor.Desc{tensor.Of(f32, 1)}}
	for _, v := range []float32{2, 3, 2} {
		e := Of(Muls)
		e.Muls.VarAttr = v
		x.Spec = e
		assert.Equal(t, float64(v)*5, run(t, x, []float64{5})[0][0])
	}
}

// TestBoardLeavesTheOutputShape runs into an output of another shape and the
// same size, which profile 910b allows.
func TestBoardLeavesTheOutputShape(t *testing.T) {
	c := optest.Case{
		Spec: Of(Add), Profile: operation.Board910B(),
		In: []tensor.Desc{tensor.Of(f16, 2, 3), tensor.Of(f16, 3)}, Out: []tensor.Desc{tensor.Of(f16, 6)},
	}
	got := run(t, c, []float64{1, 2, 3, 4, 5, 6}, []float64{10, 20, 30})
	assert.Equal(t, []float64{11, 22, 33, 14, 25, 36}, got[0])
	err := operation.CheckSetup(c.Spec, operation.Native(), c.In, c.Out, nil)
	assert.ErrorIs(t, err, status.ErrInvalidTensorDim)
}

func TestInPlace(t *testing.T) {
	for _, d := range []tensor.DType{f32, f16} {
		in := []tensor.Desc{tensor.Of(d, 2, 3), tensor.Of(d, 3)}
		c := optest.Case{Spec: Of(Add), In: in, InPlace: map[int]int{0: 0}}
		assert.Equal(t, []float64{11, 22, 33, 14, 25, 36}, run(t, c, []float64{1, 2, 3, 4, 5, 6}, []float64{10, 20, 30})[0])
	}
}
