package shape

import (
	"goatb/kernel/move"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// Slice copies a box of a tensor.
//
// Input x; output y has the sizes Size, -1 meaning up to the end of the axis,
// and starts in x at Offsets, where a negative offset counts from the end. It
// is ATB's SliceOperation.
//
// Errors at InferShape: ErrInvalidParam when a list does not have one entry per
// axis or the box leaves x; at Setup: ErrInvalidTensorDim for another output
// shape.
type Slice struct {
	Offsets []int64 `json:"offsets"`
	Size    []int64 `json:"size"`
}

// DefaultSlice returns the parameters that JSON decodes over.
func DefaultSlice() Slice { return Slice{} }

// Signature describes the operands.
func (p Slice) Signature() operation.Signature {
	return operation.Signature{
		Name: "SliceOperation", Variant: "SliceOperation",
		In: operation.Ports("x"), Out: operation.Ports("y"),
		Native: "T->T" + everyType,
	}
}

// Validate accepts every list: its bounds are known with the input.
func (p Slice) Validate() error { return nil }

// box resolves offsets and sizes against x.
func (p Slice) box(x *tensor.Desc) (move.Box, tensor.Desc, error) {
	var box move.Box
	out := *x
	if len(p.Offsets) != x.Rank() || len(p.Size) != x.Rank() {
		return box, out, status.Errorf(status.ErrInvalidParam, "offsets and size: want %d entries each for %s, got %d and %d", x.Rank(), x, len(p.Offsets), len(p.Size))
	}
	for i := range x.Rank() {
		dim, from, size := x.Dim(i), p.Offsets[i], p.Size[i]
		if from < -dim || from >= dim {
			return box, out, status.Errorf(status.ErrInvalidParam, "offsets[%d]: want %d to %d, got %d", i, -dim, dim-1, from)
		}
		if from < 0 {
			from += dim
		}
		if size < -1 || size > dim-from {
			return box, out, status.Errorf(status.ErrInvalidParam, "size[%d]: want -1 to %d at offset %d, got %d", i, dim-from, from, size)
		}
		if size == -1 {
			size = dim - from
		}
		box.From[i], out.Shape = from, out.Shape.With(i, size)
	}
	return box, out, nil
}

// Check checks the box and, at Setup, the output's shape.
func (p Slice) Check(q *operation.Query) error {
	_, out, err := p.box(&q.In[0])
	if err != nil || q.Stage != operation.StageSetup {
		return err
	}
	return q.OutShape(status.ErrInvalidTensorDim, status.ErrInvalidTensorDim, 0, out.Shape)
}

// Infer returns the box's shape.
func (p Slice) Infer(q *operation.Query) ([]tensor.Desc, error) {
	_, out, err := p.box(&q.In[0])
	return []tensor.Desc{out}, err
}

// Lower makes one launch.
func (p Slice) Lower(b *kernelgraph.Builder, q *operation.Query) error {
	box, _, err := p.box(&q.In[0])
	if err != nil {
		return err
	}
	return b.Kernel(kernelgraph.Call{
		Table: move.Window, Params: box,
		In: []kernelgraph.Ref{b.In(0)}, Out: []kernelgraph.Ref{b.Out(0)},
	})
}
