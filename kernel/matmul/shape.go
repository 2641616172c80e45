package matmul

import (
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// shape is what the descriptors of a product say: sizes and where things lie.
type shape struct {
	batch, m, n, k int64
	x, w           matrix
	// outBatch and outRow are the output's strides in elements.
	outBatch, outRow int64
}

// shapeOf reads the shape of X times W and checks that they fit each other. A
// batch of X that shares one W becomes rows.
func shapeOf(p *kernel.Problem, a Params) (shape, error) {
	var s shape
	if err := wantArity(p); err != nil {
		return s, err
	}
	xb, wb, wk, err := s.readOperands(p, a)
	if err != nil {
		return s, err
	}
	if s.k != wk || (xb != wb && wb != 1) {
		return s, status.Errorf(status.ErrInvalidParam, "%s and %s do not fit", &p.In[X], &p.In[W])
	}
	s.batch = xb
	s.outBatch, s.outRow = s.m*s.n, s.n
	if a.EinSum {
		s.outBatch, s.outRow = s.n, xb*s.n
	}
	if wb == 1 {
		s.w.Batch = 0
	}
	if wb == 1 && s.x.AlongK && xb > 1 {
		s.batch, s.m = 1, xb*s.m
		s.x.Batch, s.x.Lead = 0, s.k
		s.outBatch, s.outRow = 0, s.n
	}
	return s, nil
}

// readOperands reads X and W and returns their batches and W's K.
func (s *shape) readOperands(p *kernel.Problem, a Params) (xb, wb, wk int64, err error) {
	x, w := &p.In[X], &p.In[W]
	if x.Bytes() == 0 || w.Bytes() == 0 {
		return 0, 0, 0, status.Errorf(status.ErrInvalidParam, "want operands with a size, got %s and %s", x, w)
	}
	xr := x.Rank()
	if xr != 2 && xr != 3 || a.EinSum && (xr != 3 || a.TransA) {
		return 0, 0, 0, status.Errorf(status.ErrInvalidParam, "cannot read %s as the left matrix", x)
	}
	xb = s.readX(x, a)
	switch wr := w.Rank(); {
	case w.Format == tensor.Panels && a.TransB:
		wb, wk = s.readPanels(w)
		return xb, wb, wk, nil
	case w.Format != tensor.Panels && (wr == 2 || wr == 3 || wr == 4 && w.Format == tensor.FractalNZ && w.Dim(3) == tensor.NZBlock(w.DType)):
		wb, wk = s.readW(w, a.TransB)
		return xb, wb, wk, nil
	}
	return 0, 0, 0, status.Errorf(status.ErrInvalidParam, "cannot read %s as the right matrix", w)
}

// readX reads the left matrix and returns its batch.
func (s *shape) readX(x *tensor.Desc, a Params) int64 {
	batch := int64(1)
	if x.Rank() == 3 {
		batch = x.Dim(0)
	}
	s.m, s.k = x.Dim(-2), x.Dim(-1)
	s.x = matrix{AlongK: true, Lead: s.k, DType: x.DType, Step: 1}
	switch {
	case a.EinSum:
		s.m, batch = x.Dim(0), x.Dim(1)
		s.x.Batch, s.x.Lead = s.k, batch*s.k
	case a.TransA:
		s.m, s.k = s.k, s.m
		s.x.AlongK, s.x.Lead = false, s.m
		s.x.Batch = s.m * s.k
		s.x.straighten(s.m, s.k)
	default:
		s.x.Batch = s.m * s.k
	}
	return batch
}

// readW reads the right matrix and returns its batch and K.
func (s *shape) readW(w *tensor.Desc, transB bool) (batch, k int64) {
	s.w = matrix{AlongK: transB, DType: w.DType, Step: 1}
	batch = 1
	if w.Rank() > 2 {
		batch = w.Dim(0)
	}
	if w.Rank() == 4 {
		across, along, block := w.Dim(2), w.Dim(1)*w.Dim(3), w.Dim(3)
		s.w.Block, s.w.Lead, s.w.Batch = block, across*block, across*along
		if transB {
			s.n, k = across, along
		} else {
			s.n, k = along, across
		}
		return batch, k
	}
	s.w.Lead = w.Dim(-1)
	s.w.Batch = w.Dim(-2) * w.Dim(-1)
	if transB {
		s.n, k = w.Dim(-2), w.Dim(-1)
	} else {
		k, s.n = w.Dim(-2), w.Dim(-1)
		s.w.straighten(s.n, k)
	}
	return batch, k
}

// readPanels reads a right matrix of layout Panels and returns its batch and K.
func (s *shape) readPanels(w *tensor.Desc) (batch, k int64) {
	batch, k = 1, w.Dim(-1)
	if w.Rank() == 3 {
		batch = w.Dim(0)
	}
	s.n = w.Dim(-2)
	lead := tensor.PanelBytes(w.DType, k) / w.DType.Size()
	s.w = matrix{
		Batch: ceilDiv(s.n, tensor.PanelColumns) * lead, Lead: lead, Block: tensor.PanelColumns,
		DType: w.DType, Step: uint8(tensor.PanelStep(w.DType)),
	}
	return batch, k
}

// straighten makes a matrix with a single row run along K.
func (m *matrix) straighten(rows, k int64) {
	if rows == 1 {
		m.AlongK, m.Lead = true, k
	}
}

// wantOutput checks the output of a whole product: a float type and the size.
func (s *shape) wantOutput(d *tensor.Desc) error {
	if !isFloat(d.DType) || d.Bytes() == 0 || d.Numel() != s.outputs() {
		return status.Errorf(status.ErrInvalidParam, "want a float output of %d elements, got %s", s.outputs(), d)
	}
	return nil
}

// outputs returns the number of output elements, 0 when it leaves int64.
func (s *shape) outputs() int64 {
	o := tensor.ShapeOf(s.batch, s.m, s.n)
	return o.Numel()
}

// columnStride returns the batch stride of an operand that has a value for each
// column, [n] or [batch,n].
func (s *shape) columnStride(d *tensor.Desc) (int64, error) {
	switch d.Numel() {
	case s.n:
		return 0, nil
	case s.batch * s.n:
		return s.n, nil
	}
	return 0, status.Errorf(status.ErrInvalidParam, "want %d columns or a batch %d of them, got %s", s.n, s.batch, d)
}
