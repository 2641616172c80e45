package mempool

import "math"

// heuristic is one offline way to place the items of a part.
type heuristic struct {
	name string
	// suits says whether the heuristic can and should run on a part.
	suits func(p *Planner, pt *part) bool
	// place writes the offsets of the part's items to p.try and returns the
	// bytes that they need. Once it sees that these are limit or more it gives
	// up and returns noPlan.
	place func(p *Planner, pt *part, limit int64) int64
}

// noPlan is the size of a plan that is no better than the best.
const noPlan = math.MaxInt64

// heuristics are tried in this order, until one meets the lower bound. The
// first that is best wins.
var heuristics = [...]heuristic{
	{"largest-first", gapSuits, placeLargestFirst},
	{"rows", always, placeRows},
	{"load-rows", loadRowsSuits, placeLoadRows},
	{"skyline-duration", skylineSuits, placeSkylineDuration},
	{"skyline-load", skylineSuits, placeSkylineLoad},
	{"load-first", gapSuits, placeLoadFirst},
	{"area-first", gapSuits, placeAreaFirst},
	{"time-order-best-fit", noFixed, placeSnug},
	{Intervals.String(), noFixed, placeIntervals},
	{BestFit.String(), noFixed, placeBestFit},
	{FirstFit.String(), noFixed, placeFirstFit},
}

func always(*Planner, *part) bool { return true }

func noFixed(_ *Planner, pt *part) bool { return !pt.fixed }

// optimal plans part by part and returns the arena and the name of the
// heuristic that placed the largest part.
func (p *Planner) optimal() (arena int64, method string) {
	method = heuristics[0].name
	for i := range p.parts {
		top, name := p.solve(&p.parts[i], max(p.bound, arena))
		if top > arena {
			arena, method = top, name
		}
	}
	return arena, method
}

// solve places a part and returns its size. A size of goal is good enough: the
// arena is no smaller anyway.
func (p *Planner) solve(pt *part, goal int64) (top int64, method string) {
	p.replay.begin()
	p.gaps.begin()
	top = noPlan
	for i := range heuristics {
		h := &heuristics[i]
		if !h.suits(p, pt) {
			continue
		}
		if got := h.place(p, pt, top); got < top {
			top, method = got, h.name
			copy(p.best[pt.first:pt.last], p.try[pt.first:pt.last])
			if top <= goal {
				break
			}
		}
	}
	return top, method
}
