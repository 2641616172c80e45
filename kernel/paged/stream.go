package paged

import (
	"goatb/internal/vec"
	"goatb/kernel/parts"
)

// stream is the order in which an item uses keys and values: the keys of a part, its
// values, the keys of the next part. A step is a position of keys or of values: those
// of a part from position p on have the steps 2p to 2p+2n-1, n being its positions.
//
// What is used in place is fetched ahead of use, in the order of memory, so that
// memory is read while the loops multiply. Little is used at once at the beginning
// and at the end of an item: what comes before the first use and behind the last
// fetch is not done at the same time.
type stream struct {
	// from and to are the steps of the item, next is the first one that was not asked
	// for.
	from, to, next int64
	// little says that the item uses so little that it is read sooner than asked for:
	// all at once, as it comes.
	little bool
	// runs are where what was asked for last lies: the first of them, up to now, was
	// fetched at once, the others while the loops multiply.
	runs []vec.Ahead
	now  int
}

const (
	// mostAtOnce is the most positions that are used at once: more of them ask for more
	// at once than the processor keeps in flight, and what is used waits behind it.
	mostAtOnce = 32
	// leadBytes is how far ahead of the end of what is used at once is fetched: what
	// was asked for last is not there yet.
	leadBytes = 4 << 10
	// aheadFloats is the room for runs in scratch: enough for blocks of fetchRuns.
	aheadFloats = fetchRuns * 2 * vec.AheadWords
	fetchRuns   = parts.Len/directBlock + 8
)

// open begins an item that does n parts from part p on, and asks for what it uses
// first.
func (s *stream) open(w *worker, p, n int64) {
	s.from, s.to = 2*p*parts.Len, 2*min((p+n)*parts.Len, w.context)
	s.next, s.runs, s.now = s.from, s.runs[:0], 0
	k, v := &w.t.Key, &w.t.Value
	s.little = (s.to-s.from)/2*w.heads*(k.Dim*k.Type.Size()+v.Dim*v.Type.Size()) <= fetchBytes
	if !s.little {
		s.ask(w, s.from, 0)
	}
}

// take returns how many of n positions from position j of a cache on are used at
// once, and asks for what comes after them.
func (s *stream) take(w *worker, c *cacheView, j, n int64) int64 {
	if s.little {
		return min(n, c.InPlace)
	}
	first := j / parts.Len * parts.Len
	at := first + j
	if c == &w.t.Value {
		at += min(parts.Len, w.context-first)
	}
	n = min(n, s.atOnce(w, c, at))
	s.ask(w, at+n, n)
	return n
}

// atOnce is the number of positions of a cache that are used at once from a step on.
func (s *stream) atOnce(w *worker, c *cacheView, at int64) int64 {
	if w.panels.on {
		return c.InPlace
	}
	few := min(at-s.from, (s.to-at)/2, mostAtOnce) / fetchRows * fetchRows
	return min(max(few, fetchRows), c.InPlace)
}

// find returns the cache of a step, its memory, the position, and how many positions
// of the part follow from it on.
func (s *stream) find(w *worker, at int64) (c *cacheView, mem []byte, j, n int64) {
	first := at / (2 * parts.Len) * parts.Len
	j, n = at-first, min(parts.Len, w.context-first)
	if j < first+n {
		return &w.t.Key, w.key, j, first + n - j
	}
	return &w.t.Value, w.value, j - n, first + 2*n - j
}

// ask asks for what is used at once from a step on, and for a little more: n steps of
// it while as many are used, and before them what is more than that.
func (s *stream) ask(w *worker, at, n int64) {
	s.runs, s.now = s.runs[:0], 0
	if at >= s.to {
		return
	}
	c, _, _, _ := s.find(w, at)
	s.next = max(s.next, at)
	end := min(at+s.atOnce(w, c, at)+ceil(leadBytes, w.heads*c.Dim*c.Type.Size()), s.to)
	if s.next < end-n {
		s.locate(w, end-n)
		vec.Fetch(s.runs)
		s.now = len(s.runs)
	}
	s.locate(w, end)
}

// locate finds where what was not asked for before a step lies.
func (s *stream) locate(w *worker, end int64) {
	for s.next < end && len(s.runs) < cap(s.runs) {
		c, mem, j, n := s.find(w, s.next)
		slot := j % w.t.BlockSize
		n = min(n, end-s.next, w.t.BlockSize-slot)
		s.next += n
		if id, err := w.block(j / w.t.BlockSize); err == nil && c.Direct { // a wrong block is found when it is used
			s.add(w, c, mem, id, slot, n)
		}
	}
}

// add appends the rows of the item's heads at n positions of a block.
func (s *stream) add(w *worker, c *cacheView, mem []byte, block, slot, n int64) {
	size := c.Type.Size()
	r := vec.Ahead{
		At:    vec.Address(mem, c.element(), w.element(c, block, slot)),
		Bytes: int(w.heads * c.Dim * size), Step: int(c.Position * size), Rows: int(n),
	}
	if c.HeadMajor {
		r.Bytes, r.Step, r.Rows = int(n*c.Dim*size), int(c.Head*size), int(w.heads)
	}
	if r.Bytes == r.Step {
		r.Bytes, r.Rows = r.Bytes*r.Rows, 1
	}
	if k := len(s.runs) - 1; k >= s.now && r.Rows == 1 && s.runs[k].Rows == 1 && s.runs[k].At+uintptr(s.runs[k].Bytes) == r.At {
		s.runs[k].Bytes += r.Bytes
		return
	}
	s.runs = append(s.runs, r)
}
