package operation

import (
	"reflect"
	"regexp"
	"slices"

	"goatb/status"
	"goatb/tensor"
)

// Limits of graphs.
const (
	// MaxGraphTensors bounds inputs, outputs and internal tensors, each.
	MaxGraphTensors = 256
	// MaxGraphNodes bounds the nodes of a graph.
	MaxGraphNodes = 1024
	maxGraphName  = 128
)

// ReshapeFunc gives a tensor other dimensions with as many elements. It must
// not keep state: it is called whenever shapes are inferred.
type ReshapeFunc func(old tensor.Shape) tensor.Shape

// InferShapeFunc gives the output descriptors of a graph.
type InferShapeFunc func(in []tensor.Desc) ([]tensor.Desc, error)

// Chunk splits dimension 0 of a tensor evenly into Num parts and takes part
// Index. The zero Chunk takes the whole tensor.
type Chunk struct {
	Num, Index int
}

// check wants a number of parts of at least 1, and one of them.
func (c Chunk) check() *status.OpError {
	if c.Num < 1 {
		return status.Errorf(status.ErrInvalidGraphNodeChunk, "chunk %d of %d: want at least 1 part", c.Index, c.Num)
	}
	if c.Index < 0 || c.Index >= c.Num {
		return status.Errorf(status.ErrInvalidGraphNodeChunk, "chunk %d of %d: want a part of 0 to %d", c.Index, c.Num, c.Num-1)
	}
	return nil
}

// Node is a node of a graph in the id form.
type Node struct {
	// Name is the node's name in errors and dumps; it may be empty.
	Name string
	// Op is the operation; the graph owns it from New on.
	Op Operation
	// In and Out are tensor ids, Absent for an optional tensor that is not
	// there.
	In, Out []int
	// Reshape and Chunk, when not nil, have an entry for each input; the chunk
	// is taken from the reshaped tensor. A nil function changes nothing.
	Reshape []ReshapeFunc
	Chunk   []Chunk
}

// Absent is the tensor id of an optional operand that is not there.
const Absent = -1

// GraphParam describes a graph by tensor ids: inputs are [0, Inputs), outputs
// [Inputs, Inputs+Outputs), internal tensors follow. Nodes run in the order of
// the list. A tensor may be written more than once; a node whose output is one
// of its inputs works in place.
type GraphParam struct {
	// Name has at most 128 characters of A-Z, a-z, 0-9 and _; empty means
	// "GraphOperation".
	Name                       string
	Inputs, Outputs, Internals int
	Nodes                      []Node
	// InferShape replaces the walk over the nodes in the operation's
	// InferShape; Setup compares the two.
	InferShape InferShapeFunc
	// names are the tensors' names by id, from the builder.
	names []string
}

var graphName = regexp.MustCompile(`^[A-Za-z0-9_]*$`)

// NewGraph makes a graph operation, which owns the node operations from then
// on. Errors are ErrInvalidGraph, and the node operations stay the caller's:
// a bad name, a count out of range, no node at all, a node without operation, a wrong number of
// ids, an id out of range, a tensor read before it is written, an output or
// internal tensor that no node writes, a node that writes one tensor twice. A
// wrong number of chunks is ErrInvalidGraphNodeChunk too. An input that no node
// uses is let be, as ATB does: see Op.UnusedInputs.
func NewGraph(p GraphParam) (*Op, error) {
	if p.Name == "" {
		p.Name = "GraphOperation"
	}
	p.Nodes = cloneNodes(p.Nodes)
	g := &graph{p: p}
	if err := g.validate(); err != nil {
		return nil, status.Place(err, status.ErrInvalidGraph, p.Name, "create", "")
	}
	g.findConditions()
	o, err := newOp(g)
	if err == nil {
		g.adopt(o)
	}
	return o, err
}

