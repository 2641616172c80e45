package mempool

// outline is a staircase over positions 0 to n-1: a height for every position,
// kept as steps of equal height. Raising a run of positions costs the number of
// steps that it flattens, so a sequence of raises costs little more than their
// number.
type outline struct {
	starts bitset  // first position of each step
	height []int64 // by first position
	n      int
}

// reset makes one step of height 0.
func (o *outline) reset(n int) {
	o.n = n
	o.starts.reset(n)
	o.height = grow(o.height, n)
	o.starts.add(0)
	o.height[0] = 0
}

// next returns the end of the step that starts at i.
func (o *outline) next(i int) int { return o.starts.from(i + 1) }

// top returns the largest height of positions lo to hi-1.
func (o *outline) top(lo, hi int) int64 {
	i := o.starts.upTo(lo)
	top := o.height[i]
	for i = o.next(i); i < hi; i = o.next(i) {
		top = max(top, o.height[i])
	}
	return top
}

// set makes positions lo to hi-1 one step.
func (o *outline) set(lo, hi int, height int64) {
	i := o.starts.upTo(lo)
	last := o.height[i]
	next := o.next(i)
	for next < hi {
		last = o.height[next]
		o.starts.remove(next)
		next = o.next(next)
	}
	if hi < o.n && next > hi {
		o.starts.add(hi)
		o.height[hi] = last
	}
	o.starts.add(lo)
	o.height[lo] = height
}
