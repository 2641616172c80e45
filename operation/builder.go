package operation

import (
	"fmt"
	"slices"

	"goatb/device"
	"goatb/status"
	"goatb/tensor"
)

// GraphBuilder builds a graph operation from names. Nodes may be added in any
// order: Build puts them into one in which every tensor is written before it is
// read, keeping the given order where it can. Of a tensor that several nodes
// write, or that a node updates in place, the given order decides who comes
// first.
//
// The first error of any step is kept with the step's name and comes back from
// Build; of a nil or zero GraphBuilder that is one that asks for BuildGraph. A
// GraphBuilder belongs to one goroutine.
type GraphBuilder struct {
	name        string
	in, out     []string
	nodes       []named
	views       map[string]view
	viewNames   []string
	infer       InferShapeFunc
	newEvent    func() (device.Event, error)
	err         error
	sharedNames map[string]string
}

// named is a node with tensor names.
type named struct {
	name    string
	op      Operation
	in, out []string
	chunk   map[string]Chunk
}

// view is a name for a tensor under other dimensions.
type view struct {
	of string
	fn ReshapeFunc
}

// BuildGraph starts a graph with named inputs and outputs. Op.UnusedInputs tells
// which inputs no node uses in the end.
func BuildGraph(name string, in, out []string) *GraphBuilder {
	b := &GraphBuilder{name: name, in: slices.Clone(in), out: slices.Clone(out), views: map[string]view{}, sharedNames: map[string]string{}}
	for _, n := range in {
		b.declare("input", n)
	}
	for _, n := range out {
		b.declare("output", n)
	}
	return b
}

// begun returns the builder, or one that has failed when BuildGraph has not made it.
func (b *GraphBuilder) begun() *GraphBuilder {
	if b != nil && b.views != nil {
		return b
	}
	return &GraphBuilder{views: map[string]view{}, sharedNames: map[string]string{}, err: badGraph("the builder is nil or zero: start a graph with BuildGraph")}
}

func (b *GraphBuilder) fail(step, format string, args ...any) {
	if b.err == nil {
		b.err = badGraph("%s: %w", step, fmt.Errorf(format, args...))
	}
}

func (b *GraphBuilder) declare(what, name string) {
	if name == "" {
		b.fail(what, "want a name")
	}
	if old, ok := b.sharedNames[name]; ok {
		b.fail(what, "the name %q is an %s already", name, old)
	}
	b.sharedNames[name] = what
}

// InferShape sets a function that replaces the walk over the nodes in the
// operation's InferShape.
func (b *GraphBuilder) InferShape(f InferShapeFunc) *GraphBuilder {
	b = b.begun()
	b.infer = f
	return b
}

// Reshape names a view of a tensor, or of another view, under other dimensions.
func (b *GraphBuilder) Reshape(of string, f ReshapeFunc, name string) *GraphBuilder {
	b = b.begun()
	step := "reshape " + name
	switch {
	case f == nil:
		b.fail(step, "want a function")
	case name == "" || name == of:
		b.fail(step, "want a new name for a view of %q", of)
	default:
		b.declare("view", name)
		b.views[name] = view{of, f}
		b.viewNames = append(b.viewNames, name)
	}
	return b
}

// Add adds a node. An empty name stands for an absent optional input. A name
// that is neither an input, an output nor a view is an internal tensor; some
// node has to write it.
func (b *GraphBuilder) Add(op Operation, in, out []string) *GraphBuilder {
	return b.AddNamed("", op, in, out)
}

// AddNamed is Add with a name for the node, for errors and dumps.
func (b *GraphBuilder) AddNamed(name string, op Operation, in, out []string) *GraphBuilder {
	b = b.begun()
	step := "node " + name
	if name == "" {
		step = fmt.Sprintf("node %d", len(b.nodes))
	}
	if status.IsNil(op) {
		b.fail(step, "want an operation, got nil")
		return b
	}
	if o, ok := op.(*Op); ok && o.spec == nil {
		b.fail(step, "%w", errZeroOp())
		return b
	}
	b.nodes = append(b.nodes, named{name: name, op: op, in: slices.Clone(in), out: slices.Clone(out)})
	return b
}

// AddSpec makes an operation from its parameters and adds it as a node.
func (b *GraphBuilder) AddSpec(s Spec, in, out []string) *GraphBuilder {
	b = b.begun()
	op, err := New(s)
	if err != nil {
		b.fail(fmt.Sprintf("node %d", len(b.nodes)), "%w", err)
		return b
	}
	return b.Add(op, in, out)
}

