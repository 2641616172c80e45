package capture

import (
	"encoding/json"
	"sync/atomic"
	"time"

	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tiling/sink"
)

// Node is a node of a planned graph, in execution order.
type Node struct {
	// Label names the node in errors and dumps.
	Label *device.Label
	// Kernel does Problem, which has the host values at hand; without values the
	// graph is planned with zeros.
	Kernel  *kernel.Kernel
	Problem *kernel.Problem
	// Stream is the id of the main stream that the kernel runs on.
	Stream int
	// Operands are inputs and outputs, the first Inputs of which are read.
	Operands []device.Address
	Inputs   int
	Scratch  device.Address
	// Log is memory for the log of a tiling function of another package.
	Log device.Address
	// NeverTimeout says that the kernel may run for ever.
	NeverTimeout bool
	// Values are where the values of Problem.Val come from.
	Values []Value
	// Pair is the number, from 1, of the pair of record and wait that the node is
	// part of, 0 for kernels. Waits says which of the two; then of the fields above
	// only Label and Stream count. Records stand before their waits.
	Pair  int
	Waits bool
	// HostOnly says why the node is no kernel; then the host does it between
	// segments, and of the other fields only Label counts.
	HostOnly string
}

// Value is what a tiling reads: a window of the host data of an input of the
// graph, in bytes, or memory that kernels of the graph fill.
type Value struct {
	// Input is the input, sink.Outside for memory of the graph.
	Input     int
	Off, Size int64
	// Made is the memory, Producers the nodes before this one that write it.
	Made      device.Address
	Producers []int
}

// made reports whether the graph itself makes the value.
func (v *Value) made() bool { return v.Input == sink.Outside }

// Settings say how a graph is captured.
type Settings struct {
	// Name is the graph's in errors and dumps.
	Name string
	Form sink.Form
	// Build is what the gates ask.
	Build sink.Build
	Soc   sink.Profile
	// Machine is what tilings learn about the device.
	Machine kernel.Machine
	// Streams is the number of main streams, Main the one that others are joined
	// to.
	Streams, Main int
	// Deadline bounds a run of a tiling function; 0 is the device's default.
	Deadline time.Duration
	// Tilings counts the tilings that the device computed; it may be nil.
	Tilings *atomic.Int64
	// Log is given the workspace of the log before each run of a tiling function of
	// another package; what it returns goes to Warn and stops nothing. Both may be
	// nil.
	Log  func(workspace []byte) error
	Warn func(error)
}

// Describe describes nodes to package sink. Errors: those of sink.RegistrationOf.
func Describe(nodes []Node) ([]sink.Op, error) {
	ops := make([]sink.Op, len(nodes))
	for i := range nodes {
		var err error
		if ops[i], err = nodes[i].op(i); err != nil {
			return nil, status.Place(err, status.ErrInvalidParam, nodes[i].Label.Kernel, "calc", nodes[i].Label.Node)
		}
	}
	return ops, nil
}

// op describes a node to package sink. Of its inputs only those count whose
// values the tiling reads; one that several nodes make is an input for each.
func (n *Node) op(id int) (sink.Op, error) {
	o := sink.Op{ID: int64(id), Name: n.Label.Node, Type: n.Label.Kernel, Stream: n.Stream, HostOnly: n.HostOnly}
	if n.Kernel == nil {
		return o, nil
	}
	p := n.Problem
	var err error
	if o.Registration, err = sink.RegistrationOf(n.Kernel, len(p.In), len(p.Val)); err != nil {
		return o, err
	}
	for i := range p.Val {
		if p.Val[i].Empty() {
			continue
		}
		in := sink.Input{Declared: len(p.In) + i, Producer: sink.Outside}
		for _, in.Producer = range n.Values[i].Producers {
			o.Inputs = append(o.Inputs, in)
		}
		if in.Producer == sink.Outside {
			o.Inputs = append(o.Inputs, in)
		}
	}
	o.Fusion.Supported, o.NeverTimeout = true, n.NeverTimeout
	o.Package, o.Custom = n.Kernel.Package(), n.Kernel.Package() != ""
	info, err := json.Marshal(map[string]any{"kernel": n.Kernel.Name(), "tiling_bytes": n.Kernel.TilingSize(p), "variants": n.Kernel.Keys()})
	o.CompileInfo = string(info)
	return o, err
}

// task is what the launch of the kernel becomes before it is sunk.
func (n *Node) task(o *sink.Op, m *sink.Mark, f sink.Form, b *sink.Before) sink.Task {
	args := sink.KernelArgs(n.Inputs, len(n.Operands)-n.Inputs)
	t := sink.Task{Stream: n.Stream, Op: o.ID, Args: args, BlockDim: b.BlockDim, Key: b.Key}
	if o.Fusion.Scope != "" {
		t.Kind = sink.KernelTask
		return t
	}
	if t.Kind = sink.KindOf(n.Kernel.Class(), m.Sunk, f == sink.FFTSPlusForm); t.Kind == sink.FFTSPlusTask {
		t.Args, t.Contexts = "", []sink.Context{{OpType: mixedPart, Args: args}}
	}
	return t
}

// mixedPart is the type of the part of a mixed kernel that starts the others.
const mixedPart = "MIX_AIC"
