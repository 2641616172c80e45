package mempool

import (
	"cmp"
	"slices"
)

// gapFinder places items of a part one by one, each at the lowest offset where
// it fits between the items that are placed already and live together with it.
//
// A small or crowded part keeps all placed items in one list by offset and looks
// through it. Another one keeps, for each item, the list of items that overlap
// it in time: the cost of a placement is then the number of those.
type gapFinder struct {
	near   []int32 // items that overlap in time, one list per item
	starts []int32 // where item k's list starts in near, from the part's first item on
	listed bool    // near is that of the part at hand
	done   []bool  // with lists: by item, from the part's first on
	nearby []rect  // with lists: the placed items of one list, by offset
	placed []rect  // without lists: all placed items, by offset
	active []int32 // the items that are live in a sweep
}

// rect is a placed item: bytes [offset, top) in sections [lo, hi).
type rect struct {
	offset, top int64
	lo, hi      int32
}

const (
	// smallPart is the number of items up to which a part is small. A part of
	// up to scanMax items is crowded when lists would be long: when the square of
	// its size is less than scanPairs times the number of overlapping pairs.
	smallPart = 64
	scanMax   = 4096
	scanPairs = 40
	// pairsPerItem and pairsFree limit the pairs of overlapping items that
	// lists are made for: beyond, time and memory grow too fast.
	pairsPerItem = 24
	pairsFree    = 1 << 18
)

// begin makes the finder ready for another part.
func (g *gapFinder) begin() { g.listed = false }

// scans says that a part does without lists.
func (pt *part) scans() bool {
	n := int64(pt.items())
	return n <= smallPart || n <= scanMax && n*n < scanPairs*pt.pairs
}

// gapSuits refuses large parts with too many overlapping pairs.
func gapSuits(_ *Planner, pt *part) bool {
	return pt.scans() || pt.pairs <= pairsFree+pairsPerItem*int64(pt.items())
}

// run places the items of a part in the given order, fixed ones first. It
// gives up, with noPlan, when they need limit bytes or more.
func (g *gapFinder) run(p *problem, pt *part, order []int32, limit int64, out []int64) int64 {
	scan := pt.scans()
	g.placed = g.placed[:0]
	if !scan {
		g.list(p, pt)
		g.done = zeroed(g.done, pt.items())
	}
	top := int64(0)
	if pt.fixed {
		top = g.keepFixed(p, pt, scan, out)
	}
	for _, k := range order {
		if p.fixed[k] >= 0 {
			continue
		}
		near := g.placed
		if !scan {
			near = g.around(p, pt, k, out)
		}
		offset := lowestGap(near, p.lo[k], p.hi[k], p.size[k], p.align[k])
		top = max(top, offset+p.size[k])
		if top >= limit {
			return noPlan
		}
		out[k] = offset
		g.put(p, pt, k, scan, offset)
	}
	return top
}

func (g *gapFinder) keepFixed(p *problem, pt *part, scan bool, out []int64) (top int64) {
	for k := pt.first; k < pt.last; k++ {
		if offset := p.fixed[k]; offset >= 0 {
			out[k] = offset
			g.put(p, pt, int32(k), scan, offset)
			top = max(top, offset+p.size[k])
		}
	}
	return top
}

// put notes that item k is placed.
func (g *gapFinder) put(p *problem, pt *part, k int32, scan bool, offset int64) {
	if !scan {
		g.done[int(k)-pt.first] = true
		return
	}
	g.placed = append(g.placed, rect{})
	at := len(g.placed) - 1
	for ; at > 0 && g.placed[at-1].offset > offset; at-- {
		g.placed[at] = g.placed[at-1]
	}
	g.placed[at] = rect{offset: offset, top: offset + p.size[k], lo: p.lo[k], hi: p.hi[k]}
}

// lowestGap returns the lowest offset for an item of sections lo to hi-1 among
// rects in the order of their offsets.
func lowestGap(near []rect, lo, hi int32, size, align int64) int64 {
	offset := int64(0)
	for i := range near {
		r := &near[i]
		if r.lo >= hi || lo >= r.hi {
			continue
		}
		if r.offset >= offset+size {
			break
		}
		if r.top > offset {
			offset = alignUp(r.top, align)
		}
	}
	return offset
}

// around returns the placed items that overlap item k in time, by offset.
func (g *gapFinder) around(p *problem, pt *part, k int32, out []int64) []rect {
	g.nearby = g.nearby[:0]
	i := int(k) - pt.first
	for _, j := range g.near[g.starts[i]:g.starts[i+1]] {
		if g.done[int(j)-pt.first] {
			g.nearby = append(g.nearby, rect{offset: out[j], top: out[j] + p.size[j], lo: p.lo[j], hi: p.hi[j]})
		}
	}
	sortRects(g.nearby)
	return g.nearby
}

func sortRects(rects []rect) {
	if len(rects) > insertionMax {
		slices.SortFunc(rects, func(a, b rect) int { return cmp.Compare(a.offset, b.offset) })
		return
	}
	for i := 1; i < len(rects); i++ {
		r, at := rects[i], i
		for ; at > 0 && rects[at-1].offset > r.offset; at-- {
			rects[at] = rects[at-1]
		}
		rects[at] = r
	}
}

// list makes the lists of items that overlap in time.
func (g *gapFinder) list(p *problem, pt *part) {
	if g.listed {
		return
	}
	g.listed = true
	n := pt.items()
	g.starts = zeroed(g.starts, n+1)
	g.sweep(p, pt, func(k, j int32) {
		g.starts[int(k)-pt.first]++
		g.starts[int(j)-pt.first]++
	})
	sum := int32(0)
	for i, count := range g.starts {
		sum += count
		g.starts[i] = sum
	}
	g.near = grow(g.near, int(sum))
	g.sweep(p, pt, func(k, j int32) {
		a, b := &g.starts[int(k)-pt.first], &g.starts[int(j)-pt.first]
		*a--
		*b--
		g.near[*a], g.near[*b] = j, k
	})
}

// sweep calls pair for every two items of a part that overlap in time.
func (g *gapFinder) sweep(p *problem, pt *part, pair func(k, j int32)) {
	g.active = g.active[:0]
	for k := int32(pt.first); k < int32(pt.last); k++ {
		live := g.active[:0]
		for _, j := range g.active {
			if p.hi[j] > p.lo[k] {
				live = append(live, j)
				pair(k, j)
			}
		}
		g.active = append(live, k)
	}
}
