package optimal

// lane is one search for a plan of at most limit units that can be suspended at
// any node: its whole state is here.
//
// A search goes from below. It takes a buffer that rests on placed ones, see
// pick, and branches: the buffer lies there, below all of its neighbours that
// wait; or it is put off, and lies on one of them.
//
// Placing buffers may cut the time line into parts that share no waiting
// buffer. Parts are solved one after another, each on top of what is placed; one
// that fails takes back the parts solved since the cut, and the cut's buffer.
type lane struct {
	*problem
	order order
	limit int64
	slot  []slot
	rank  []int32 // by buffer: place in the order, as far as it is fixed

	waiting []uint64 // the buffers that are not placed
	room    []int64  // by section: limit less the total of waiting buffers
	cross   []int32  // by section: waiting buffers shared with the section before
	watch   []watch  // by section

	frames []frame
	trail  []change
	saved  []watch
	parts  []part
	lists  []int32
	sorter []ranked
	now    int32 // the part at hand
	state  state
	nodes  int64

	// seen holds, by section, the number of the pick that looked at it last.
	seen  []int64
	picks int64
}

// slot is what a search knows of one buffer.
type slot struct {
	// least is the offset of a placed buffer; a waiting one lies there or above.
	least int64
	// ground is the lowest offset above all placed neighbours. A waiting buffer
	// whose least is larger was put off: it needs another neighbour below it.
	ground int64
	size   int64
	latest int64 // no larger offset fits
	lo, hi int32
}

// part is a run of sections whose waiting buffers are solved alone.
type part struct {
	first, last int32 // lists[first:last] are its buffers by rank, some of them placed
	lo, hi      int32 // sections
	next        int32 // the part to solve after this one, or none
	base        int32 // the frame that made the part, or none
}

// frame is a placed buffer and what it takes to take it back.
type frame struct {
	buffer int32
	part   int32
	trail  int32
	saved  int32
	parts  int32
	lists  int32
}

// change is the old value of a least, or of a ground where the buffer is
// negated.
type change struct {
	buffer int32
	old    int64
}

// state is how far a search is.
type state uint8

const (
	searching state = iota
	found           // slots hold a plan
	exhausted       // no plan exists
)

// start makes the lane ready for a new search.
func (l *lane) start(p *problem, o order, limit int64) {
	l.problem, l.order, l.limit = p, o, limit
	l.slot, l.rank = grow(l.slot, p.n), grow(l.rank, p.n)
	l.waiting = zeroed(l.waiting, p.words)
	for i := range p.buffers {
		b := &p.buffers[i]
		s := slot{size: p.size[i], latest: limit - p.size[i], lo: b.Lower, hi: b.Upper}
		if at := p.fixed[i]; at != Free {
			s.least, s.latest = at, min(at, s.latest)
		}
		l.slot[i] = s
		l.waiting[i>>6] |= 1 << (i & 63)
	}
	l.room, l.cross = grow(l.room, p.sections), append(l.cross[:0], p.cross...)
	l.watch = grow(l.watch, p.sections)
	for s := range l.room {
		l.room[s], l.watch[s] = limit-p.total[s], watch{none, none}
	}
	l.frames, l.trail, l.saved, l.parts, l.lists = l.frames[:0], l.trail[:0], l.saved[:0], l.parts[:0], l.lists[:0]
	l.nodes, l.now, l.state = 0, none, searching
	l.seen, l.picks = zeroed(l.seen, p.sections), 0
	if !l.root() {
		l.state = exhausted
	}
}

// root checks the problem as a whole and makes the first parts.
func (l *lane) root() bool {
	for i := range l.slot {
		if s := &l.slot[i]; s.least > s.latest {
			return false
		}
		if t := l.twin[i]; t != none && !l.raise(int32(i), l.slot[t].least+l.slot[t].size) {
			return false
		}
	}
	for s := range l.room {
		if !l.look(int32(s)) {
			return false
		}
	}
	if !l.settle(0) {
		return false
	}
	l.sortAll()
	l.parts = append(l.parts, part{last: int32(l.n), hi: int32(l.sections), next: none, base: none})
	l.now = 0
	l.cut()
	return true
}

// run goes on for a number of nodes, or until the search is over.
func (l *lane) run(nodes int64) state {
	for end := l.nodes + nodes; l.state == searching && l.nodes < end; {
		if l.now == none {
			l.state = found
			break
		}
		b, ok := l.next()
		switch {
		case !ok:
			l.back()
		case b == none:
			l.now = l.parts[l.now].next
		default:
			l.nodes++
			if !l.place(b) {
				l.back()
			}
		}
	}
	return l.state
}

// next returns the buffer to place, none when all of the part are placed. Not ok
// means that the part has no plan.
func (l *lane) next() (b int32, ok bool) {
	for {
		b, other := l.lowest()
		if b == none {
			return b, other == far
		}
		floor := l.slot[b].least
		b = l.pick(b)
		above := max(l.twinAbove(b), l.notFirst(b, floor))
		switch {
		case above > l.slot[b].least:
			if !l.lift(b, above) {
				return b, false
			}
		case other > floor:
			return b, true
		case !l.liftOthers(floor):
			return b, false
		}
	}
}

// liftOthers lifts the buffers that were put off onto a waiting one: no buffer of
// the part lies below floor.
func (l *lane) liftOthers(floor int64) bool {
	p := &l.parts[l.now]
	mark := len(l.trail)
	for _, i := range l.lists[p.first:p.last] {
		if l.slot[i].least <= floor && l.waits(i) && !l.rests(i) &&
			!l.raise(i, l.above(i, l.near[int(i)*l.words:][:l.words], floor)) {
			return false
		}
	}
	return l.settle(mark)
}

// twinAbove returns where a buffer with a twin that waits begins: twins are
// placed in order.
func (l *lane) twinAbove(b int32) int64 {
	if t := l.twin[b]; t != none && l.waits(t) {
		return l.slot[t].least + l.slot[t].size
	}
	return 0
}

// notFirst returns where buffer b begins when it cannot be the lowest of each of
// its sections: one has too little room. Else it returns 0. No waiting buffer of
// the part lies below floor.
func (l *lane) notFirst(b int32, floor int64) int64 {
	s := &l.slot[b]
	above := int64(0)
	for c := s.lo; c < s.hi; c++ {
		if s.least > l.room[c] {
			above = max(above, l.above(b, l.in[int(c)*l.words:][:l.words], floor))
		}
	}
	return above
}

func (l *lane) waits(b int32) bool { return l.waiting[b>>6]>>(b&63)&1 != 0 }

// back takes decisions back until one can be reversed.
func (l *lane) back() {
	for {
		at := l.parts[l.now].base
		if top := int32(len(l.frames)) - 1; top >= 0 && l.frames[top].part == l.now {
			at = top
		}
		if at == none {
			l.state = exhausted
			return
		}
		for int32(len(l.frames)) > at+1 {
			l.takeBack()
		}
		f := l.takeBack()
		l.now = f.part
		if l.lift(f.buffer, l.above(f.buffer, l.near[int(f.buffer)*l.words:][:l.words], 0)) {
			return
		}
	}
}
