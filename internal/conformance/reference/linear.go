package reference

import (
	"fmt"
	"math"

	"goatb/tensor"
)

// linearParam holds the JSON parameters of LinearOperation.
type linearParam struct {
	TransposeA, TransposeB, HasBias bool
	OutDataType                     tensor.DType
	EnAccum                         bool
	MatmulType, QuantMode           int
}

// matrices is a batch of matrices: element (r, c) of matrix b lies at
// b*batch + r*row + c*col. A batch of 0 shares one matrix.
type matrices struct {
	v               []float64
	n, rows, cols   int64
	batch, row, col int64
}

// matricesOf reads a matrix operand, transposed when asked for.
func matricesOf(t *Tensor, transpose bool) matrices {
	s := t.Desc.Shape
	m := matrices{v: t.Floats(), n: 1}
	if t.Desc.Format == tensor.FractalNZ && s.Rank() == 4 {
		m.v = fromNZ(m.v, s)
		s = tensor.ShapeOf(s.Dim(0), s.Dim(2), s.Dim(1)*s.Dim(3))
	}
	m.rows, m.cols = s.Dim(-2), s.Dim(-1)
	m.row, m.col = m.cols, 1
	if s.Rank() == 3 {
		m.n = s.Dim(0)
	}
	if m.n > 1 {
		m.batch = m.rows * m.cols
	}
	if transpose {
		m.rows, m.cols, m.row, m.col = m.cols, m.rows, m.col, m.row
	}
	return m
}

// fromNZ unblocks [b, N/c, M, c] to [b, M, N].
func fromNZ(v []float64, s tensor.Shape) []float64 {
	out := make([]float64, len(v))
	b, n1, rows, c := s.Dim(0), s.Dim(1), s.Dim(2), s.Dim(3)
	for i := range b {
		for j := range n1 {
			for r := range rows {
				for k := range c {
					out[(i*rows+r)*n1*c+j*c+k] = v[((i*n1+j)*rows+r)*c+k]
				}
			}
		}
	}
	return out
}

// multiply returns x.w of batch b as rows of w.cols.
func multiply(x, w *matrices, b int64) []float64 {
	out := make([]float64, x.rows*w.cols)
	for r := range x.rows {
		row := out[r*w.cols : (r+1)*w.cols]
		left := b*x.batch + r*x.row
		if w.row == 1 {
			for c := range row {
				right := w.v[b*w.batch+int64(c)*w.col:][:x.cols]
				for k, v := range right {
					row[c] += x.v[left+int64(k)*x.col] * v
				}
			}
			continue
		}
		for k := range x.cols {
			a := x.v[left+k*x.col]
			right := w.v[b*w.batch+k*w.row:][:w.cols]
			for c, v := range right {
				row[c] += a * v
			}
		}
	}
	return out
}

func linear(c *Input) ([]Tensor, error) {
	p, err := params(c, linearParam{TransposeB: true, HasBias: true})
	if err != nil {
		return nil, err
	}
	x, w := matricesOf(&c.In[0], p.TransposeA), matricesOf(&c.In[1], p.TransposeB)
	n := max(x.n, w.n)
	if p.MatmulType == 1 {
		// Einsum: [m,b,k] and [b,k,n] give [m,b,n].
		s := c.In[0].Desc.Shape
		x = matrices{v: x.v, n: s.Dim(1), rows: s.Dim(0), cols: s.Dim(2), batch: s.Dim(2), row: s.Dim(1) * s.Dim(2), col: 1}
		n = x.n
	}
	if x.cols != w.rows {
		return nil, fmt.Errorf("x has %d columns, w %d rows", x.cols, w.rows)
	}
	if math.MaxInt64/x.rows/w.cols < n {
		return nil, fmt.Errorf("result of %d x %d x %d is too large", n, x.rows, w.cols)
	}
	finish, err := epilogue(c, p, x.rows, w.cols)
	if err != nil {
		return nil, err
	}
	out := make([]float64, n*x.rows*w.cols)
	for b := range n {
		y := multiply(&x, &w, b)
		for i := range y {
			to := b*x.rows*w.cols + int64(i)
			if p.MatmulType == 1 {
				to = (int64(i)/w.cols*n+b)*w.cols + int64(i)%w.cols
			}
			out[to] = finish(y[i], b, int64(i)/w.cols, int64(i)%w.cols)
		}
	}
	d := c.In[0].Desc
	if p.MatmulType == 1 {
		d.Shape = tensor.ShapeOf(x.rows, n, w.cols)
	} else {
		d.Shape = d.Shape.With(-2, x.rows).With(-1, w.cols)
	}
	return []Tensor{OfFloats(d, out)}, nil
}

// epilogue returns what is done to the product of batch b, row m, column n.
func epilogue(c *Input, p linearParam, rows, cols int64) (func(y float64, b, m, n int64) float64, error) {
	rest := c.In[2:]
	perColumn := func() func(b, n int64) float64 {
		t := &rest[0]
		rest = rest[1:]
		v := scales(t)
		each := int64(0)
		if t.Desc.Rank() == 2 && t.Desc.Dim(0) > 1 {
			each = cols
		}
		return func(b, n int64) float64 { return v[b*each+n] }
	}
	switch {
	case p.EnAccum:
		acc := rest[0].Floats()
		return func(y float64, b, m, n int64) float64 { return y + acc[(b*rows+m)*cols+n] }, nil
	case p.QuantMode == 2:
		scale, token := perColumn(), rest[0].Floats()
		return func(y float64, b, m, n int64) float64 { return y * scale(b, n) * token[m] }, nil
	case p.OutDataType != tensor.Undefined:
		bias := func(b, n int64) float64 { return 0 }
		if p.HasBias {
			bias = perColumn()
		}
		scale := perColumn()
		return func(y float64, b, m, n int64) float64 { return (y + bias(b, n)) * scale(b, n) }, nil
	case p.HasBias:
		t := rest[0].Desc.DType
		bias := perColumn()
		return func(y float64, b, m, n int64) float64 { return Round(t, y) + bias(b, n) }, nil
	}
	return func(y float64, b, m, n int64) float64 { return y }, nil
}

// scales reads a bias or a scale; 64-bit scales carry a float32 in their low
// bits.
func scales(t *Tensor) []float64 {
	if t.Desc.DType != tensor.Int64 && t.Desc.DType != tensor.Uint64 {
		return t.Floats()
	}
	v := make([]float64, 0, t.Desc.Numel())
	for _, x := range t.Ints() {
		v = append(v, float64(math.Float32frombits(uint32(x))))
	}
	return v
}
