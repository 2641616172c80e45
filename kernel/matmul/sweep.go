package matmul

import (
	"goatb/device"
	"goatb/internal/asm/gemm"
	"goatb/kernel"
	"goatb/tensor"
)

// sweeper computes the items of a share of blocks with an engine. It walks K in spans and
// the rows of an item in parts: the rows of a part and a span are packed once, and
// the panels of w pass by, each in its chunks.
type sweeper struct {
	e    *engine
	t    *tiling
	x, w []byte
	// narrow is there for panels of 2-byte elements that are multiplied as f32, and
	// columnBytes the size of a step of a column of a panel.
	narrow      *gemm.Narrow
	columnBytes int64
	// rows holds packed rows of x, panel packed parts of w, acc sums, and tmp
	// converted elements before they are packed.
	rows, panel, acc []byte
	tmp              []float32
	excess           excess
	// held tells which rows and which span of K rows holds, words the words of
	// the span.
	held  place
	words int64
	// soon and later are what tiles fetch on the way: weights, and rows of x from
	// the panel of column laterFrom on.
	soon, later pieces
	laterFrom   int64
	out         []byte
	f           finisher
}

// share returns the function that computes shares of blocks.
func (e *engine) share() func(a *kernel.Args, first, end int, t *tiling, _ []int64) error {
	row := e.set.Row
	return func(a *kernel.Args, first, end int, t *tiling, _ []int64) error {
		if t.Near {
			nearRow(row, a, first, end, t)
		} else {
			e.sweepShare(a, first, end, t)
		}
		return nil
	}
}

// sweepShare computes the items of a share with a sweeper.
func (e *engine) sweepShare(a *kernel.Args, first, end int, t *tiling) {
	bufs := carve(a, first, t)
	s := sweeper{
		e: e, t: t, x: a.Mem(X), w: a.Mem(W), held: place{b: -1}, out: a.Mem(Inputs),
		rows: device.BytesOf(bufs[bufX]), panel: device.BytesOf(bufs[bufW]), acc: device.BytesOf(bufs[bufAcc]), tmp: bufs[bufTmp],
		f: finisher{a: a, ep: &t.Ep, buf: bufs[bufColumn]},
	}
	if s.narrow, s.columnBytes = e.narrow(&t.W), 4; s.narrow != nil {
		s.columnBytes = s.narrow.StepBytes / gemm.PanelColumns
	}
	if e.word == tensor.Int8 {
		s.excess = newExcess(bufs[bufPart], t, e)
	}
	lo, hi := kernel.Shares(t.Items, first, end, a.Blocks)
	if t.OneRow && lo < hi {
		p := t.place(lo)
		fetchSome(s.w[t.W.at(p.b, p.j, 0):])
	}
	for i := range hi - lo {
		p := t.place(t.order(lo, hi, i, first))
		switch {
		case t.OneRow && s.narrow != nil:
			s.pairRow(&p)
		case t.OneRow:
			s.intRow(&p)
		default:
			s.item(&p)
		}
	}
}

// rowStrips visits the columns of an item of one row in strips of panels whose sums
// are finished together: columns [j, j+n), whose panels begin at w.
func (s *sweeper) rowStrips(p *place, visit func(j, n int64, w *byte)) {
	for j := int64(0); j < p.n; j += rowPanels * gemm.PanelColumns {
		n := min(rowPanels*gemm.PanelColumns, p.n-j)
		visit(j, n, &s.w[s.t.W.at(p.b, p.j+j, 0)])
	}
}

// pairRow computes an item of one row of bf16: panels pass as memory gives them.
func (s *sweeper) pairRow(p *place) {
	t, step := s.t, int64(s.t.W.Step)
	x, sums := &s.x[t.X.at(p.b, p.i, 0)], device.View[float32](s.acc)
	s.rowStrips(p, func(j, n int64, w *byte) {
		s.narrow.Row(int(t.K/step), int(t.Chunk/step), int(ceilDiv(n, gemm.PanelColumns)), x, w, &s.acc[0], int(t.W.Lead*t.W.DType.Size()))
		s.f.floatColumns(p.b, p.j+j, n)
		s.f.floats(t.element(p, 0)+j, sums[:n])
	})
}

// nearRow computes the items of a share of a row times panels that a cache holds with
// an engine's Row, and few words for each: such products are done in less than a
// microsecond.
func nearRow(row func(steps, columns int, a, b, c *byte, stride int), a *kernel.Args, first, end int, t *tiling) {
	x, w, out, stride := a.Mem(X), a.Mem(W), a.Mem(Inputs), int(4*t.W.Lead)
	if t.Items == 1 {
		row(int(t.K), int(t.N), &x[0], &w[0], &out[:4*t.N][0], stride)
		return
	}
	lo, hi := kernel.Shares(t.Items, first, end, a.Blocks)
	for i := lo; i < hi; i++ {
		p := t.place(i)
		sums := out[4*(p.b*t.OutBatch+p.j):][:4*p.n]
		row(int(t.K), int(p.n), &x[t.X.at(p.b, 0, 0)], &w[t.W.at(p.b, p.j, 0)], &sums[0], stride)
	}
}

