package attention

import (
	"goatb/kernel/attention"
	"goatb/tensor"
)

// maskBlock is the number of columns of a group of a mask in fractal_nz, and
// what its rows are padded to.
const maskBlock = 16

// bias derives what is added to the scores. It checks the mask's dimensions
// against the heads and the batch; the lengths are host values and checked
// with them.
func (c *selfCheck) bias(a *attention.Params) error {
	p := c.p
	if !p.masked() {
		return nil
	}
	switch p.MaskType {
	case SelfMaskNorm, SelfMaskALiBi, SelfMaskSlidingWindowNorm:
		a.Bias = attention.MaskBias
		a.ScaleBias = p.CalcType == SelfUndefined && !p.bypass()
		a.OneHides = p.MaskType != SelfMaskALiBi && c.In[c.s.mask].DType == tensor.BFloat16
		return c.plainMask(a)
	case SelfMaskALiBiCompress:
		a.Bias = attention.Distance
	case SelfMaskALiBiCompressSqrt:
		a.Bias = attention.RootDistance
	case SelfMaskALiBiCompressLeftAlign:
		a.Bias = attention.Position
	default:
		return nil
	}
	if d := &c.In[c.s.slopes]; d.Dim(0) != a.Heads {
		return c.BadIn(badDim, c.s.slopes, "want [%d], got %s", a.Heads, d.Shape)
	}
	return c.compressedMask(a)
}

// plainMask locates a mask of query rows and keys.
func (c *selfCheck) plainMask(a *attention.Params) error {
	i := c.s.mask
	lead, rows, cols, err := c.maskPlane(i, a)
	if err != nil {
		return err
	}
	batch, heads := int64(1), int64(1)
	switch n := lead.Rank(); {
	case n == 2:
		batch, heads = lead.Dim(0), lead.Dim(1)
	case n == 1 && c.p.MaskType == SelfMaskALiBi:
		heads = lead.Dim(0)
	case n == 1:
		batch = lead.Dim(0)
	}
	if (batch != 1 && batch != a.Batch) || (heads != 1 && heads != a.Heads) {
		third := a.Batch
		if c.p.MaskType == SelfMaskALiBi {
			third = a.Heads
		}
		return c.BadIn(badDim, i, "want [rows,columns], [%d,rows,columns] or [%d,%d,rows,columns], where leading dimensions and rows may be 1, got %s",
			third, a.Batch, a.Heads, c.In[i])
	}
	m := &a.Mask
	plane := rows * cols
	if m.Block > 0 {
		plane = cols / maskBlock * m.Block
	}
	if heads > 1 {
		m.Head = plane
	}
	if batch > 1 {
		m.Batch = heads * plane
	}
	if rows == 1 {
		m.Row = 0
	}
	return nil
}

// maskPlane sets the strides of a mask's rows and returns its leading
// dimensions, rows and columns. A mask in fractal_nz is of rank 4, its stored
// form [lead, columns/16, rows, 16], or of rank 2 or 3 where that needs no
// padding.
func (c *selfCheck) maskPlane(i int, a *attention.Params) (lead tensor.Shape, rows, cols int64, err error) {
	d := &c.In[i]
	r := d.Rank()
	lead, rows, cols = d.Shape.Slice(0, r-2), d.Dim(-2), d.Dim(-1)
	a.Mask = attention.Mask{Row: cols, Rows: rows, Cols: cols}
	if d.Format == tensor.ND {
		return lead, rows, cols, nil
	}
	if r == 4 {
		lead, cols = d.Shape.Slice(0, 1), d.Dim(1)*d.Dim(3)
	}
	if cols%maskBlock != 0 || (r < 4 && rows%maskBlock != 0) || (r == 4 && d.Dim(3) != maskBlock) {
		return lead, rows, cols, c.BadIn(badDim, i, "want rows and columns in groups of %d, got %s", maskBlock, d)
	}
	a.Mask = attention.Mask{Row: maskBlock, Rows: rows, Cols: cols, Block: rows * maskBlock}
	return lead, rows, cols, nil
}

// compressedMask locates a mask of distances or positions: [S,S], or
// [heads,S,columns] for distances.
func (c *selfCheck) compressedMask(a *attention.Params) error {
	i := c.s.mask
	lead, rows, cols, err := c.maskPlane(i, a)
	if err != nil {
		return err
	}
	heads := lead.Rank() == 1 && lead.Dim(0) == a.Heads
	if !heads && (lead.Rank() != 0 || rows != cols) {
		return c.BadIn(badDim, i, "want a square mask or [%d,rows,columns], got %s", a.Heads, c.In[i].Shape)
	}
	if heads {
		a.Mask.Head = rows * cols
	}
	return nil
}
