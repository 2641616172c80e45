package shape

import (
	"goatb/kernel/softmax"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// Softmax computes y = e^(x-max) / sum of e^(x-max) jointly over the axes Axes,
// in float32, rounded once.
//
// Input x, f32, f16 or bf16, any rank; output y like x. Axes are ascending and
// consecutive; -1 stands for the last axis. A slice of nothing but -Inf gives
// zeros. It is ATB's SoftmaxOperation.
//
// Errors at InferShape: ErrInvalidParam for an empty list, an axis below -1 or
// beyond x, or axes that do not follow each other (-1 is replaced first, so
// [-1,0] is refused). Profile 910b does not compare the output's shape at Setup.
type Softmax struct {
	Axes []int64 `json:"axes"`
}

// DefaultSoftmax returns the parameters that JSON decodes over.
func DefaultSoftmax() Softmax { return Softmax{} }

// Signature describes the operands.
func (p Softmax) Signature() operation.Signature {
	return operation.Signature{
		Name: "SoftmaxOperation", Variant: "SoftmaxOperation",
		In: operation.Ports("x"), Out: operation.Ports("y"),
		Native: "T->T | T=f32,f16,bf16",
	}
}

// Validate accepts every list: its range is known with the input.
func (p Softmax) Validate() error { return nil }

// Check checks the axes.
func (p Softmax) Check(q *operation.Query) error {
	_, err := p.view(&q.In[0])
	return err
}

// view flattens the axes of x to [outer, length, inner].
func (p Softmax) view(x *tensor.Desc) (softmax.View, error) {
	if len(p.Axes) == 0 {
		return softmax.View{}, status.Errorf(status.ErrInvalidParam, "axes: want at least one")
	}
	rank := int64(x.Rank())
	first, last := int64(0), int64(0)
	for i, axis := range p.Axes {
		if axis < -1 || axis >= rank {
			return softmax.View{}, status.Errorf(status.ErrInvalidParam, "axes[%d]: want -1 to %d for %s, got %d", i, rank-1, x, axis)
		}
		if axis == -1 {
			axis = rank - 1
		}
		if i == 0 {
			first = axis
		} else if axis != last+1 {
			return softmax.View{}, status.Errorf(status.ErrInvalidParam, "axes[%d]: want %d behind %d, got %d", i, last+1, last, axis)
		}
		last = axis
	}
	return softmax.View{
		Outer:  x.Shape.Product(0, int(first)),
		Length: x.Shape.Product(int(first), int(last)+1),
		Inner:  x.Shape.Product(int(last)+1, x.Rank()),
	}, nil
}

// Infer returns x's descriptor.
func (p Softmax) Infer(q *operation.Query) ([]tensor.Desc, error) {
	return []tensor.Desc{q.In[0]}, nil
}

// Lower makes one launch, or three that share few long rows between cores and
// give the same bits.
func (p Softmax) Lower(b *kernelgraph.Builder, q *operation.Query) error {
	view, err := p.view(&q.In[0])
	if err != nil {
		return err
	}
	x, y := b.In(0), b.Out(0)
	parts, ok := softmax.Parts(b.Machine(), view)
	if !ok {
		return b.Kernel(kernelgraph.Call{
			Table: softmax.Whole, Params: view,
			In: []kernelgraph.Ref{x}, Out: []kernelgraph.Ref{y},
		})
	}
	tops := b.Temp("max", tensor.Of(tensor.Float32, view.Outer, parts))
	exps := b.Temp("exp", tensor.Of(tensor.Float32, view.Outer, view.Length))
	sums := b.Temp("sum", tensor.Of(tensor.Float32, view.Outer, parts))
	for _, c := range []kernelgraph.Call{
		{Name: "max", Table: softmax.Max, In: []kernelgraph.Ref{x}, Out: []kernelgraph.Ref{tops}},
		{Name: "exp", Table: softmax.Exp, In: []kernelgraph.Ref{x, tops}, Out: []kernelgraph.Ref{exps, sums}},
		{Name: "normalise", Table: softmax.Normalise, In: []kernelgraph.Ref{exps, sums}, Out: []kernelgraph.Ref{y}},
	} {
		c.Params = view
		if err := b.Kernel(c); err != nil {
			return err
		}
	}
	return nil
}
