package matmul

import (
	"goatb/internal/asm/gemm"
	"goatb/kernel"
)

// Memory that is packed or multiplied next is fetched by the tiles before: cores
// wait for memory less when they have something to do. A tile fetches cache lines
// at a pace, so each takes one piece of what is wanted.

// pieces are pieces of memory to fetch, apart bytes from each other. A tile goes
// on by pace bytes in each of its steps.
type pieces struct {
	at, apart, pace uintptr
	left            int64
}

// fetched takes the piece that the next tile of the panel of column j fetches.
func (s *sweeper) fetched(j int64) (next, pace uintptr) {
	q := &s.soon
	if q.left <= 0 {
		q = &s.later
		if q.left <= 0 || j < s.laterFrom {
			return gemm.Address(s.rows), 0
		}
	}
	next = q.at
	q.at += q.apart
	q.left--
	return next, q.pace
}

// tilesPerPanel is the number of tiles that a part of an item's rows is multiplied
// with a panel in.
func (s *sweeper) tilesPerPanel(part *place) int64 {
	return s.groups(part) * gemm.PanelColumns / s.e.set.Columns
}

// stretch makes the next tiles fetch size bytes, in equal pieces of steps steps.
func (s *sweeper) stretch(at uintptr, size, tiles, steps int64) {
	pace := ceilDiv(size, tiles*steps)
	s.soon = pieces{at: at, apart: uintptr(pace * steps), pace: uintptr(pace), left: tiles}
}

// fetchPanel makes tiles fetch the packed weights that follow the elements [k, end)
// of the panel of column j: those of the span up to to, or the next panel's.
func (s *sweeper) fetchPanel(p, part *place, j, from, k, end, to int64) {
	t := s.t
	s.soon = pieces{}
	if end == to {
		end, j = from, j+gemm.PanelColumns
	}
	if j >= p.n {
		return
	}
	steps := s.e.words(min(t.Chunk, to-k))
	if s.narrow != nil && s.groups(part) == 1 {
		steps = ceilDiv(steps, int64(t.W.Step))
	}
	size := (min(end+t.Chunk, to) - end) * gemm.PanelColumns * t.W.DType.Size()
	s.stretch(gemm.Address(s.w[t.W.at(p.b, p.j+j, end):]), size, s.tilesPerPanel(part), steps)
}

// fetchKept makes half of the tiles of a panel fetch the next packed one.
func (s *sweeper) fetchKept(part *place, j, n, length int64) {
	s.soon = pieces{}
	if j += gemm.PanelColumns; j < n {
		words := s.e.words(length)
		s.stretch(gemm.Address(s.kept(j)), 4*gemm.PanelColumns*words, ceilDiv(s.tilesPerPanel(part), 2), words)
	}
}

// fetchSource makes tiles fetch the weights that are packed after the elements
// [k, end) of the columns from j on.
func (s *sweeper) fetchSource(p *place, j, from, k, end, to int64) {
	t, m := s.t, &s.t.W
	s.soon = pieces{}
	length := end - k
	if end == to {
		end, j = from, j+gemm.PanelColumns
	}
	if j >= p.n || m.Block != 0 {
		return
	}
	at, lead := gemm.Address(s.w[m.at(p.b, p.j+j, end):]), uintptr(m.Lead*m.DType.Size())
	switch {
	case m.AlongK:
		s.soon = pieces{at: at, apart: lead, pace: s.rowPace(m, length), left: min(gemm.PanelColumns, p.n-j)}
	case s.e.step() == 1:
		width := uintptr(t.W.DType.Size() * s.e.set.Columns)
		s.soon = pieces{at: at, apart: width, pace: lead, left: gemm.PanelColumns / s.e.set.Columns}
	}
}

// fetchRows makes the last tiles of a part fetch the rows of x that are packed
// after it, those of the next part or of the next span, a row for each tile.
func (s *sweeper) fetchRows(p, part *place, from, to int64) {
	t, m := s.t, &s.t.X
	s.later = pieces{}
	i, k := part.i+t.SubM, from
	if i >= p.i+p.m {
		i, k = p.i, to
	}
	if k >= p.k1 || !m.AlongK || m.Block != 0 {
		return
	}
	s.later = pieces{
		at: gemm.Address(s.x[m.at(p.b, i, k):]), apart: uintptr(m.Lead * m.DType.Size()),
		pace: s.rowPace(m, min(t.Chunk, to-from)), left: min(t.SubM, p.i+p.m-i),
	}
	spare := max(1, s.tilesPerPanel(part)/2)
	s.laterFrom = p.n - ceilDiv(s.later.left, spare)*gemm.PanelColumns
}

// rowPace is the pace at which the steps of length elements of K fetch as much of a
// row of a matrix.
func (s *sweeper) rowPace(m *matrix, length int64) uintptr {
	return uintptr(ceilDiv(length*m.DType.Size(), s.e.words(length)))
}

// someBytes is what a core reads from memory in some hundred nanoseconds.
const someBytes = 2 << 10

// fetchSome fetches the beginning of what will be read, as much as comes while a
// little else is done, and returns the rest.
func fetchSome(b []byte) []byte {
	if len(b) < someBytes {
		return nil
	}
	gemm.Fetch(gemm.Address(b), someBytes/64)
	return b[someBytes:]
}

// rowAhead is the panels that a block of one row reads.
func rowAhead(a *kernel.Args, block int, t *tiling, _ []int64) []byte {
	if !t.OneRow {
		return nil
	}
	first, _ := kernel.Share(t.Items, block, a.Blocks)
	p := t.place(first)
	return behind(a.Mem(W), t.W.at(p.b, p.j, 0))
}

// behind is the memory from a byte on, nil where there is none.
func behind(b []byte, at int64) []byte {
	if at < 0 || at >= int64(len(b)) {
		return nil
	}
	return b[at:]
}
