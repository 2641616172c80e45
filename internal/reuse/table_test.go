package reuse

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"goatb/atb"
	"goatb/operation/activation"
	"goatb/operation/catalog"
	"goatb/operation/elementwise"
	"goatb/operation/linear"
	"goatb/operation/norm"
	"goatb/operation/rope"
	"goatb/operation/shape"
	"goatb/tensor"
)

// row is an operation with parameters and operands of a size.
type row struct {
	name string
	spec atb.Spec
	// other are parameters for the same operands that give another result, nil
	// where there are none.
	other atb.Spec
	in    func(s *source, n int64) []operand
	// inPlace gives for an output the input whose memory it is, for operations
	// that update an input.
	inPlace map[int]int
}

// rows is the table. A new operation gets a row here.
func rows() []row {
	return slices.Concat(elementRows(), normRows(), productRows(), shapeRows(), selfRows(), pagedRows(), cacheRows())
}

// TestEveryOperationHasARow fails when the catalog knows an operation that the
// table does not.
func TestEveryOperationHasARow(t *testing.T) {
	var have []string
	names := map[string]bool{}
	for _, r := range rows() {
		have = append(have, r.spec.Signature().Name)
		assert.False(t, names[r.name], "two rows are named %s", r.name)
		names[r.name] = true
	}
	for _, name := range catalog.Names() {
		assert.Contains(t, have, name)
	}
}

func muls(by float32) elementwise.Elewise {
	e := elementwise.Of(elementwise.Muls)
	e.Muls.VarAttr = by
	return e
}

func quant(scale float32) elementwise.Elewise {
	e := elementwise.Of(elementwise.Quant)
	e.Quant.InputScale = scale
	return e
}

func swish(scale float32) activation.Activation {
	a := activation.Of(activation.Swish)
	a.Scale = scale
	return a
}

func elementRows() []row {
	of := elementwise.Of
	one := func(s *source, n int64) []operand { return []operand{s.f16(n, 37)} }
	two := func(s *source, n int64) []operand { return []operand{s.f32(n, 37), s.f32(37)} }
	erf := activation.Of(activation.Gelu)
	erf.GeluMode = activation.GeluErf
	cast := of(elementwise.Cast)
	cast.OutTensorType = tensor.BFloat16
	return []row{
		{"Elewise cast", of(elementwise.Cast), nil, firstOf(two), nil},
		{"Elewise cast to bf16", cast, nil, one, nil},
		{"Elewise muls", muls(2), muls(3), one, nil},
		{"Elewise add", of(elementwise.Add), of(elementwise.Mul), two, nil},
		{"Elewise sub", of(elementwise.Sub), of(elementwise.RealDiv), two, nil},
		{"Elewise less", of(elementwise.Less), of(elementwise.Greater), two, nil},
		{"Elewise and", of(elementwise.LogicalAnd), of(elementwise.LogicalOr), func(s *source, n int64) []operand { return []operand{s.bits(n, 9), s.bits(n, 9)} }, nil},
		{"Elewise quant", quant(20), quant(30), func(s *source, n int64) []operand { return []operand{s.f16(n, 64)} }, nil},
		{"Elewise quant per channel", of(elementwise.QuantPerChannel), nil, func(s *source, n int64) []operand {
			return []operand{s.f16(n, 33), s.f16(33), s.int8(33)}
		}, nil},
		{"Elewise dynamic quant", of(elementwise.DynamicQuant), nil, func(s *source, n int64) []operand { return []operand{s.f32(n, 40)} }, nil},
		{"Activation swish", swish(1), swish(2), one, nil},
		{"Activation gelu", activation.Of(activation.Gelu), erf, firstOf(two), nil},
		{"Activation swiglu", activation.Of(activation.SwiGLUForward), nil, func(s *source, n int64) []operand { return []operand{s.f32(n, 48)} }, nil},
		{"Activation swiglu gradient", activation.Of(activation.SwiGLUBackward), nil, func(s *source, n int64) []operand {
			return []operand{s.f32(n, 24), s.f32(n, 48)}
		}, nil},
		{"Rope", rope.Rope{RotaryCoeff: 2}, rope.Rope{RotaryCoeff: 4}, func(s *source, n int64) []operand {
			return []operand{s.f32(n, 32), s.f32(n, 16), s.f32(n, 8), s.f32(n, 8), int32s([]int64{n}, 1)}
		}, nil},
	}
}

