package kernelgraph

import "goatb/mempool"

// newOrder returns which nodes happen before which.
//
// A wait takes a record away: the latest one before it in the list or, when there
// is none, the first to come. The latter orders nothing, since the wait may end
// by a record of an earlier launch, and whether that record is left for a later
// wait is not known.
func newOrder(g *Graph) *mempool.Order {
	o := mempool.NewOrder(g.Streams)
	recorded, ahead := map[any]int{}, map[any]int{}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		var after []int
		if n.Kind == WaitNode {
			if r, ok := recorded[n.Event]; ok {
				after = append(after, r)
			} else {
				ahead[n.Event]++
			}
			delete(recorded, n.Event)
		}
		if _, err := o.Add(n.Stream, after...); err != nil {
			panic(err) // a builder counts the streams that it uses
		}
		switch {
		case n.Kind == RecordNode && ahead[n.Event] > 0:
			ahead[n.Event]--
		case n.Kind == RecordNode:
			recorded[n.Event] = i
		}
	}
	return o
}

// Sharing tells which outputs a caller may bind to the memory of an input, the
// whole of both.
type Sharing struct {
	g     *Graph
	order *mempool.Order
	// uses lists the nodes that read or write an input, writes those that write
	// an output, by tensor.
	uses, writes map[Ref][]int
}

// NewSharing looks at a graph.
func NewSharing(g *Graph) *Sharing {
	if g == nil {
		g = &Graph{}
	}
	s := &Sharing{g: g, order: newOrder(g), uses: map[Ref][]int{}, writes: map[Ref][]int{}}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		g.eachUse(n, func(base Ref) {
			if g.Tensors[base].Kind == Input {
				s.uses[base] = append(s.uses[base], i)
			}
		})
		for _, r := range n.Out {
			if r == Absent {
				continue
			}
			if base := g.Tensors[r].Base; g.Tensors[base].Kind == Output {
				s.writes[base] = append(s.writes[base], i)
			}
		}
	}
	return s
}

// Allowed reports whether output out may be bound to the memory of input in:
// they have equal sizes, every use of the input happens before the output's
// first write, and a node that reads the one and writes the other works in
// place on equal windows, or is a copy.
func (s *Sharing) Allowed(in, out Ref) bool {
	if s.g.Tensors[in].Desc.Bytes() != s.g.Tensors[out].Desc.Bytes() {
		return false
	}
	for _, w := range s.writes[out] {
		for _, u := range s.uses[in] {
			if u == w && !s.inPlace(&s.g.Nodes[u], in, out) || u != w && !s.order.Before(u, w) {
				return false
			}
		}
	}
	return true
}

// inPlace reports whether a node that uses in and writes out may find both in
// one memory.
func (s *Sharing) inPlace(n *Node, in, out Ref) bool {
	if n.Kernel == nil {
		return false
	}
	for i, w := range n.Out {
		if w == Absent {
			continue
		}
		if s.g.Tensors[w].Base == in {
			return false // it writes both
		}
		if s.g.Tensors[w].Base != out {
			continue
		}
		for j, r := range n.In {
			if r != Absent && s.g.Tensors[r].Base == in && !(n.Kernel.InPlace(i, j) && s.g.sameWindow(r, w)) {
				return false
			}
		}
	}
	return true
}

// sameWindow reports whether two tensors are equal windows of their bases.
func (g *Graph) sameWindow(a, b Ref) bool {
	x, y := &g.Tensors[a], &g.Tensors[b]
	return x.Offset == y.Offset && x.Desc.Bytes() == y.Desc.Bytes()
}
