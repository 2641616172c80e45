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

// optimal plans part by part, first with heuristics, then by layers that
// repeat, then with searches, and fills in the result.
func (p *Planner) optimal(items []Item, o Options, out *Result) error {
	enough := max(p.bound, o.Capacity)
	for i := range p.parts {
		p.solve(&p.parts[i], enough)
	}
	p.byLayers(items, o, enough, out)
	if err := p.search(o, enough, out); err != nil {
		return err
	}
	out.Method = heuristics[0].name
	for i := range p.parts {
		if pt := &p.parts[i]; pt.top > out.Arena {
			out.Arena, out.Method = pt.top, pt.method
		}
	}
	return nil
}

// solve places a part with the best heuristic. A size of enough is good enough.
func (p *Planner) solve(pt *part, enough int64) {
	p.replay.begin()
	p.gaps.begin()
	pt.top = noPlan
	for i := range heuristics {
		h := &heuristics[i]
		if !h.suits(p, pt) {
			continue
		}
		if got := h.place(p, pt, pt.top); got < pt.top {
			pt.top, pt.method = got, h.name
			copy(p.best[pt.first:pt.last], p.try[pt.first:pt.last])
			if got <= enough {
				break
			}
		}
	}
}
