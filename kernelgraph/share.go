package kernelgraph

import (
	"goatb/kernel"
	"goatb/mempool"
)

// WindowAlign is the alignment, in bytes, of a temporary that lies inside
// another one.
const WindowAlign = 64

// choices lists the temporaries that could lie in the memory of another one:
// those that a node moves bytes between, such as a copy, a concatenation or a
// split, then the results of kernels that work in place.
func (u *usage) choices() []mempool.Alias {
	var moved, inPlace []mempool.Alias
	for i := range u.g.Nodes {
		n := &u.g.Nodes[i]
		if n.Kernel == nil {
			continue
		}
		for o, out := range n.Out {
			for k, in := range n.In {
				from, to := u.temp(in), u.temp(out)
				if from < 0 || to < 0 || from == to {
					continue
				}
				if m := n.Kernel.Moves(&n.Problem, o, k); m.Bytes > 0 {
					if a, ok := u.alias(in, out, m.InAt, m.OutAt); ok {
						moved = append(moved, a)
						u.note(from, to, move{i, u.distance(in, out, m)})
					}
				} else if n.Kernel.InPlace(o, k) && u.g.Tensors[in].Desc.Bytes() == u.g.Tensors[out].Desc.Bytes() {
					if a, ok := u.alias(in, out, 0, 0); ok {
						inPlace = append(inPlace, a)
					}
				}
			}
		}
	}
	return append(moved, inPlace...)
}

// note keeps the first node that moves bytes between two temporaries.
func (u *usage) note(from, to int, m move) {
	if _, ok := u.moved[[2]int{from, to}]; !ok {
		u.moved[[2]int{from, to}] = m
	}
}

// distance returns the byte of the input's temporary at which that of the
// output starts, when the bytes that are moved lie on each other.
func (u *usage) distance(in, out Ref, m kernel.Moved) int64 {
	return u.g.Tensors[in].Offset + m.InAt - u.g.Tensors[out].Offset - m.OutAt
}

// temp returns the temporary that r lies in, -1 for none.
func (u *usage) temp(r Ref) int {
	if r == Absent {
		return -1
	}
	return u.at[u.g.Tensors[r].Base]
}

// alias lays the temporaries of an input and of an output over each other so
// that byte inAt of the one is byte outAt of the other: the smaller one in the
// larger one.
func (u *usage) alias(in, out Ref, inAt, outAt int64) (mempool.Alias, bool) {
	x, y := &u.g.Tensors[in], &u.g.Tensors[out]
	a := mempool.Alias{Item: u.at[x.Base], In: u.at[y.Base], At: y.Offset + outAt - x.Offset - inAt}
	size, room := u.g.Tensors[x.Base].Desc.Bytes(), u.g.Tensors[y.Base].Desc.Bytes()
	if size > room {
		a, size, room = mempool.Alias{Item: a.In, In: a.Item, At: -a.At}, room, size
	}
	return a, a.At >= 0 && a.At%WindowAlign == 0 && a.At+size <= room
}

// legal reports whether temporaries a and b may share memory, b from byte `at`
// of a on: what is read of the one is not what was written to the other.
func (u *usage) legal(a, b int, at int64) bool {
	return u.follows(a, b, at) || u.follows(b, a, -at)
}

// follows reports whether b, from byte `at` of a on, may take over the memory
// of a: every use of a is over when b's bytes there are used.
//
// One node may read a and write b, where it works in place. And where it moves
// the very bytes of a to b, both hold the same from then on: a may be read as
// long as nothing else is written to b.
func (u *usage) follows(a, b int, at int64) bool {
	m, same := u.moved[[2]int{a, b}]
	same = same && m.at == at
	for i := range u.uses[a] {
		x := &u.uses[a][i]
		for k := range u.uses[b] {
			y := &u.uses[b][k]
			switch {
			case x.lo >= y.hi+at || y.lo+at >= x.hi: // other bytes
			case u.order.Before(x.node, y.node):
			case x.node == y.node && u.takesOver(x, y, at):
			case same && !x.write && u.order.Before(m.node, x.node) && u.holds(m.node, a, x, y, at):
			default:
				return false
			}
		}
	}
	return true
}

// takesOver reports whether a node may find the input x and the output y, whose
// temporary starts at byte `at` of x's, in one memory.
func (u *usage) takesOver(x, y *use, at int64) bool {
	n := &u.g.Nodes[x.node]
	if x.write || !y.write || x.i == byTiling || n.Kernel == nil {
		return false
	}
	if m := n.Kernel.Moves(&n.Problem, y.i, x.i); m.Bytes > 0 && x.lo+m.InAt == y.lo+at+m.OutAt {
		return m.Bytes == min(x.hi-x.lo, y.hi-y.lo)
	}
	return n.Kernel.InPlace(y.i, x.i) && x.lo == y.lo+at && x.hi == y.hi+at
}

// holds reports whether use y of a target leaves the bytes that x reads of the
// source a as they are: it reads after the move, or is the move's own write of
// these bytes.
func (u *usage) holds(node, a int, x, y *use, at int64) bool {
	if !y.write {
		return u.order.Before(node, y.node)
	}
	n := &u.g.Nodes[node]
	for k, in := range n.In {
		if y.node != node || u.temp(in) != a {
			continue
		}
		m := n.Kernel.Moves(&n.Problem, y.i, k)
		lo, hi := y.lo+at+m.OutAt, y.lo+at+m.OutAt+m.Bytes
		if u.g.Tensors[in].Offset+m.InAt == lo && lo <= max(x.lo, y.lo+at) && hi >= min(x.hi, y.hi+at) {
			return true
		}
	}
	return false
}
