package matmul

import (
	"goatb/device"
	"goatb/internal/asm/gemm"
	"goatb/kernel"
	"goatb/tensor"
)

// VPDPBUSD takes x unsigned: 128 is added to its elements when they are packed,
// so that sums come out too large by 128 times the sum of their column of w.
// Int32 sums wrap, so what comes off again gives the exact sum. Loops that take x
// signed have no excess.

// excess is what sums are too large by, for each of excessColumns columns. It is known
// for panels that Pack made, and else the sum of one more row of x, of nothing but 128.
type excess struct {
	columns []int32
	row     []byte
}

// newExcess takes its memory from a block's buffer.
func newExcess(buf []float32, t *tiling, e *engine) excess {
	mem := device.BytesOf(buf)
	n := t.excessColumns()
	x := excess{columns: device.View[int32](mem[:4*n]), row: mem[4*n:]}
	if !e.excessKnown(t) {
		for i := range x.row {
			x.row[i] = byte(e.flip())
		}
	}
	return x
}

// excessColumns is the number of columns whose excess is kept: those of a strip, or
// all of an item that is not walked in one go.
func (t *tiling) excessColumns() int64 {
	switch {
	case t.OneRow:
		return rowPanels * gemm.PanelColumns
	case t.manySpans() || t.SubM < t.TileM:
		return roundUp(t.TileN, gemm.PanelColumns)
	}
	return t.Strip
}

// intRow computes an item of one row: panels pass as memory gives them.
func (s *sweeper) intRow(p *place) {
	t := s.t
	s.packRows(p, 0, t.K)
	s.rowStrips(p, func(j, n int64, w *byte) {
		s.e.set.Row(int(s.words), int(n), &s.rows[0], w, &s.acc[0], int(t.W.Lead))
		s.finishInts(p, p, j, n)
	})
}

// excessKnown reports whether the panels of w bring their sums along.
func (e *engine) excessKnown(t *tiling) bool { return e.isPanels(&t.W) && !t.Split }

// addExcess adds the excess of some steps of the panel of column j of an item.
func (s *sweeper) addExcess(j int64, b []byte, words int64, add bool) {
	at := j % int64(len(s.excess.columns))
	for h := int64(0); h < gemm.PanelColumns; h += s.e.set.Columns {
		c := device.BytesOf(s.excess.columns[at+h:])
		s.e.set.Rows[0](int(words), &s.excess.row[0], &b[4*h], &c[0], gemm.PanelColumns, add, gemm.Address(b), 0)
	}
}

// excessOf stores the excess of columns [j, j+n) of an item in less.
func (s *sweeper) excessOf(less []int32, p *place, j, n int64) {
	t := s.t
	switch {
	case s.e.flip() == 0:
		clear(less[:n])
	case s.e.excessKnown(t):
		for c := int64(0); c < n; c += gemm.PanelColumns {
			end := s.w[t.W.at(p.b, p.j+j+c, 0)+t.W.Lead-4*gemm.PanelColumns:]
			copy(less[c:min(c+gemm.PanelColumns, n)], device.View[int32](end[:4*gemm.PanelColumns]))
		}
	default:
		copy(less[:n], s.excess.columns[j%int64(len(s.excess.columns)):])
	}
}

// finishInts stores the sums of columns [j, j+n) of a part of an item's rows.
func (s *sweeper) finishInts(p, part *place, j, n int64) {
	f := &s.f
	less := device.View[int32](device.BytesOf(f.buf[finisherRows*n : (finisherRows+1)*n]))
	s.excessOf(less, p, j, n)
	if s.t.Split {
		s.finishPartialInts(p, part, j, n, less)
		return
	}
	sums, stride := s.sums(p, part, j)
	rows := device.View[int32](sums)
	f.int8Columns(p.b, p.j+j, n)
	for c := range f.intBias {
		less[c] -= f.intBias[c]
	}
	vals, size := f.buf[n:2*n], f.ep.Out.Size()
	for r := range part.m {
		factor := float32(1)
		if f.ep.PerToken {
			factor = device.View[float32](f.a.Mem(TokenScale))[part.i+r]
		}
		dst := s.out[(s.t.element(part, r)+j)*size:]
		if f.ep.Out == tensor.Float32 {
			vals = device.View[float32](dst[:4*n])
		}
		s.e.set.Dequant(int(n), &vals[0], &rows[r*stride], &less[0], &f.scale[0], factor)
		kernel.Flush(dst, vals, f.ep.Out)
	}
}

// finishPartialInts takes the excess off sums that are in the output, and stores
// the others.
func (s *sweeper) finishPartialInts(p, part *place, j, n int64, less []int32) {
	out := device.View[int32](s.out)
	at, row := s.t.output(part)
	if tail := n % s.e.set.Columns; tail > 0 {
		sums, stride := s.sums(p, part, j+n-tail)
		copyRows(out, s.t, part, j+n-tail, tail, device.View[int32](sums), stride)
	}
	for r := range part.m {
		line := out[at+j+r*row:][:n]
		for c := range line {
			line[c] -= less[c]
		}
	}
}
