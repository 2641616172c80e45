package sink

import (
	"fmt"
	"io"

	"goatb/status"
)

// NodeKind is a sort of node of a prepared execution graph.
type NodeKind uint8

// Kinds of nodes.
const (
	// BinaryNode loads a kernel's binary when the graph is made.
	BinaryNode NodeKind = iota
	// ConstNode holds a tiling that was computed when the graph was made.
	ConstNode
	// HostTilingNode runs the tiling function on the host at every execution.
	HostTilingNode
	// LaunchNode launches the kernel.
	LaunchNode
)

// String names the kind.
func (k NodeKind) String() string {
	return [...]string{"sink-bin", "const", "tiling", "launch"}[k&3]
}

// Port is an output of a node and the input of a launch that it goes to.
type Port uint8

// Ports.
const (
	// BinaryPort carries the binary, the others what a tiling decides.
	BinaryPort Port = iota
	KeyPort
	BlockDimPort
	DataPort
	WorkspacePort
	// ValuePort carries a value that a tiling reads; OrderPort orders only.
	ValuePort
	OrderPort
)

// String names the port.
func (p Port) String() string {
	return [...]string{"binary", "tiling_key", "block_dim", "tiling_data", "workspaces", "value", "order"}[p%7]
}

// Node is one node of a prepared execution graph.
type Node struct {
	Kind NodeKind
	// Op is the index of the operation that it belongs to.
	Op int
	// Key and BlockDim are those of a ConstNode.
	Key      uint64
	BlockDim uint32
	// Stream is that of a LaunchNode.
	Stream int
}

// Wire is an edge of a prepared execution graph.
type Wire struct {
	From, To int
	Port     Port
}

// Prepared is form v2: the host tilings wired into an execution graph, once,
// when the graph is made. Nothing is patched at run time, and tilings that read
// values run on the host at every execution. Nodes are in an order in which they
// can run.
type Prepared struct {
	Ops   []Op
	Nodes []Node
	Wires []Wire
}

// Prepare wires a graph. before has the tilings that PreTile made: an operation whose tiling reads no values has it as a constant, another
// one has a tiling node whose outputs are edges to its launch, behind the
// launches that make the values. Errors name the operation: a constant without its
// tiling (ErrInternal), a producer that does not stand before its reader
// (ErrInvalidGraph).
func Prepare(ops []Op, marks []Mark, before []*Before) (*Prepared, error) {
	p := &Prepared{Ops: ops}
	launches := make([]int, len(ops))
	previous := map[int]int{}
	for i := range ops {
		o := &ops[i]
		tiled := marks[i].Depends || o.Unknown
		if before[i] == nil && !tiled {
			return nil, o.fail(status.ErrInternal, "gen", "want the tiling that was computed on the host, got none")
		}
		bin := p.node(Node{Kind: BinaryNode, Op: i})
		var tiling int
		if tiled {
			tiling = p.node(Node{Kind: HostTilingNode, Op: i})
			for n, in := range o.Inputs {
				switch {
				case !o.depends(&in) || in.Const || in.Producer == Outside:
				case in.Producer < 0 || in.Producer >= i:
					return nil, o.fail(status.ErrInvalidGraph, "gen", "input %d: want a producer before operation %d, got %d", n, i, in.Producer)
				default:
					p.wire(launches[in.Producer], tiling, ValuePort)
				}
			}
		} else {
			tiling = p.node(Node{Kind: ConstNode, Op: i, Key: before[i].Key, BlockDim: before[i].BlockDim})
		}
		launches[i] = p.node(Node{Kind: LaunchNode, Op: i, Stream: o.Stream})
		p.wire(bin, launches[i], BinaryPort)
		for _, port := range [...]Port{KeyPort, BlockDimPort, DataPort, WorkspacePort} {
			p.wire(tiling, launches[i], port)
		}
		if last, ok := previous[o.Stream]; ok {
			p.wire(last, launches[i], OrderPort)
		}
		previous[o.Stream] = launches[i]
	}
	return p, nil
}

func (p *Prepared) node(n Node) int {
	p.Nodes = append(p.Nodes, n)
	return len(p.Nodes) - 1
}

func (p *Prepared) wire(from, to int, port Port) {
	p.Wires = append(p.Wires, Wire{from, to, port})
}

// WriteText writes a line for each node with the wires that end there.
func (p *Prepared) WriteText(w io.Writer) error {
	for i, n := range p.Nodes {
		line := fmt.Sprintf("%d %s op %d", i, n.Kind, p.Ops[n.Op].ID)
		switch n.Kind {
		case ConstNode:
			line += fmt.Sprintf(" tiling_key=%d block_dim=%d", n.Key, n.BlockDim)
		case LaunchNode:
			line += fmt.Sprintf(" stream %d", n.Stream)
		}
		for _, e := range p.Wires {
			if e.To == i {
				line += fmt.Sprintf(" %s<-%d", e.Port, e.From)
			}
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
