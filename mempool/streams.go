package mempool

import (
	"cmp"
	"math"
	"slices"

	"goatb/status"
)

// conflictsMax is the number of items up to which the conflicts of several
// streams are looked at pair by pair.
const conflictsMax = 2048

// usesOf merges the uses of the members of each block.
func usesOf(blocks []Storage, uses [][]int) [][]int {
	out := make([][]int, len(blocks))
	for i := range blocks {
		m := blocks[i].Members
		if len(m) == 1 {
			out[i] = uses[m[0]]
			continue
		}
		for _, k := range m {
			out[i] = append(out[i], uses[k]...)
		}
		slices.Sort(out[i])
		out[i] = slices.Compact(out[i])
	}
	return out
}

// planStreams plans items that nodes on several streams use; their lifetimes
// are those in the order of the nodes' numbers. Two items may share bytes when
// all uses of one happen before all uses of the other.
//
// Items that live together in one possible order of the nodes all conflict, so
// the largest total of the given order bounds the arena; where that is missed,
// so do larger sets of conflicting items.
//
// First the streams are taken as one, with lifetimes that last until every
// later node comes after all uses. That is safe and often wide; where it misses
// the bound, items are put by their conflicts too. The offsets belong to the
// caller.
func (p *Planner) planStreams(items []Item, uses [][]int, order *Order, o Options) (Result, error) {
	if err := p.load(items, o); err != nil {
		return Result{}, err
	}
	bound, peak := p.bound, p.peakAt()
	line := slices.Clone(items)
	for i, u := range uses {
		if len(u) > 0 {
			line[i].Last = int64(order.LinearEnd(u))
		}
	}
	r, err := p.Plan(line, o)
	if err != nil {
		return r, err
	}
	r.Offsets, r.LowerBound, r.PeakAt = slices.Clone(r.Offsets), bound, peak
	c := newConflicts(items, uses, order, o)
	if o.Solver == Optimal && r.Arena > bound && len(items) <= conflictsMax {
		c.pairUp()
		if arena, offsets := c.place(); arena < r.Arena {
			r.Arena, r.Offsets, r.Method = arena, offsets, "conflicts"
		}
		r.LowerBound = max(bound, c.clique())
	}
	r.Optimal = r.Arena == r.LowerBound
	if err := c.validate(r.Offsets); err != nil {
		return Result{}, status.Errorf(status.ErrInternal, "plan by %s is wrong: %w", r.Method, err)
	}
	return r, nil
}

// conflicts knows which items of several streams must not share bytes.
type conflicts struct {
	items   []Item
	order   *Order
	streams int
	align   []int64
	granule int64
	// By item and stream: the clock of the last use on the stream, and how far
	// the stream has come for certain before any use.
	last, known []int32
	used        []bool
	// near lists the items that each item conflicts with, load is their total.
	near [][]int32
	load []int64
}

func newConflicts(items []Item, uses [][]int, order *Order, o Options) *conflicts {
	n, s := len(items), order.streams
	c := &conflicts{items: items, order: order, streams: s, granule: math.MaxInt64, align: make([]int64, n), used: make([]bool, n)}
	c.last, c.known = make([]int32, n*s), make([]int32, n*s)
	for i := range items {
		c.align[i] = alignOf(o)
		if a := items[i].Align; a > 0 {
			c.align[i] = a
		}
		c.granule = min(c.granule, c.align[i])
		c.used[i] = len(uses[i]) > 0 && items[i].Size > 0
		for t := range s {
			c.known[i*s+t] = math.MaxInt32
		}
		for _, u := range uses[i] {
			c.use(i, u)
		}
	}
	return c
}

func (c *conflicts) use(i, node int) {
	row := i * c.streams
	own := int(c.order.stream[node])
	for t, clock := range c.order.at(node) {
		if t == own {
			c.last[row+t] = max(c.last[row+t], clock)
			clock--
		}
		c.known[row+t] = min(c.known[row+t], clock)
	}
}

// before reports whether all uses of item i happen before all uses of item j.
func (c *conflicts) before(i, j int) bool {
	for t := range c.streams {
		if c.last[i*c.streams+t] > c.known[j*c.streams+t] {
			return false
		}
	}
	return true
}

// clash reports whether items i and j must not share bytes.
func (c *conflicts) clash(i, j int) bool {
	return c.used[i] && c.used[j] && !c.before(i, j) && !c.before(j, i)
}

// roomOf is the size of an item in whole granules.
func (c *conflicts) roomOf(i int) int64 { return alignUp(c.items[i].Size, c.granule) }

// pairUp looks for conflicts pair by pair.
func (c *conflicts) pairUp() {
	n := len(c.items)
	c.near, c.load = make([][]int32, n), make([]int64, n)
	for i := range n {
		for j := range i {
			if c.clash(i, j) {
				c.near[i], c.near[j] = append(c.near[i], int32(j)), append(c.near[j], int32(i))
				c.load[i] += c.roomOf(j)
				c.load[j] += c.roomOf(i)
			}
		}
	}
}

