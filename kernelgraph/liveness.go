package kernelgraph

import "goatb/mempool"

// Life is the span of nodes, both ends included, in which memory is in use: of
// a temporary, or of all that lie in one piece of memory.
type Life struct {
	// Ref is the temporary; of several in one memory the one that is as large.
	Ref         Ref
	First, Last int
}

// Lives returns the life of every temporary of the graph, in the order of their
// first use: from its first writer to its last reader, views included. A temporary
// that nobody reads lives at its writer; one that no node touches is left out.
//
// The span is one in the order of the list. Where the graph uses several
// streams that is one order of many: temporaries whose spans are apart share
// memory only when events put all uses of the one before all of the other.
func (g *Graph) Lives() []Life {
	u := newUsage(g)
	lives := make([]Life, len(u.temps))
	for i, r := range u.temps {
		uses := u.uses[i]
		lives[i] = Life{Ref: r, First: uses[0].node, Last: uses[len(uses)-1].node}
	}
	return lives
}

// use is an operand of a node that lies in a temporary: bytes lo to hi-1 of it,
// the i-th of the node's outputs or inputs, or byTiling where its tiling reads it.
type use struct {
	node, i int
	lo, hi  int64
	write   bool
}

// byTiling is the number of a use by a tiling: it is over before the kernel runs,
// but the memory is no operand that an output may take over.
const byTiling = -1

// usage lists the temporaries that nodes touch, in the order of their first
// use, and their uses in the order of the nodes; a node's reads come before its
// writes.
type usage struct {
	g     *Graph
	temps []Ref
	uses  [][]use
	at    []int // by Ref: position in temps, -1 for none
	order *mempool.Order
	// moved holds, by source and target, the first node that moves bytes
	// between two temporaries.
	moved map[[2]int]move
}

// move is a node that moves bytes between temporaries, which are the same bytes
// when the target starts at byte `at` of the source.
type move struct {
	node int
	at   int64
}

func newUsage(g *Graph) *usage {
	u := &usage{g: g, at: make([]int, len(g.Tensors)), order: newOrder(g), moved: map[[2]int]move{}}
	for i := range u.at {
		u.at[i] = -1
	}
	var counts []int
	total := 0
	u.each(func(base Ref, _ use) {
		if u.at[base] < 0 {
			u.at[base] = len(u.temps)
			u.temps, counts = append(u.temps, base), append(counts, 0)
		}
		counts[u.at[base]]++
		total++
	})
	room := make([]use, total)
	u.uses = make([][]use, len(u.temps))
	for k, n := range counts {
		u.uses[k], room = room[:0:n], room[n:]
	}
	u.each(func(base Ref, x use) { u.uses[u.at[base]] = append(u.uses[u.at[base]], x) })
	return u
}

// each calls f with every operand that lies in a temporary, in the order of the
// nodes.
func (u *usage) each(f func(base Ref, x use)) {
	log := func(i int, refs []Ref) {
		for _, r := range refs {
			f(r, use{node: i, i: byTiling, hi: u.g.Tensors[r].Desc.Bytes(), write: true})
		}
	}
	for i := range u.g.Nodes {
		log(0, u.g.Nodes[i].Log)
	}
	for i := range u.g.Nodes {
		n := &u.g.Nodes[i]
		log(i, n.Log)
		for side, refs := range [...][]Ref{n.In, n.Val, n.Out} {
			for k, r := range refs {
				if r == Absent {
					continue
				}
				if side == 1 {
					k = byTiling
				}
				t := &u.g.Tensors[r]
				if u.g.Tensors[t.Base].Kind == Temp {
					f(t.Base, use{node: i, i: k, lo: t.Offset, hi: t.Offset + t.Desc.Bytes(), write: side == 2})
				}
			}
		}
	}
}

// nodes returns the nodes that use temporary k, each once.
func (u *usage) nodes(k int) []int {
	var list []int
	for _, x := range u.uses[k] {
		if n := len(list); n == 0 || list[n-1] != x.node {
			list = append(list, x.node)
		}
	}
	return list
}

// eachUse calls f with the base of every operand of n.
func (g *Graph) eachUse(n *Node, f func(base Ref)) {
	for _, refs := range [...][]Ref{n.In, n.Out} {
		for _, r := range refs {
			if r != Absent {
				f(g.Tensors[r].Base)
			}
		}
	}
}
