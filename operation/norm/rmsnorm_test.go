package norm

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/operation/optest"
	"goatb/status"
	"goatb/tensor"
)

func decode(param []byte) (operation.Spec, error) { return operation.Decode(param, DefaultRMSNorm()) }

func TestRows(t *testing.T) { optest.CheckRows(t, "rms_norm", decode, 105) }

func TestGoldens(t *testing.T) { optest.CheckGoldens(t, "RmsNormOperation", decode) }

func TestJSON(t *testing.T) {
	got, err := decode([]byte(`{"layerType":1}`))
	require.NoError(t, err)
	assert.Equal(t, RMS(Plain, 1e-5), got)
	got, err = decode([]byte(`{"layerType":1,"normParam":{"quantType":2,"epsilon":1e-6,"dynamicQuantType":1},"preNormParam":{"hasBias":true}}`))
	require.NoError(t, err)
	want := RMS(Plain, 1e-5)
	want.Norm.Epsilon, want.Norm.QuantType, want.Norm.DynamicQuant = 1e-6, QuantInt8, DynamicSymmetric
	want.PreNorm.HasBias = true
	assert.Equal(t, want, got)
}

func TestValidate(t *testing.T) {
	for name, spoil := range map[string]func(n *RMSNorm){
		"no kind":         func(n *RMSNorm) { n.LayerType = 0 },
		"kind":            func(n *RMSNorm) { n.LayerType = 4 },
		"epsilon":         func(n *RMSNorm) { n.Norm.Epsilon = 0 },
		"layer epsilon":   func(n *RMSNorm) { n.Norm.LayerNormEps = 1e-38 },
		"other epsilon":   func(n *RMSNorm) { n.PostNorm.Epsilon = 0 },
		"epsilon NaN":     func(n *RMSNorm) { n.PreNorm.Epsilon = float32(math.NaN()) },
		"quantisation":    func(n *RMSNorm) { n.Norm.QuantType = 1 },
		"asymmetric":      func(n *RMSNorm) { n.Norm.DynamicQuant = DynamicAsymmetric },
		"precision":       func(n *RMSNorm) { n.Norm.PrecisionMode = 2 },
		"model":           func(n *RMSNorm) { n.Norm.ModelType = -1 },
		"pre quantised 1": func(n *RMSNorm) { n.LayerType, n.PreNorm.QuantType = Pre, 1 },
	} {
		n := RMS(Plain, 1e-5)
		require.NoError(t, n.Validate())
		spoil(&n)
		assert.ErrorIs(t, n.Validate(), status.ErrInvalidParam, name)
	}
	n := RMS(Post, 1e-5)
	n.PreNorm.QuantType = 1
	assert.NoError(t, n.Validate(), "only the kind's own quantType counts")
}

const (
	f32  = tensor.Float32
	f16  = tensor.Float16
	bf16 = tensor.BFloat16
	i8   = tensor.Int8
)

// with returns an RMSNorm with changed parameters.
func with(kind LayerType, change func(n *RMSNorm)) RMSNorm {
	n := RMS(kind, 1e-5)
	change(&n)
	return n
}