// cliqueWork bounds the pairs of items that clique looks at.
const cliqueWork = 1 << 22

// clique returns the total of a set of items that all conflict, which no plan
// is below. It grows a set from each item, the largest first, by the largest
// items that conflict with all in it.
func (c *conflicts) clique() int64 {
	bySize := func(a, b int32) int {
		return cmp.Or(cmp.Compare(c.items[b].Size, c.items[a].Size), cmp.Compare(a, b))
	}
	seeds := make([]int32, len(c.items))
	for i := range seeds {
		seeds[i] = int32(i)
	}
	slices.SortFunc(seeds, bySize)
	best, work := int64(0), 0
	var near, set []int32
	for _, i := range seeds {
		if !c.used[i] || c.load[i]+c.roomOf(int(i)) <= best {
			continue
		}
		set = append(set[:0], i)
		total := c.roomOf(int(i))
		near = append(near[:0], c.near[i]...)
		slices.SortFunc(near, bySize)
		for _, j := range near {
			work += len(set)
			if !slices.ContainsFunc(set, func(k int32) bool { return !c.clash(int(j), int(k)) }) {
				set = append(set, j)
				total += c.roomOf(int(j))
			}
		}
		best = max(best, total)
		if work > cliqueWork {
			break
		}
	}
	return best
}

// place puts the items one by one where they fit lowest among those that they
// conflict with, in several orders, and returns the best plan.
func (c *conflicts) place() (arena int64, offsets []int64) {
	arena = noPlan
	weights := [...]func(i int) int64{
		func(i int) int64 { return c.items[i].Size },
		func(i int) int64 { return c.load[i] },
		func(i int) int64 { return c.load[i] + c.roomOf(i)*int64(len(c.near[i])) },
	}
	for _, weight := range weights {
		if top, try := c.placeBy(weight); top < arena {
			arena, offsets = top, try
		}
	}
	return arena, offsets
}

// placeBy places fixed items, then the others with the heaviest first.
func (c *conflicts) placeBy(weight func(i int) int64) (arena int64, offsets []int64) {
	n := len(c.items)
	queue := make([]int, n)
	offsets = make([]int64, n)
	for i := range queue {
		queue[i] = i
	}
	slices.SortStableFunc(queue, func(i, j int) int {
		if a, b := c.items[i].Fixed, c.items[j].Fixed; a != b {
			if a {
				return -1
			}
			return 1
		}
		return cmp.Compare(weight(j), weight(i))
	})
	placed := make([]bool, n)
	var around []int32
	for _, i := range queue {
		if c.items[i].Fixed {
			offsets[i] = c.items[i].Offset
		} else {
			around = around[:0]
			for _, j := range c.near[i] {
				if placed[j] {
					around = append(around, j)
				}
			}
			slices.SortFunc(around, func(a, b int32) int { return cmp.Or(cmp.Compare(offsets[a], offsets[b]), cmp.Compare(a, b)) })
			offsets[i] = c.lowest(i, around, offsets)
		}
		placed[i] = true
		if c.used[i] {
			arena = max(arena, offsets[i]+c.roomOf(i))
		}
	}
	return arena, offsets
}

// lowest returns the lowest offset at which item i meets none of the items
// around, which are in the order of their offsets.
func (c *conflicts) lowest(i int, around []int32, offsets []int64) int64 {
	at := int64(0)
	for _, j := range around {
		if at+c.roomOf(i) <= offsets[j] {
			break
		}
		at = max(at, alignUp(offsets[j]+c.items[j].Size, c.align[i]))
	}
	return at
}

// validate checks offsets against the conflicts: a sweep over the bytes finds
// the items that share some.
func (c *conflicts) validate(offsets []int64) error {
	queue := make([]int, 0, len(c.items))
	for i := range c.items {
		if it := &c.items[i]; offsets[i] < 0 || offsets[i]%c.align[i] != 0 || it.Fixed && offsets[i] != it.Offset {
			return status.Errorf(status.ErrInvalidParam, "item %d: offset %d is not where it may lie", i, offsets[i])
		}
		if c.used[i] {
			queue = append(queue, i)
		}
	}
	slices.SortFunc(queue, func(i, j int) int { return cmp.Or(cmp.Compare(offsets[i], offsets[j]), cmp.Compare(i, j)) })
	var open []int
	for _, i := range queue {
		open = slices.DeleteFunc(open, func(j int) bool { return offsets[j]+c.items[j].Size <= offsets[i] })
		for _, j := range open {
			if c.clash(i, j) {
				return status.Errorf(status.ErrInvalidParam, "items %d and %d overlap: bytes %d to %d and %d to %d, and neither comes after the other",
					i, j, offsets[i], offsets[i]+c.items[i].Size-1, offsets[j], offsets[j]+c.items[j].Size-1)
			}
		}
		open = append(open, i)
	}
	return nil
}
