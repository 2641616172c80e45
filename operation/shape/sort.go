package shape

import (
	"math"

	"goatb/kernel/order"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// Sort keeps the Num[0] largest elements of each row along the last axis, in
// falling order, and tells where they were.
//
// Input x, f32, f16 or bf16, at least rank 1; outputs values, of x's type, and
// indices, int32, both of x's shape with Num[0] as the last dimension. NaN is above
// +Inf and -0 equals 0; elements that compare equal come in the order of their
// positions. It is ATB's SortOperation.
//
// Errors at InferShape: ErrInvalidParam unless Num is one number from 1 to the last
// dimension, ErrInvalidTensorDim for rows of 2^31 elements or more. At Setup:
// ErrInvalidTensorDimNum and ErrInvalidTensorDim for other output shapes.
type Sort struct {
	Num []int64 `json:"num"`
}

// DefaultSort returns the parameters that JSON decodes over.
func DefaultSort() Sort { return Sort{} }

// Signature describes the operands.
func (p Sort) Signature() operation.Signature {
	return operation.Signature{
		Name: "SortOperation", Variant: "SortOperationA2and950",
		In: operation.Ports("x"), Out: operation.Ports("values", "indices"),
		Native: "T->T,int32 | T=f32,f16,bf16",
	}
}

// Validate accepts every list: its range is known with the input.
func (p Sort) Validate() error { return nil }

// Check checks the number of elements and, at Setup, the outputs' shapes.
func (p Sort) Check(q *operation.Query) error {
	x := &q.In[0]
	if len(p.Num) != 1 {
		return status.Errorf(status.ErrInvalidParam, "num: want one number, got %d", len(p.Num))
	}
	if x.Dim(-1) > math.MaxInt32 {
		return q.BadIn(status.ErrInvalidTensorDim, 0, "want at most %d elements on the last axis, got %s", math.MaxInt32, x)
	}
	if p.Num[0] < 1 || p.Num[0] > x.Dim(-1) {
		return status.Errorf(status.ErrInvalidParam, "num[0]: want 1 to %d for %s, got %d", x.Dim(-1), x, p.Num[0])
	}
	if q.Stage != operation.StageSetup {
		return nil
	}
	for i := range q.Out {
		if err := q.OutShape(status.ErrInvalidTensorDimNum, status.ErrInvalidTensorDim, i, p.shape(x)); err != nil {
			return err
		}
	}
	return nil
}

// shape returns the outputs' shape for an input that passed Check.
func (p Sort) shape(x *tensor.Desc) tensor.Shape { return x.Shape.With(x.Rank()-1, p.Num[0]) }

// Infer returns the values' and the indices' descriptors.
func (p Sort) Infer(q *operation.Query) ([]tensor.Desc, error) {
	values := q.In[0]
	values.Shape = p.shape(&values)
	indices := values
	indices.DType = tensor.Int32
	return []tensor.Desc{values, indices}, nil
}

// Lower makes one launch.
func (p Sort) Lower(b *kernelgraph.Builder, q *operation.Query) error {
	return b.Kernel(kernelgraph.Call{
		Table: order.Top, Params: order.Largest{Num: p.Num[0]},
		In: []kernelgraph.Ref{b.In(0)}, Out: []kernelgraph.Ref{b.Out(0), b.Out(1)},
	})
}
