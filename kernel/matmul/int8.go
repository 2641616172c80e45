package matmul

import (
	"goatb/device"
	"goatb/internal/vec"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

var int8Go = kernel.Define(productDef("matmul/int8", planInt8, shareInt8))

// planInt8 checks and plans a whole int8 product.
func planInt8(p *kernel.Problem, a Params) (plan, error) {
	s, ep, err := int8Shape(p, a)
	if err != nil {
		return plan{}, err
	}
	l := newPlan(p, &s, false)
	l.Ep = ep
	return l, nil
}

// int8Shape checks the operands of a whole int8 product.
func int8Shape(p *kernel.Problem, a Params) (shape, epilogue, error) {
	s, err := shapeOf(p, a)
	if err != nil {
		return s, epilogue{}, err
	}
	if err := s.wantInt8(p); err != nil {
		return s, epilogue{}, err
	}
	ep, err := int8Epilogue(p, &s)
	return s, ep, err
}

// wantInt8 checks the element types of X and W.
func (s *shape) wantInt8(p *kernel.Problem) error {
	if x, w := p.In[X].DType, p.In[W].DType; x != tensor.Int8 || w != tensor.Int8 {
		return status.Errorf(status.ErrInvalidParam, "want X and W int8, got %s and %s", x, w)
	}
	return nil
}

// bookInt8 sizes the buffers of an int8 product, in 4-byte words.
func (t *plan) bookInt8(w *[numBufs]int64) {
	columns := min(t.Chunk, t.K) // the elements of a row that are packed at a time
	rows := columns
	switch {
	case t.grid.Key == keyPanels:
		w[bufX] = roundUp(t.SubM, 2) * rows
		w[bufW] = 2 * roundUp(t.TileN, panelWidth) * columns
	case t.M == 1:
		t.DirectX = true
		columns = min(int8Step, t.Span)
		rows = columns
		w[bufX] = rows
	default:
		columns, rows = min(int8Step, t.Span), t.Span
		w[bufX] = roundUp(t.M, 2) * rows
	}
	// Rows that do not lie in one piece are gathered as bytes: two of x, or
	// four of w.
	w[bufTmp] = max(2*rows, panelWidth*columns)/4 + 1
}

// int8Step is the length of the pieces of K that rows of weights are multiplied
// in: int8 sums are exact in any order.
const int8Step = 4096

// int8Worker computes the items of one block.
type int8Worker struct {
	t      *tiling
	x, w   []byte
	acc    []int32
	xs, ws []int64
	tmp    []int8
	// xBatch and xFrom tell what xs holds.
	xBatch, xFrom int64
}

func shareInt8(a *kernel.Args, first, end int, t *tiling, _ []int64) error {
	bufs := carve(a, first, t)
	w := int8Worker{
		t: t, x: a.Mem(X), w: a.Mem(W), xBatch: -1,
		acc: device.View[int32](device.BytesOf(bufs[bufAcc])),
		xs:  device.View[int64](device.BytesOf(bufs[bufX])),
		ws:  device.View[int64](device.BytesOf(bufs[bufW])),
		tmp: device.View[int8](device.BytesOf(bufs[bufTmp])),
	}
	f := finisher{a: a, ep: &t.Ep, buf: bufs[bufColumn]}
	lo, hi := kernel.Shares(t.Items, first, end, a.Blocks)
	for i := range hi - lo {
		p := t.place(t.order(lo, hi, i, first))
		acc, ld := w.product(&p, a.Key)
		if t.Split {
			storePartial(t, device.View[int32](a.Mem(Inputs)), &p, acc, ld)
			continue
		}
		f.int8Columns(p.b, p.j, p.n)
		for r := range p.m {
			f.ints(t.element(&p, r), p.i+r, acc[r*ld:r*ld+p.n])
		}
	}
	return nil
}

// product computes the sums of one item: rows of acc, ld apart.
func (w *int8Worker) product(p *place, key uint64) (acc []int32, ld int64) {
	ld = roundUp(p.n, panelWidth)
	acc = w.acc[:roundUp(p.m, 2)*ld]
	clear(acc)
	switch {
	case key == keyPanels:
		w.panels(p, acc, ld)
	case w.t.DirectX:
		w.row(p, acc)
	default:
		w.rows(p, acc, ld)
	}
	return acc, ld
}

// row multiplies one row of x, folded, with four rows of w at a time.
func (w *int8Worker) row(p *place, acc []int32) {
	t := w.t
	x := t.X.row8(nil, w.x, p.b, p.i, p.k0, p.k1-p.k0) // a single row lies in one piece
	for k := int64(0); k < int64(len(x)); k += int8Step {
		piece := x[k:min(k+int8Step, int64(len(x)))]
		n, even := int64(len(piece)), int64(len(piece))&^7
		folded := w.xs[:even/2]
		sum := vec.Fold(folded, piece[:even])
		for j := int64(0); j < p.n; j += panelWidth {
			w0, w1, w2, w3 := w.weightRows(p, j, p.k0+k, n)
			s0, s1, s2, s3 := vec.FoldedDots4(folded, sum, device.BytesOf(w0), device.BytesOf(w1), device.BytesOf(w2), device.BytesOf(w3))
			r0, r1, r2, r3 := vec.Dots4I8(piece[even:], w0[even:], w1[even:], w2[even:], w3[even:])
			c := acc[j : j+panelWidth]
			c[0] += s0 + r0
			c[1] += s1 + r1
			c[2] += s2 + r2
			c[3] += s3 + r3
		}
	}
}

// rows multiplies pairs of rows of x with four rows of w at a time.
func (w *int8Worker) rows(p *place, acc []int32, ld int64) {
	t := w.t
	w.pairsOfX(p)
	for j := int64(0); j < p.n; j += panelWidth {
		for k := p.k0; k < p.k1; k += int8Step {
			n := min(int8Step, p.k1-k)
			w0, w1, w2, w3 := w.weightRows(p, j, k, n)
			for i := int64(0); i < p.m; i += 2 {
				x := w.xs[i/2*t.Span+k-p.k0:][:n]
				p0, p1, p2, p3 := vec.PairDots4(x, w0, w1, w2, w3)
				c := acc[i*ld+j:]
				addPairs((*[panelWidth]int32)(c), (*[panelWidth]int32)(c[ld:]), p0, p1, p2, p3)
			}
		}
	}
}

// addPairs adds sums of pairs to two rows of a tile.
func addPairs(c0, c1 *[panelWidth]int32, p0, p1, p2, p3 int64) {
	for j, p := range [panelWidth]int64{p0, p1, p2, p3} {
		a, b := vec.Unpair(p)
		c0[j] += a
		c1[j] += b
	}
}

// pairsOfX prepares pairs of rows of x for the range of K of an item.
func (w *int8Worker) pairsOfX(p *place) {
	if w.xBatch == p.b && w.xFrom == p.k0 {
		return
	}
	w.xBatch, w.xFrom = p.b, p.k0
	for i := int64(0); i < p.m; i += 2 {
		w.pair(w.xs[i/2*w.t.Span:], p, i, p.k0, p.k1-p.k0)
	}
}

// pair stores n pairs of rows i and i+1 of an item from k on; a missing second
// row is zeros.
func (w *int8Worker) pair(dst []int64, p *place, i, k, n int64) {
	r0 := w.t.X.row8(w.tmp, w.x, p.b, p.i+i, k, n)
	r1 := w.tmp[n : 2*n]
	if i+1 < p.m {
		r1 = w.t.X.row8(r1, w.x, p.b, p.i+i+1, k, n)
	} else {
		clear(r1)
	}
	vec.Pairs(dst[:n], r0, r1)
}

// weightRows returns n elements from k on of the four rows of w from j on; the
// last column stands in for columns behind it.
func (w *int8Worker) weightRows(p *place, j, k, n int64) (w0, w1, w2, w3 []int8) {
	row := func(i int64) []int8 {
		return w.t.W.row8(w.tmp[i*n:], w.w, p.b, p.j+min(j+i, p.n-1), k, n)
	}
	return row(0), row(1), row(2), row(3)
}

// panels multiplies packed rows of pairs and panels of four columns of w.
func (w *int8Worker) panels(p *place, acc []int32, ld int64) {
	t := w.t
	for k := p.k0; k < p.k1; k += t.Chunk {
		n := min(t.Chunk, p.k1-k)
		for j := int64(0); j < p.n; j += panelWidth {
			w0, w1, w2, w3 := w.weightRows(p, j, k, n)
			vec.Widen4(w.ws[j*n:(j+panelWidth)*n], w0, w1, w2, w3)
		}
		for i := int64(0); i < p.m; i += t.SubM {
			m := min(t.SubM, p.m-i)
			for r := int64(0); r < m; r += 2 {
				w.pair(w.xs[r/2*n:], p, i+r, k, n)
			}
			for j := int64(0); j < p.n; j += panelWidth {
				b := w.ws[j*n : (j+panelWidth)*n]
				for r := int64(0); r < m; r += 2 {
					c := acc[(i+r)*ld+j:]
					vec.PairTile4((*[panelWidth]int32)(c), (*[panelWidth]int32)(c[ld:]), w.xs[r/2*n:][:n], b)
				}
			}
		}
	}
}
