package faults_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"goatb/atb"
	"goatb/kernel/softmax"
	"goatb/operation/activation"
	"goatb/operation/catalog"
	"goatb/operation/elementwise"
	"goatb/operation/shape"
	"goatb/tensor"
)

// sample is an operation with random operands, for tests over all operations.
type sample struct {
	name string
	spec atb.Spec
	// other are parameters that give another result of the same shape.
	other atb.Spec
	// in draws operands of a size, 2 or more: rows, tokens or sequences.
	in func(rng *rand.Rand, n int64) []operand
}

// samples holds all operations: every kind that is lowered in its own way.
func samples() []sample {
	return slices.Concat(shapeSamples(), elementSamples(), linearSamples(), normSamples(), ropeSamples(),
		selfSamples(), pagedSamples(), cacheSamples())
}

func TestSamplesHoldEveryOperation(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range samples() {
		seen[s.spec.Signature().Name] = true
	}
	for _, name := range catalog.Names() {
		assert.True(t, seen[name], name)
	}
}

// Liveness and scratch inside operations are at stake only where an operation
// is several kernels with a tensor between them. Five types of operation are
// there in such a form, each with another reason for it.
func TestSamplesHoldOperationsOfSeveralKernels(t *testing.T) {
	several := map[string][]string{}
	for _, s := range samples() {
		c := newBed(t).ready(s.spec, s.in(random(1), 4)...)
		if len(c.op.Graph().Nodes) > 1 && len(c.op.Workspace().Lives) > 0 {
			name := s.spec.Signature().Name
			several[name] = append(several[name], s.name)
		}
	}
	for _, name := range []string{"LinearOperation", "RmsNormOperation", "PagedAttentionOperation", "SoftmaxOperation", "SelfAttentionOperation"} {
		assert.NotEmpty(t, several[name], "%s; there are %v", name, several)
	}
}

// each runs f for every sample.
func each(t *testing.T, f func(t *testing.T, s *sample)) {
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) { f(t, &s) })
	}
}

// draw makes an operand of normal numbers.
func draw(rng *rand.Rand, dims ...int64) operand {
	return f32(normals(rng, tensor.ShapeOf(dims...).Numel()), dims...)
}

// below makes an int32 operand of numbers below n.
func below(rng *rand.Rand, n int64, dims ...int64) operand {
	v := make([]int32, tensor.ShapeOf(dims...).Numel())
	for i := range v {
		v[i] = int32(rng.Int64N(n))
	}
	return ints(v, dims...)
}

// bytesOf makes an int8 operand.
func bytesOf(rng *rand.Rand, dims ...int64) operand {
	v := make([]int8, tensor.ShapeOf(dims...).Numel())
	for i := range v {
		v[i] = int8(rng.IntN(256) - 128)
	}
	return ints(v, dims...)
}

func shapeSamples() []sample {
	return []sample{
		{"Transpose", shape.Transpose{Perm: []int64{1, 0, 2}}, nil, func(r *rand.Rand, n int64) []operand { return []operand{draw(r, n, 3, 2)} }},
		{"Transpose of a square", shape.Transpose{Perm: []int64{1, 0}}, shape.Transpose{Perm: []int64{0, 1}}, func(r *rand.Rand, n int64) []operand { return []operand{draw(r, n, n)} }},
		{"Concat", shape.Concat{ConcatDim: 1}, nil, func(r *rand.Rand, n int64) []operand { return []operand{draw(r, n, 3), draw(r, n, 2)} }},
		{"Split", shape.Split{SplitDim: 1, SplitNum: 2}, nil, func(r *rand.Rand, n int64) []operand { return []operand{draw(r, n, 6)} }},
		{"Split in three", shape.Split{SplitDim: 0, SplitNum: 3}, nil, func(r *rand.Rand, n int64) []operand { return []operand{draw(r, 3*n, 2)} }},
		{"Slice", shape.Slice{Offsets: []int64{1, 0}, Size: []int64{1, 3}}, shape.Slice{Offsets: []int64{0, 1}, Size: []int64{1, 3}},
			func(r *rand.Rand, n int64) []operand { return []operand{draw(r, n, 4)} }},
		{"Gather", shape.Gather{}, nil, func(r *rand.Rand, n int64) []operand { return []operand{draw(r, n, 3), below(r, n, 5)} }},
		{"Gather of a square", shape.Gather{}, shape.Gather{Axis: 1}, func(r *rand.Rand, n int64) []operand { return []operand{draw(r, n, n), below(r, n, n)} }},
		{"Softmax", shape.Softmax{Axes: []int64{1}}, shape.Softmax{Axes: []int64{0}}, func(r *rand.Rand, n int64) []operand { return []operand{draw(r, n, 5)} }},
		{"IndexAdd", shape.IndexAdd{IndexType: shape.IndexAddAll}, nil, func(r *rand.Rand, n int64) []operand {
			return []operand{draw(r, n, 3), below(r, n, 5), draw(r, 5, 3), draw(r, 1)}
		}},
		{"IndexAdd of valid rows", shape.IndexAdd{IndexType: shape.IndexAddValid}, nil, func(r *rand.Rand, n int64) []operand {
			return []operand{draw(r, n, 3), below(r, n, 5), draw(r, 5, 3), ints([]int32{3})}
		}},
		{"Sort", shape.Sort{Num: []int64{3}}, nil, func(r *rand.Rand, n int64) []operand { return []operand{draw(r, n, 5)} }},
		{"Softmax in parts", shape.Softmax{Axes: []int64{0}}, nil, func(r *rand.Rand, n int64) []operand { return []operand{draw(r, 4*softmax.Chunk+n)} }},
	}
}

