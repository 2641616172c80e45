package mempool

import (
	"cmp"
	"math"
	"slices"
)

// Repeated layers of a graph make runs of items that repeat: the same sizes and
// lifetimes again and again, a fixed number of nodes apart. It is enough to plan
// a few layers. Cut the run at the start of a layer and take out some layers
// behind it: what crosses the cut looks the same on both sides, so the shorter
// problem is planned as any other. Then plan one window of layers in which what
// crosses its start, and what crosses its end, lies where it lies at the cut;
// copies of this window fill the gap.

const (
	// layersMin is the number of layers from which it pays to look for them.
	layersMin = 6
	// windowMax is the largest number of layers in a window.
	windowMax = 4
	// periodsTried is the number of periods that are looked at.
	periodsTried = 64
)

// repetition is a run of items that repeat.
type repetition struct {
	order []int32 // items in the order of their start
	first int     // position in order of the first layer
	items int     // items of a layer
	count int     // layers
	shift int64   // nodes from one layer to the next
	// reach is the number of layers behind its own that an item lives into.
	reach int
}

// findLayers looks for a run that covers the middle of the items, and most of
// them. The order lists the items that take room by their start; items that start
// together are put into an order that does not depend on the caller's.
func findLayers(items []Item, order []int32) (repetition, bool) {
	for lo := 0; lo < len(order); {
		hi := lo + 1
		for hi < len(order) && items[order[hi]].First == items[order[lo]].First {
			hi++
		}
		slices.SortFunc(order[lo:hi], func(i, j int32) int {
			a, b := &items[i], &items[j]
			return cmp.Or(cmp.Compare(a.Last, b.Last), cmp.Compare(a.Size, b.Size), cmp.Compare(a.Align, b.Align), cmp.Compare(i, j))
		})
		lo = hi
	}
	r := repetition{order: order}
	n, mid := len(order), len(order)/2
	tried := 0
	for period := 1; period <= n/layersMin && tried < periodsTried; period++ {
		if !r.same(items, mid, mid+period) {
			continue
		}
		tried++
		lo, hi := mid, mid // positions at which the item a period later is the same
		for lo > 0 && r.same(items, lo-1, lo-1+period) {
			lo--
		}
		for hi+period < n && r.same(items, hi, hi+period) {
			hi++
		}
		if r.settle(items, lo, hi+period, period) {
			return r, true
		}
	}
	return r, false
}

// same reports whether the items at two positions of the order are alike, and
// as far behind the ones before them.
func (r *repetition) same(items []Item, i, j int) bool {
	a, b := &items[r.order[i]], &items[r.order[j]]
	if a.Size != b.Size || a.Align != b.Align || a.Last-a.First != b.Last-b.First {
		return false
	}
	return r.step(items, i) == r.step(items, j)
}

// step returns how many nodes after the item before it the item at a position
// starts.
func (r *repetition) step(items []Item, i int) int64 {
	if i == 0 {
		return math.MaxInt64
	}
	return items[r.order[i]].First - items[r.order[i-1]].First
}

// settle makes layers of the positions lo to hi-1, which repeat with a period.
// A layer starts with an item that starts later than the one before it. Items
// from before the run end before its first layer or behind its last.
func (r *repetition) settle(items []Item, lo, hi, period int) bool {
	before := r.order[:lo]
	for lo < hi && (lo == 0 || r.step(items, lo) == 0) {
		lo++
	}
	for ; ; lo += period {
		r.first, r.items, r.count = lo, period, (hi-lo)/period
		if r.count < layersMin {
			return false
		}
		start := items[r.order[lo]].First
		r.shift = items[r.order[lo+period]].First - start
		end := start + int64(r.count)*r.shift
		if !slices.ContainsFunc(before, func(i int32) bool { return items[i].Last >= start && items[i].Last < end }) {
			break
		}
	}
	r.reach = 0
	for _, i := range r.order[r.first:][:r.items] {
		into := (items[i].Last - r.start(items, 0)) / r.shift
		r.reach = max(r.reach, int(min(into, int64(r.count))))
	}
	return 2*r.count*r.items >= len(r.order) && r.count >= 2*r.reach+layersMin
}

// start returns the first node of a layer.
func (r *repetition) start(items []Item, layer int) int64 {
	return items[r.order[r.first]].First + int64(layer)*r.shift
}

// layer returns the items of a layer.
func (r *repetition) layer(k int) []int32 { return r.order[r.first+k*r.items:][:r.items] }

