package kernelgraph

// Life is the span of nodes, both ends included, during which a temporary's
// memory belongs to it.
type Life struct {
	Ref         Ref
	First, Last int
}

// Lives returns the life of every temporary of the graph, in order of their
// Refs: from its first writer to its last reader, views included. A temporary
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

// order answers which nodes happen before which, by vector clocks: clock[i][s]
// is the number of nodes of stream s that happened before node i or are it.
type order struct {
	stream []int
	clock  [][]int
}

func newOrder(g *Graph) *order {
	o := &order{stream: make([]int, len(g.Nodes)), clock: make([][]int, len(g.Nodes))}
	now := make([][]int, g.Streams)
	for s := range now {
		now[s] = make([]int, g.Streams)
	}
	recorded := map[any][]int{}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		c := now[n.Stream]
		if r := recorded[n.Event]; n.Kind == WaitNode && r != nil {
			for s := range c {
				c[s] = max(c[s], r[s])
			}
		}
		c[n.Stream]++
		o.stream[i] = n.Stream
		o.clock[i] = append([]int(nil), c...)
		if n.Kind == RecordNode {
			recorded[n.Event] = o.clock[i]
		}
	}
	return o
}

// before reports whether node i happens before node j.
func (o *order) before(i, j int) bool {
	s := o.stream[i]
	return o.clock[j][s] >= o.clock[i][s]
}

// end returns the first node such that every later node of the list happens
// after all of the uses.
func (o *order) end(uses []int) int {
	last := uses[len(uses)-1]
	for j := len(o.stream) - 1; j > last; j-- {
		for _, u := range uses {
			if !o.before(u, j) {
				return j
			}
		}
	}
	return last
}