func TestShapes(t *testing.T) {
	d := tensor.Of
	rstd := with(Plain, func(n *RMSNorm) { n.Norm.Rstd = true })
	quant := with(Plain, func(n *RMSNorm) { n.Norm.QuantType = QuantInt8 })
	dynamic := with(Plain, func(n *RMSNorm) { n.Norm.QuantType, n.Norm.DynamicQuant = QuantInt8, DynamicSymmetric })
	biased := with(Pre, func(n *RMSNorm) { n.PreNorm.HasBias = true })
	postQuant := with(Post, func(n *RMSNorm) { n.PostNorm.QuantType = QuantInt8 })
	half := with(Plain, func(n *RMSNorm) { n.Norm.PrecisionMode = PrecisionHalf })
	one, zero := d(f32, 1), d(i8, 1)
	for _, c := range []struct {
		name string
		spec RMSNorm
		in   []tensor.Desc
		want []tensor.Desc
		code status.Code
	}{
		{"f32 of width 3", RMS(Plain, 1e-5), []tensor.Desc{d(f32, 2, 3), d(f32, 3)}, []tensor.Desc{d(f32, 2, 3)}, status.OK},
		{"f16 with f32 gamma", RMS(Plain, 1e-5), []tensor.Desc{d(f16, 2, 3), d(f32, 1, 3)}, []tensor.Desc{d(f16, 2, 3)}, status.OK},
		{"gamma too short", RMS(Plain, 1e-5), []tensor.Desc{d(f32, 2, 4), d(f32, 3)}, nil, status.ErrInvalidTensorDim},
		{"gamma of rows", RMS(Plain, 1e-5), []tensor.Desc{d(f32, 2, 4), d(f32, 2, 4)}, nil, status.ErrInvalidTensorDim},
		{"no gamma", RMS(Plain, 1e-5), []tensor.Desc{d(f32, 2, 4), {}}, nil, status.ErrInvalidTensorDim},
		{"rstd over two axes", rstd, []tensor.Desc{d(bf16, 2, 3, 4), d(bf16, 3, 4)}, []tensor.Desc{d(bf16, 2, 3, 4), d(f32, 2, 1, 1)}, status.OK},
		{"rstd with long gamma", rstd, []tensor.Desc{d(f32, 4), d(f32, 1, 4)}, nil, status.ErrInvalidTensorDim},
		{"quantised", quant, []tensor.Desc{d(f32, 2, 5), d(f16, 5), d(f16, 5), one, zero}, []tensor.Desc{d(i8, 2, 5)}, status.OK},
		{"beta unlike gamma", quant, []tensor.Desc{d(f32, 2, 5), d(f16, 5), d(f16, 1, 5), one, zero}, nil, status.ErrInvalidTensorDim},
		{"scale of two", quant, []tensor.Desc{d(f32, 2, 5), d(f16, 5), d(f16, 5), d(f32, 2), zero}, nil, status.ErrInvalidTensorDim},
		{"dynamic", dynamic, []tensor.Desc{d(f32, 2, 3, 5), d(f32, 5), d(f32, 5)}, []tensor.Desc{d(i8, 2, 3, 5), d(f32, 2, 3)}, status.OK},
		{"dynamic of one row", dynamic, []tensor.Desc{d(f32, 5), d(f32, 5), d(f32, 5)}, []tensor.Desc{d(i8, 5), d(f32, 1)}, status.OK},
		{"pre with bias", biased, []tensor.Desc{d(f16, 2, 5), d(f16, 5), d(f16, 2, 5), d(f16, 5)}, []tensor.Desc{d(f16, 2, 5), d(f16, 2, 5)}, status.OK},
		{"residual of other shape", biased, []tensor.Desc{d(f16, 2, 5), d(f16, 5), d(f16, 1, 5), d(f16, 5)}, nil, status.ErrInvalidTensorDim},
		{"post quantised", postQuant, []tensor.Desc{d(f32, 2, 5), d(f32, 2, 5), d(f32, 5), one, zero}, []tensor.Desc{d(i8, 2, 5), d(f32, 2, 5)}, status.OK},
		{"post quantised, gamma of rank 3", postQuant, []tensor.Desc{d(f32, 2, 5), d(f32, 2, 5), d(f32, 1, 1, 5), one, zero}, nil, status.ErrInvalidTensorDim},
		{"steps of f16 in bf16", half, []tensor.Desc{d(bf16, 2, 5), d(bf16, 5)}, nil, status.ErrInvalidTensorDType},
	} {
		out, err := operation.InferShape(c.spec, operation.Native(), c.in)
		assert.Equal(t, c.code, status.CodeOf(err), "%s: %v", c.name, err)
		assert.Equal(t, c.want, out, c.name)
	}
	_, err := operation.InferShape(RMS(Plain, 1e-5), operation.Native(), []tensor.Desc{d(f32, 2, 4), d(f32, 3)})
	assert.ErrorContains(t, err, "input 1 (gamma)")
	assert.ErrorContains(t, err, "[2,4]")
	assert.ErrorContains(t, err, "[3]")
}

