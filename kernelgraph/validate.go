package kernelgraph

import (
	"fmt"

	"goatb/status"
)

// Validate checks the plan of a graph without looking at lives: it goes through
// the nodes and keeps, for every byte of the workspace, which write it holds.
// Every read has to find what the last write to its tensor put there, no node
// may write over what it reads unless its kernel allows that, and uses of
// one byte for several tensors have to be in order. The error is ErrInternal and
// names the node and the tensor.
func (w *Workspace) Validate(g *Graph) error {
	v := validation{g: g, w: w, access: accesses{order: newOrder(g)}, tensors: make([]runs, len(g.Tensors))}
	for i := range g.Nodes {
		if err := v.node(i); err != nil {
			return status.Errorf(status.ErrInternal, "workspace plan: node %d (%s): %w", i, g.Nodes[i].Path, err)
		}
	}
	return nil
}

// content names what a byte holds: byte number position-origin of a write.
type content struct {
	write  int // number of the write from 1 on, 0 for what nobody wrote
	origin int64
}

type validation struct {
	g       *Graph
	w       *Workspace
	writes  int
	memory  runs   // what the workspace holds, by its bytes
	tensors []runs // what each temporary should hold, by its own bytes
	access  accesses
}

// window is an operand in a temporary.
type window struct {
	ref    Ref
	base   Ref
	lo, hi int64 // in the base
	at     int64 // of lo, in the workspace
}

// windowOf returns the window of r, false where r does not lie in a temporary.
func (v *validation) windowOf(r Ref) (window, bool) {
	if r == Absent {
		return window{}, false
	}
	t := &v.g.Tensors[r]
	if v.g.Tensors[t.Base].Kind != Temp {
		return window{}, false
	}
	return window{r, t.Base, t.Offset, t.Offset + t.Desc.Bytes(), v.w.Offset[t.Base] + t.Offset}, true
}

func (x *window) size() int64 { return x.hi - x.lo }

func (x *window) meets(y *window) bool { return x.at < y.at+y.size() && y.at < x.at+x.size() }

func (v *validation) node(i int) error {
	n := &v.g.Nodes[i]
	for _, refs := range [...][]Ref{n.In, n.Val} {
		for _, r := range refs {
			if err := v.read(i, r); err != nil {
				return err
			}
		}
	}
	var wrote []window
	for o, r := range n.Out {
		y, ok := v.windowOf(r)
		if !ok {
			continue
		}
		if y.at < v.w.Scratch || y.at+y.size() > v.w.Size {
			return fmt.Errorf("%s leaves the intermediates: bytes %d to %d", v.g.name(r), y.at, y.at+y.size())
		}
		for k, in := range n.In {
			if x, ok := v.windowOf(in); ok && x.meets(&y) && !mayOverlay(n, o, k, &x, &y) {
				return fmt.Errorf("%s is written over %s, which the node reads", v.g.name(r), v.g.name(in))
			}
		}
		for k := range wrote {
			if wrote[k].meets(&y) && wrote[k].ref != r {
				return fmt.Errorf("%s and %s are written to the same bytes", v.g.name(wrote[k].ref), v.g.name(r))
			}
		}
		wrote = append(wrote, y)
	}
	for o, r := range n.Out {
		if y, ok := v.windowOf(r); ok {
			if err := v.access.write(user{i, y.base}, y.at, y.at+y.size()); err != nil {
				return fmt.Errorf("%s: %w", v.g.name(r), err)
			}
			v.write(n, o, &y)
		}
	}
	return nil
}

// mayOverlay reports whether a kernel may find its input k and its output o in
// memory that overlaps.
func mayOverlay(n *Node, o, k int, x, y *window) bool {
	if n.Kernel == nil {
		return false
	}
	if n.Kernel.InPlace(o, k) && x.at == y.at && x.size() == y.size() {
		return true
	}
	m := n.Kernel.Moves(&n.Problem, o, k)
	return m.Bytes > 0 && x.at+m.InAt == y.at+m.OutAt && (m.Bytes == x.size() || m.Bytes == y.size())
}

// read checks that memory holds what a tensor should.
func (v *validation) read(i int, r Ref) error {
	x, ok := v.windowOf(r)
	if !ok {
		return nil
	}
	if err := v.access.read(user{i, x.base}, x.at, x.at+x.size()); err != nil {
		return fmt.Errorf("%s: %w", v.g.name(r), err)
	}
	shift := x.at - x.lo
	for _, want := range v.tensors[x.base].between(x.lo, x.hi) {
		if want.content.write == 0 {
			continue
		}
		for _, got := range v.memory.between(want.lo+shift, want.hi+shift) {
			if got.content.write != want.content.write || got.content.origin != want.content.origin+shift {
				return fmt.Errorf("%s was overwritten: bytes %d to %d of the workspace", v.g.name(r), got.lo, got.hi-1)
			}
		}
	}
	return nil
}

// write lets output o hold what the node puts there: bytes that it moves are
// those of the input, all others are new.
func (v *validation) write(n *Node, o int, y *window) {
	v.writes++
	shift := y.at - y.lo
	fresh := content{v.writes, y.lo}
	v.tensors[y.base].set(run{y.lo, y.hi, fresh})
	v.memory.set(run{y.at, y.at + y.size(), content{v.writes, y.at}})
	if n.Kernel == nil {
		return
	}
	for k, in := range n.In {
		x, ok := v.windowOf(in)
		m := n.Kernel.Moves(&n.Problem, o, k)
		if !ok || m.Bytes == 0 {
			continue
		}
		from := x.lo + m.InAt
		to := y.lo + m.OutAt - from // from the source's bytes to the target's
		for _, s := range v.tensors[x.base].between(from, from+m.Bytes) {
			if s.content.write == 0 {
				continue
			}
			s.lo, s.hi, s.content.origin = s.lo+to, s.hi+to, s.content.origin+to
			v.tensors[y.base].set(s)
			s.lo, s.hi, s.content.origin = s.lo+shift, s.hi+shift, s.content.origin+shift
			v.memory.set(s)
		}
	}
}
