// Package rope holds the rotary position embedding of queries and keys.
package rope

import (
	"goatb/kernel/rope"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// Rope turns the heads of queries and keys by position.
//
//	inputs    q, k     [tokens, heads·head] or [batch, seq, heads, head]
//	          cos, sin [tokens, width], a row for every token
//	          seqLen   int32 or uint32, rank 1: how many tokens each sequence
//	                   has; the numbers do not depend on it
//	outputs   q, k turned
//
// q and k have the same tokens and their own number of heads. A head is cut
// into RotaryCoeff/2 groups; in a group, element i of the first half (a) and
// element i of the second half (b) become a·cos-b·sin and b·cos+a·sin, with the
// cosines and sines at each element's own place. So
//
//	RotaryCoeff  pairs
//	2            element i and i+width/2 (halves)
//	4            the same within each half of the head
//	width        element 2i and 2i+1 (neighbours)
//
// The head is as wide as cos, unless HeadDim says that it is wider: then the
// first width elements of every head are turned and the rest is copied. A head
// axis of q or k that is not as wide as the head is refused, since it could mean
// either.
//
// Types: q and k of one float type, cos and sin of the same type or f32. With
// f16 throughout the arithmetic is that of f16, every product rounded and then
// the sum; otherwise values are computed in float32 and rounded once.
//
// Errors at InferShape, in this order: ErrInvalidTensorDim for a rank;
// ErrInvalidTensorSize for different numbers of tokens; ErrInvalidTensorDim for
// the head's width; ErrInvalidTensorSize for cos and sin of different shape and
// for k heads that do not divide those of q (profile 910b); ErrInvalidTensorDim
// for rows or head axes that do not hold whole heads; ErrInvalidParam for the
// parameters; ErrInvalidTensorSize for rows of cos that are not the tokens.
// Profile 910b does not compare the outputs' shapes at Setup.
//
// Source: ATB operation Rope. HeadDim is an addition.
type Rope struct {
	// RotaryCoeff selects the pairs: 2, 4 or the width of cos.
	RotaryCoeff int64 `json:"rotaryCoeff"`
	// CosFormat is 0 or 1, a label without effect.
	CosFormat int64 `json:"cosFormat"`
	// HeadDim is the width of a head, 0 for the width of cos.
	HeadDim int64 `json:"headDim"`
}

// DefaultRope returns ATB's defaults.
func DefaultRope() Rope { return Rope{RotaryCoeff: 4} }

// Operands.
const (
	inQ = iota
	inK
	inCos
	inSin
	inSeqLen
)

// Signature describes the operands.
func (r Rope) Signature() operation.Signature {
	return operation.Signature{
		Name: "RopeOperation", Variant: "RopeOperation",
		In: operation.Ports("q", "k", "cos", "sin", "seqLen"), Out: operation.Ports("q", "k"),
		Native: "T,T,T,T,I->T,T ; H,H,f32,f32,I->H,H | T=f32,f16,bf16 H=f16,bf16 I=int32,uint32,int64",
	}
}

// Validate leaves the parameters to Check: what they may be depends on cos.
func (r Rope) Validate() error { return nil }

// Check checks ranks, sizes and parameters in ATB's order.
func (r Rope) Check(q *operation.Query) error {
	if err := checkRanks(q); err != nil {
		return err
	}
	if a, b := tokensOf(&q.In[inQ]), tokensOf(&q.In[inK]); a != b {
		return q.BadIn(status.ErrInvalidTensorSize, inK, "want %d tokens as q has, got %d in %s", a, b, q.In[inK].Shape)
	}
	if err := r.checkHeads(q); err != nil {
		return err
	}
	if err := r.checkParams(&q.In[inCos]); err != nil {
		return err
	}
	if want, cos := tokensOf(&q.In[inQ]), &q.In[inCos]; cos.Dim(0) != want {
		return q.BadIn(status.ErrInvalidTensorSize, inCos, "want a row for each of %d tokens, got %s", want, cos.Shape)
	}
	return nil
}

func checkRanks(q *operation.Query) error {
	const code = status.ErrInvalidTensorDim
	for _, i := range [...]int{inQ, inK} {
		if err := q.InRank(code, i, 2, 4); err != nil {
			return err
		}
	}
	for _, i := range [...]int{inCos, inSin} {
		if err := q.InRank(code, i, 2); err != nil {
			return err
		}
	}
	return q.InRank(code, inSeqLen, 1)
}

// tokensOf is the number of rows of q or k.
func tokensOf(d *tensor.Desc) int64 {
	if d.Rank() == 4 {
		return d.Dim(0) * d.Dim(1)
	}
	return d.Dim(0)
}

// rowOf is the number of elements of one token of q or k.
func rowOf(d *tensor.Desc) int64 { return d.Numel() / tokensOf(d) }

// head is the width of a head.
func (r Rope) head(cos *tensor.Desc) int64 {
	if r.HeadDim != 0 {
		return r.HeadDim
	}
	return cos.Dim(1)
}

func (r Rope) checkHeads(q *operation.Query) error {
	cos, head := &q.In[inCos], r.head(&q.In[inCos])
	if least, ok := q.Limit("minHeadDim"); ok && head < least {
		return q.BadIn(status.ErrInvalidTensorDim, inCos, "want heads of at least %d, got %d", least, head)
	}
	if most, ok := q.Limit("maxHeadDim"); ok && head > most {
		return q.BadIn(status.ErrInvalidTensorDim, inCos, "want heads of at most %d, got %d", most, head)
	}
	if err := q.InShape(status.ErrInvalidTensorSize, inSin, cos.Shape); err != nil {
		return err
	}
	rowQ, rowK := rowOf(&q.In[inQ]), rowOf(&q.In[inK])
	if _, ok := q.Limit("groupedHeads"); ok && rowQ%rowK != 0 {
		return q.BadIn(status.ErrInvalidTensorSize, inQ, "want rows that are a multiple of k's %d, got %d", rowK, rowQ)
	}
	for _, i := range [...]int{inK, inQ} {
		d := &q.In[i]
		if row := rowOf(d); head < 1 || row%head != 0 {
			return q.BadIn(status.ErrInvalidTensorDim, i, "want rows of whole heads of %d, got %d in %s", head, row, d.Shape)
		}
		if d.Rank() == 4 && d.Dim(-1) != head {
			return q.BadIn(status.ErrInvalidTensorDim, i, "the last axis is %d wide and cos is %d wide: set headDim to turn a part of each head, got %d", d.Dim(-1), cos.Dim(1), r.HeadDim)
		}
	}
	return nil
}

func (r Rope) checkParams(cos *tensor.Desc) error {
	width := cos.Dim(1)
	switch {
	case r.RotaryCoeff != 2 && r.RotaryCoeff != 4 && r.RotaryCoeff != width:
		return status.Errorf(status.ErrInvalidParam, "rotaryCoeff: want 2, 4 or the width %d of cos, got %d", width, r.RotaryCoeff)
	case width%r.RotaryCoeff != 0 || r.RotaryCoeff%2 != 0:
		return status.Errorf(status.ErrInvalidParam, "rotaryCoeff: want an even divisor of the width %d of cos, got %d", width, r.RotaryCoeff)
	case r.CosFormat != 0 && r.CosFormat != 1:
		return status.Errorf(status.ErrInvalidParam, "cosFormat: want 0 or 1, got %d", r.CosFormat)
	case r.HeadDim != 0 && r.HeadDim < width:
		return status.Errorf(status.ErrInvalidParam, "headDim: want at least the width %d of cos, got %d", width, r.HeadDim)
	}
	return nil
}

// Infer returns the descriptors of q and k.
func (r Rope) Infer(q *operation.Query) ([]tensor.Desc, error) {
	return []tensor.Desc{q.In[inQ], q.In[inK]}, nil
}

// Lower adds the kernel.
func (r Rope) Lower(b *kernelgraph.Builder, q *operation.Query) error {
	return b.Kernel(kernelgraph.Call{
		Table:  rope.Apply,
		Params: rope.Params{Coeff: r.RotaryCoeff, Head: r.head(&q.In[inCos])},
		In:     []kernelgraph.Ref{b.In(inQ), b.In(inK), b.In(inCos), b.In(inSin)},
		Out:    []kernelgraph.Ref{b.Out(0), b.Out(1)},
	})
}