func elementSamples() []sample {
	x := func(r *rand.Rand, n int64) []operand { return []operand{draw(r, n, 4)} }
	xy := func(r *rand.Rand, n int64) []operand { return []operand{draw(r, n, 4), draw(r, 1, 4)} }
	truth := func(r *rand.Rand, n int64) []operand { return []operand{below8(r, n, 4)} }
	truths := func(r *rand.Rand, n int64) []operand { return []operand{below8(r, n, 4), below8(r, n, 4)} }
	out := []sample{
		{"Cast", elementwise.Of(elementwise.Cast), nil, x},
		{"Muls", muls(2), muls(-3), x},
		{"Quant", quantise(2), quantise(3), x},
		{"QuantPerChannel", elementwise.Of(elementwise.QuantPerChannel), nil, func(r *rand.Rand, n int64) []operand {
			return []operand{draw(r, n, 4), f32([]float64{0.5, 0.25, 1, 2}, 4), bytesOf(r, 4)}
		}},
		{"DequantPerChannel", elementwise.Of(elementwise.DequantPerChannel), nil, func(r *rand.Rand, n int64) []operand {
			return []operand{bytesOf(r, n, 4), draw(r, 4), {}}
		}},
		{"DynamicQuant", elementwise.Of(elementwise.DynamicQuant), nil, x},
		{"LogicalNot", elementwise.Of(elementwise.LogicalNot), nil, truth},
		{"LogicalAnd", elementwise.Of(elementwise.LogicalAnd), elementwise.Of(elementwise.LogicalOr), truths},
		{"LogicalOr", elementwise.Of(elementwise.LogicalOr), nil, truths},
	}
	for name, t := range map[string]elementwise.Type{"Cos": elementwise.Cos, "Sin": elementwise.Sin, "Neg": elementwise.Neg, "Tanh": elementwise.Tanh} {
		out = append(out, sample{name, elementwise.Of(t), nil, x})
	}
	for name, t := range map[string]elementwise.Type{
		"Add": elementwise.Add, "Sub": elementwise.Sub, "Mul": elementwise.Mul, "RealDiv": elementwise.RealDiv,
		"Less": elementwise.Less, "Greater": elementwise.Greater,
	} {
		out = append(out, sample{name, elementwise.Of(t), nil, xy})
	}
	for name, t := range map[string]activation.Type{
		"Relu": activation.Relu, "FastGelu": activation.FastGelu, "Log": activation.Log, "SwiGLU": activation.SwiGLUForward,
		"Sigmoid": activation.Sigmoid, "FasterGelu": activation.FasterGelu,
	} {
		out = append(out, sample{name, activation.Of(t), nil, x})
	}
	out = append(out, sample{"Equal", elementwise.Of(elementwise.Equal), nil, func(r *rand.Rand, n int64) []operand {
		return []operand{below(r, 2, n, 4), below(r, 2, n, 4)}
	}})
	erf, swish := activation.Of(activation.Gelu), activation.Of(activation.Swish)
	erf.GeluMode, swish.Scale = activation.GeluErf, 3
	out = append(out, sample{"Gelu", activation.Of(activation.Gelu), erf, x}, sample{"Swish", activation.Of(activation.Swish), swish, x},
		sample{"SwiGLU gradient", activation.Of(activation.SwiGLUBackward), nil, func(r *rand.Rand, n int64) []operand { return []operand{draw(r, n, 2), draw(r, n, 4)} }})
	slices.SortFunc(out, func(a, b sample) int { return strings.Compare(a.name, b.name) })
	return out
}

// below8 makes an int8 operand of zeros and ones.
func below8(rng *rand.Rand, dims ...int64) operand {
	v := make([]int8, tensor.ShapeOf(dims...).Numel())
	for i := range v {
		v[i] = int8(rng.IntN(2))
	}
	return ints(v, dims...)
}

func add() elementwise.Elewise { return elementwise.Of(elementwise.Add) }

func mul() elementwise.Elewise { return elementwise.Of(elementwise.Mul) }

func muls(by float32) elementwise.Elewise {
	e := elementwise.Of(elementwise.Muls)
	e.Muls.VarAttr = by
	return e
}

func quantise(scale float32) elementwise.Elewise {
	e := elementwise.Of(elementwise.Quant)
	e.Quant.InputScale = scale
	return e
}
