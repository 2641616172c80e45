package linear

import (
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// sizes are the sizes of a product as its operands give them: batches and K of
// both sides, M of x, N of the weight.
type sizes struct {
	xBatch, wBatch, m, n, xk, wk int64
}

// sizesOf reads the sizes of operands whose ranks have been checked.
func (l Linear) sizesOf(q *operation.Query) sizes {
	x, w := &q.In[xIn], &q.In[weightIn]
	s := sizes{xBatch: 1, wBatch: 1, m: x.Dim(-2), xk: x.Dim(-1)}
	if x.Rank() == 3 {
		s.xBatch = x.Dim(0)
	}
	if l.einSum() {
		s.xBatch, s.m = x.Dim(1), x.Dim(0)
	}
	if l.TransposeA {
		s.m, s.xk = s.xk, s.m
	}
	if w.Rank() > 2 {
		s.wBatch = w.Dim(0)
	}
	s.wk, s.n = w.Dim(-2), w.Dim(-1)
	if w.Rank() == 4 {
		s.wk, s.n = w.Dim(2), w.Dim(1)*w.Dim(3)
	}
	if l.TransposeB {
		s.wk, s.n = s.n, s.wk
	}
	return s
}

// Check checks ranks and sizes in ATB's order.
func (l Linear) Check(q *operation.Query) error {
	if err := l.checkRanks(q); err != nil {
		return err
	}
	s := l.sizesOf(q)
	if err := l.checkWeight(q, &s); err != nil {
		return err
	}
	if err := l.checkOthers(q, &s); err != nil {
		return err
	}
	if q.Stage != operation.StageSetup {
		return nil
	}
	if err := q.OutShape(status.ErrInvalidTensorDimNum, status.ErrInvalidTensorDim, 0, l.outShape(q, &s)); err != nil {
		return err
	}
	if q.In[weightIn].Format == tensor.Panels && !l.TransposeB {
		return q.BadIn(status.ErrInvalidParam, weightIn, "want transposeB beside a weight in layout %s, got %s", tensor.Panels, &q.In[weightIn])
	}
	return l.checkFloatLayout(q)
}

func (l Linear) checkRanks(q *operation.Query) error {
	x, w := &q.In[xIn], &q.In[weightIn]
	const code = status.ErrInvalidTensorDimNum
	xRanks, wRanks := []int{2, 3}, []int{2, 3}
	if w.Format == tensor.FractalNZ {
		wRanks = []int{2, 3, 4}
	}
	if l.einSum() {
		xRanks, wRanks = []int{3}, wRanks[len(wRanks)-1:]
	}
	if err := q.InRank(code, xIn, xRanks...); err != nil {
		return err
	}
	if err := q.InRank(code, weightIn, wRanks...); err != nil {
		return err
	}
	if x.Rank() == 2 && w.Rank() == 3 {
		return q.BadIn(code, weightIn, "want rank 2 beside an x of rank 2, got %s", w)
	}
	if l.perToken() && x.Rank() == 3 && w.Rank() == 2 {
		return q.BadIn(code, weightIn, "want rank 3 beside an x of rank 3, got %s", w)
	}
	return nil
}

// checkWeight checks the weight against x.
func (l Linear) checkWeight(q *operation.Query, s *sizes) error {
	w := &q.In[weightIn]
	const code = status.ErrInvalidTensorDim
	if s.xBatch != s.wBatch && (l.TransposeA || w.Rank() == 3 || s.wBatch != 1) {
		return q.BadIn(code, weightIn, "want batch %d as x has, got %d in %s", s.xBatch, s.wBatch, w)
	}
	if s.xk != s.wk {
		return q.BadIn(code, weightIn, "want K %d as x has, got %d in %s", s.xk, s.wk, w)
	}
	if w.Rank() != 4 {
		return nil
	}
	if multiple, ok := q.Limit("nzRowMultiple"); ok && w.Dim(2)%multiple != 0 {
		return q.BadIn(code, weightIn, "want dimension 2 to be a multiple of %d, got %s", multiple, w)
	}
	if block := tensor.NZBlock(w.DType); w.Dim(3) != block {
		return q.BadIn(code, weightIn, "want blocks of %d, got %s", block, w)
	}
	return nil
}

// checkOthers checks the inputs behind the weight, in ATB's order: bias, acc,
// scales.
func (l Linear) checkOthers(q *operation.Query, s *sizes) error {
	if l.HasBias {
		if err := checkColumns(q, thirdIn, s); err != nil {
			return err
		}
	}
	switch {
	case l.EnAccum:
		return checkAcc(q, l.outShape(q, s))
	case l.perToken():
		return l.checkTokenScales(q, s)
	case l.quantised():
		return checkColumns(q, l.scaleIn(), s)
	}
	return nil
}

// checkColumns checks an input [n] or [b,n].
func checkColumns(q *operation.Query, i int, s *sizes) error {
	if err := q.InRank(status.ErrInvalidTensorDimNum, i, 1, 2); err != nil {
		return err
	}
	d := &q.In[i]
	batch := int64(1)
	if d.Rank() == 2 {
		batch = d.Dim(0)
	}
	if batch != s.wBatch || d.Dim(-1) != s.n {
		return q.BadIn(status.ErrInvalidTensorDim, i, "want batch %d and %d columns as the weight has, got %s", s.wBatch, s.n, d)
	}
	return nil
}

// checkAcc checks that acc has the output's shape.
func checkAcc(q *operation.Query, want tensor.Shape) error {
	if err := q.InRank(status.ErrInvalidTensorDimNum, thirdIn, want.Rank()); err != nil {
		return err
	}
	return q.InShape(status.ErrInvalidTensorDim, thirdIn, want)
}

func (l Linear) checkTokenScales(q *operation.Query, s *sizes) error {
	for _, i := range []int{thirdIn, fourthIn} {
		if err := q.InRank(status.ErrInvalidTensorDimNum, i, 1); err != nil {
			return err
		}
	}
	if err := q.InShape(status.ErrInvalidTensorDim, thirdIn, tensor.ShapeOf(s.n)); err != nil {
		return err
	}
	return q.InShape(status.ErrInvalidTensorDim, fourthIn, tensor.ShapeOf(s.m))
}

// checkFloatLayout checks the layouts of f32 operands, which a profile may
// limit.
func (l Linear) checkFloatLayout(q *operation.Query) error {
	if q.In[xIn].DType != tensor.Float32 {
		return nil
	}
	for _, c := range []struct {
		limit, name string
		is          bool
	}{{"f32TransposeA", "transposeA", l.TransposeA}, {"f32TransposeB", "transposeB", l.TransposeB}} {
		if want, ok := q.Limit(c.limit); ok && (want != 0) != c.is {
			return status.Errorf(status.ErrInvalidParam, "profile %s takes f32 operands with %s %t only", q.Profile.Name(), c.name, want != 0)
		}
	}
	return nil
}

// outShape is x's shape with M and N in the last two places of a matrix.
func (l Linear) outShape(q *operation.Query, s *sizes) tensor.Shape {
	x := q.In[xIn].Shape
	if l.einSum() {
		return x.With(-1, s.n)
	}
	return x.With(-2, s.m).With(-1, s.n)
}

// Infer returns the output's descriptor.
func (l Linear) Infer(q *operation.Query) ([]tensor.Desc, error) {
	s := l.sizesOf(q)
	out := tensor.Desc{DType: q.In[xIn].DType, Shape: l.outShape(q, &s)}
	switch {
	case l.EnAccum:
		out.DType = tensor.Float32
	case l.quantised():
		out.DType = l.OutDataType
	}
	return []tensor.Desc{out}, nil
}
