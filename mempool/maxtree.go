package mempool

// maxTree finds the largest value of a run of positions in O(log n).
type maxTree struct {
	n    int
	node []int64 // node i has children 2i and 2i+1; leaves are n to 2n-1
}

func (t *maxTree) build(values []int64) {
	t.n = len(values)
	t.node = grow(t.node, 2*t.n)
	copy(t.node[t.n:], values)
	for i := t.n - 1; i > 0; i-- {
		t.node[i] = max(t.node[2*i], t.node[2*i+1])
	}
}

// most returns the largest value of positions lo to hi-1.
func (t *maxTree) most(lo, hi int) int64 {
	best := t.node[lo+t.n]
	for l, r := lo+t.n, hi+t.n; l < r; l, r = l/2, r/2 {
		if l&1 == 1 {
			best = max(best, t.node[l])
			l++
		}
		if r&1 == 1 {
			r--
			best = max(best, t.node[r])
		}
	}
	return best
}