// Chunk makes the last node take part `index` of `num` equal parts of dimension
// 0 of its input with the given name.
func (b *GraphBuilder) Chunk(input string, num, index int) *GraphBuilder {
	b = b.begun()
	if len(b.nodes) == 0 {
		b.fail("chunk "+input, "want a node first")
		return b
	}
	n := &b.nodes[len(b.nodes)-1]
	if !slices.Contains(n.in, input) {
		b.fail("chunk "+input, "the last node, %s, has no input of that name", b.nodeName(len(b.nodes)-1))
		return b
	}
	c := Chunk{num, index}
	if err := c.check(); err != nil {
		b.fail("chunk "+input, "%w", err)
		return b
	}
	if n.chunk == nil {
		n.chunk = map[string]Chunk{}
	}
	n.chunk[input] = c
	return b
}

// Build returns the graph operation, which owns the node operations then.
// Errors are ErrInvalidGraph: the first error of a step, an unknown name read,
// a cycle, and those of NewGraph. After an error the node operations stay the
// caller's.
func (b *GraphBuilder) Build() (*Op, error) {
	b = b.begun()
	b.checkNames()
	if b.err != nil {
		return nil, status.Place(b.err, status.ErrInvalidGraph, b.name, "create", "")
	}
	deps, order, err := b.sorted()
	if err != nil {
		return nil, status.Place(err, status.ErrInvalidGraph, b.name, "create", "")
	}
	p := GraphParam{Name: b.name, Inputs: len(b.in), Outputs: len(b.out), InferShape: b.infer}
	p.names = append(append(p.names, b.in...), b.out...)
	ids := map[string]int{}
	for i, n := range p.names {
		ids[n] = i
	}
	for _, i := range order {
		for _, n := range b.nodes[i].out {
			if _, ok := ids[n]; !ok {
				ids[n] = len(p.names)
				p.names = append(p.names, n)
			}
		}
	}
	p.Internals = len(p.names) - len(b.in) - len(b.out)
	for _, i := range order {
		p.Nodes = append(p.Nodes, b.node(&b.nodes[i], ids))
	}
	if b.newEvent != nil {
		if p.Nodes, err = b.withEvents(p.Nodes, deps, order); err != nil {
			return nil, status.Place(err, status.ErrInvalidGraph, b.name, "create", "")
		}
	}
	return NewGraph(p)
}

// checkNames refuses views of themselves and names of a view that a node writes.
func (b *GraphBuilder) checkNames() {
	for _, name := range b.viewNames {
		at := name
		for range len(b.views) + 1 {
			at = b.views[at].of
		}
		if at != "" {
			b.fail("reshape "+name, "it is a view of itself")
		}
	}
	for i := range b.nodes {
		for _, n := range b.nodes[i].out {
			if _, ok := b.views[n]; ok || n == "" {
				b.fail("node "+b.nodeName(i), "an output wants the name of a tensor, got %q", n)
			}
		}
	}
}

// base follows views to the tensor.
func (b *GraphBuilder) base(name string) string {
	for {
		v, ok := b.views[name]
		if !ok {
			return name
		}
		name = v.of
	}
}

// reshape composes the functions of a view of views.
func (b *GraphBuilder) reshape(name string) ReshapeFunc {
	v, ok := b.views[name]
	if !ok {
		return nil
	}
	inner := b.reshape(v.of)
	if inner == nil {
		return v.fn
	}
	return func(old tensor.Shape) tensor.Shape { return v.fn(inner(old)) }
}

func (b *GraphBuilder) node(n *named, ids map[string]int) Node {
	out := Node{Name: n.name, Op: n.op}
	for j, name := range n.in {
		if name == "" {
			out.In = append(out.In, Absent)
			continue
		}
		out.In = append(out.In, ids[b.base(name)])
		if f := b.reshape(name); f != nil {
			if out.Reshape == nil {
				out.Reshape = make([]ReshapeFunc, len(n.in))
			}
			out.Reshape[j] = f
		}
		if c, ok := n.chunk[name]; ok {
			if out.Chunk == nil {
				out.Chunk = make([]Chunk, len(n.in))
			}
			out.Chunk[j] = c
		}
	}
	for _, name := range n.out {
		out.Out = append(out.Out, ids[name])
	}
	return out
}
