package kernelgraph

import (
	"slices"
	"strconv"

	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// Env is what lowering needs to know of the place where the graph will run.
type Env struct {
	Machine kernel.Machine
	Options kernel.Options
	Filter  kernel.Filter
	// Copy is the table of plain copies, for outputs that cannot be written
	// in place.
	Copy kernel.Table
	// Host keeps account of the host's work, nil where nobody does.
	Host device.Host
}

// Builder builds the part of a graph that belongs to one operation. In and Out
// number that operation's own inputs and outputs.
type Builder struct {
	g       *Graph
	env     *Env
	in, out []Ref
	scope   int
	stream  int
	path    string
	// written tells which tensors have a writer, by base.
	written map[Ref]bool
}

// Call is one kernel call of an operation.
type Call struct {
	// Name is the step's name inside the operation, such as "split-k"; it may
	// be empty where the operation has one kernel.
	Name string
	// Table lists the kernels to choose from.
	Table kernel.Table
	// Params is the kernel's parameter struct.
	Params any
	// In and Out are the operands, Val the tensors whose values the tiling reads:
	// windows of inputs that have host data, or what earlier nodes make.
	In, Out, Val []Ref
	// NoCache keeps the call's tilings out of the caches.
	NoCache bool
	// NeverTimeout says that the kernel may run for ever, so that nothing on the
	// device may wait for it: policy device-sink refuses to tile it there.
	NeverTimeout bool
}

// New makes a builder for a whole operation with the given operands. A
// descriptor that is empty makes an absent operand.
func New(env *Env, op string, in, out []tensor.Desc) *Builder {
	g := &Graph{Scopes: []Scope{{Name: op, Op: op, Parent: -1}}, Streams: 1}
	b := &Builder{g: g, env: env, written: map[Ref]bool{}}
	for i, d := range in {
		b.in = append(b.in, b.operand(Input, "in", i, d))
	}
	for i, d := range out {
		b.out = append(b.out, b.operand(Output, "out", i, d))
	}
	g.Inputs, g.Outputs = b.in, b.out
	return b
}

func (b *Builder) operand(k Kind, name string, i int, d tensor.Desc) Ref {
	if d.Empty() {
		return Absent
	}
	r := b.add(Tensor{Name: name + strconv.Itoa(i), Desc: d, Kind: k, Index: i})
	if k == Input {
		b.written[r] = true
	}
	return r
}

// NameOperands names the operands of the whole operation for dumps and errors;
// an empty name changes nothing.
func (b *Builder) NameOperands(in, out []string) {
	for i, refs := range [...][]Ref{b.in, b.out} {
		names := [...][]string{in, out}[i]
		for j, r := range refs {
			if r != Absent && j < len(names) && names[j] != "" {
				b.g.Tensors[r].Name = names[j]
			}
		}
	}
}

func (b *Builder) add(t Tensor) Ref {
	r := Ref(len(b.g.Tensors))
	if t.Kind != View {
		t.Base, t.Of = r, r
	}
	t.Scope = b.scope
	b.g.Tensors = append(b.g.Tensors, t)
	return r
}

// In returns input i of the operation, Absent when it is not there.
func (b *Builder) In(i int) Ref { return b.in[i] }

// Out returns output i of the operation, Absent when it is not there.
func (b *Builder) Out(i int) Ref { return b.out[i] }

// Desc returns the descriptor of r, an empty one for Absent.
func (b *Builder) Desc(r Ref) tensor.Desc {
	if r == Absent {
		return tensor.Desc{}
	}
	return b.g.Tensors[r].Desc
}

// Machine describes the device.
func (b *Builder) Machine() kernel.Machine { return b.env.Machine }

// Temp makes a temporary in the workspace.
func (b *Builder) Temp(name string, d tensor.Desc) Ref {
	return b.add(Tensor{Name: b.name(name), Desc: d, Kind: Temp})
}

func (b *Builder) name(s string) string {
	if b.path == "" {
		return s
	}
	return b.path + "/" + s
}

// View makes a tensor over the bytes of r from byte offset on, without a copy.
// Errors: ErrInvalidParam when the window leaves r.
func (b *Builder) View(r Ref, d tensor.Desc, offset int64) (Ref, error) {
	base := &b.g.Tensors[r]
	size, whole := d.Bytes(), base.Desc.Bytes()
	if size == 0 || offset < 0 || offset > whole || size > whole-offset {
		return Absent, status.Errorf(status.ErrInvalidParam, "view %s at byte %d leaves %s %s", d, offset, base.Name, base.Desc)
	}
	return b.add(Tensor{Name: base.Name + "'", Desc: d, Kind: View, Index: base.Index, Base: base.Base, Offset: base.Offset + offset, Of: r}), nil
}

// Kernel adds a kernel call: the first kernel of the table that takes it.
// Outputs that share memory with inputs in a way that the kernel does not
// allow go through a temporary. Errors: ErrInvalidParam with every refusal
// when no kernel takes the call, ErrInvalidGraph when an input has no writer,
// ErrInvalidTensorAddr when the tensor of host values is not there.
func (b *Builder) Kernel(c Call) error {
	if h := b.env.Host; h != nil {
		h.Begin(device.PlanWork, nil)
		defer h.End(device.PlanWork)
	}
	n := Node{Kind: KernelNode, NoCache: c.NoCache, NeverTimeout: c.NeverTimeout}
	for _, refs := range [...][]Ref{c.In, c.Val} {
		if err := b.wantWritten(refs); err != nil {
			return err
		}
	}
	if slices.Contains(c.Val, Absent) {
		return status.Errorf(status.ErrInvalidTensorAddr, "the tiling of %s reads the host values of a tensor that is absent", b.name(c.Name))
	}
	n.In, n.Out, n.Val = slices.Clone(c.In), slices.Clone(c.Out), slices.Clone(c.Val)
	n.Problem = kernel.Problem{
		In: b.descs(c.In), Out: b.descs(c.Out), Val: b.descs(c.Val),
		Params: c.Params, Machine: b.env.Machine, Options: b.env.Options,
	}
	k, refused, err := c.Table.Select(&n.Problem, b.env.Filter)
	if err != nil {
		return err
	}
	n.Kernel, n.Refused = k, refused
	n.Scratch, n.TilingSize = k.Scratch(&n.Problem), k.TilingSize(&n.Problem)
	if bytes := k.LogBytes(); bytes > 0 {
		n.Log = []Ref{b.Temp("log", tensor.Of(tensor.Uint8, bytes))}
	}
	copies := b.detour(&n)
	b.push(n, c.Name)
	for _, c := range copies {
		if err := b.Copy(c.from, c.to); err != nil {
			return err
		}
	}
	return nil
}

// Copy copies src to dst, which have equal byte sizes. Nothing is added when
// both are the same tensor, and the copy is left out at run time when both are
// bound to the same memory: so an operation that updates an input in place
// copies its input to its output first and then works on the output. Windows
// that overlap in part are copied through a temporary.
func (b *Builder) Copy(src, dst Ref) error {
	s, d := b.Desc(src), b.Desc(dst)
	if s.Bytes() != d.Bytes() {
		return status.Errorf(status.ErrInvalidGraph, "copy of %s to %s: sizes differ", s, d)
	}
	if err := b.wantWritten([]Ref{src}); err != nil {
		return err
	}
	switch from, to := &b.g.Tensors[src], &b.g.Tensors[dst]; {
	case from.exactly(to):
		return nil
	case from.overlaps(to):
		tmp := b.Temp("detour", s)
		if err := b.Copy(src, tmp); err != nil {
			return err
		}
		src = tmp
	}
	n := Node{Kind: CopyNode, In: []Ref{src}, Out: []Ref{dst}}
	n.Problem = kernel.Problem{In: b.descs(n.In), Out: b.descs(n.Out), Params: struct{}{}, Machine: b.env.Machine, Options: b.env.Options}
	k, refused, err := b.env.Copy.Select(&n.Problem, b.env.Filter)
	if err != nil {
		return err
	}
	n.Kernel, n.Refused = k, refused
	n.Scratch, n.TilingSize = k.Scratch(&n.Problem), k.TilingSize(&n.Problem)
	b.push(n, "copy")
	return nil
}

// Record adds a record of event slot e on the operation's stream.
func (b *Builder) Record(e any) { b.push(Node{Kind: RecordNode, Event: e}, "record") }

// Wait adds a wait for event slot e, which is reset after it, on the
// operation's stream.
func (b *Builder) Wait(e any) { b.push(Node{Kind: WaitNode, Event: e}, "wait") }

// Foreign adds a call of an operation that is not made of kernels and needs
// the given bytes of scratch memory.
func (b *Builder) Foreign(op any, in, out []Ref, scratch int64) error {
	if err := b.wantWritten(in); err != nil {
		return err
	}
	b.push(Node{Kind: ForeignNode, Foreign: op, In: in, Out: out, Scratch: scratch}, "foreign")
	return nil
}

// wantWritten refuses tensors that hold nothing yet.
func (b *Builder) wantWritten(refs []Ref) error {
	for _, r := range refs {
		if r != Absent && !b.written[b.g.Tensors[r].Base] {
			return status.Errorf(status.ErrInvalidGraph, "%s is read before any node writes it", b.g.Tensors[r].Name)
		}
	}
	return nil
}

func (b *Builder) push(n Node, name string) {
	n.Op, n.Stream, n.Scope = b.g.Scopes[b.scope].Op, b.stream, b.scope
	n.Path = b.path
	if name != "" {
		n.Path = b.name(name)
	}
	for _, r := range n.Out {
		if r != Absent {
			b.written[b.g.Tensors[r].Base] = true
		}
	}
	b.g.Nodes = append(b.g.Nodes, n)
}

func (b *Builder) descs(refs []Ref) []tensor.Desc {
	d := make([]tensor.Desc, len(refs))
	for i, r := range refs {
		d[i] = b.Desc(r)
	}
	return d
}

// Path names the operation's place in the tree, "" for the whole.
func (b *Builder) Path() string { return b.path }

// Stream returns the id of the stream that the builder adds to.
func (b *Builder) Stream() int { return b.stream }

// SetStream puts what the builder adds from now on to a stream.
func (b *Builder) SetStream(stream int) {
	b.stream = stream
	b.g.Streams = max(b.g.Streams, stream+1)
}

// Written reports whether some node, or the caller, has written r.
func (b *Builder) Written(r Ref) bool { return b.written[b.g.Tensors[r].Base] }

// Build returns the graph. Errors: ErrInvalidGraph when an output that is
// there has no writer.
func (b *Builder) Build() (*Graph, error) {
	for i, r := range b.g.Outputs {
		if r != Absent && !b.written[r] {
			return nil, status.Errorf(status.ErrInvalidGraph, "no node writes output %d", i)
		}
	}
	return b.g, nil
}
