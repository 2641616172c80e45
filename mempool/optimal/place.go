package optimal

import "math/bits"

// place puts buffer b at its least, below all neighbours that wait. Not ok means
// that no plan goes on from here; take the buffer back then.
func (l *lane) place(b int32) (ok bool) {
	l.frames = append(l.frames, frame{buffer: b, part: l.now, trail: int32(len(l.trail)), saved: int32(len(l.saved)),
		parts: int32(len(l.parts)), lists: int32(len(l.lists))})
	s := &l.slot[b]
	l.waiting[b>>6] &^= 1 << (b & 63)
	l.saved = append(l.saved, l.watch[s.lo:s.hi]...)
	cuts := false
	for c := s.lo; c < s.hi; c++ {
		l.room[c] += s.size
		if c > s.lo {
			l.cross[c]--
			cuts = cuts || l.cross[c] == 0
		}
	}
	if !l.cover(b, s.least+s.size) {
		return false
	}
	for c := s.lo; c < s.hi; c++ {
		if !l.look(c) {
			return false
		}
	}
	if !l.settle(int(l.frames[len(l.frames)-1].trail)) {
		return false
	}
	if cuts {
		l.cut()
	}
	return true
}

// cover lifts the waiting neighbours of b onto its top.
func (l *lane) cover(b int32, top int64) bool {
	near := l.near[int(b)*l.words:][:l.words]
	for w, set := range near {
		for set &= l.waiting[w]; set != 0; set &= set - 1 {
			i := int32(w<<6 + bits.TrailingZeros64(set))
			s := &l.slot[i]
			at := top
			if l.aligned {
				at = alignUp(top, l.align[i])
			}
			if s.ground < at {
				l.trail = append(l.trail, change{^i, s.ground})
				s.ground = at
			}
			if s.least < at && !l.raise(i, at) {
				return false
			}
		}
	}
	return true
}

// raise notes that buffer i lies at least at an offset, which is more than what
// is known.
func (l *lane) raise(i int32, least int64) bool {
	s := &l.slot[i]
	if least > s.latest {
		return false
	}
	l.trail = append(l.trail, change{i, s.least})
	s.least = least
	return true
}

// lift raises a waiting buffer to an offset and draws the conclusions.
func (l *lane) lift(b int32, least int64) bool {
	mark := len(l.trail)
	return l.raise(b, least) && l.settle(mark)
}

// above returns where buffer b begins when it lies on one of the waiting buffers
// of a set, none of which lies below floor; far when there is none.
func (l *lane) above(b int32, of []uint64, floor int64) int64 {
	lowest := int64(far)
	for w, set := range of {
		for set &= l.waiting[w]; set != 0; set &= set - 1 {
			i := int32(w<<6 + bits.TrailingZeros64(set))
			if i != b {
				lowest = min(lowest, max(l.slot[i].least, floor)+l.slot[i].size)
			}
		}
	}
	if l.aligned && lowest < far {
		lowest = alignUp(lowest, l.align[b])
	}
	return lowest
}

// takeBack undoes the last frame.
func (l *lane) takeBack() frame {
	f := l.frames[len(l.frames)-1]
	l.frames = l.frames[:len(l.frames)-1]
	for k := len(l.trail) - 1; k >= int(f.trail); k-- {
		if t := l.trail[k]; t.buffer >= 0 {
			l.slot[t.buffer].least = t.old
		} else {
			l.slot[^t.buffer].ground = t.old
		}
	}
	s := &l.slot[f.buffer]
	for c := s.lo; c < s.hi; c++ {
		l.room[c] -= s.size
		if c > s.lo {
			l.cross[c]++
		}
	}
	copy(l.watch[s.lo:s.hi], l.saved[f.saved:])
	l.waiting[f.buffer>>6] |= 1 << (f.buffer & 63)
	l.trail, l.saved, l.parts, l.lists = l.trail[:f.trail], l.saved[:f.saved], l.parts[:f.parts], l.lists[:f.lists]
	return f
}

// cut splits the part at hand where no waiting buffer crosses, and goes on with
// the first of the parts it makes.
func (l *lane) cut() {
	old := l.parts[l.now]
	base, from, last := int32(len(l.frames))-1, old.lo, int32(none)
	next := &l.now
	for c := old.lo + 1; c <= old.hi; c++ {
		if c < old.hi && l.cross[c] != 0 {
			continue
		}
		first := int32(len(l.lists))
		for k := old.first; k < old.last; k++ {
			if i := l.lists[k]; l.waits(i) && l.slot[i].lo >= from && l.slot[i].hi <= c {
				l.lists = append(l.lists, i)
			}
		}
		if int(first) < len(l.lists) {
			at := int32(len(l.parts))
			l.parts = append(l.parts, part{first: first, last: int32(len(l.lists)), lo: from, hi: c, next: old.next, base: base})
			if last == none {
				*next = at
			} else {
				l.parts[last].next = at
			}
			last = at
			if l.order.loads {
				l.sortByLoad(l.lists[first:])
			}
		}
		from = c
	}
	if last == none {
		l.now = old.next
	}
}
