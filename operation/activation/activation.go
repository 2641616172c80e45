// Package activation holds the activation functions of transformer layers:
// Activation, with the gated SwiGLU and its gradient among them.
package activation

import (
	"goatb/kernel"
	"goatb/kernel/elementwise"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// Type selects an activation function.
type Type int64

// Activation functions, with ATB's numbers.
const (
	Relu           Type = iota + 1 // max(x, 0)
	Gelu                           // the Gaussian error linear unit, see GeluMode
	FastGelu                       // x·sigmoid(1.702·x)
	Swish                          // x·sigmoid(Scale·x)
	Log                            // natural logarithm
	SwiGLUForward                  // silu(a)·b of x = [a, b]
	SwiGLUBackward                 // the gradient of SwiGLUForward
	Sigmoid                        // 1/(1+e^-x)
	FasterGelu                     // x·sigmoid(1.702·|x|)·e^(0.851·(x-|x|))
)

// GeluMode selects a form of Gelu.
type GeluMode int64

// Forms of Gelu.
const (
	GeluTanh GeluMode = iota // x/2·(1+tanh(√(2/π)·(x+0.044715·x³)))
	GeluErf                  // x/2·(1+erf(x/√2))
)

// fastGeluScale is the factor inside FastGelu and FasterGelu, which are the
// same function written in two ways.
const fastGeluScale = 1.702

// Activation is one activation function.
//
//	type            inputs                     output
//	SwiGLUForward   x [..., 2h]                y [..., h] = silu(x[..., :h])·x[..., h:]
//	SwiGLUBackward  dy [..., h], x [..., 2h]   dx [..., 2h]
//	the others      x                          y like x
//
// The first half of x is SwiGLU's gate. All operands have one type of f32, f16
// and bf16; values are computed in float32 and rounded once. Infinite arguments
// give the function's limit, NaN gives NaN.
//
// Errors at InferShape: ErrInvalidTensorDim for a SwiGLUBackward whose ranks or
// dimensions do not fit, and for a SwiGLUForward of fewer than two columns. At
// Setup: ErrInvalidTensorDim for an output of another shape, and for a
// SwiGLUForward of an odd number of columns. Profile 910b narrows the types.
//
// Source: ATB operation Activation.
type Activation struct {
	Type Type `json:"activationType"`
	// Scale is the factor inside Swish; 1 makes it silu.
	Scale float32 `json:"scale"`
	// Dim is the axis that SwiGLU splits; only -1, the last, is there, and it
	// is wanted for every type.
	Dim int64 `json:"dim"`
	// GeluMode selects the form of Gelu.
	GeluMode GeluMode `json:"geluMode"`
}

// DefaultActivation returns ATB's defaults, which JSON decodes over; the type is
// to be set. A literal means what it says: its Scale is 0 where none is given.
func DefaultActivation() Activation { return Activation{Scale: 1, Dim: -1} }

// Of returns the activation of a type with ATB's defaults.
func Of(t Type) Activation {
	a := DefaultActivation()
	a.Type = t
	return a
}

// variants are the row sets of the types.
var variants = [...]string{
	Relu: "RELU", Gelu: "GELU", FastGelu: "FASTGELU", Swish: "SWISH", Log: "LOG",
	SwiGLUForward: "SWIGLUFORWARD", SwiGLUBackward: "SWIGLUBACKWARD", Sigmoid: "SIGMOID", FasterGelu: "FasterGeluForward",
}

// Operands.
const (
	inX    = 0
	inGrad = 0 // SwiGLUBackward
	inFull = 1 // SwiGLUBackward
)

// Signature describes the operands.
func (a Activation) Signature() operation.Signature {
	s := operation.Signature{
		Name: "ActivationOperation",
		In:   operation.Ports("x"), Out: operation.Ports("y"),
		Native: "T->T | T=f32,f16,bf16",
	}
	if a.Type >= Relu && a.Type <= FasterGelu {
		s.Variant = "ActivationOperation" + variants[a.Type]
	}
	if a.Type == SwiGLUBackward {
		s.In, s.Out = operation.Ports("y gradient", "x"), operation.Ports("x gradient")
		s.Native = "T,T->T | T=f32,f16,bf16"
	}
	return s
}

// Validate checks the parameters.
func (a Activation) Validate() error {
	switch {
	case a.Type < Relu || a.Type > FasterGelu:
		return status.Errorf(status.ErrInvalidParam, "activationType: want %d to %d, got %d", Relu, FasterGelu, a.Type)
	case a.Dim != -1:
		return status.Errorf(status.ErrInvalidParam, "dim: want -1, got %d", a.Dim)
	case a.GeluMode != GeluTanh && a.GeluMode != GeluErf:
		return status.Errorf(status.ErrInvalidParam, "geluMode: want %d or %d, got %d", GeluTanh, GeluErf, a.GeluMode)
	}
	return nil
}

// Check checks the shapes.
func (a Activation) Check(q *operation.Query) error {
	const code = status.ErrInvalidTensorDim
	switch a.Type {
	case SwiGLUBackward:
		dy, x := &q.In[inGrad], &q.In[inFull]
		if x.Rank() != dy.Rank() || x.Shape != dy.Shape.With(-1, 2*dy.Dim(-1)) {
			return q.BadIn(code, inFull, "want the y gradient's shape %s with a last dimension twice as long, got %s", dy.Shape, x.Shape)
		}
	case SwiGLUForward:
		if x := &q.In[inX]; x.Dim(-1) < 2 || x.Dim(-1)%2 != 0 {
			return q.BadIn(code, inX, "want an even number of columns, at least 2, to split in halves, got %d in %s", x.Dim(-1), x.Shape)
		}
	}
	if q.Stage != operation.StageSetup {
		return nil
	}
	return q.OutShape(code, code, 0, a.outDesc(q).Shape)
}

func (a Activation) outDesc(q *operation.Query) tensor.Desc {
	switch a.Type {
	case SwiGLUBackward:
		return q.In[inFull]
	case SwiGLUForward:
		d := q.In[inX]
		d.Shape = d.Shape.With(-1, d.Dim(-1)/2)
		return d
	}
	return q.In[inX]
}

// Infer returns the output's descriptor.
func (a Activation) Infer(q *operation.Query) ([]tensor.Desc, error) {
	return []tensor.Desc{a.outDesc(q)}, nil
}

// Lower adds the kernel.
func (a Activation) Lower(b *kernelgraph.Builder, _ *operation.Query) error {
	table, params := a.kernel()
	c := kernelgraph.Call{Table: table, Params: params, In: []kernelgraph.Ref{b.In(0)}, Out: []kernelgraph.Ref{b.Out(0)}}
	if a.Type == SwiGLUBackward {
		c.In = append(c.In, b.In(inFull))
	}
	return b.Kernel(c)
}

// kernel returns the kernels and their parameters.
func (a Activation) kernel() (kernel.Table, any) {
	switch a.Type {
	case SwiGLUForward:
		return elementwise.SwiGLU, struct{}{}
	case SwiGLUBackward:
		return elementwise.SwiGLUGrad, struct{}{}
	}
	p := elementwise.UnaryParams{Scale: fastGeluScale}
	switch a.Type {
	case Relu:
		p.Op = elementwise.Relu
	case Gelu:
		p.Op = elementwise.GeluTanh
		if a.GeluMode == GeluErf {
			p.Op = elementwise.GeluErf
		}
	case Swish:
		p.Op, p.Scale = elementwise.Swish, a.Scale
	case Log:
		p.Op = elementwise.Log
	case Sigmoid:
		p.Op = elementwise.Sigmoid
	default:
		p.Op = elementwise.Swish
	}
	return elementwise.Unary, p
}
