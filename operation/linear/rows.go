package linear

import (
	"goatb/kernel/matmul"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// PackedRows picks rows of a packed weight, so that a model whose classifier is
// its embedding has it in memory once:
//
//	mode    inputs                                          output [m,k]
//	float   panels [n,k] in layout Panels, indices [m]      the rows, in their type
//	int8    panels [n,k] int8 in layout Panels,             the rows times their scales,
//	        indices [m], scale f32 [n]                      of OutDataType
//	int4    panels, PackInt4's output for a weight of       the rows times their scales,
//	        Columns rows, indices [m]                       of OutDataType
//
// Float elements keep their values; quantised ones are multiplied in f32 and
// rounded once. Indices are int32; one that is no row of the weight fails the
// launch with ErrRuntimeFail, naming its position and value.
//
// Errors of InferShape: ErrInvalidTensorDimNum for a rank, ErrInvalidTensorDim for
// scales or a packed weight that do not fit. ATB does not have this operation;
// profiles other than native refuse it.
type PackedRows struct {
	// OutDataType is Undefined for float weights, and the output's type of
	// quantised ones: f32, f16 or bf16.
	OutDataType tensor.DType `json:"outDataType"`
	// Columns is n of a weight of int4, and 0 for others.
	Columns int64 `json:"columns"`
}

// Positions of PackedRows' inputs.
const (
	panelsIn = iota
	indicesIn
	rowScaleIn
)

// Validate checks the parameters.
func (p PackedRows) Validate() error {
	switch p.OutDataType {
	case tensor.Undefined, tensor.Float16, tensor.BFloat16, tensor.Float32:
	default:
		return status.Errorf(status.ErrInvalidParam, "outDataType: want undefined, f16, bf16 or f32, got %s", p.OutDataType)
	}
	if p.Columns < 0 || p.Columns > 0 && p.OutDataType == tensor.Undefined {
		return status.Errorf(status.ErrInvalidParam, "columns: want 0, or beside an outDataType at least 1, got %d", p.Columns)
	}
	return nil
}

// Signature lists the operands of the mode.
func (p PackedRows) Signature() operation.Signature {
	s := operation.Signature{
		Name: "PackedRowsOperation", In: operation.Ports("panels", "indices"), Out: operation.Ports("rows"), Variant: "PackedRowsOperation",
	}
	switch {
	case p.OutDataType == tensor.Undefined:
		s.Native = "T@panels,int32->T | T=f32,f16,bf16"
	case p.Columns > 0:
		s.Native = "uint8,int32->" + p.OutDataType.String()
	default:
		s.In = operation.Ports("panels", "indices", "scale")
		s.Native = "int8@panels,int32,f32->" + p.OutDataType.String()
	}
	return s
}

// Check checks ranks and sizes.
func (p PackedRows) Check(q *operation.Query) error {
	rank := 2
	if p.Columns > 0 {
		rank = 3
	}
	if err := q.InRank(status.ErrInvalidTensorDimNum, panelsIn, rank); err != nil {
		return err
	}
	if err := q.InRank(status.ErrInvalidTensorDimNum, indicesIn, 1); err != nil {
		return err
	}
	if len(q.In) > rowScaleIn {
		if err := q.InRank(status.ErrInvalidTensorDimNum, rowScaleIn, 1); err != nil {
			return err
		}
		if err := q.InShape(status.ErrInvalidTensorDim, rowScaleIn, tensor.ShapeOf(q.In[panelsIn].Dim(0))); err != nil {
			return err
		}
	}
	k, err := p.width(q)
	if err != nil {
		return q.BadIn(status.ErrInvalidTensorDim, panelsIn, "%w", err)
	}
	if q.Stage != operation.StageSetup {
		return nil
	}
	return q.OutShape(status.ErrInvalidTensorDimNum, status.ErrInvalidTensorDim, 0, tensor.ShapeOf(q.In[indicesIn].Dim(0), k))
}

// width returns the length of a row.
func (p PackedRows) width(q *operation.Query) (int64, error) {
	if p.Columns > 0 {
		return matmul.Int4Width(matmul.Int4Params{Columns: p.Columns}, &q.In[panelsIn])
	}
	return q.In[panelsIn].Dim(1), nil
}

// Infer returns the output's descriptor.
func (p PackedRows) Infer(q *operation.Query) ([]tensor.Desc, error) {
	t := p.OutDataType
	if t == tensor.Undefined {
		t = q.In[panelsIn].DType
	}
	k, err := p.width(q)
	return []tensor.Desc{tensor.Of(t, q.In[indicesIn].Dim(0), k)}, err
}

// Lower adds the kernel.
func (p PackedRows) Lower(b *kernelgraph.Builder, q *operation.Query) error {
	in := operands(b.In(indicesIn), b.In(panelsIn))
	if len(q.In) > rowScaleIn {
		in[matmul.Scale] = b.In(rowScaleIn)
	}
	return b.Kernel(kernelgraph.Call{
		Name: "rows", Table: matmul.Lookup, Params: matmul.Int4Params{Columns: p.Columns}, In: in[:], Out: []kernelgraph.Ref{b.Out(0)},
	})
}
