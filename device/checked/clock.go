package checked

// clock is a vector clock: for each stream the number of its tasks that are
// known to be done before a point.
type clock []uint64

// at returns the entry of stream i.
func (c clock) at(i int) uint64 {
	if i < len(c) {
		return c[i]
	}
	return 0
}

// set returns c with entry i at least n, in c's own memory where it fits.
func (c clock) set(i int, n uint64) clock {
	for len(c) <= i {
		c = append(c, 0)
	}
	c[i] = max(c[i], n)
	return c
}

// join returns the later of both in every entry, in c's own memory where it
// fits.
func (c clock) join(o clock) clock {
	for len(c) < len(o) {
		c = append(c, 0)
	}
	for i, n := range o {
		c[i] = max(c[i], n)
	}
	return c
}

// clone returns a copy that shares no memory with c.
func (c clock) clone() clock { return append(clock(nil), c...) }
