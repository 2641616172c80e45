package mempool

// timeline numbers the moments at which lifetimes start and end: the nodes
// themselves, counted from the first, where they lie close together, else only
// those that some lifetime names.
type timeline struct {
	coords int     // number of coordinates
	from   []int32 // by item that takes room: coordinate of First
	to     []int32 // and of the node after Last
	base   int64   // node at coordinate 0
	times  []int64 // node at each coordinate, where sparse
	sparse bool

	orderer orderer
	order   []int32
}

// load reads the lifetimes of the items that take room; there is at least one.
func (t *timeline) load(items []Item) {
	low, high := int64(MaxNode), int64(-MaxNode)
	for i := range items {
		if it := &items[i]; it.occupies() {
			low, high = min(low, it.First), max(high, it.Last)
		}
	}
	t.base = low
	t.from, t.to = grow(t.from, len(items)), grow(t.to, len(items))
	t.sparse = high-low > int64(8*len(items)+64)
	if t.sparse {
		t.rank(items)
		return
	}
	t.coords = int(high - low + 2)
	for i := range items {
		t.from[i], t.to[i] = int32(items[i].First-low), int32(items[i].Last+1-low)
	}
}

func (t *timeline) rank(items []Item) {
	t.orderer.key, t.order = grow(t.orderer.key, 2*len(items)), t.order[:0]
	for i := range items {
		if it := &items[i]; it.occupies() {
			t.orderer.key[2*i], t.orderer.key[2*i+1] = uint64(it.First-t.base), uint64(it.Last+1-t.base)
			t.order = append(t.order, int32(2*i), int32(2*i+1))
		}
	}
	t.orderer.sort(t.order)
	t.times = t.times[:0]
	for _, e := range t.order {
		at := int64(t.orderer.key[e]) + t.base
		if len(t.times) == 0 || at != t.times[len(t.times)-1] {
			t.times = append(t.times, at)
		}
		if rank := int32(len(t.times) - 1); e%2 == 0 {
			t.from[e/2] = rank
		} else {
			t.to[e/2] = rank
		}
	}
	t.coords = len(t.times)
}

// node returns the node at a coordinate.
func (t *timeline) node(coord int32) int64 {
	if t.sparse {
		return t.times[coord]
	}
	return t.base + int64(coord)
}
