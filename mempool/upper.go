package mempool

import (
	"math/bits"
	"slices"
)

// UpperBound keeps the plan of the largest sizes that the items of a graph have
// had, for graphs whose shapes change from call to call. A plan for some sizes
// is one for all smaller sizes too, as long as lifetimes stay: so addresses stay
// where they are and nothing is planned anew until a size grows. Keep one for
// each bucket of shapes.
//
// The zero UpperBound is ready. It belongs to one goroutine.
type UpperBound struct {
	// Waste is how much larger than the lower bound of the items at hand an
	// arena may be, in percent of the bound; a plan that wastes more is made for
	// the items alone. 0 allows any waste.
	Waste int64

	items   []Item
	options Options
	plan    Result
}

// Plan returns a plan for the items: the kept one when it holds them, which
// reused reports, else a new one for the largest sizes of these and all before.
// Items with other lifetimes, alignments or fixed offsets than before, or in
// another number, start anew. LowerBound, PeakAt and Optimal are those of the
// sizes that were planned. The offsets belong to u and hold until its next Plan.
//
// Errors: those of Planner.Plan; the kept plan stays.
func (u *UpperBound) Plan(p *Planner, items []Item, o Options) (r Result, reused bool, err error) {
	kept := u.plan.Offsets != nil && u.options == o && len(u.items) == len(items)
	holds := kept
	for i := range items {
		if !kept {
			break
		}
		a, b := u.items[i], items[i]
		holds = holds && b.Size <= a.Size
		a.Size, b.Size = 0, 0
		kept = a == b
	}
	if kept && holds {
		if err := p.load(items, o); err != nil {
			return Result{}, false, err
		}
		if u.Waste == 0 || within(u.plan.Arena, p.bound, u.Waste) {
			return u.plan, true, nil
		}
		r, err := p.Plan(items, o)
		return r, false, err
	}
	most := slices.Clone(items)
	for i := range most {
		if kept {
			most[i].Size = max(most[i].Size, u.items[i].Size)
		}
	}
	r, err = p.Plan(most, o)
	if err != nil {
		return Result{}, false, err
	}
	r.Offsets = slices.Clone(r.Offsets)
	u.items, u.options, u.plan = most, o, r
	return r, false, nil
}

// within reports whether an arena is at most `percent` larger than a bound.
func within(arena, bound, percent int64) bool {
	hi, lo := bits.Mul64(uint64(arena), 100)
	most, mostLo := bits.Mul64(uint64(bound), uint64(100+percent))
	return hi < most || hi == most && lo <= mostLo
}