func TestParametersExcludeEachOther(t *testing.T) {
	x, w := tensor.Of(f16, 2, 16), tensor.Of(f16, 16)
	one, zero := tensor.Of(f16, 1), tensor.Of(i8, 1)
	for name, c := range map[string]struct {
		spec RMSNorm
		in   []tensor.Desc
	}{
		"gemma, int8": {with(Plain, func(n *RMSNorm) { n.Norm.ModelType, n.Norm.QuantType = ModelGemma, QuantInt8 }), []tensor.Desc{x, w, w, one, zero}},
		"gemma, half": {with(Plain, func(n *RMSNorm) { n.Norm.ModelType, n.Norm.PrecisionMode = ModelGemma, PrecisionHalf }), []tensor.Desc{x, w}},
		"gemma, rstd": {with(Plain, func(n *RMSNorm) { n.Norm.ModelType, n.Norm.Rstd = ModelGemma, true }), []tensor.Desc{x, w}},
		"half, int8":  {with(Plain, func(n *RMSNorm) { n.Norm.PrecisionMode, n.Norm.QuantType = PrecisionHalf, QuantInt8 }), []tensor.Desc{x, w, w, one, zero}},
		"half, rstd":  {with(Plain, func(n *RMSNorm) { n.Norm.PrecisionMode, n.Norm.Rstd = PrecisionHalf, true }), []tensor.Desc{x, w}},
		"rstd, int8":  {with(Plain, func(n *RMSNorm) { n.Norm.Rstd, n.Norm.QuantType = true, QuantInt8 }), []tensor.Desc{x, w, w, one, zero}},
		"bias, int8":  {with(Pre, func(n *RMSNorm) { n.PreNorm.HasBias, n.PreNorm.QuantType = true, QuantInt8 }), []tensor.Desc{x, x, w, w, one, zero}},
		"bias, post":  {with(Post, func(n *RMSNorm) { n.PostNorm.HasBias, n.PostNorm.QuantType = true, QuantInt8 }), []tensor.Desc{x, x, w, one, zero}},
	} {
		_, err := operation.InferShape(c.spec, operation.Native(), c.in)
		assert.ErrorIs(t, err, status.ErrInvalidParam, name)
	}
}

func TestSetupRefusesOtherOutputs(t *testing.T) {
	in := []tensor.Desc{tensor.Of(f32, 2, 3, 8), tensor.Of(f32, 8)}
	rstd := with(Plain, func(n *RMSNorm) { n.Norm.Rstd = true })
	for _, c := range []struct {
		spec RMSNorm
		out  []tensor.Desc
		code status.Code
	}{
		{rstd, []tensor.Desc{in[0], tensor.Of(f32, 2, 3, 1)}, status.OK},
		{rstd, []tensor.Desc{in[0], tensor.Of(f32, 2, 1, 3)}, status.ErrInvalidTensorDim},
		{rstd, []tensor.Desc{tensor.Of(f32, 6, 8), tensor.Of(f32, 2, 3, 1)}, status.ErrInvalidTensorSize},
		{rstd, []tensor.Desc{tensor.Of(f32, 3, 2, 8), tensor.Of(f32, 2, 3, 1)}, status.ErrInvalidTensorDim},
		{rstd, []tensor.Desc{in[0]}, status.ErrInvalidTensorNum},
	} {
		for _, p := range []*operation.Profile{operation.Board910B(), operation.Native()} {
			err := operation.CheckSetup(c.spec, p, in, c.out, nil)
			assert.Equal(t, c.code, status.CodeOf(err), "%s %v: %v", p.Name(), c.out, err)
		}
	}
	long := []tensor.Desc{tensor.Of(f32, 8), tensor.Of(f32, 1, 8)}
	err := operation.CheckSetup(rstd, operation.Native(), long, []tensor.Desc{long[0], tensor.Of(f32, 1)}, nil)
	assert.ErrorIs(t, err, status.ErrInvalidTensorDim, "gamma of a higher rank than x")
}

// run runs an operation on values of its inputs' types.
func run(t *testing.T, s RMSNorm, in []tensor.Desc, data ...[]float64) ([][]float64, *kernelgraph.Graph) {
	t.Helper()
	c := optest.Case{Spec: s, In: in}
	for i, v := range data {
		c.Data = append(c.Data, tensor.FromFloat64s(in[i].DType, v))
	}
	out, err := operation.InferShape(s, operation.Native(), in)
	require.NoError(t, err)
	r := optest.Run(t, c)
	var res [][]float64
	for i, b := range r.Out {
		v, err := tensor.Float64s(b, out[i].DType)
		require.NoError(t, err)
		res = append(res, v)
	}
	return res, r.Graph
}

// problem is data for every kind: rows, residual, weights and a scale.
type problem struct{ x, residual, bias, gamma, beta []float64 }

const rows, width = 5, 12

func data() problem {
	gen := func(n int, f float64) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = float64(float32(math.Sin(f * float64(i+1))))
		}
		return v
	}
	return problem{gen(rows*width, 1.7), gen(rows*width, 0.9), gen(width, 2.3), gen(width, 0.7), gen(width, 3.1)}
}

