package mempool

import "math"

// The heuristics of this file order the items and place each at the lowest gap
// that fits.

func placeLargestFirst(p *Planner, pt *part, limit int64) int64 {
	order := p.numbers(pt)
	p.bySize(order)
	return p.gaps.run(&p.problem, pt, order, limit, p.try)
}

func placeAreaFirst(p *Planner, pt *part, limit int64) int64 {
	order := p.numbers(pt)
	p.byArea(order)
	return p.gaps.run(&p.problem, pt, order, limit, p.try)
}

// placeLoadFirst begins where memory is tightest: with the items of the
// sections with the largest totals, long ones first.
func placeLoadFirst(p *Planner, pt *part, limit int64) int64 {
	order := p.numbers(pt)
	p.bySize(order)
	p.byDuration(order)
	p.byLoad(pt, order)
	return p.gaps.run(&p.problem, pt, order, limit, p.try)
}

// numbers lists the items of a part in their own order, ready for sorting.
func (p *Planner) numbers(pt *part) []int32 {
	p.order, p.orderer.key = grow(p.order, pt.items()), grow(p.orderer.key, p.n())
	for i := range p.order {
		p.order[i] = int32(pt.first + i)
	}
	return p.order
}

// bySize, byDuration, byArea and byLoad sort, the largest first; equal ones stay
// as they are.
func (p *Planner) bySize(order []int32) {
	for _, k := range order {
		p.orderer.key[k] = ^uint64(p.size[k])
	}
	p.orderer.sort(order)
}

func (p *Planner) byDuration(order []int32) {
	for _, k := range order {
		p.orderer.key[k] = ^uint64(p.hi[k] - p.lo[k])
	}
	p.orderer.sort(order)
}

func (p *Planner) byArea(order []int32) {
	for _, k := range order {
		p.orderer.key[k] = ^math.Float64bits(float64(p.size[k]) * float64(p.hi[k]-p.lo[k]))
	}
	p.orderer.sort(order)
}

func (p *Planner) byLoad(pt *part, order []int32) {
	p.loads.build(p.total[pt.secFirst:pt.secLast])
	for _, k := range order {
		load := p.loads.max(int(p.lo[k])-pt.secFirst, int(p.hi[k])-pt.secFirst)
		p.orderer.key[k] = ^uint64(load)
	}
	p.orderer.sort(order)
}
