package kernelgraph

import (
	"fmt"
	"io"
	"strings"
)

// name names a tensor in dumps.
func (g *Graph) name(r Ref) string {
	if r == Absent {
		return "-"
	}
	return g.Tensors[r].Name
}

// Names names tensors in dumps; an absent one is "-".
func (g *Graph) Names(refs []Ref) []string {
	s := make([]string, len(refs))
	for i, r := range refs {
		s[i] = g.name(r)
	}
	return s
}

func (g *Graph) names(refs []Ref) string { return strings.Join(g.Names(refs), ", ") }

// What names what the node does: its kernel, or its kind.
func (n *Node) What() string {
	switch n.Kind {
	case RecordNode:
		return "record"
	case WaitNode:
		return "wait"
	case ForeignNode:
		return "foreign " + n.Op
	}
	return n.Kernel.Name()
}

// WriteText writes the graph and its workspace plan, which may be nil, for
// people and transcripts. Equal graphs give equal texts.
func (g *Graph) WriteText(w io.Writer, plan *Workspace) error {
	var b strings.Builder
	for i := range g.Nodes {
		n := &g.Nodes[i]
		fmt.Fprintf(&b, "%d %s: %s(%s) -> %s", i, n.Path, n.What(), g.names(n.In), g.names(n.Out))
		if n.Stream != 0 {
			fmt.Fprintf(&b, " stream %d", n.Stream)
		}
		if n.Scratch > 0 {
			fmt.Fprintf(&b, " scratch %d", n.Scratch)
		}
		b.WriteByte('\n')
	}
	if plan != nil {
		fmt.Fprintf(&b, "workspace %d = scratch %d + intermediates %d (lower bound %d, by %s)%s\n",
			plan.Size, plan.Scratch, plan.Arena, plan.LowerBound, plan.Method, g.peak(plan))
		for _, l := range plan.Lives {
			t := &g.Tensors[l.Ref]
			fmt.Fprintf(&b, "  %s %s nodes %d..%d at %d\n", t.Name, t.Desc, l.First, l.Last, plan.Offset[l.Ref])
		}
		for _, x := range plan.Within {
			t := &g.Tensors[x.Ref]
			fmt.Fprintf(&b, "  %s %s in %s at %d\n", t.Name, t.Desc, g.Tensors[x.In].Name, plan.Offset[x.Ref])
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Slower says which of its kernel's faster ways the node's problem turns off, and
// why.
func (n *Node) Slower() []string {
	if n.Kernel == nil {
		return nil
	}
	return n.Kernel.Slower(&n.Problem)
}

// WriteReasons writes what a shape, a type or the processor turns off: the kernels
// that would come before each node's own, with why they were not taken, and the
// ways of its own that the node does not go. Other nodes have no line.
func (g *Graph) WriteReasons(w io.Writer) error {
	var b strings.Builder
	for i := range g.Nodes {
		n := &g.Nodes[i]
		for _, r := range n.Refused {
			fmt.Fprintf(&b, "%d %s: %s instead of %s: %v\n", i, n.Path, n.What(), r.Kernel, r.Reason)
		}
		for _, why := range n.Slower() {
			fmt.Fprintf(&b, "%d %s: %s: %s\n", i, n.Path, n.What(), why)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// peak names the node at which the most memory is live.
func (g *Graph) peak(plan *Workspace) string {
	if len(plan.Lives) == 0 {
		return ""
	}
	return fmt.Sprintf(", most live at node %d %s", plan.PeakAt, g.Nodes[plan.PeakAt].Path)
}

// WriteDot writes the graph in the language of Graphviz: a box for each node,
// an arrow for each tensor from its writer to its readers, a dashed one to those
// whose tiling reads its values.
func (g *Graph) WriteDot(w io.Writer) error {
	var b strings.Builder
	b.WriteString("digraph kernels {\n  node [shape=box, fontname=monospace];\n")
	writer := map[Ref]string{}
	for i, r := range g.Inputs {
		if r != Absent {
			writer[r] = fmt.Sprintf("in%d", i)
			fmt.Fprintf(&b, "  in%d [shape=ellipse, label=%q];\n", i, g.name(r)+"\n"+g.Tensors[r].Desc.String())
		}
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		fmt.Fprintf(&b, "  n%d [label=%q];\n", i, n.Path+"\n"+n.What())
		for side, refs := range [...][]Ref{n.In, n.Val} {
			for _, r := range refs {
				if r == Absent {
					continue
				}
				if from, ok := writer[g.Tensors[r].Base]; ok {
					fmt.Fprintf(&b, "  %s -> n%d [label=%q%s];\n", from, i, g.name(r), [...]string{"", ", style=dashed"}[side])
				}
			}
		}
		for _, r := range n.Out {
			if r != Absent {
				writer[g.Tensors[r].Base] = fmt.Sprintf("n%d", i)
			}
		}
	}
	for i, r := range g.Outputs {
		if r != Absent {
			fmt.Fprintf(&b, "  out%d [shape=ellipse, label=%q];\n  %s -> out%d;\n", i, g.name(r)+"\n"+g.Tensors[r].Desc.String(), writer[r], i)
		}
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}
