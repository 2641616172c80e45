package mempool

import "math"

// loadTree keeps a value for every position; it adds to a run of positions and
// finds the largest value of a run, each in O(log n).
type loadTree struct {
	n int // positions 1 to n-2 are the caller's 0 and up; n is a power of two
	// most is the largest value of a node's positions as seen from its parent:
	// what was added to the node is in it, what was added to ancestors is not.
	most  []int64
	added []int64
}

// build sets the values.
func (t *loadTree) build(values []int64) {
	t.n = 2
	for t.n < len(values)+2 {
		t.n *= 2
	}
	t.most, t.added = grow(t.most, 2*t.n), zeroed(t.added, 2*t.n)
	leaves := t.most[t.n:]
	leaves[0] = math.MinInt64 / 2
	copy(leaves[1:], values)
	for i := len(values) + 1; i < t.n; i++ {
		leaves[i] = math.MinInt64 / 2
	}
	for i := t.n - 1; i > 0; i-- {
		t.most[i] = max(t.most[2*i], t.most[2*i+1])
	}
}

// add adds v to positions lo to hi-1.
func (t *loadTree) add(lo, hi int, v int64) {
	l, r := lo+t.n, hi+1+t.n
	for l^r != 1 {
		if l&1 == 0 {
			t.most[l^1] += v
			t.added[l^1] += v
		}
		if r&1 == 1 {
			t.most[r^1] += v
			t.added[r^1] += v
		}
		l, r = l/2, r/2
		t.pull(l)
		t.pull(r)
	}
	for l > 1 {
		l /= 2
		t.pull(l)
	}
}

func (t *loadTree) pull(i int) {
	t.most[i] = max(t.most[2*i], t.most[2*i+1]) + t.added[i]
}

// max returns the largest value of positions lo to hi-1; lo is less than hi.
func (t *loadTree) max(lo, hi int) int64 {
	l, r := lo+t.n, hi+1+t.n
	left, right := int64(math.MinInt64/2), int64(math.MinInt64/2)
	for l^r != 1 {
		if l&1 == 0 {
			left = max(left, t.most[l^1])
		}
		if r&1 == 1 {
			right = max(right, t.most[r^1])
		}
		l, r = l/2, r/2
		left += t.added[l]
		right += t.added[r]
	}
	left = max(left, right)
	for l > 1 {
		l /= 2
		left += t.added[l]
	}
	return left
}
