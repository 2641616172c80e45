package optimal

import "math/bits"

// pick is how a search chooses among the buffers that rest on placed ones.
type pick uint8

const (
	// low takes the lowest, the first by rank of equal ones.
	low pick = iota
	// tight takes, of the lowest, one of the section with the least room.
	tight
	// few takes, of the lowest, one of the section that the fewest buffers can be
	// the lowest of.
	few
	// reach takes the first by rank of all that lie below the lowest top: nothing
	// fits under them.
	reach
)

// rests tells whether waiting buffer i can be placed at its least: it was not put
// off, or it is fixed.
func (l *lane) rests(i int32) bool {
	s := &l.slot[i]
	return s.least <= s.ground || l.fixed[i] != Free
}

// lowest returns the first by rank of the lowest waiting buffers of the part that
// rest, or none; and the least of those that do not rest, far when there is none.
func (l *lane) lowest() (b int32, other int64) {
	p := &l.parts[l.now]
	b, other = none, far
	least := int64(far)
	for _, i := range l.lists[p.first:p.last] {
		switch s := &l.slot[i]; {
		case s.least >= least && s.least >= other || !l.waits(i):
		case !l.rests(i):
			other = min(other, s.least)
		case s.least < least:
			b, least = i, s.least
		}
	}
	return b, other
}

// pick chooses a buffer; lowest is the lowest.
func (l *lane) pick(lowest int32) int32 {
	p := &l.parts[l.now]
	list := l.lists[p.first:p.last]
	switch l.order.pick {
	case low:
		return lowest
	case reach:
		return l.inReach(list, lowest)
	}
	floor := l.slot[lowest].least
	best, least := lowest, int64(far)
	l.picks++
	for _, i := range list {
		s := &l.slot[i]
		if s.least != floor || !l.waits(i) || !l.rests(i) {
			continue
		}
		for c := s.lo; c < s.hi; c++ {
			if l.seen[c] == l.picks {
				continue
			}
			l.seen[c] = l.picks
			value := l.room[c]
			if l.order.pick == few {
				value = l.choices(c)
			}
			if value < least {
				best, least = i, value
			}
		}
	}
	return best
}

// inReach returns the first by rank of the buffers that lie below the top of all.
func (l *lane) inReach(list []int32, lowest int32) int32 {
	top := int64(far)
	for _, i := range list {
		if l.waits(i) {
			top = min(top, l.slot[i].least+l.slot[i].size)
		}
	}
	for _, i := range list {
		if l.slot[i].least < top && l.waits(i) && l.rests(i) && l.fixed[i] == Free {
			return i
		}
	}
	return lowest
}

// choices counts the buffers that can be the lowest of a section.
func (l *lane) choices(c int32) (n int64) {
	for w, set := range l.in[int(c)*l.words:][:l.words] {
		for set &= l.waiting[w]; set != 0; set &= set - 1 {
			if l.slot[w<<6+bits.TrailingZeros64(set)].least <= l.room[c] {
				n++
			}
		}
	}
	return n
}
