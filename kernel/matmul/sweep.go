package matmul

import (
	"goatb/device"
	"goatb/internal/asm/gemm"
	"goatb/kernel"
	"goatb/tensor"
)

// sweeper computes the items of one block with an engine. It walks K in spans and
// the rows of an item in parts: the rows of a part and a span are packed once, and
// the panels of w pass by, each in its chunks.
type sweeper struct {
	e    *engine
	t    *tiling
	x, w []byte
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

func (e *engine) run(a *kernel.Args, block int, t *tiling, _ []int64) error {
	if t.OneRow && e.word == tensor.Float32 {
		e.oneRow(a, block, t)
		return nil
	}
	bufs := carve(a, block, t)
	s := sweeper{
		e: e, t: t, x: a.Mem(X), w: a.Mem(W), held: place{b: -1}, out: a.Mem(Inputs),
		rows: device.BytesOf(bufs[bufX]), panel: device.BytesOf(bufs[bufW]), acc: device.BytesOf(bufs[bufAcc]), tmp: bufs[bufTmp],
		f: finisher{a: a, ep: &t.Ep, buf: bufs[bufColumn]},
	}
	if e.word == tensor.Int8 {
		s.excess = newExcess(bufs[bufPart], t, e)
	}
	lo, hi := kernel.Share(t.Items, block, a.Blocks)
	for i := range hi - lo {
		p := t.place(t.order(lo, hi, i, block))
		if t.OneRow {
			s.intRow(&p)
			continue
		}
		s.item(&p)
	}
	return nil
}

// oneRow computes the items of one block with few words for each: products that
// a cache holds are done in less than a microsecond.
func (e *engine) oneRow(a *kernel.Args, block int, t *tiling) {
	x, w, out, stride := a.Mem(X), a.Mem(W), a.Mem(Inputs), int(4*t.W.Lead)
	lo, hi := kernel.Share(t.Items, block, a.Blocks)
	for i := lo; i < hi; i++ {
		p := t.place(i)
		row, sums := &x[t.X.at(p.b, 0, 0)], out[4*t.element(&p, 0):][:4*p.n]
		whole, rest := p.n/gemm.PanelColumns, p.n%gemm.PanelColumns
		if whole > 0 {
			e.set.Row(int(t.K), int(whole), row, &w[t.W.at(p.b, p.j, 0)], &sums[0], stride)
		}
		if rest > 0 {
			last := device.BytesOf(carve(a, block, t)[bufAcc])
			e.set.Row(int(t.K), 1, row, &w[t.W.at(p.b, p.j+p.n-rest, 0)], &last[0], stride)
			copy(sums[4*(p.n-rest):], last)
		}
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
	if !t.ByPanel {
		s.finish(p, 0, p.n)
	}
}

// sweep multiplies a part of an item's rows, packed from K from to to, with all
// its panels.
func (s *sweeper) sweep(p, part *place, from, to int64) {
	for j := int64(0); j < p.n; j += gemm.PanelColumns {
		for k := from; k < to; k += s.t.Chunk {
			s.strips(p, part, j, from, k, min(k+s.t.Chunk, to), to)
		}
		if to == p.k1 && s.t.ByPanel {
			s.finish(p, j, min(gemm.PanelColumns, p.n-j))
		}
	}
}

// strips multiplies a part of an item's rows with the elements [k, end) of the
// panel of its column j; the packed rows begin at K from and the span ends at to.
func (s *sweeper) strips(p, part *place, j, from, k, end, to int64) {
	w := s.weights(p, part, j, from, k, end, to)
	set, words, first := s.e.set, s.e.words(end-k), (k-from)/s.e.step()
	tiles, steps, columnBytes := set.Rows, words, int64(4)
	if s.t.Narrow {
		narrow := s.e.narrow(&s.t.W)
		tiles, steps, columnBytes = narrow.Rows, ceilDiv(words, int64(s.t.W.Step)), narrow.StepBytes/gemm.PanelColumns
	}
	if s.e.flip() != 0 && part.i == p.i && !s.e.excessKnown(s.t) {
		s.addExcess(j, w, words, k > p.k0)
	}
	groups := ceilDiv(part.m, s.e.mostRows(s.t))
	least, larger := part.m/groups, part.m%groups
	for h := int64(0); h < min(gemm.PanelColumns, p.n-j); h += set.Columns {
		sums, stride := s.sums(p, j+h)
		row, at := int64(0), part.i-p.i
		for g := range groups {
			rows := least
			if g < larger {
				rows++
			}
			a := &s.rows[4*(row*s.words+first*rows)]
			c := &sums[4*(at+row)*stride]
			next, pace := s.fetched(j)
			tiles[rows-1](int(steps), a, &w[columnBytes*h], c, int(stride), k > p.k0, next, pace)
			row += rows
		}
	}
}

// sums returns the memory of the sums of a strip from column j of an item on,
// and the distance of its rows in elements.
func (s *sweeper) sums(p *place, j int64) ([]byte, int64) {
	t := s.t
	switch {
	case t.DirectOut && j+s.e.set.Columns <= p.n:
		at, stride := t.output(p)
		return s.out[4*(at+j):], stride
	case t.DirectOut || t.ByPanel:
		return s.acc[4*(j%gemm.PanelColumns):], gemm.PanelColumns
	}
	return s.acc[4*j:], roundUp(t.TileN, gemm.PanelColumns)
}

// output returns the output element where an item starts and the distance of
// its rows.
func (t *tiling) output(p *place) (at, stride int64) {
	if t.Split {
		return ((p.chunk*t.Batch+p.b)*t.M+p.i)*t.N + p.j, t.N
	}
	return t.element(p, 0), t.OutRow
}

// finish stores the sums of columns [j, j+n) of an item that are not in the
// output yet.
func (s *sweeper) finish(p *place, j, n int64) {
	t := s.t
	if s.e.word == tensor.Int8 {
		s.finishInts(p, j, n)
		return
	}
	if t.DirectOut {
		whole := (j + n) / s.e.set.Columns * s.e.set.Columns
		j, n = whole, j+n-whole
		if n == 0 {
			return
		}
	}
	sums, stride := s.sums(p, j)
	rows := device.View[float32](sums)
	if t.Split {
		copyRows(device.View[float32](s.out), t, p, j, n, rows, stride)
		return
	}
	s.f.floatColumns(p.b, p.j+j, n)
	for r := range p.m {
		s.f.floats(t.element(p, r)+j, rows[r*stride:r*stride+n])
	}
}
