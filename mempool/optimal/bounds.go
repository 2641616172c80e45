package optimal

import "math/bits"

// watch is two waiting buffers of a section that may be its lowest. A waiting
// buffer can be the lowest of a section only while its least is at most the
// section's room: all others lie above it. A section with waiting buffers needs
// one that can; where only one is left, all others lie on it. Watching two
// buffers is enough to notice: nothing changes while both of them can.
//
// Taking decisions back lowers offsets, so watches stay right, except where
// rooms shrink: those are saved.
type watch struct{ a, b int32 }

// look renews the watch of a section.
func (l *lane) look(c int32) bool {
	room := l.room[c]
	first, some := int32(none), false
	for w, set := range l.in[int(c)*l.words:][:l.words] {
		for set &= l.waiting[w]; set != 0; set &= set - 1 {
			i := int32(w<<6 + bits.TrailingZeros64(set))
			some = true
			if l.slot[i].least > room {
				continue
			}
			if first != none {
				l.watch[c] = watch{first, i}
				return true
			}
			first = i
		}
	}
	at := &l.watch[c]
	if first == none {
		return !some
	}
	if at.b == first {
		at.b = at.a
	}
	if at.a = first; at.b != none && !l.waits(at.b) {
		at.b = none
	}
	return l.onto(c, first)
}

// onto lifts all waiting buffers of a section onto the one that is its lowest.
func (l *lane) onto(c, first int32) bool {
	top := l.slot[first].least + l.slot[first].size
	for w, set := range l.in[int(c)*l.words:][:l.words] {
		for set &= l.waiting[w]; set != 0; set &= set - 1 {
			i := int32(w<<6 + bits.TrailingZeros64(set))
			if i == first || l.slot[i].least >= top {
				continue
			}
			at := top
			if l.aligned {
				at = alignUp(top, l.align[i])
			}
			if !l.raise(i, at) {
				return false
			}
		}
	}
	return true
}

// settle draws the conclusions from the changes since mark.
func (l *lane) settle(mark int) bool {
	for ; mark < len(l.trail); mark++ {
		i := l.trail[mark].buffer
		if i < 0 {
			continue
		}
		s := &l.slot[i]
		for c := s.lo; c < s.hi; c++ {
			at := l.watch[c]
			if at.a != i && at.b != i {
				continue
			}
			if s.least > l.room[c] || at.b == none || l.slot[at.b].least > l.room[c] {
				if !l.look(c) {
					return false
				}
			}
		}
	}
	return true
}
