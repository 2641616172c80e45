package mempool

import "math"

// rows fills an outline of heights over the sections of a part from below. It
// goes to a valley, a step whose neighbours are higher, and puts an item into it
// that lies within the step. A valley that no item fits is raised to its lower
// neighbour: that room is lost.
//
// Without loads it takes the item that starts first, and the longest of those.
// Where all sizes are equal this colours an interval graph with as few colours
// as possible, in O(n log n) for any input.
//
// With loads it looks at a few more of them and takes the one that leaves the
// least load beside it: load is the total of the items of a section that are not
// placed yet, and room lost over a large load makes the arena grow.
type rows struct {
	outline outline
	base    int // the part's first section; all sections below count from it
	byLoad  bool
	load    loadTree // by section: bytes that are not placed yet

	// The items by first section, then by last section descending, then by
	// size descending. A place is an index of sorted.
	sorted []int32
	bucket []int32 // by section: the first place of the items that start there
	skip   []int32 // by place: this place when it is not taken, else one nearer to the next such
	tail   []int32 // by section: the last place that is not taken
	ends   minTree // by section: the smallest end of the items that start there
}

const (
	// rowTries is the number of items that the choice by load looks at.
	rowTries = 32
	// loadRowsFree and loadRowsPairs limit the choice by load: parts of more
	// than loadRowsFree items with more than loadRowsPairs overlapping pairs per
	// item take too long.
	loadRowsFree  = 1 << 15
	loadRowsPairs = 64
)

func loadRowsSuits(_ *Planner, pt *part) bool {
	return pt.items() <= loadRowsFree || pt.pairs <= loadRowsPairs*int64(pt.items())
}

func placeRows(p *Planner, pt *part, limit int64) int64 {
	return p.placeRows(pt, limit, false)
}

func placeLoadRows(p *Planner, pt *part, limit int64) int64 {
	return p.placeRows(pt, limit, true)
}

func (p *Planner) placeRows(pt *part, limit int64, byLoad bool) int64 {
	order := p.numbers(pt)
	p.bySize(order)
	for _, k := range order {
		p.orderer.key[k] = uint64(p.lo[k])<<32 | uint64(^uint32(p.hi[k]))
	}
	p.orderer.sort(order)
	if p.rows.byLoad = byLoad; byLoad {
		p.rows.load.build(p.total[pt.secFirst:pt.secLast])
	}
	return p.rows.run(&p.problem, pt, order, limit, p.try)
}

func (r *rows) run(p *problem, pt *part, sorted []int32, limit int64, out []int64) int64 {
	r.base, r.sorted = pt.secFirst, sorted
	r.outline.reset(pt.sections())
	r.index(p, pt.sections())
	top, left := int64(0), len(sorted)
	if pt.fixed {
		var kept int
		top, kept = r.keepFixed(p, out)
		left -= kept
	}
	for at := 0; left > 0; {
		v := r.descend(at)
		place := r.choose(p, v)
		if place < 0 {
			if r.byLoad && min(v.leftHeight, v.rightHeight) >= limit-r.load.max(v.at, v.end) {
				return noPlan
			}
			at = r.raise(v)
			continue
		}
		k := sorted[place]
		r.drop(p, place)
		left--
		out[k] = alignUp(v.height, p.align[k])
		if top = max(top, out[k]+p.size[k]); top >= limit {
			return noPlan
		}
		at = r.cover(p, k, out[k]+p.size[k], v)
	}
	return top
}

// valley is a step of the outline whose neighbours are higher.
type valley struct {
	at, end     int // sections at to end-1
	height      int64
	left        int   // start of the step before, -1 when there is none
	leftHeight  int64 // noPlan when there is none
	rightHeight int64
}

// descend goes down from the step at at, joining equal steps, until both
// neighbours are higher.
func (r *rows) descend(at int) valley {
	o := &r.outline
	v := valley{at: at, height: o.height[at]}
	for {
		v.end, v.rightHeight = o.next(v.at), noPlan
		if v.end < o.n {
			v.rightHeight = o.height[v.end]
		}
		if v.rightHeight == v.height {
			o.starts.remove(v.end)
			continue
		}
		if v.rightHeight < v.height {
			v.at, v.height = v.end, v.rightHeight
			continue
		}
		v.left, v.leftHeight = -1, noPlan
		if v.at > 0 {
			v.left = o.starts.upTo(v.at - 1)
			v.leftHeight = o.height[v.left]
		}
		if v.leftHeight > v.height {
			return v
		}
		if v.leftHeight == v.height {
			o.starts.remove(v.at)
		}
		v.at, v.height = v.left, v.leftHeight
	}
}

// raise lifts a valley to its lower neighbour and returns the start of the step
// that it becomes a part of.
func (r *rows) raise(v valley) int {
	o := &r.outline
	if v.leftHeight <= v.rightHeight {
		o.starts.remove(v.at)
		return v.left
	}
	o.starts.remove(v.end)
	o.height[v.at] = v.rightHeight
	return v.at
}

// cover puts item k, with the given top, into a valley and returns the start of
// a step to go on with.
func (r *rows) cover(p *problem, k int32, top int64, v valley) int {
	lo, hi := int(p.lo[k])-r.base, int(p.hi[k])-r.base
	if r.byLoad {
		r.load.add(lo, hi, -p.size[k])
	}
	r.outline.set(lo, hi, top)
	if lo == v.at && hi < v.end {
		return hi
	}
	return v.at
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

// choose returns the place of the item to put into a valley, or -1.
func (r *rows) choose(p *problem, v valley) int {
	s := r.ends.first(v.at, int32(v.end))
	if s < 0 {
		return -1
	}
	best := r.longest(p, s, v.end)
	if !r.byLoad {
		return best
	}
	least, before := r.load.max(v.at, v.end), int64(math.MinInt64)
	from := v.at // before is the largest load from the valley's start to from
	for range rowTries {
		if s > from {
			before = max(before, r.load.max(from, s))
			from = s
		}
		if before >= least {
			break
		}
		place := r.longest(p, s, v.end)
		beside := before
		if hi := int(p.hi[r.sorted[place]]) - r.base; hi < v.end {
			beside = max(before, r.load.max(hi, v.end))
		}
		if beside < least {
			least, best = beside, place
		}
		if s++; s < v.end {
			s = r.ends.first(s, int32(v.end))
		}
		if s < 0 || s >= v.end {
			break
		}
	}
	return best
}

// longest returns the place of the longest item of bucket s that ends at end or
// before; there is one.
func (r *rows) longest(p *problem, s, end int) int {
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

// keepFixed takes the fixed items out of the index and raises the outline over
// them.
func (r *rows) keepFixed(p *problem, out []int64) (top int64, kept int) {
	for place, k := range r.sorted {
		if p.fixed[k] < 0 {
			continue
		}
		kept++
		r.drop(p, place)
		if r.byLoad {
			r.load.add(int(p.lo[k])-r.base, int(p.hi[k])-r.base, -p.size[k])
		}
		out[k] = p.fixed[k]
		end := out[k] + p.size[k]
		top = max(top, end)
		for s := int(p.lo[k]) - r.base; s < int(p.hi[k])-r.base; s++ {
			if h := r.outline.top(s, s+1); h < end {
				r.outline.set(s, s+1, end)
			}
		}
	}
	return top, kept
}
