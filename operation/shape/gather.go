package shape

import (
	"goatb/kernel/move"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// Gather picks entries of an axis by index:
//
//	y[p, k, r] = x[p, indices[p[:BatchDims], k], r]
//
// where p runs over x's axes before Axis, k over the indices' axes from
// BatchDims on, and r over x's axes behind Axis. The first BatchDims axes of x
// and indices are the same. An embedding is Axis 0 without batch dims.
//
// Inputs x, any element type, and indices, int32, uint32 or int64; output y
// with the axes x[:Axis] + indices[BatchDims:] + x[Axis+1:]. It is ATB's
// GatherOperation.
//
// An index below 0 or beyond the axis fails the launch with ErrRuntimeFail,
// naming its position and value; profile 910b, which mirrors a device that does
// not check, gives zeros there.
//
// Errors at creation: ErrInvalidParam unless 0 <= BatchDims <= Axis. At
// InferShape: ErrInvalidParam for an axis beyond x or more batch dims than
// indices has, ErrInvalidTensorDimNum for a result above rank 8,
// ErrInvalidTensorDim for batch dims that differ. At Setup: ErrInvalidTensorDimNum
// and ErrInvalidTensorDim for another output shape.
type Gather struct {
	Axis      int64 `json:"axis"`
	BatchDims int64 `json:"batchDims"`
}

// limitZeroOutside is the profile limit that makes indices outside the axis
// give zeros.
const limitZeroOutside = "zeroOutsideIndices"

// DefaultGather returns the parameters that JSON decodes over.
func DefaultGather() Gather { return Gather{} }

// Signature describes the operands.
func (p Gather) Signature() operation.Signature {
	return operation.Signature{
		Name: "GatherOperation", Variant: "GatherOperation",
		In: operation.Ports("x", "indices"), Out: operation.Ports("y"),
		Native: "T,I->T" + everyType + " I=int32,uint32,int64",
	}
}

// Validate checks that the batch dims come before the axis.
func (p Gather) Validate() error {
	if p.BatchDims < 0 || p.BatchDims > p.Axis {
		return status.Errorf(status.ErrInvalidParam, "want 0 <= batchDims <= axis, got batchDims %d and axis %d", p.BatchDims, p.Axis)
	}
	return nil
}

// Check checks the inputs and, at Setup, the output's shape.
func (p Gather) Check(q *operation.Query) error {
	x, idx := &q.In[0], &q.In[1]
	if p.Axis >= int64(x.Rank()) {
		return status.Errorf(status.ErrInvalidParam, "axis: want at most %d for %s, got %d", x.Rank()-1, x, p.Axis)
	}
	if p.BatchDims > int64(idx.Rank()) {
		return status.Errorf(status.ErrInvalidParam, "batchDims: want at most %d for %s, got %d", idx.Rank(), idx, p.BatchDims)
	}
	batch := int(p.BatchDims)
	if rank := x.Rank() - 1 + idx.Rank() - batch; rank > tensor.MaxRank {
		return q.BadIn(status.ErrInvalidTensorDimNum, 1, "want a result of rank at most %d, got %d from %s and %s", tensor.MaxRank, rank, x, idx)
	}
	if x.Shape.Slice(0, batch) != idx.Shape.Slice(0, batch) {
		return q.BadIn(status.ErrInvalidTensorDim, 1, "want the first %d dims of %s, got %s", batch, x.Shape, idx.Shape)
	}
	if q.Stage != operation.StageSetup {
		return nil
	}
	return q.OutShape(status.ErrInvalidTensorDimNum, status.ErrInvalidTensorDim, 0, p.shape(q))
}

// shape returns the output's shape for inputs that passed Check.
func (p Gather) shape(q *operation.Query) tensor.Shape {
	x, idx := &q.In[0].Shape, &q.In[1].Shape
	return x.Slice(0, int(p.Axis)).
		Append(idx.Slice(int(p.BatchDims), idx.Rank()).Dims()...).
		Append(x.Slice(int(p.Axis)+1, x.Rank()).Dims()...)
}

// Infer joins the axes of data and indices.
func (p Gather) Infer(q *operation.Query) ([]tensor.Desc, error) {
	d := q.In[0]
	d.Shape = p.shape(q)
	return []tensor.Desc{d}, nil
}

// Lower makes one launch.
func (p Gather) Lower(b *kernelgraph.Builder, q *operation.Query) error {
	zero, _ := q.Limit(limitZeroOutside)
	return b.Kernel(kernelgraph.Call{
		Table:  move.Gather,
		Params: move.Pick{Axis: p.Axis, BatchDims: p.BatchDims, ZeroOutside: zero != 0},
		In:     []kernelgraph.Ref{b.In(0), b.In(1)}, Out: []kernelgraph.Ref{b.Out(0)},
	})
}
