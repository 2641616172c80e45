package mempool

import (
	"time"

	"goatb/mempool/optimal"
	"goatb/status"
)

// search looks for smaller plans of the parts that need more than enough, the
// largest first: the arena is as large as the largest part, so a part need not
// become smaller than one that was searched before.
func (p *Planner) search(o Options, enough int64, out *Result) error {
	small, work := o.Nodes == 0 && o.Deadline == 0, int64(SearchWork)
	search := optimal.Options{Nodes: max(o.Nodes, 0), Enough: enough, Threads: o.Threads}
	proven := p.bound
	for pt := p.largest(); pt != nil && pt.top > search.Enough; pt = p.largest() {
		pt.searched = true
		if small {
			search.Nodes = work / int64(pt.items())
		}
		if pt.items() <= optimal.BuffersMax && (search.Nodes > 0 || !small && o.Nodes <= 0) {
			if o.Deadline > 0 && search.Deadline.IsZero() {
				search.Deadline = time.Now().Add(o.Deadline)
			}
			r, err := p.searchPart(pt, search)
			if err != nil {
				return status.Errorf(status.ErrInternal, "search: %w", err)
			}
			proven = max(proven, r.Bound)
			out.Nodes += r.Nodes
			work -= r.Nodes * int64(pt.items())
			search.Nodes = max(search.Nodes-r.Nodes, 0)
		}
		search.Enough = max(search.Enough, pt.top)
	}
	out.Optimal = p.top() <= proven
	return nil
}

// searchPart searches one part: what is above its floor, or all of it.
func (p *Planner) searchPart(pt *part, o optimal.Options) (optimal.Result, error) {
	if floor := p.floorOf(pt); floor > 0 {
		return p.planAbove(pt, floor, o)
	}
	p.buffersOf(pt)
	o.Below = pt.top
	r, err := p.exact.Solve(p.buffers, pt.sections(), o)
	if r.Offsets != nil {
		copy(p.best[pt.first:pt.last], r.Offsets)
		pt.top, pt.method = r.Arena, r.Order
	}
	return r, err
}

// buffersOf lists the items of a part as buffers of its sections.
func (p *Planner) buffersOf(pt *part) {
	p.buffers = p.buffers[:0]
	base := int32(pt.secFirst)
	for k := pt.first; k < pt.last; k++ {
		p.buffers = append(p.buffers, optimal.Buffer{Lower: p.lo[k] - base, Upper: p.hi[k] - base, Size: p.size[k],
			Align: p.align[k], Fixed: p.fixed[k], Life: p.line.node(p.end[k]) - p.line.node(p.start[k])})
	}
}

// largest returns the largest part that was not searched, nil when there is
// none.
func (p *Planner) largest() *part {
	var best *part
	for i := range p.parts {
		if pt := &p.parts[i]; !pt.searched && (best == nil || pt.top > best.top) {
			best = pt
		}
	}
	return best
}

// top returns the arena.
func (p *Planner) top() int64 {
	top := int64(0)
	for i := range p.parts {
		top = max(top, p.parts[i].top)
	}
	return top
}