// firstOf keeps the first of some operands.
func firstOf(in func(*source, int64) []operand) func(*source, int64) []operand {
	return func(s *source, n int64) []operand { return in(s, n)[:1] }
}

func normRows() []row {
	const width = 48
	plain := func(change func(*norm.RMSPlainParam)) norm.RMSNorm {
		p := norm.RMS(norm.Plain, 1e-5)
		change(&p.Norm)
		return p
	}
	quantised := plain(func(p *norm.RMSPlainParam) { p.QuantType = norm.QuantInt8 })
	dynamic := plain(func(p *norm.RMSPlainParam) { p.QuantType, p.DynamicQuant = norm.QuantInt8, norm.DynamicSymmetric })
	coarse := quantised
	coarse.Norm.Epsilon = 4
	residual := func(s *source, n int64) []operand { return []operand{s.f32(n, width), s.f32(n, width), s.f32(width)} }
	return []row{
		{"RmsNorm", norm.RMS(norm.Plain, 1e-5), norm.RMS(norm.Plain, 0.5), func(s *source, n int64) []operand {
			return []operand{s.f16(n, width), s.f16(width)}
		}, nil},
		{"RmsNorm gemma", plain(func(p *norm.RMSPlainParam) { p.ModelType = norm.ModelGemma }), norm.RMS(norm.Plain, 1e-5), func(s *source, n int64) []operand {
			return []operand{s.f32(n, width), s.f32(width)}
		}, nil},
		{"RmsNorm rstd", plain(func(p *norm.RMSPlainParam) { p.Rstd = true }), nil, func(s *source, n int64) []operand {
			return []operand{s.f32(n, width), s.f32(width)}
		}, nil},
		{"RmsNorm quant", quantised, coarse, func(s *source, n int64) []operand {
			scale := operand{desc: tensor.Of(tensor.Float16, 1), data: []byte{0x00, 0x2c}} // 1/16
			return []operand{s.f16(n, width), s.f16(width), s.f16(width), scale, s.int8(1)}
		}, nil},
		{"RmsNorm dynamic quant", dynamic, nil, func(s *source, n int64) []operand {
			return []operand{s.f16(n, width), s.f16(width), s.f16(width)}
		}, nil},
		{"RmsNorm pre", norm.RMS(norm.Pre, 1e-5), norm.RMS(norm.Pre, 0.5), residual, nil},
		{"RmsNorm post", norm.RMS(norm.Post, 1e-5), norm.RMS(norm.Post, 0.5), residual, nil},
	}
}

func productRows() []row {
	plain := linear.Linear{TransposeB: true}
	int8s := linear.Linear{TransposeB: true, OutDataType: tensor.Float16}
	token := int8s
	token.QuantMode = linear.QuantPerToken
	accumulate := func(s *source, n int64) []operand { return []operand{s.f16(n, 32), s.f16(32, 16), s.f32(n, 16)} }
	return []row{
		{"Linear", plain, linear.Linear{}, func(s *source, n int64) []operand { return []operand{s.f32(n, 64), s.f32(64, 64)} }, nil},
		{"Linear bias", linear.DefaultLinear(), nil, func(s *source, n int64) []operand { return []operand{s.f16(n, 70), s.f16(24, 70), s.f16(24)} }, nil},
		{"Linear of a turned x", linear.Linear{TransposeA: true}, nil, func(s *source, n int64) []operand { return []operand{s.f16(32, n), s.f16(32, 40)} }, nil},
		{"Linear of few long rows", plain, nil, func(s *source, n int64) []operand { return []operand{s.f32(2, 5000*n), s.f32(8, 5000*n)} }, nil},
		{"Linear einsum", linear.Linear{MatmulType: linear.MatmulEinSum}, nil, func(s *source, n int64) []operand { return []operand{s.f32(n, 2, 24), s.f32(2, 24, 17)} }, nil},
		{"Linear accumulate", linear.Linear{EnAccum: true}, nil, accumulate, nil},
		{"Linear accumulate in place", linear.Linear{EnAccum: true}, nil, accumulate, map[int]int{0: 2}},
		{"Linear int8", int8s, nil, func(s *source, n int64) []operand { return []operand{s.int8(n, 64), s.int8(32, 64), s.f32(32)} }, nil},
		{"Linear int8 per token", token, nil, func(s *source, n int64) []operand {
			return []operand{s.int8(n, 64), s.int8(32, 64), s.f32(32), s.f32(n)}
		}, nil},
	}
}

