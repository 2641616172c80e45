package elementwise

import (
	"goatb/device"
	"goatb/internal/vec/floats"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// UnaryOp is a function of one float tensor.
type UnaryOp uint8

// Functions of one tensor.
const (
	Muls UnaryOp = iota // x·Scale
	Cos
	Sin
	Neg
	Tanh
	Relu     // max(x, 0)
	GeluTanh // x/2·(1+tanh(√(2/π)·(x+0.044715·x³)))
	GeluErf  // x/2·(1+erf(x/√2))
	Swish    // x·sigmoid(Scale·x)
	Sigmoid  // 1/(1+e^-x)
	Log      // natural logarithm
	numUnary
)

// unaryNanos is the time of one element on one core, in assembly and in plain
// Go.
var unaryNanos = [numUnary][2]float64{
	Muls: {0.1, 0.5}, Cos: {0.4, 4}, Sin: {0.4, 4}, Neg: {0.1, 0.5}, Tanh: {0.45, 3}, Relu: {0.1, 0.5},
	GeluTanh: {0.5, 4}, GeluErf: {0.6, 7.5}, Swish: {0.4, 3}, Sigmoid: {0.4, 3}, Log: {0.4, 3},
}

// UnaryParams selects the function.
type UnaryParams struct {
	Op UnaryOp
	// Scale is the factor of Muls and that inside Swish.
	Scale float32
}

// Unary: x -> y, both of one float type and size. The output may be the input.
var Unary = kernel.Table{unaryFloat}

type unaryTiling struct {
	N     int64
	Scale float32
	Op    UnaryOp
	DType tensor.DType
}

var unaryFloat = kernel.Define(kernel.Def[UnaryParams, unaryTiling]{
	Name:    "unary/go",
	Class:   device.Vector,
	InPlace: true,
	Supports: func(p *kernel.Problem, u UnaryParams) error {
		if err := wantOperands(p, 1, 1); err != nil {
			return err
		}
		if u.Op >= numUnary {
			return status.Errorf(status.ErrInvalidParam, "unknown function %d", u.Op)
		}
		if x, y := &p.In[0], &p.Out[0]; !isFloat(x.DType) || x.DType != y.DType || x.Numel() != y.Numel() {
			return status.Errorf(status.ErrInvalidParam, "want an input and an output of one float type and size, got %s and %s", x, y)
		}
		return nil
	},
	Scratch: func(p *kernel.Problem, _ UnaryParams) int64 { return scratchFor(p, 1) },
	Tile: func(p *kernel.Problem, u UnaryParams, t *unaryTiling, _ []int64) (kernel.Grid, error) {
		*t = unaryTiling{N: p.In[0].Numel(), Scale: u.Scale, Op: u.Op, DType: p.In[0].DType}
		nanos := kernel.Nanos(unaryNanos[u.Op][0], unaryNanos[u.Op][1]) + floatNanos(t.DType)
		return kernel.Grid{Blocks: blocksFor(p.Machine, t.N, nanos), Key: uint64(u.Op)}, nil
	},
	Run: func(a *kernel.Args, block int, t *unaryTiling, _ []int64) error {
		buf := buffers(a, block, 1)
		src, dst, size := a.Mem(0), a.Mem(1), t.DType.Size()
		lo, hi := span(t.N, block, a.Blocks)
		for ; lo < hi; lo += pieceElements {
			to := min(lo+pieceElements, hi) * size
			t.apply(dst[lo*size:to], src[lo*size:to], buf)
		}
		return nil
	},
	Cost: func(t *unaryTiling, _ []int64) (flops, bytes int64) { return t.N, 2 * t.N * t.DType.Size() },
})

// unaryFuncs are the functions without a scale.
var unaryFuncs = [numUnary]floats.Func{
	Cos: floats.Cos, Sin: floats.Sin, Neg: floats.Neg, Tanh: floats.Tanh, Relu: floats.Relu,
	GeluTanh: floats.GeluTanh, GeluErf: floats.GeluErf, Sigmoid: floats.Sigmoid, Log: floats.Log,
}

func (t *unaryTiling) apply(y, x []byte, buf []float32) {
	e := elementOf(t.DType)
	switch t.Op {
	case Muls:
		floats.Scalar(floats.MulScalar, e, y, x, t.Scale, buf)
	case Swish:
		floats.Swish(e, y, x, t.Scale, buf)
	default:
		floats.Unary(unaryFuncs[t.Op], e, y, x, buf)
	}
}

// elementOf is the element type of a float type.
func elementOf(t tensor.DType) floats.Element {
	e, _ := floats.Of(t)
	return e
}

// isFloat reports whether the kernels compute with t as a float.
func isFloat(t tensor.DType) bool {
	return t == tensor.Float32 || t == tensor.Float16 || t == tensor.BFloat16
}

// floatNanos is the time to widen and to round one element of a float type.
func floatNanos(t tensor.DType) float64 {
	if t == tensor.Float32 {
		return 0
	}
	return kernel.Nanos(0.1, 2)
}

// wantOperands checks the number of operands.
func wantOperands(p *kernel.Problem, in, out int) error {
	if len(p.In) != in || len(p.Out) != out {
		return status.Errorf(status.ErrInternal, "want %d inputs and %d outputs, got %d and %d", in, out, len(p.In), len(p.Out))
	}
	return nil
}