// cloneNodes copies nodes, whose slices the caller may use again.
func cloneNodes(nodes []Node) []Node {
	nodes = slices.Clone(nodes)
	for i := range nodes {
		n := &nodes[i]
		n.In, n.Out = slices.Clone(n.In), slices.Clone(n.Out)
		n.Reshape, n.Chunk = slices.Clone(n.Reshape), slices.Clone(n.Chunk)
	}
	return nodes
}

func badGraph(format string, args ...any) error {
	return status.Errorf(status.ErrInvalidGraph, format, args...)
}

func (g *graph) validate() error {
	p := &g.p
	if len(p.Name) > maxGraphName || !graphName.MatchString(p.Name) {
		return badGraph("want a name of at most %d characters of A-Z, a-z, 0-9 and _, got %q", maxGraphName, p.Name)
	}
	for _, c := range [...]struct {
		what string
		n    int
	}{{"inputs", p.Inputs}, {"outputs", p.Outputs}, {"internal tensors", p.Internals}} {
		if c.n < 0 || c.n > MaxGraphTensors {
			return badGraph("want 0 to %d %s, got %d", MaxGraphTensors, c.what, c.n)
		}
	}
	if len(p.Nodes) < 1 || len(p.Nodes) > MaxGraphNodes {
		return badGraph("want 1 to %d nodes, got %d", MaxGraphNodes, len(p.Nodes))
	}
	written := make([]bool, g.tensors())
	for i := range p.Inputs {
		written[i] = true
	}
	seen := map[any]int{}
	for i := range p.Nodes {
		if err := g.validateNode(i, written, seen); err != nil {
			return err
		}
	}
	for id := p.Inputs; id < len(written); id++ {
		if !written[id] {
			return badGraph("no node writes %s", g.tensorName(id))
		}
	}
	return nil
}

func (g *graph) validateNode(i int, written []bool, seen map[any]int) error {
	n := &g.p.Nodes[i]
	place := func(err error) error { return status.Place(err, status.ErrInvalidGraph, "", "", g.nodeName(i)) }
	if status.IsNil(n.Op) {
		return place(badGraph("the node has no operation"))
	}
	if o, ok := n.Op.(*Op); ok && o.spec == nil {
		return place(badGraph("%w", errZeroOp()))
	}
	if reflect.TypeOf(n.Op).Kind() == reflect.Pointer {
		if j, ok := seen[n.Op]; ok {
			return place(badGraph("the operation is node %s already", g.nodeName(j)))
		}
		seen[n.Op] = i
	}
	if o, ok := n.Op.(*Op); ok && (o.owner != nil || o.closed.Load()) {
		return place(badGraph("the operation is closed or belongs to another graph"))
	}
	if len(n.In) != n.Op.InputNum() || len(n.Out) != n.Op.OutputNum() {
		return place(badGraph("want %d inputs and %d outputs, got %d and %d", n.Op.InputNum(), n.Op.OutputNum(), len(n.In), len(n.Out)))
	}
	if n.Reshape != nil && len(n.Reshape) != len(n.In) {
		return place(badGraph("want a reshape function for each of %d inputs or none, got %d", len(n.In), len(n.Reshape)))
	}
	if n.Chunk != nil && len(n.Chunk) != len(n.In) {
		return place(status.Errorf(status.ErrInvalidGraphNodeChunk, "want a chunk for each of %d inputs or none, got %d", len(n.In), len(n.Chunk)).Or(status.ErrInvalidGraph))
	}
	for _, id := range n.In {
		if id == Absent {
			continue
		}
		if id < 0 || id >= len(written) {
			return place(badGraph("input id %d: want 0 to %d, the graph's tensors, or %d for none", id, len(written)-1, Absent))
		}
		if !written[id] {
			return place(badGraph("%s is read before any node writes it", g.tensorName(id)))
		}
	}
	for j, id := range n.Out {
		if id < 0 || id >= len(written) {
			return place(badGraph("output id %d: want 0 to %d, the graph's tensors", id, len(written)-1))
		}
		if slices.Contains(n.Out[:j], id) {
			return place(badGraph("it writes %s with two of its outputs", g.tensorName(id)))
		}
		written[id] = true
	}
	return nil
}
