package mempool

import (
	"time"

	"goatb/mempool/optimal"
)

// An item that lives in all sections of a part may lie at the bottom of it: in
// any plan, what lies below the item can move up by its size. All such items
// together are the floor of the part. What is left often falls into parts of its
// own, which another planner plans above the floor.
//
// Moving up by a size keeps offsets aligned where all alignments are equal, and
// where nothing is fixed. Other parts have no floor. Like searches, floors are for
// parts of up to optimal.BuffersMax items: larger ones have no time for them.

// floorsMax bounds the floors on a floor; what is above them is searched as it
// is.
const floorsMax = 8

// floorOf returns the height of a part's floor.
func (p *Planner) floorOf(pt *part) (height int64) {
	if p.mixed || pt.fixed || p.floors >= floorsMax || pt.sections() == 1 {
		return 0
	}
	for k := pt.first; k < pt.last; k++ {
		if p.throughout(pt, k) {
			height += p.size[k]
		}
	}
	return height
}

func (p *problem) throughout(pt *part, k int) bool {
	return int(p.lo[k]) == pt.secFirst && int(p.hi[k]) == pt.secLast
}

// planAbove plans a part that has a floor and takes the plan where it is smaller.
func (p *Planner) planAbove(pt *part, floor int64, o optimal.Options) (optimal.Result, error) {
	if p.above == nil {
		p.above = &Planner{floors: p.floors + 1}
	}
	p.aboveItems = p.aboveItems[:0]
	for k := pt.first; k < pt.last; k++ {
		if !p.throughout(pt, k) {
			p.aboveItems = append(p.aboveItems, Item{Size: p.size[k], First: p.line.node(p.start[k]), Last: p.line.node(p.end[k]) - 1})
		}
	}
	r, err := p.above.Plan(p.aboveItems, aboveOptions(o, floor, p.alignMax))
	if err != nil {
		return optimal.Result{}, err
	}
	if top := floor + r.Arena; top < pt.top {
		pt.top, pt.method = top, r.Method
		p.takeAbove(pt, floor, r.Offsets)
	}
	bound := r.LowerBound
	if r.Optimal {
		bound = r.Arena
	}
	return optimal.Result{Bound: floor + bound, Nodes: r.Nodes}, nil
}

// aboveOptions are those of a search, for what lies above a floor.
func aboveOptions(o optimal.Options, floor, align int64) Options {
	out := Options{Solver: Optimal, Align: align, Capacity: o.Enough - floor, Nodes: o.Nodes, Threads: o.Threads}
	if o.Nodes == 0 {
		out.Nodes = -1
	}
	if !o.Deadline.IsZero() {
		out.Deadline = max(time.Until(o.Deadline), 1)
	}
	return out
}

// takeAbove puts the floor's items one on another, and the others above.
func (p *Planner) takeAbove(pt *part, floor int64, offsets []int64) {
	at := int64(0)
	for k, next := pt.first, 0; k < pt.last; k++ {
		if p.throughout(pt, k) {
			p.best[k] = at
			at += p.size[k]
			continue
		}
		p.best[k] = floor + offsets[next]
		next++
	}
}
