package shape

import (
	"goatb/kernel/move"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// Split cuts a tensor along an axis into two or three pieces.
//
// Input x; outputs y0, y1 (and y2) with x's shape but on axis SplitDim. With
// SplitSizes the pieces have those sizes, without they are equal; SplitDim may
// count from the end only without. It is ATB's SplitOperation.
//
// Errors at creation: ErrInvalidParam when SplitNum is not 2 or 3. At
// InferShape: ErrInvalidParam for an axis out of range or sizes that are not
// SplitNum positive numbers with x's dimension as their sum,
// ErrInvalidTensorDim when equal pieces do not divide the dimension. Profile
// 910b does not compare output shapes at Setup.
type Split struct {
	SplitDim   int64   `json:"splitDim"`
	SplitNum   int64   `json:"splitNum"`
	SplitSizes []int64 `json:"splitSizes"`
}

// DefaultSplit returns the parameters that JSON decodes over.
func DefaultSplit() Split { return Split{SplitNum: 2} }

// Signature describes the operands.
func (p Split) Signature() operation.Signature {
	s := operation.Signature{
		Name: "SplitOperation", Variant: "SplitOperationBISECT",
		In: operation.Ports("x"), Out: operation.Ports("y0", "y1"),
		Native: "T->T,T" + everyType,
	}
	if p.SplitNum == 3 {
		s.Variant, s.Out = "SplitOperationTRISECT", operation.Ports("y0", "y1", "y2")
		s.Native = "T->T,T,T" + everyType
	}
	return s
}

// Validate checks the number of pieces.
func (p Split) Validate() error {
	if p.SplitNum != 2 && p.SplitNum != 3 {
		return status.Errorf(status.ErrInvalidParam, "splitNum: want 2 or 3, got %d", p.SplitNum)
	}
	return nil
}

// Check checks the axis and the sizes.
func (p Split) Check(q *operation.Query) error {
	_, _, err := p.pieces(q)
	return err
}

// pieces returns the axis and the descriptors of the pieces.
func (p Split) pieces(q *operation.Query) (int, []tensor.Desc, error) {
	x := &q.In[0]
	axis, err := axisOf("splitDim", p.SplitDim, x)
	if err != nil {
		return 0, nil, err
	}
	sizes := p.SplitSizes
	if len(sizes) == 0 {
		sizes, err = p.equal(q, axis)
	} else {
		err = p.checkSizes(x.Dim(axis))
	}
	if err != nil {
		return 0, nil, err
	}
	out := make([]tensor.Desc, len(sizes))
	for i, n := range sizes {
		out[i] = *x
		out[i].Shape = x.Shape.With(axis, n)
	}
	return axis, out, nil
}

// equal returns SplitNum equal sizes.
func (p Split) equal(q *operation.Query, axis int) ([]int64, error) {
	n := q.In[0].Dim(axis)
	if n%p.SplitNum != 0 {
		return nil, q.BadIn(status.ErrInvalidTensorDim, 0, "want a multiple of %d on axis %d, got %s", p.SplitNum, axis, &q.In[0])
	}
	sizes := make([]int64, p.SplitNum)
	for i := range sizes {
		sizes[i] = n / p.SplitNum
	}
	return sizes, nil
}

// checkSizes checks the given sizes against the dimension that they cut.
func (p Split) checkSizes(dim int64) error {
	if p.SplitDim < 0 {
		return status.Errorf(status.ErrInvalidParam, "splitDim: want at least 0 with splitSizes, got %d", p.SplitDim)
	}
	if int64(len(p.SplitSizes)) != p.SplitNum {
		return status.Errorf(status.ErrInvalidParam, "splitSizes: want %d sizes, got %d", p.SplitNum, len(p.SplitSizes))
	}
	rest := dim
	for i, n := range p.SplitSizes {
		if n < 1 || n > rest {
			return status.Errorf(status.ErrInvalidParam, "splitSizes[%d]: want 1 to %d, got %d", i, rest, n)
		}
		rest -= n
	}
	if rest != 0 {
		return status.Errorf(status.ErrInvalidParam, "splitSizes: want a sum of %d, got %d", dim, dim-rest)
	}
	return nil
}

// Infer returns the pieces.
func (p Split) Infer(q *operation.Query) ([]tensor.Desc, error) {
	_, out, err := p.pieces(q)
	return out, err
}

// Lower makes one launch. Outputs whose shape profile 910b let pass are written
// as the pieces they stand for.
func (p Split) Lower(b *kernelgraph.Builder, q *operation.Query) error {
	axis, pieces, err := p.pieces(q)
	if err != nil {
		return err
	}
	out := make([]kernelgraph.Ref, len(pieces))
	for i, d := range pieces {
		out[i] = b.Out(i)
		if b.Desc(out[i]) == d {
			continue
		}
		if out[i], err = b.View(out[i], d, 0); err != nil {
			return err
		}
	}
	return b.Kernel(kernelgraph.Call{
		Table: move.Split, Params: move.Axis{Axis: int64(axis)},
		In: []kernelgraph.Ref{b.In(0)}, Out: out,
	})
}
