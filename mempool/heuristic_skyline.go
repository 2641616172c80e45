package mempool

// skyline places, again and again, the item whose lowest possible offset on top
// of the placed ones is smallest. Items of equal offset go by rank.
type skyline struct {
	waiting []candidate // by rank
	fixed   []candidate
}

// candidate is an item that is not placed yet.
type candidate struct {
	item   int32
	lo, hi int32
	offset int64 // top of the placed items that overlap it in time, aligned
	size   int64
}

// skylineMax is the number of items up to which its quadratic time is small.
const skylineMax = 2048

func skylineSuits(_ *Planner, pt *part) bool { return pt.items() <= skylineMax }

// placeSkylineDuration ranks by duration, then area, then load.
func placeSkylineDuration(p *Planner, pt *part, limit int64) int64 {
	order := p.numbers(pt)
	p.byLoad(pt, order)
	p.byArea(order)
	p.byDuration(order)
	return p.sky.run(&p.problem, pt, order, limit, p.try)
}

// placeSkylineLoad ranks by load, then area, then duration.
func placeSkylineLoad(p *Planner, pt *part, limit int64) int64 {
	order := p.numbers(pt)
	p.byDuration(order)
	p.byArea(order)
	p.byLoad(pt, order)
	return p.sky.run(&p.problem, pt, order, limit, p.try)
}

func (s *skyline) run(p *problem, pt *part, rank []int32, limit int64, out []int64) int64 {
	s.waiting = s.waiting[:0]
	for _, k := range rank {
		s.waiting = append(s.waiting, candidate{item: k, lo: p.lo[k], hi: p.hi[k], size: p.size[k]})
	}
	top := int64(0)
	if pt.fixed {
		top = s.keepFixed(p, out)
	}
	var last candidate // placed in the step before
	for len(s.waiting) > 0 {
		next := s.raise(p, last)
		last = s.waiting[next]
		out[last.item] = last.offset
		top = max(top, last.offset+last.size)
		if top >= limit {
			return noPlan
		}
		s.waiting = append(s.waiting[:next], s.waiting[next+1:]...)
	}
	return top
}

// raise lifts the candidates that overlap the item placed last onto it, and
// returns the place of the lowest candidate.
func (s *skyline) raise(p *problem, last candidate) int {
	top, next := last.offset+last.size, 0
	for i := range s.waiting {
		c := &s.waiting[i]
		if c.lo < last.hi && last.lo < c.hi && c.offset < top {
			c.offset = alignUp(top, p.align[c.item])
		}
		if c.offset < s.waiting[next].offset {
			next = i
		}
	}
	return next
}

// keepFixed takes the fixed items out of the list and puts all others above
// those that they overlap.
func (s *skyline) keepFixed(p *problem, out []int64) (top int64) {
	s.fixed = s.fixed[:0]
	free := s.waiting[:0]
	for _, c := range s.waiting {
		if c.offset = p.fixed[c.item]; c.offset >= 0 {
			out[c.item] = c.offset
			top = max(top, c.offset+c.size)
			s.fixed = append(s.fixed, c)
			continue
		}
		c.offset = 0
		free = append(free, c)
	}
	s.waiting = free
	for _, f := range s.fixed {
		s.raise(p, f)
	}
	return top
}
