package mempool

// intervals splits and merges unused room: type 3 takes the lowest room that
// fits. With snug it takes the smallest that fits, the lowest of equal ones; the
// planner tries that as well.
//
// Used blocks and the gaps between them form a list in address order; two gaps
// are never neighbours, and the room after the last used block is no gap: the
// arena's end moves down with it.
type intervals struct {
	snug  bool
	spans []span // spans[0] closes the circle: its next is the lowest span
	gaps  freeTree
	spare int32 // dropped spans, linked by next
	end   int64
}

type span struct {
	offset, size int64
	prev, next   int32
	gap          bool
}

func (s *intervals) take(size int64) (int64, int32) {
	if len(s.spans) == 0 {
		s.reset()
	}
	b, ok := s.find(size)
	if !ok {
		b = s.link(s.spans[0].prev, span{offset: s.end, size: size})
		s.end += size
		return s.spans[b].offset, b
	}
	s.closeGap(b)
	offset, rest := s.spans[b].offset, s.spans[b].size-size
	s.spans[b].size = size
	if rest > 0 {
		s.openGap(s.link(b, span{offset: offset + size, size: rest}))
	}
	return offset, b
}

func (s *intervals) find(size int64) (int32, bool) {
	if s.snug {
		return s.gaps.from(size)
	}
	return s.gaps.first(size)
}

func (s *intervals) give(b int32) {
	if prev := s.spans[b].prev; prev != 0 && s.spans[prev].gap {
		s.closeGap(prev)
		s.spans[prev].size += s.spans[b].size
		s.unlink(b)
		b = prev
	}
	next := s.spans[b].next
	if next == 0 {
		s.end = s.spans[b].offset
		s.unlink(b)
		return
	}
	if s.spans[next].gap {
		s.closeGap(next)
		s.spans[b].size += s.spans[next].size
		s.unlink(next)
	}
	s.openGap(b)
}

func (s *intervals) openGap(b int32) {
	p := &s.spans[b]
	p.gap = true
	if s.snug {
		s.gaps.insert(p.size, p.offset, b)
	} else {
		s.gaps.insert(p.offset, p.size, b)
	}
}

func (s *intervals) closeGap(b int32) {
	p := &s.spans[b]
	p.gap = false
	if s.snug {
		s.gaps.remove(p.size, p.offset)
	} else {
		s.gaps.remove(p.offset, p.size)
	}
}

// link puts a span after another one and returns its number.
func (s *intervals) link(after int32, p span) int32 {
	b := s.spare
	if b != 0 {
		s.spare = s.spans[b].next
	} else {
		s.spans = append(s.spans, span{})
		b = int32(len(s.spans) - 1)
	}
	p.prev, p.next = after, s.spans[after].next
	s.spans[b] = p
	s.spans[p.prev].next, s.spans[p.next].prev = b, b
	return b
}

func (s *intervals) unlink(b int32) {
	p := &s.spans[b]
	s.spans[p.prev].next, s.spans[p.next].prev = p.next, p.prev
	p.next, s.spare = s.spare, b
}

func (s *intervals) reset() {
	s.spans = append(s.spans[:0], span{})
	s.gaps.reset()
	s.spare, s.end = 0, 0
}
