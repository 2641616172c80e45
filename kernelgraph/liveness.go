package kernelgraph

// Life is the span of nodes, both ends included, during which a temporary's
// memory belongs to it.
type Life struct {
	Ref         Ref
	First, Last int
}

// Lives returns the life of every temporary of the graph, in the order of their
// first use: from its first writer to its last reader, views included. A temporary
// that nobody reads lives at its writer; one that no node touches is left out.
//
// Where the graph uses several streams list order is no order in time. A life
// then ends only at a node after which every later node of the list happens
// after all uses, by stream order or through an event.
func (g *Graph) Lives() []Life {
	at := make([]int, len(g.Tensors))
	for i := range at {
		at[i] = -1
	}
	var lives []Life
	uses := map[Ref][]int{}
	for i := range g.Nodes {
		g.eachUse(&g.Nodes[i], func(base Ref) {
			if g.Tensors[base].Kind != Temp {
				return
			}
			if at[base] < 0 {
				at[base] = len(lives)
				lives = append(lives, Life{Ref: base, First: i})
			}
			lives[at[base]].Last = i
			if g.Streams > 1 {
				uses[base] = append(uses[base], i)
			}
		})
	}
	if g.Streams > 1 {
		order := newOrder(g)
		for i := range lives {
			lives[i].Last = order.end(uses[lives[i].Ref])
		}
	}
	return lives
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
