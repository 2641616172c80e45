package mempool

// rows fills an outline of heights over the sections of a part from below. It
// takes the lowest step, the first of equal ones, and puts an item on it that
// lies within the step: the one that starts first, the longest of those. A step
// that no item fits is raised to its lower neighbour.
//
// Where all sizes are equal this colours an interval graph with as few colours
// as possible; its time is O(n log n) for any input.
type rows struct {
	outline outline
	steps   stepQueue
	base    int // the part's first section; all sections below count from it

	// The items by first section, then by last section descending, then by
	// size descending. A place is an index of sorted.
	sorted []int32
	bucket []int32 // by section: the first place of the items that start there
	skip   []int32 // by place: this place when it is not taken, else one nearer to the next such
	tail   []int32 // by section: a place at or after the last one not taken
	ends   minTree // by section: the smallest end of the items that start there
}

func placeRows(p *Planner, pt *part, limit int64) int64 {
	order := p.numbers(pt)
	for _, k := range order {
		p.orderer.key[k] = ^uint64(p.size[k])
	}
	p.orderer.sort(order)
	for _, k := range order {
		p.orderer.key[k] = uint64(p.lo[k])<<32 | uint64(^uint32(p.hi[k]))
	}
	p.orderer.sort(order)
	return p.rows.run(&p.problem, pt, order, limit, p.try)
}

func (r *rows) run(p *problem, pt *part, sorted []int32, limit int64, out []int64) int64 {
	r.base, r.sorted = pt.secFirst, sorted
	r.outline.reset(pt.sections())
	r.steps.reset()
	r.steps.push(step{})
	r.index(p, pt.sections())
	top, left := int64(0), len(sorted)
	if pt.fixed {
		var kept int
		top, kept = r.keepFixed(p, out)
		left -= kept
	}
	for left > 0 {
		s := r.steps.pop()
		if !r.outline.starts.has(s.at) || r.outline.height[s.at] != s.height {
			continue
		}
		end := r.merge(s)
		place := r.find(p, s.at, end)
		if place < 0 {
			r.raise(s, end)
			continue
		}
		k := sorted[place]
		r.drop(p, place)
		left--
		out[k] = alignUp(s.height, p.align[k])
		if top = max(top, out[k]+p.size[k]); top >= limit {
			return noPlan
		}
		r.cover(p, k, out[k]+p.size[k], s, end)
	}
	return top
}

// index fills bucket, skip, tail and ends.
func (r *rows) index(p *problem, sections int) {
	n := len(r.sorted)
	r.bucket, r.tail, r.skip = grow(r.bucket, sections+1), grow(r.tail, sections), grow(r.skip, n+1)
	place := 0
	for s := range sections {
		r.bucket[s] = int32(place)
		for place < n && int(p.lo[r.sorted[place]])-r.base == s {
			place++
		}
		r.tail[s] = int32(place - 1)
	}
	r.bucket[sections] = int32(n)
	for i := range r.skip {
		r.skip[i] = int32(i)
	}
	r.ends.reset(sections)
	for s := range sections {
		if r.tail[s] >= r.bucket[s] {
			r.ends.node[r.ends.n+s] = p.hi[r.sorted[r.tail[s]]] - int32(r.base)
		}
	}
	r.ends.build()
}

// merge joins the step with equal ones after it and returns its end.
func (r *rows) merge(s step) int {
	end := r.outline.next(s.at)
	for end < r.outline.n && r.outline.height[end] == s.height {
		r.outline.starts.remove(end)
		end = r.outline.next(end)
	}
	return end
}

// find returns the place of the item to put on sections at to end-1, or -1.
func (r *rows) find(p *problem, at, end int) int {
	s := r.ends.first(at, int32(end))
	if s < 0 {
		return -1
	}
	lo, hi := int(r.bucket[s]), int(r.tail[s])
	for lo < hi {
		if mid := (lo + hi) / 2; int(p.hi[r.sorted[mid]])-r.base <= end {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return int(r.unskip(int32(lo)))
}

// unskip returns the first place from i on that is not taken.
func (r *rows) unskip(i int32) int32 {
	for r.skip[i] != i {
		r.skip[i] = r.skip[r.skip[i]]
		i = r.skip[i]
	}
	return i
}

// drop takes a place out of the index.
func (r *rows) drop(p *problem, place int) {
	r.skip[place] = int32(place) + 1
	s := int(p.lo[r.sorted[place]]) - r.base
	if int(r.tail[s]) != place {
		return
	}
	i := int32(place) - 1
	for i >= r.bucket[s] && r.skip[i] != i {
		i--
	}
	r.tail[s] = i
	if i >= r.bucket[s] {
		r.ends.set(s, p.hi[r.sorted[i]]-int32(r.base))
	} else {
		r.ends.set(s, none)
	}
}

// cover puts item k, with the given top, on the step s that ends at end.
func (r *rows) cover(p *problem, k int32, top int64, s step, end int) {
	lo, hi := int(p.lo[k])-r.base, int(p.hi[k])-r.base
	r.outline.set(lo, hi, top)
	r.steps.push(step{at: lo, height: top})
	if s.at < lo {
		r.steps.push(s)
	}
	if hi < end {
		r.steps.push(step{at: hi, height: s.height})
	}
}

// raise lifts a step to its lower neighbour.
func (r *rows) raise(s step, end int) {
	o := &r.outline
	left, height := -1, int64(noPlan)
	if s.at > 0 {
		left = o.starts.upTo(s.at - 1)
		height = o.height[left]
	}
	if end < o.n {
		height = min(height, o.height[end])
	}
	if left >= 0 && o.height[left] == height {
		o.starts.remove(s.at)
		s.at = left
	}
	o.height[s.at] = height
	r.steps.push(step{at: s.at, height: height})
}

// keepFixed takes the fixed items out of the index and raises the outline over
// them.
func (r *rows) keepFixed(p *problem, out []int64) (top int64, kept int) {
	for place, k := range r.sorted {
		if p.fixed[k] < 0 {
			continue
		}
		kept++
		r.drop(p, place)
		out[k] = p.fixed[k]
		end := out[k] + p.size[k]
		top = max(top, end)
		for s := int(p.lo[k]) - r.base; s < int(p.hi[k])-r.base; s++ {
			if h := r.outline.top(s, s+1); h < end {
				r.outline.set(s, s+1, end)
			}
		}
	}
	if kept > 0 {
		r.steps.reset()
		for at := 0; at < r.outline.n; at = r.outline.next(at) {
			r.steps.push(step{at: at, height: r.outline.height[at]})
		}
	}
	return top, kept
}
