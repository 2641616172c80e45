package mempool

// freeTree is an ordered set of pairs (key, val), each with the number of the
// block that it describes. It answers in O(log n) where the lowest key with a
// large enough val is, and where the lowest pair from a key on is. Solvers keep
// unused room in it, by address or by size.
//
// It is a treap: priorities come from a fixed sequence, so equal histories give
// equal trees. Memory is kept over reset.
type freeTree struct {
	nodes []freeNode // nodes[0] stands for no node
	root  int32
	spare int32 // removed nodes, linked by left
	seed  uint32
}

type freeNode struct {
	key, val    int64
	maxVal      int64 // largest val of the subtree
	left, right int32
	block       int32
	prio        uint32
}

func (t *freeTree) reset() {
	t.nodes = append(t.nodes[:0], freeNode{maxVal: -1})
	t.root, t.spare, t.seed = 0, 0, 0
}

func (t *freeTree) insert(key, val int64, block int32) {
	if len(t.nodes) == 0 {
		t.reset()
	}
	n := t.spare
	if n != 0 {
		t.spare = t.nodes[n].left
	} else {
		t.nodes = append(t.nodes, freeNode{})
		n = int32(len(t.nodes) - 1)
	}
	t.seed = t.seed*1664525 + 1013904223
	t.nodes[n] = freeNode{key: key, val: val, maxVal: val, block: block, prio: t.seed ^ t.seed>>15}
	t.root = t.insertAt(t.root, n)
}

func (t *freeTree) insertAt(root, n int32) int32 {
	if root == 0 {
		return n
	}
	node, r := &t.nodes[n], &t.nodes[root]
	if node.prio > r.prio {
		node.left, node.right = t.split(root, node.key, node.val)
		t.pull(n)
		return n
	}
	if node.before(r.key, r.val) {
		r.left = t.insertAt(r.left, n)
	} else {
		r.right = t.insertAt(r.right, n)
	}
	t.pull(root)
	return root
}

// split cuts a subtree into the pairs before (key, val) and the others.
func (t *freeTree) split(root int32, key, val int64) (before, after int32) {
	if root == 0 {
		return 0, 0
	}
	r := &t.nodes[root]
	if r.before(key, val) {
		r.right, after = t.split(r.right, key, val)
		before = root
	} else {
		before, r.left = t.split(r.left, key, val)
		after = root
	}
	t.pull(root)
	return before, after
}

// remove drops the pair, which must be there.
func (t *freeTree) remove(key, val int64) { t.root = t.removeAt(t.root, key, val) }

func (t *freeTree) removeAt(root int32, key, val int64) int32 {
	r := &t.nodes[root]
	if r.key == key && r.val == val {
		rest := t.join(r.left, r.right)
		r.left, t.spare = t.spare, root
		return rest
	}
	if r.before(key, val) {
		r.right = t.removeAt(r.right, key, val)
	} else {
		r.left = t.removeAt(r.left, key, val)
	}
	t.pull(root)
	return root
}

func (t *freeTree) join(a, b int32) int32 {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	case t.nodes[a].prio > t.nodes[b].prio:
		t.nodes[a].right = t.join(t.nodes[a].right, b)
		t.pull(a)
		return a
	default:
		t.nodes[b].left = t.join(a, t.nodes[b].left)
		t.pull(b)
		return b
	}
}

func (t *freeTree) pull(n int32) {
	r := &t.nodes[n]
	r.maxVal = max(r.val, t.nodes[r.left].maxVal, t.nodes[r.right].maxVal)
}

func (n *freeNode) before(key, val int64) bool {
	return n.key < key || n.key == key && n.val < val
}

// first returns the block with the lowest key among those whose val is at least
// least.
func (t *freeTree) first(least int64) (block int32, ok bool) {
	n := t.root
	if n == 0 || t.nodes[n].maxVal < least {
		return 0, false
	}
	for {
		r := &t.nodes[n]
		switch {
		case t.nodes[r.left].maxVal >= least:
			n = r.left
		case r.val >= least:
			return r.block, true
		default:
			n = r.right
		}
	}
}

// from returns the block of the lowest pair whose key is at least least.
func (t *freeTree) from(least int64) (block int32, ok bool) {
	for n := t.root; n != 0; {
		r := &t.nodes[n]
		if r.key >= least {
			block, ok = r.block, true
			n = r.left
		} else {
			n = r.right
		}
	}
	return block, ok
}
