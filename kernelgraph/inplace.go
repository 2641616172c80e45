package kernelgraph

import "goatb/status"

// overlaps reports whether two tensors of one graph share bytes.
func (t *Tensor) overlaps(o *Tensor) bool {
	return t.Base == o.Base && t.Offset < o.Offset+o.Desc.Bytes() && o.Offset < t.Offset+t.Desc.Bytes()
}

// exactly reports whether two tensors of one graph are the same bytes.
func (t *Tensor) exactly(o *Tensor) bool {
	return t.Base == o.Base && t.Offset == o.Offset && t.Desc.Bytes() == o.Desc.Bytes()
}

// detoured is an output that is written to a temporary first.
type detoured struct{ from, to Ref }

// detour replaces the outputs that n may not write in place.
func (b *Builder) detour(n *Node) []detoured {
	var copies []detoured
	for i, out := range n.Out {
		if out == Absent || !b.clashes(n, i) {
			continue
		}
		tmp := b.Temp("detour", b.Desc(out))
		copies = append(copies, detoured{tmp, out})
		n.Out[i] = tmp
	}
	return copies
}

// clashes reports whether writing output i would change an input that the
// kernel still reads.
func (b *Builder) clashes(n *Node, i int) bool {
	o := &b.g.Tensors[n.Out[i]]
	for j, in := range n.In {
		if in == Absent {
			continue
		}
		if t := &b.g.Tensors[in]; t.overlaps(o) && !(t.exactly(o) && n.Kernel.InPlace(i, j)) {
			return true
		}
	}
	return false
}

// Node lowers a node of an operation: an operation of type op named name with
// the given operands, on the given stream. lower is given the node's builder.
//
// Where an output shares memory with an input, the node works in place. When its
// kernels would read the input after they have changed it, lower is called a
// second time with a temporary in the place of the output, which is copied at
// the end. Errors: those of lower; ErrInvalidGraph for such a node that uses
// more than one stream.
func (b *Builder) Node(name, op string, in, out []Ref, stream int, lower func(*Builder) error) error {
	mine, shared, err := b.aliases(in, out)
	if err != nil {
		return err
	}
	tensors, nodes, scopes := len(b.g.Tensors), len(b.g.Nodes), len(b.g.Scopes)
	if err := lower(b.Scope(name, op, in, mine, stream)); err != nil || !b.hazard(nodes, shared) {
		return err
	}
	for _, n := range b.g.Nodes[nodes:] {
		if n.Stream != stream {
			return status.Errorf(status.ErrInvalidGraph, "it works in place, reads what it has changed, and uses streams %d and %d: want an output of its own", stream, n.Stream)
		}
	}
	b.rollBack(tensors, nodes, scopes)
	s := b.Scope(name, op, in, mine, stream)
	for _, a := range shared {
		mine[a.at] = s.Temp("detour", b.Desc(out[a.at]))
	}
	if err := lower(s); err != nil {
		return err
	}
	for _, a := range shared {
		if err := s.Copy(mine[a.at], out[a.at]); err != nil {
			return err
		}
	}
	return nil
}

// alias is an output of a node, under a name of its own, that shares memory
// with an input.
type alias struct {
	at  int
	ref Ref
}

// aliases returns the outputs with a view of their own for each one that shares
// memory with an input: so reads of the input and of the output can be told
// apart.
func (b *Builder) aliases(in, out []Ref) (mine []Ref, shared []alias, err error) {
	mine = append(mine, out...)
	for j, o := range out {
		if o == Absent || !b.overlapsAny(o, in) {
			continue
		}
		if mine[j], err = b.View(o, b.Desc(o), 0); err != nil {
			return nil, nil, err
		}
		shared = append(shared, alias{j, mine[j]})
	}
	return mine, shared, nil
}

func (b *Builder) overlapsAny(o Ref, refs []Ref) bool {
	for _, r := range refs {
		if r != Absent && b.g.Tensors[r].overlaps(&b.g.Tensors[o]) {
			return true
		}
	}
	return false
}

// hazard reports whether a node from `first` on reads memory of an alias under
// another name after an earlier one wrote it through the alias.
func (b *Builder) hazard(first int, shared []alias) bool {
	for _, a := range shared {
		written := false
		for i := first; i < len(b.g.Nodes); i++ {
			n := &b.g.Nodes[i]
			if written && b.readsBehind(n, a.ref) {
				return true
			}
			for _, r := range n.Out {
				written = written || r != Absent && b.viewOf(r, a.ref)
			}
		}
	}
	return false
}

func (b *Builder) readsBehind(n *Node, a Ref) bool {
	for _, refs := range [...][]Ref{n.In, n.Val} {
		for _, r := range refs {
			if r != Absent && b.g.Tensors[r].overlaps(&b.g.Tensors[a]) && !b.viewOf(r, a) {
				return true
			}
		}
	}
	return false
}

// viewOf reports whether r is a or a view of it.
func (b *Builder) viewOf(r, a Ref) bool {
	for r != a {
		of := b.g.Tensors[r].Of
		if of == r {
			return false
		}
		r = of
	}
	return true
}

// rollBack forgets what was added since the graph had the given lengths.
func (b *Builder) rollBack(tensors, nodes, scopes int) {
	for r := range b.written {
		if int(r) >= tensors {
			delete(b.written, r)
		}
	}
	b.g.Tensors, b.g.Nodes, b.g.Scopes = b.g.Tensors[:tensors], b.g.Nodes[:nodes], b.g.Scopes[:scopes]
}

// Scope returns the builder of a node inside this operation: an operation of
// type op named name with the given operands, on the given stream.
func (b *Builder) Scope(name, op string, in, out []Ref, stream int) *Builder {
	b.g.Scopes = append(b.g.Scopes, Scope{Name: name, Op: op, Parent: b.scope})
	s := *b
	s.in, s.out, s.stream = in, out, stream
	s.scope = len(b.g.Scopes) - 1
	s.path = b.name(name)
	b.g.Streams = max(b.g.Streams, stream+1)
	return &s
}
