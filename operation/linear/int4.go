package linear

import (
	stdctx "context"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/kernel/matmul"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// PackInt4 packs a constant weight of int4 with a scale for each group of K, for
// Int4Linear. It is meant to run once for each weight; PackInt4Weight does that.
//
//	inputs   0 w      [n,k/2]     uint8, two elements in a byte: the first one in the low
//	                  half, each from -8 to 7 in two's complement
//	         1 scale  [n,groups]  f32, f16 or bf16; a group is k/groups elements of K,
//	                  a multiple of 8 up to 8192
//	output   panels   [⌈n/32⌉, groups, bytes] uint8: of 32 columns and a group the
//	                  scales, f16 as they are and else f32, and the elements
//
// Element (r, k) of the weight is w·scale[r, k/group]. Errors of InferShape:
// ErrInvalidTensorDimNum for a rank, ErrInvalidTensorDim for rows and groups that
// do not fit. ATB does not have this operation; profiles other than native refuse
// it.
type PackInt4 struct{}

// Validate checks the parameters.
func (PackInt4) Validate() error { return nil }

// Signature lists the operands.
func (PackInt4) Signature() operation.Signature {
	return operation.Signature{
		Name: "PackInt4Operation", In: operation.Ports("w", "scale"), Out: operation.Ports("panels"), Variant: "PackInt4Operation",
		Native: "uint8,T->uint8 | T=f32,f16,bf16",
	}
}

// Check checks ranks and sizes.
func (p PackInt4) Check(q *operation.Query) error {
	for i := range q.In {
		if err := q.InRank(status.ErrInvalidTensorDimNum, i, 2); err != nil {
			return err
		}
	}
	w, scale := &q.In[0], &q.In[1]
	if scale.Dim(0) != w.Dim(0) {
		return q.BadIn(status.ErrInvalidTensorDim, 1, "want %d rows as the weight has, got %s", w.Dim(0), scale)
	}
	d, err := p.panels(q)
	if err != nil {
		return q.BadIn(status.ErrInvalidTensorDim, 1, "beside %s: %w", w, err)
	}
	if q.Stage != operation.StageSetup {
		return nil
	}
	return q.OutShape(status.ErrInvalidTensorDimNum, status.ErrInvalidTensorDim, 0, d.Shape)
}

func (PackInt4) panels(q *operation.Query) (tensor.Desc, error) {
	w, scale := &q.In[0], &q.In[1]
	return matmul.Int4Panels(matmul.Int4Params{Columns: w.Dim(0)}, 2*w.Dim(1), scale.Dim(1), scale.DType)
}

// Infer returns the output's descriptor.
func (p PackInt4) Infer(q *operation.Query) ([]tensor.Desc, error) {
	d, err := p.panels(q)
	return []tensor.Desc{d}, err
}

// Lower adds the kernel.
func (PackInt4) Lower(b *kernelgraph.Builder, _ *operation.Query) error {
	in := operands(kernelgraph.Absent, b.In(0))
	in[matmul.Scale] = b.In(1)
	w := b.Desc(b.In(0))
	return b.Kernel(kernelgraph.Call{
		Name: "pack", Table: matmul.Int4Pack, Params: matmul.Int4Params{Columns: w.Dim(0)}, In: in[:], Out: []kernelgraph.Ref{b.Out(0)},
	})
}

// PackInt4Weight packs an int4 weight and its scales into memory of its own,
// which the caller frees. It waits for the work that was enqueued before; w and
// scale are not needed any more when it returns. Errors are those of PackInt4,
// and of the device.
func PackInt4Weight(ctx stdctx.Context, c *atbctx.Context, w, scale device.Tensor) (device.Tensor, error) {
	return runOnce(ctx, c, PackInt4{}, w, scale)
}

// Int4Linear is a matrix product with a packed weight of int4:
//
//	inputs   0 x       [m,k] or [b,m,k]  f32, f16 or bf16
//	         1 panels  PackInt4's output for a weight of Columns rows
//	         2 bias    [n], with HasBias  x's type or f32
//	output   x·w (+ bias)  [m,n] or [b,m,n], as x
//
// Sums are in f32 and rounded once to x's type; before a bias of a half-precision
// type is added, the product is rounded to that type. Depending on the machine
// elements of x are rounded to 16-bit integers first, relative to the largest
// among some 512 neighbours in their row, an error of at most 1/65278 of that one; a
// row of x with a NaN or an infinity then gives NaN. A row gives the same result
// in every batch. Package matmul has the details.
//
// Errors of InferShape: ErrInvalidTensorDimNum for a rank, ErrInvalidTensorDim for
// a weight that does not fit Columns and K, and for the bias. ATB does not have
// this operation; profiles other than native refuse it.
type Int4Linear struct {
	// Columns is n, the number of rows of the weight before it was packed.
	Columns int64 `json:"columns"`
	// HasBias adds the input bias.
	HasBias bool `json:"hasBias"`
}

// Validate checks the parameters.
func (l Int4Linear) Validate() error {
	if l.Columns < 1 {
		return status.Errorf(status.ErrInvalidParam, "columns: want at least 1, got %d", l.Columns)
	}
	return nil
}

// Signature lists the operands.
func (l Int4Linear) Signature() operation.Signature {
	s := operation.Signature{
		Name: "Int4LinearOperation", In: operation.Ports("x", "panels"), Out: operation.Ports("output"), Variant: "Int4LinearOperation",
		Native: "T,uint8->T | T=f32,f16,bf16",
	}
	if l.HasBias {
		s.In = operation.Ports("x", "panels", "bias")
		s.Native = "T,uint8,T->T ; T,uint8,f32->T | T=f32,f16,bf16"
	}
	return s
}

// Check checks ranks and sizes.
func (l Int4Linear) Check(q *operation.Query) error {
	const rank, dim = status.ErrInvalidTensorDimNum, status.ErrInvalidTensorDim
	if err := q.InRank(rank, xIn, 2, 3); err != nil {
		return err
	}
	if err := q.InRank(rank, weightIn, 3); err != nil {
		return err
	}
	if err := l.checkPanels(&q.In[weightIn], q.In[xIn].Dim(-1)); err != nil {
		return q.BadIn(dim, weightIn, "%w", err)
	}
	if l.HasBias {
		if err := q.InRank(rank, thirdIn, 1); err != nil {
			return err
		}
		if err := q.InShape(dim, thirdIn, tensor.ShapeOf(l.Columns)); err != nil {
			return err
		}
	}
	if q.Stage != operation.StageSetup {
		return nil
	}
	return q.OutShape(rank, dim, 0, q.In[xIn].Shape.With(-1, l.Columns))
}

// checkPanels checks that packed weights have the columns and k elements of K.
func (l Int4Linear) checkPanels(w *tensor.Desc, k int64) error {
	var want [2]tensor.Desc
	for i, scale := range []tensor.DType{tensor.Float16, tensor.Float32} {
		d, err := matmul.Int4Panels(matmul.Int4Params{Columns: l.Columns}, k, w.Dim(1), scale)
		if err != nil {
			return err
		}
		if d.Shape == w.Shape {
			return nil
		}
		want[i] = d
	}
	return status.Errorf(status.ErrInvalidTensorDim, "want %s or %s for %d columns and K %d, got %s", want[0], want[1], l.Columns, k, w)
}

// Infer returns the output's descriptor.
func (l Int4Linear) Infer(q *operation.Query) ([]tensor.Desc, error) {
	x := &q.In[xIn]
	return []tensor.Desc{{DType: x.DType, Shape: x.Shape.With(-1, l.Columns)}}, nil
}

// Lower adds the kernel.
func (l Int4Linear) Lower(b *kernelgraph.Builder, _ *operation.Query) error {
	in := operands(b.In(xIn), b.In(weightIn))
	if l.HasBias {
		in[matmul.Bias] = b.In(thirdIn)
	}
	return b.Kernel(kernelgraph.Call{
		Name: "matmul", Table: matmul.Int4Product, Params: matmul.Int4Params{Columns: l.Columns}, In: in[:], Out: []kernelgraph.Ref{b.Out(0)},
	})
}