// normalised is s·r(s)·g by the definition, with s itself.
func (p *problem) normalised(residual, bias bool, g func(float64) float64) (y, s, rstd []float64) {
	s, y = make([]float64, rows*width), make([]float64, rows*width)
	for r := range rows {
		mean := 0.0
		for j := range width {
			i := r*width + j
			s[i] = p.x[i]
			if residual {
				s[i] += p.residual[i]
			}
			if bias {
				s[i] += p.bias[j]
			}
			mean += s[i] * s[i] / width
		}
		rstd = append(rstd, 1/math.Sqrt(mean+1e-5))
		for j := range width {
			y[r*width+j] = s[r*width+j] * rstd[r] * g(p.gamma[j])
		}
	}
	return y, s, rstd
}

func plainGamma(g float64) float64 { return g }

func TestKinds(t *testing.T) {
	p := data()
	x, w := tensor.Of(f32, rows, width), tensor.Of(f32, width)
	y, _, rstd := p.normalised(false, false, plainGamma)
	got, g := run(t, RMS(Plain, 1e-5), []tensor.Desc{x, w}, p.x, p.gamma)
	assert.InDeltaSlice(t, y, got[0], 1e-6, "plain")
	assert.Len(t, g.Nodes, 1)

	got, _ = run(t, with(Plain, func(n *RMSNorm) { n.Norm.Rstd = true }), []tensor.Desc{x, w}, p.x, p.gamma)
	assert.InDeltaSlice(t, y, got[0], 1e-6, "rstd: y")
	assert.InDeltaSlice(t, rstd, got[1], 1e-6, "rstd")

	gemma, _, _ := p.normalised(false, false, func(g float64) float64 { return 1 + g })
	got, _ = run(t, with(Plain, func(n *RMSNorm) { n.Norm.ModelType = ModelGemma }), []tensor.Desc{x, w}, p.x, p.gamma)
	assert.InDeltaSlice(t, gemma, got[0], 1e-6, "gemma")

	y, s, _ := p.normalised(true, true, plainGamma)
	got, _ = run(t, with(Pre, func(n *RMSNorm) { n.PreNorm.HasBias = true }), []tensor.Desc{x, w, x, w}, p.x, p.bias, p.residual, p.gamma)
	assert.InDeltaSlice(t, y, got[0], 1e-6, "pre: y")
	assert.InDeltaSlice(t, s, got[1], 1e-6, "pre: sum")

	got, _ = run(t, with(Post, func(n *RMSNorm) { n.PostNorm.HasBias = true }), []tensor.Desc{x, w, x, w}, p.x, p.bias, p.residual, p.gamma)
	assert.InDeltaSlice(t, y, got[0], 1e-6, "post")

	y, _, _ = p.normalised(true, false, plainGamma)
	got, _ = run(t, RMS(Post, 1e-5), []tensor.Desc{x, x, w}, p.x, p.residual, p.gamma)
	assert.InDeltaSlice(t, y, got[0], 1e-6, "post without bias")
}

// quantised is round(v/scale+offset), clamped.
func quantised(v []float64, scale, offset float64) []float64 {
	q := make([]float64, len(v))
	for i := range v {
		q[i] = min(max(math.RoundToEven(v[i]/scale+offset), -128), 127)
	}
	return q
}

// requireSteps checks int8 results: off by one where float32 moved a tie, which
// is rare.
func requireSteps(t *testing.T, want, got []float64, what string) {
	t.Helper()
	off := 0
	for i := range want {
		require.LessOrEqual(t, math.Abs(want[i]-got[i]), 1.0, "%s: element %d", what, i)
		if want[i] != got[i] {
			off++
		}
	}
	assert.LessOrEqual(t, off, len(want)/20, what)
}

