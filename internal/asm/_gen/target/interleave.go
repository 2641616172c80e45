package target

import (
	"fmt"
	"slices"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
)

// Marks in the code of a function, as comments that Write removes.
const (
	markBegin = "interleave: begin"
	markNext  = "interleave: next"
	markEnd   = "interleave: end"
)

// Interleave emits body(0) to body(count-1), which are straight code where count
// is above 1, one instruction of each in turn. A processor that looks ahead over a bounded number
// of instructions then sees count chains at once. An instruction of body(i) may
// use what an instruction of body(j), j < i, made, if that is no further from
// the beginning of its body.
func Interleave(c *build.Context, count int, body func(i int)) {
	if count == 1 {
		body(0)
		return
	}
	c.Comment(markBegin)
	for i := range count {
		if i > 0 {
			c.Comment(markNext)
		}
		body(i)
	}
	c.Comment(markEnd)
}

// merge puts what Interleave marked in its order.
func merge(f *ir.File) error {
	for _, fn := range f.Functions() {
		var nodes []ir.Node
		var bodies [][]ir.Node
		open := false
		for _, n := range fn.Nodes {
			switch mark(n) {
			case markBegin:
				open, bodies = true, [][]ir.Node{nil}
			case markNext:
				bodies = append(bodies, nil)
			case markEnd:
				open, nodes = false, append(nodes, inTurn(bodies)...)
			default:
				if !open {
					nodes = append(nodes, n)
					continue
				}
				if i, ok := n.(*ir.Instruction); !ok || i.IsBranch {
					return fmt.Errorf("%s: interleaved code is not straight", fn.Name)
				}
				last := len(bodies) - 1
				bodies[last] = append(bodies[last], n)
			}
		}
		fn.Nodes = nodes
	}
	return nil
}

// mark returns the mark that a node is, or nothing.
func mark(n ir.Node) string {
	if c, ok := n.(*ir.Comment); ok && len(c.Lines) == 1 {
		if m := c.Lines[0]; slices.Contains([]string{markBegin, markNext, markEnd}, m) {
			return m
		}
	}
	return ""
}

// inTurn takes a node of each body in turn.
func inTurn(bodies [][]ir.Node) (out []ir.Node) {
	for i, more := 0, true; more; i++ {
		more = false
		for _, b := range bodies {
			if i < len(b) {
				out, more = append(out, b[i]), true
			}
		}
	}
	return out
}