// item computes one item.
func (s *sweeper) item(p *place) {
	t := s.t
	for from := p.k0; from < p.k1; from += t.Span {
		to := min(from+t.Span, p.k1)
		for row := int64(0); row < p.m; row += t.SubM {
			part := *p
			part.i, part.m = p.i+row, min(t.SubM, p.m-row)
			s.packRows(&part, from, to)
			s.fetchRows(p, &part, from, to)
			s.sweep(p, &part, from, to)
		}
	}
}

// sweep multiplies a part of an item's rows, packed from K from to to, with all
// its panels, and finishes them strip by strip at the end of K.
func (s *sweeper) sweep(p, part *place, from, to int64) {
	t := s.t
	for j := int64(0); j < p.n; j += gemm.PanelColumns {
		for k := from; k < to; k += t.Chunk {
			s.strips(p, part, j, from, k, min(k+t.Chunk, to), to)
		}
		end := min(j+gemm.PanelColumns, p.n)
		if to == p.k1 && (end == p.n || end%t.Strip == 0) {
			first := j / t.Strip * t.Strip
			s.finish(p, part, first, end-first)
		}
	}
}

// strips multiplies a part of an item's rows with the elements [k, end) of the
// panel of its column j; the packed rows begin at K from and the span ends at to.
func (s *sweeper) strips(p, part *place, j, from, k, end, to int64) {
	w := s.weights(p, part, j, from, k, end, to)
	words := s.e.words(end - k)
	if s.e.flip() != 0 && part.i == p.i && !s.e.excessKnown(s.t) {
		s.addExcess(j, w, words, k > p.k0)
	}
	chunk, padded := s.rows[4*s.e.words(k-from)*part.m:], s.e.padded(s.t, words)
	set, narrow, step, groups := s.e.set, s.narrow, int64(s.t.W.Step), int(s.groups(part))
	for h := int64(0); h < min(gemm.PanelColumns, p.n-j); h += set.Columns {
		sums, pitch := s.sums(p, part, j+h)
		b, stride, add := &w[s.columnBytes*h], int(pitch), k > p.k0
		for g := range groups {
			row, end := kernel.Share(part.m, g, groups)
			next, pace := s.fetched(j)
			a, c, rows := &chunk[4*row*padded], &sums[4*row*pitch], end-row
			switch {
			case narrow == nil || g > 0:
				set.Rows[rows-1](int(words), a, b, c, stride, add, next, pace)
			case groups == 1:
				narrow.Rows[rows-1](int(ceilDiv(words, step)), a, b, c, stride, add, next, pace)
			default:
				wide := &s.panel[4*h]
				narrow.Widenings[rows-narrow.LeastWidening()](int(ceilDiv(words, step)), a, b, c, stride, add, next, uintptr(step)*pace, wide)
				b = wide
			}
		}
	}
}

// groups is the number of groups that a part of an item's rows is multiplied in, a
// tile each. Of several the first one widens a panel of 2-byte elements for the
// others.
func (s *sweeper) groups(part *place) int64 { return ceilDiv(part.m, s.e.mostRows(s.t)) }

// sums returns the memory of the sums of a part of an item's rows from column j of
// the item on, and the distance of its rows in elements.
func (s *sweeper) sums(p, part *place, j int64) ([]byte, int64) {
	t := s.t
	if t.DirectOut && j+s.e.set.Columns <= p.n {
		at, stride := t.output(part)
		return s.out[4*(at+j):], stride
	}
	at := j % t.Strip
	if t.manySpans() {
		at += (part.i - p.i) * t.pitch()
	}
	return s.acc[4*at:], t.pitch()
}

// pitch is the distance of rows of sums that are kept, in elements: rows of many
// columns do not lie a power of two apart, so that a cache has room for a tile of
// them.
func (t *tiling) pitch() int64 {
	if t.Strip > gemm.PanelColumns {
		return t.Strip + gemm.PanelColumns/2
	}
	return t.Strip
}

// manySpans reports whether K is walked in several spans, in which the sums of all
// rows of an item are made.
func (t *tiling) manySpans() bool { return t.Span < t.K && !t.Split }

// output returns the output element where an item starts and the distance of
// its rows.
func (t *tiling) output(p *place) (at, stride int64) {
	if t.Split {
		return ((p.chunk*t.Batch+p.b)*t.M+p.i)*t.N + p.j, t.N
	}
	return t.element(p, 0), t.OutRow
}

// finish stores the sums of columns [j, j+n) of a part of an item's rows that are
// not in the output yet.
func (s *sweeper) finish(p, part *place, j, n int64) {
	t := s.t
	if s.e.word == tensor.Int8 {
		s.finishInts(p, part, j, n)
		return
	}
	if t.DirectOut {
		whole := (j + n) / s.e.set.Columns * s.e.set.Columns
		j, n = whole, j+n-whole
		if n == 0 {
			return
		}
	}
	sums, stride := s.sums(p, part, j)
	rows := device.View[float32](sums)
	if t.Split {
		copyRows(device.View[float32](s.out), t, part, j, n, rows, stride)
		return
	}
	s.f.floatColumns(p.b, p.j+j, n)
	for r := range part.m {
		s.f.floats(t.element(part, r)+j, rows[r*stride:r*stride+n])
	}
}
