package mempool

import "math"

// minTree finds the first position from some point on whose value is small
// enough, in O(log n).
type minTree struct {
	n    int // leaves, a power of two
	node []int32
}

// none is the value of a position without one.
const none = math.MaxInt32

// reset makes a tree of at least n positions without values.
func (t *minTree) reset(n int) {
	t.n = 1
	for t.n < n {
		t.n *= 2
	}
	t.node = grow(t.node, 2*t.n)
	for i := range t.node {
		t.node[i] = none
	}
}

// build fills the inner nodes after the leaves, node[n:], were written.
func (t *minTree) build() {
	for i := t.n - 1; i > 0; i-- {
		t.node[i] = min(t.node[2*i], t.node[2*i+1])
	}
}

func (t *minTree) set(i int, v int32) {
	i += t.n
	t.node[i] = v
	for i /= 2; i > 0; i /= 2 {
		low := min(t.node[2*i], t.node[2*i+1])
		if t.node[i] == low {
			return
		}
		t.node[i] = low
	}
}

// first returns the first position at or after i whose value is at most most,
// or -1.
func (t *minTree) first(i int, most int32) int {
	for i += t.n; t.node[i] > most; i++ {
		for i&1 == 1 {
			i /= 2
		}
		if i == 0 {
			return -1
		}
	}
	for i < t.n {
		i *= 2
		if t.node[i] > most {
			i++
		}
	}
	return i - t.n
}