func shapeRows() []row {
	wide := func(s *source, n int64) []operand { return []operand{s.f32(n, 12)} }
	indexAdd := func(axis int64) shape.IndexAdd { return shape.IndexAdd{IndexType: shape.IndexAddAll, Axis: axis} }
	added := func(s *source, n int64) []operand {
		return []operand{s.f32(6, 6), s.below(6, 6), s.f32(6, 6), s.f32(1)}
	}
	return []row{
		{"Gather", shape.Gather{}, shape.Gather{Axis: 1}, func(s *source, n int64) []operand { return []operand{s.f32(9, 9, 3), s.below(9, n)} }, nil},
		{"Softmax", shape.Softmax{Axes: []int64{-1}}, shape.Softmax{Axes: []int64{0, 1}}, func(s *source, n int64) []operand { return []operand{s.f16(n, 6, 7)} }, nil},
		{"Softmax of long rows", shape.Softmax{Axes: []int64{-1}}, nil, func(s *source, n int64) []operand { return []operand{s.f32(1, 20000*n)} }, nil},
		{"IndexAdd", indexAdd(0), indexAdd(1), added, nil},
		{"IndexAdd in place", indexAdd(0), indexAdd(1), added, map[int]int{0: 0}},
		{"IndexAdd of valid rows", shape.IndexAdd{IndexType: shape.IndexAddValid}, nil, func(s *source, n int64) []operand {
			return []operand{s.f16(n, 70), s.below(n, 9), s.f16(9, 70), s.below(10, 1)}
		}, nil},
		{"Sort", shape.Sort{Num: []int64{4}}, shape.Sort{Num: []int64{3}}, wide, nil},
		{"Sort of long rows", shape.Sort{Num: []int64{600}}, nil, func(s *source, n int64) []operand { return []operand{s.f16(2, 700*n)} }, nil},
		{"Transpose", shape.Transpose{Perm: []int64{1, 0, 2}}, shape.Transpose{Perm: []int64{2, 1, 0}}, func(s *source, n int64) []operand { return []operand{s.f32(n, 5, 6)} }, nil},
		{"Concat", shape.Concat{}, shape.Concat{ConcatDim: 1}, func(s *source, n int64) []operand { return []operand{s.f32(n, 8), s.f32(n, 8)} }, nil},
		{"Split", shape.Split{SplitNum: 2, SplitDim: 1}, shape.Split{SplitNum: 3, SplitDim: 1}, wide, nil},
		{"Split by sizes", shape.Split{SplitNum: 2, SplitDim: 1, SplitSizes: []int64{3, 9}}, shape.Split{SplitNum: 2, SplitDim: 1, SplitSizes: []int64{9, 3}}, wide, nil},
		{"Slice", shape.Slice{Offsets: []int64{0, 1}, Size: []int64{-1, 4}}, shape.Slice{Offsets: []int64{0, 2}, Size: []int64{1, 4}}, func(s *source, n int64) []operand { return []operand{s.f16(n, 7)} }, nil},
	}
}