// layered is a plan by layers in the making.
type layered struct {
	repetition
	all     []Item
	options Options
	planner *Planner
	cut     int // the layer before which layers are taken out
	gone    int // how many
	offsets []int64
	nodes   int64
}

// planLayers plans items that repeat by planning a few layers, into an arena
// below a limit. The order is as for findLayers. It returns false when there are
// no layers, or their plan is not below the limit. Nodes counts those of all
// searches.
func planLayers(items []Item, order []int32, o Options, limit int64, planner *Planner) (offsets []int64, arena, nodes int64, ok bool) {
	r, ok := findLayers(items, order)
	if !ok {
		return nil, 0, 0, false
	}
	l := layered{repetition: r, all: items, options: o, planner: planner, offsets: make([]int64, len(items))}
	l.cut = r.reach + 1
	most := r.count - l.cut - r.reach - 1
	for window := max(1, r.reach); window <= min(windowMax, most); window++ {
		l.gone = most / window * window
		top, err := l.planShort()
		if err != nil || top >= limit {
			return nil, 0, l.nodes, false
		}
		if l.planWindow(window, top) {
			return l.offsets, top, l.nodes, true
		}
	}
	return nil, 0, l.nodes, false
}

// byLayers takes the plan of a few layers for items that repeat, where that is
// smaller than what the parts have. Fixed items have no layers.
func (p *Planner) byLayers(items []Item, o Options, enough int64, out *Result) {
	top := p.top()
	if p.anyFixed || top <= enough || p.n() < 2*layersMin {
		return
	}
	if p.short == nil {
		p.short = new(Planner)
	}
	p.layerOrder = append(p.layerOrder[:0], p.item...)
	offsets, _, nodes, ok := planLayers(items, p.layerOrder, o, top, p.short)
	out.Nodes += nodes
	if !ok {
		return
	}
	for k, i := range p.item {
		p.best[k] = offsets[i]
	}
	for i := range p.parts {
		pt := &p.parts[i]
		pt.top, pt.method = 0, "layers"
		for k := pt.first; k < pt.last; k++ {
			pt.top = max(pt.top, p.best[k]+p.size[k])
		}
	}
}

// planShort plans everything but the layers that are taken out.
func (l *layered) planShort() (arena int64, err error) {
	from, to := l.start(l.all, l.cut), l.start(l.all, l.cut+l.gone)
	back := to - from
	var items []Item
	var who []int
	for i, it := range l.all {
		switch {
		case it.First >= to:
			it.First, it.Last = it.First-back, it.Last-back
		case it.First >= from:
			continue
		case it.Last >= l.start(l.all, l.count):
			it.Last -= back // lives through all layers
		}
		items, who = append(items, it), append(who, i)
	}
	res, err := l.planner.Plan(items, l.options)
	if err != nil {
		return 0, err
	}
	for k, i := range who {
		l.offsets[i] = res.Offsets[k]
	}
	l.nodes += res.Nodes
	return res.Arena, nil
}

// planWindow plans a window of layers behind the cut within an arena, and copies
// the plan to all windows that are taken out.
func (l *layered) planWindow(window int, arena int64) bool {
	from, to := l.start(l.all, l.cut), l.start(l.all, l.cut+window)
	var items []Item
	for i, it := range l.all { // what lives at the cut
		if it.First < from && it.Last >= from && it.occupies() {
			it.Fixed, it.Offset = true, l.offsets[i]
			it.First, it.Last = 0, min(it.Last, to-1)-from
			items = append(items, it)
		}
	}
	inside := len(items)
	for k := range window {
		at := l.cut - window + k // the layer that lies to the cut as this one to the window's end
		for n, i := range l.layer(l.cut + k) {
			it := l.all[i]
			if it.Last >= to {
				it.Fixed, it.Offset, it.Last = true, l.offsetAt(at, n), to-1
			}
			it.First, it.Last = it.First-from, it.Last-from
			items = append(items, it)
		}
	}
	o := l.options
	o.Capacity = arena
	res, err := l.planner.Plan(items, o)
	l.nodes += res.Nodes
	if err != nil || res.Arena > arena {
		return false
	}
	for k := range l.gone {
		for n, i := range l.layer(l.cut + k) {
			l.offsets[i] = res.Offsets[inside+k%window*l.items+n]
		}
	}
	return true
}

// offsetAt returns the offset of item n of a layer before the cut. Only items
// that cross the cut are asked for, so the layer is there.
func (l *layered) offsetAt(layer, n int) int64 { return l.offsets[l.layer(layer)[n]] }
