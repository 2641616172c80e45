package shape

import (
	"goatb/kernel/move"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// Concat lays two tensors one after the other along an axis.
//
// Inputs a and b with equal ranks and equal dimensions but on axis ConcatDim,
// which may count from the end; output y with the sum of the two there. It is
// ATB's ConcatOperation.
//
// Errors at InferShape: ErrInvalidParam for an axis out of range,
// ErrInvalidTensorDim for other ranks or dimensions; at Setup:
// ErrInvalidTensorDim for another output shape.
type Concat struct {
	ConcatDim int64 `json:"concatDim"`
}

// DefaultConcat returns the parameters that JSON decodes over.
func DefaultConcat() Concat { return Concat{} }

// Signature describes the operands.
func (p Concat) Signature() operation.Signature {
	return operation.Signature{
		Name: "ConcatOperation", Variant: "ConcatOperation",
		In: operation.Ports("a", "b"), Out: operation.Ports("y"),
		Native: "T,T->T" + everyType,
	}
}

// Validate accepts every axis: its range is known with the inputs.
func (p Concat) Validate() error { return nil }

// Check checks the axis, then that the inputs fit.
func (p Concat) Check(q *operation.Query) error {
	axis, err := axisOf("concatDim", p.ConcatDim, &q.In[0])
	if err != nil {
		return err
	}
	a, b := &q.In[0], &q.In[1]
	if b.Rank() != a.Rank() || b.Shape.With(axis, a.Dim(axis)) != a.Shape {
		return q.BadIn(status.ErrInvalidTensorDim, 1, "want the shape %s but on axis %d, got %s", a.Shape, axis, b.Shape)
	}
	if q.Stage != operation.StageSetup {
		return nil
	}
	out, err := p.Infer(q)
	if err != nil {
		return err
	}
	return q.OutShape(status.ErrInvalidTensorDim, status.ErrInvalidTensorDim, 0, out[0].Shape)
}

// Infer adds the dimensions on the axis.
func (p Concat) Infer(q *operation.Query) ([]tensor.Desc, error) {
	d := q.In[0]
	axis, err := axisOf("concatDim", p.ConcatDim, &d)
	if err != nil {
		return nil, err
	}
	d.Shape = d.Shape.With(axis, d.Dim(axis)+q.In[1].Dim(axis))
	return []tensor.Desc{d}, nil
}

// Lower makes one launch.
func (p Concat) Lower(b *kernelgraph.Builder, q *operation.Query) error {
	axis, err := axisOf("concatDim", p.ConcatDim, &q.In[0])
	if err != nil {
		return err
	}
	return b.Kernel(kernelgraph.Call{
		Table: move.Join, Params: move.Axis{Axis: int64(axis)},
		In: []kernelgraph.Ref{b.In(0), b.In(1)}, Out: []kernelgraph.Ref{b.Out(0)},
	})
}
