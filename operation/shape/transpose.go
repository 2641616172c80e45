package shape

import (
	"goatb/kernel/move"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// Transpose permutes axes: output axis j is input axis Perm[j].
//
// Input x, any rank and element type; output y with y.dims[j] = x.dims[Perm[j]].
// It is ATB's TransposeOperation.
//
// Errors at InferShape: ErrInvalidParam when Perm is not a permutation of x's
// axes. Profile 910b does not compare the output's shape at Setup.
type Transpose struct {
	Perm []int64 `json:"perm"`
}

// DefaultTranspose returns the parameters that JSON decodes over.
func DefaultTranspose() Transpose { return Transpose{} }

// Signature describes the operands.
func (p Transpose) Signature() operation.Signature {
	return operation.Signature{
		Name: "TransposeOperation", Variant: "TransposeOperation",
		In: operation.Ports("x"), Out: operation.Ports("y"),
		Native: "T->T" + everyType,
	}
}

// Validate accepts every list: its length is the input's rank.
func (p Transpose) Validate() error { return nil }

// Check checks that Perm is a permutation of the input's axes.
func (p Transpose) Check(q *operation.Query) error {
	rank := q.In[0].Rank()
	if len(p.Perm) != rank {
		return status.Errorf(status.ErrInvalidParam, "perm: want %d axes for %s, got %d", rank, &q.In[0], len(p.Perm))
	}
	seen := 0
	for i, axis := range p.Perm {
		if axis < 0 || axis >= int64(rank) {
			return status.Errorf(status.ErrInvalidParam, "perm[%d]: want an axis from 0 to %d, got %d", i, rank-1, axis)
		}
		if seen&(1<<axis) != 0 {
			return status.Errorf(status.ErrInvalidParam, "perm[%d]: axis %d is there twice", i, axis)
		}
		seen |= 1 << axis
	}
	return nil
}

// Infer permutes the dimensions.
func (p Transpose) Infer(q *operation.Query) ([]tensor.Desc, error) {
	d := q.In[0]
	for j, axis := range p.Perm {
		d.Shape = d.Shape.With(j, q.In[0].Dim(int(axis)))
	}
	return []tensor.Desc{d}, nil
}

// Lower makes one launch.
func (p Transpose) Lower(b *kernelgraph.Builder, _ *operation.Query) error {
	var perm move.Perm
	for j, axis := range p.Perm {
		perm.Axis[j] = int8(axis)
	}
	return b.Kernel(kernelgraph.Call{
		Table: move.Transpose, Params: perm,
		In: []kernelgraph.Ref{b.In(0)}, Out: []kernelgraph.Ref{b.Out(0)},
	})
}