func TestQuantisedKinds(t *testing.T) {
	p := data()
	x, w, one, zero := tensor.Of(f32, rows, width), tensor.Of(f32, width), tensor.Of(f32, 1), tensor.Of(i8, 1)
	plus := func(y []float64) []float64 {
		z := make([]float64, len(y))
		for i := range y {
			z[i] = y[i] + p.beta[i%width]
		}
		return z
	}
	scale, offset := []float64{0.03125}, []float64{3}
	y, _, _ := p.normalised(false, false, plainGamma)
	got, g := run(t, with(Plain, func(n *RMSNorm) { n.Norm.QuantType = QuantInt8 }), []tensor.Desc{x, w, w, one, zero}, p.x, p.gamma, p.beta, scale, offset)
	requireSteps(t, quantised(plus(y), scale[0], offset[0]), got[0], "plain")
	assert.Equal(t, []string{"normalise", "quantise"}, paths(g))
	assert.Equal(t, 1, temps(g))

	got, g = run(t, with(Plain, func(n *RMSNorm) { n.Norm.QuantType, n.Norm.DynamicQuant = QuantInt8, DynamicSymmetric }), []tensor.Desc{x, w, w}, p.x, p.gamma, p.beta)
	for r := range rows {
		row, top := plus(y)[r*width:(r+1)*width], 0.0
		for _, v := range row {
			top = max(top, math.Abs(v))
		}
		assert.InDelta(t, top/127, got[1][r], 1e-8, "dynamic: scale of row %d", r)
		requireSteps(t, quantised(row, top/127, 0), got[0][r*width:(r+1)*width], "dynamic")
	}
	assert.Equal(t, []string{"normalise", "quantise"}, paths(g))

	y, s, _ := p.normalised(true, false, plainGamma)
	got, _ = run(t, with(Pre, func(n *RMSNorm) { n.PreNorm.QuantType = QuantInt8 }), []tensor.Desc{x, x, w, w, one, zero}, p.x, p.residual, p.gamma, p.beta, scale, offset)
	requireSteps(t, quantised(plus(y), scale[0], offset[0]), got[0], "pre")
	assert.InDeltaSlice(t, s, got[1], 1e-6, "pre: sum")

	got, g = run(t, with(Post, func(n *RMSNorm) { n.PostNorm.QuantType = QuantInt8 }), []tensor.Desc{x, x, w, one, zero}, p.x, p.residual, p.gamma, scale, offset)
	requireSteps(t, quantised(y, scale[0], offset[0]), got[0], "post")
	assert.InDeltaSlice(t, y, got[1], 1e-6, "post: y")
	assert.Zero(t, temps(g), "y is quantised where it lies")
}

func paths(g *kernelgraph.Graph) (p []string) {
	for i := range g.Nodes {
		p = append(p, g.Nodes[i].Path)
	}
	return p
}

func temps(g *kernelgraph.Graph) (n int) {
	for i := range g.Tensors {
		if g.Tensors[i].Kind == kernelgraph.Temp {
			n++
		}
	}
	return n
}

func TestDynamicQuantOfZeros(t *testing.T) {
	s := with(Plain, func(n *RMSNorm) { n.Norm.QuantType, n.Norm.DynamicQuant = QuantInt8, DynamicSymmetric })
	w := tensor.Of(f32, 3)
	got, _ := run(t, s, []tensor.Desc{tensor.Of(f32, 1, 3), w, w}, []float64{0, 0, 0}, []float64{1, 1, 1}, []float64{0, 0, 0})
	assert.Equal(t, [][]float64{{0, 0, 0}, {0}}, got)
}

func TestRange(t *testing.T) {
	ones := []float64{1, 1, 1, 1}
	x := tensor.Of(f16, 1, 4)
	w := tensor.Of(f16, 4)
	got, _ := run(t, RMS(Plain, 1e-5), []tensor.Desc{x, w}, []float64{300, 300, 300, 300}, ones)
	assert.Equal(t, ones, got[0], "squares beyond f16")
	x.DType, w.DType = bf16, bf16
	small := []float64{0.05, 0.05, 0.05, 0.05}
	got, _ = run(t, RMS(Plain, 1e-5), []tensor.Desc{x, w}, small, ones)
	assert.InDelta(t, 0.998, got[0][0], 0x1p-8)
	for range 2 { // each keeps its own epsilon, in both orders
		got, _ = run(t, RMS(Plain, 0.0078125), []tensor.Desc{x, w}, small, ones)
		assert.InDelta(t, 0.4923659, got[0][0], 0x1p-9)
		got, _ = run(t, RMS(Plain, 1e-5), []tensor.Desc{x, w}, small, ones)
		assert.InDelta(t, 0.998, got[0][0], 0x1p-8)
	}
}

func TestResidualInPlace(t *testing.T) {
	p := data()
	x, w := tensor.Of(f16, rows, width), tensor.Of(f16, width)
	c := optest.Case{Spec: RMS(Pre, 1e-5), In: []tensor.Desc{x, x, w}}
	for i, v := range [][]float64{p.x, p.residual, p.gamma} {
		c.Data = append(c.Data, tensor.FromFloat64s(c.In[i].DType, v))
	}
	apart := optest.Run(t, c).Out
	c.InPlace = map[int]int{0: 0, 1: 1}
	assert.Equal(t, apart, optest.Run(t, c).Out)
}
