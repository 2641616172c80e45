package shape

import (
	"goatb/kernel/indexadd"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// IndexType tells what IndexAdd adds. Its JSON form is ATB's number.
type IndexType int

// Types of IndexAdd.
const (
	IndexUndefined IndexType = iota
	// IndexAddAll adds every update, times a factor.
	IndexAddAll
	// IndexAddValid adds the first updates, as many as an input says.
	IndexAddValid
)

// IndexAdd adds rows of updates to the rows of var that indices name:
//
//	var[p, indices[j], r] += alpha · updates[p, j, r]    for j = 0, 1, ... below n
//
// where p runs over var's axes before Axis and r over those behind it. What falls
// on one element is added in the order of j in float32 and rounded once, whatever
// the number of workers.
//
// Inputs var, f32, f16 or bf16; indices, int32 [k]; updates, like var but for k on
// the axis; and alpha, [1] of var's type, or, for IndexAddValid, validNum, int32
// [1]. n is k, or validNum, with which alpha is 1, Axis is 0 and var has rank 2.
// The output is var, updated: pass the same memory to add in place. It is ATB's
// IndexAddOperation.
//
// An index among the first n that is outside of the axis, and a validNum outside of
// 0 to k, fail the launch with ErrRuntimeFail, naming position and value, and
// nothing is added.
//
// Errors at creation: ErrInvalidParam for an unknown IndexType and another Axis
// than 0 with IndexAddValid. At InferShape: ErrInvalidParam for an axis out of
// range, ErrInvalidTensorSize for ranks (ErrInvalidTensorDim for a bf16 var of
// IndexAddValid), ErrInvalidTensorDim for dimensions; profile 910b limits the
// width of IndexAddValid to 8192. At Setup: ErrInvalidTensorDimNum and
// ErrInvalidTensorDim for another output shape.
type IndexAdd struct {
	IndexType IndexType `json:"indexType"`
	// Axis may count from the end.
	Axis int64 `json:"axis"`
}

// limitValidWidth is the profile limit of the second dimension of IndexAddValid.
const limitValidWidth = "validWidth"

// DefaultIndexAdd returns the parameters that JSON decodes over.
func DefaultIndexAdd() IndexAdd { return IndexAdd{} }

// Signature describes the operands.
func (p IndexAdd) Signature() operation.Signature {
	s := operation.Signature{
		Name: "IndexAddOperation", Variant: "IndexAddOperationIndexAdd",
		In: operation.Ports("var", "indices", "updates", "alpha"), Out: operation.Ports("var"),
		Native: "T,int32,T,T->T | T=f32,f16,bf16",
	}
	if p.IndexType == IndexAddValid {
		s.Variant, s.In = "IndexAddOperationIndexAddValid", operation.Ports("var", "indices", "updates", "validNum")
		s.Native = "T,int32,T,int32->T | T=f32,f16,bf16"
	}
	return s
}

// Validate checks the type and its axis.
func (p IndexAdd) Validate() error {
	if p.IndexType != IndexAddAll && p.IndexType != IndexAddValid {
		return status.Errorf(status.ErrInvalidParam, "indexType: want %d or %d, got %d", IndexAddAll, IndexAddValid, p.IndexType)
	}
	if p.IndexType == IndexAddValid && p.Axis != 0 {
		return status.Errorf(status.ErrInvalidParam, "axis: want 0 with indexType %d, got %d", IndexAddValid, p.Axis)
	}
	return nil
}

// Check checks the axis, ranks and dimensions and, at Setup, the output's shape.
func (p IndexAdd) Check(q *operation.Query) error {
	x := &q.In[0]
	axis, err := axisOf("axis", p.Axis, x)
	if err != nil {
		return err
	}
	if err := p.checkRanks(q); err != nil {
		return err
	}
	idx, last := &q.In[1], &q.In[3]
	if limit, ok := q.Limit(limitValidWidth); ok && p.IndexType == IndexAddValid && x.Dim(1) > limit {
		return q.BadIn(status.ErrInvalidTensorDim, 0, "want rows of at most %d elements, got %s", limit, x)
	}
	if want := x.Shape.With(axis, idx.Dim(0)); q.In[2].Shape != want {
		return q.BadIn(status.ErrInvalidTensorDim, 2, "want the shape %s, got %s", want, &q.In[2])
	}
	if last.Dim(0) != 1 {
		return q.BadIn(status.ErrInvalidTensorDim, 3, "want one element, got %s", last)
	}
	if q.Stage != operation.StageSetup {
		return nil
	}
	return q.OutShape(status.ErrInvalidTensorDimNum, status.ErrInvalidTensorDim, 0, x.Shape)
}

// checkRanks checks the ranks of all inputs.
func (p IndexAdd) checkRanks(q *operation.Query) error {
	code := status.ErrInvalidTensorSize
	if p.IndexType == IndexAddValid && q.In[0].DType == tensor.BFloat16 {
		code = status.ErrInvalidTensorDim
	}
	want := [...]int{q.In[0].Rank(), 1, q.In[0].Rank(), 1}
	if p.IndexType == IndexAddValid {
		want[0], want[2] = 2, 2
	}
	for i, rank := range want {
		if q.In[i].Rank() != rank {
			return q.BadIn(code, i, "want rank %d, got %s", rank, &q.In[i])
		}
	}
	return nil
}

// Infer returns var's descriptor.
func (p IndexAdd) Infer(q *operation.Query) ([]tensor.Desc, error) {
	return []tensor.Desc{q.In[0]}, nil
}

// Lower copies var to the output where that lies elsewhere and adds there.
func (p IndexAdd) Lower(b *kernelgraph.Builder, q *operation.Query) error {
	axis, err := axisOf("axis", p.Axis, &q.In[0])
	if err != nil {
		return err
	}
	y := b.Out(0)
	if err := b.Copy(b.In(0), y); err != nil {
		return err
	}
	alpha, valid := b.In(3), kernelgraph.Absent
	if p.IndexType == IndexAddValid {
		alpha, valid = valid, alpha
	}
	return b.Kernel(kernelgraph.Call{
		Table: indexadd.Add, Params: indexadd.Params{Axis: int64(axis)},
		In: []kernelgraph.Ref{b.In(1), b.In(2), alpha, valid, y}, Out: []kernelgraph.Ref{y},
	})
}
