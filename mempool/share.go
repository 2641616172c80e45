package mempool

import "slices"

// share takes the Maybe aliases one by one: those that are legal with all that
// were taken before, and do not enlarge the peak. It returns the peak without
// any, which no plan without them is below.
func (g *Program) share(apart *groups, align int64) (shared *groups, taken []bool, peak int64) {
	s := sharer{g: g, align: align, groups: apart.clone(), load: newLoadLine(apart)}
	peak = s.load.peak
	taken = make([]bool, len(g.Maybe))
	for i := range g.Maybe {
		taken[i] = s.take(&g.Maybe[i])
	}
	return s.groups, taken, peak
}

type sharer struct {
	g      *Program
	align  int64
	groups *groups
	load   *loadLine
}

// take joins the items of an alias if that is legal and good. One side has to
// hold the other one in whole, and what is fixed stays alone.
func (s *sharer) take(a *Alias) bool {
	ra, pa := s.groups.find(a.In)
	rb, pb := s.groups.find(a.Item)
	shift := pa + a.At - pb // of rb from ra
	if ra == rb {
		return shift == 0
	}
	left, right := s.groups.members(a.In), s.groups.members(a.Item)
	one, err1 := s.groups.block(left, s.align)
	two, err2 := s.groups.block(right, s.align)
	if err1 != nil || err2 != nil || one.Item.Fixed || two.Item.Fixed || !s.legal(a, left, right, shift) {
		return false
	}
	lowOne, lowTwo := s.groups.low(left), s.groups.low(right)+shift
	low := min(lowOne, lowTwo)
	if !s.aligned(left, low) || !s.aligned(right, low-shift) {
		return false
	}
	both := hull(&one.Item, &two.Item)
	both.Size = max(lowOne+one.Item.Size, lowTwo+two.Item.Size) - low
	if both.Size > max(one.Item.Size, two.Item.Size) {
		return false
	}
	return s.load.replace(&one.Item, &two.Item, &both) && s.groups.join(a) == nil
}

// hull returns an item that lives while either of two does.
func hull(a, b *Item) Item {
	switch {
	case !a.occupies():
		return *b
	case !b.occupies():
		return *a
	}
	return Item{First: min(a.First, b.First), Last: max(a.Last, b.Last)}
}

// aligned reports whether members have the alignments that they ask for in a
// block whose first byte is `low` behind their root.
func (s *sharer) aligned(members []int, low int64) bool {
	for _, i := range members {
		_, at := s.groups.find(i)
		if a := s.g.Items[i].Align; a > 1 && (at-low)%a != 0 {
			return false
		}
	}
	return true
}

// legal reports whether every member of one group may share memory with every
// member of the other when alias a joins them; the root of the right group is
// then `shift` behind that of the left.
func (s *sharer) legal(a *Alias, left, right []int, shift int64) bool {
	for _, x := range left {
		_, px := s.groups.find(x)
		for _, y := range right {
			_, py := s.groups.find(y)
			at := py + shift - px
			if at >= s.g.Items[x].Size || -at >= s.g.Items[y].Size {
				continue // other bytes
			}
			if !s.pair(x, y, at, x == a.In && y == a.Item) {
				return false
			}
		}
	}
	return true
}

// pair reports whether items x and y may share bytes; direct says that they
// are the two items of an alias.
func (s *sharer) pair(x, y int, at int64, direct bool) bool {
	if s.g.Legal != nil {
		return s.g.Legal(x, y, at)
	}
	if s.g.Order != nil {
		return s.follows(x, y, direct) || s.follows(y, x, direct)
	}
	a, b := &s.g.Items[x], &s.g.Items[y]
	if !a.occupies() || !b.occupies() || a.Last < b.First || b.Last < a.First {
		return true
	}
	return direct && (a.Last == b.First || b.Last == a.First)
}

// follows reports whether all uses of y come after those of x, or, for the
// items of an alias, in the same node.
func (s *sharer) follows(x, y int, direct bool) bool {
	for _, i := range s.g.Uses[x] {
		for _, j := range s.g.Uses[y] {
			if !s.g.Order.Before(i, j) && !(direct && i == j) {
				return false
			}
		}
	}
	return true
}

// loadLine is the total of live bytes at each node, for programs that change.
type loadLine struct {
	line timeline
	live []int64
	peak int64
}

func newLoadLine(g *groups) *loadLine {
	l := &loadLine{}
	any := false
	for i := range g.items {
		any = any || g.items[i].occupies()
	}
	if !any {
		return l
	}
	l.line.load(g.items)
	l.live = make([]int64, l.line.coords)
	seen := make([]bool, len(g.items))
	for i := range g.items {
		if seen[i] {
			continue
		}
		m := g.members(i)
		for _, k := range m {
			seen[k] = true
		}
		if b, err := g.block(m, DefaultAlign); err == nil {
			l.add(&b.Item, 1)
		}
	}
	l.peak = l.top()
	return l
}

// add adds or takes away an item.
func (l *loadLine) add(it *Item, sign int64) {
	if !it.occupies() || len(l.live) == 0 {
		return
	}
	for k := l.coord(it.First); k < l.coord(it.Last+1); k++ {
		l.live[k] += sign * it.Size
	}
}

// coord returns the coordinate of a node at which some lifetime starts or ends.
func (l *loadLine) coord(node int64) int {
	if !l.line.sparse {
		return int(node - l.line.base)
	}
	k, _ := slices.BinarySearch(l.line.times, node)
	return k
}

func (l *loadLine) top() int64 {
	if len(l.live) == 0 {
		return 0
	}
	return slices.Max(l.live)
}

// replace puts one item in the place of two unless that enlarges the peak.
func (l *loadLine) replace(a, b, both *Item) bool {
	l.add(a, -1)
	l.add(b, -1)
	l.add(both, 1)
	if top := l.top(); top <= l.peak {
		l.peak = top
		return true
	}
	l.add(both, -1)
	l.add(a, 1)
	l.add(b, 1)
	return false
}
