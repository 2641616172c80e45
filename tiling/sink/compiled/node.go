package compiled

import (
	"fmt"
	"strings"

	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
	"goatb/tiling/sink"
	"goatb/tiling/sink/capture"
)

// Node describes a node of a planned graph: everything that its mark, its tiling
// and its tasks depend on, as text that people can compare.
type Node struct {
	Op sink.Op
	// In, Out and Val are the descriptors of the problem, Params and Options the
	// kernel's parameters and switches.
	In, Out, Val, Params, Options string
	// Layout is that of the kernel's parameters and tiling, TilingBytes the size of
	// a tiling, Scratch what bounds its workspace.
	Layout      string
	TilingBytes int
	Scratch     int64
	// Args are the words of the operands: inputs and outputs of the graph with their
	// offsets. Where in the workspace one lies is the business of each Setup.
	Args []string
	// Values are where the values of Val come from: host data of inputs, or memory
	// with the nodes that fill it.
	Values string
	// Pair and Waits are those of an event inside the graph.
	Pair  int
	Waits bool
}

// describe describes a node of a graph that is planned for a machine.
func describe(n *capture.Node, o *sink.Op, machine *kernel.Machine) (Node, error) {
	d := Node{Op: *o, Pair: n.Pair, Waits: n.Waits}
	if n.Kernel == nil {
		return d, nil
	}
	p := n.Problem
	if p.Machine != *machine {
		err := status.Errorf(status.ErrInternal, "want a problem for a machine of %s, got %s", machineText(machine), machineText(&p.Machine))
		return d, status.Place(err, status.ErrInternal, o.Type, "compile", o.Name)
	}
	d.In, d.Out, d.Val = texts(p.In), texts(p.Out), texts(p.Val)
	d.Params, d.Options = fmt.Sprintf("%#v", p.Params), fmt.Sprintf("%+v", p.Options)
	d.Layout, d.TilingBytes, d.Scratch = n.Kernel.Layout(), n.Kernel.TilingSize(p), n.Kernel.Scratch(p)
	d.Values = places(n.Values)
	for i := range n.Operands {
		d.Args = append(d.Args, word(&n.Operands[i]))
	}
	return d, nil
}

// kernel reports whether the node is one.
func (n *Node) kernel() bool { return n.Op.CompileInfo != "" }

func texts(descs []tensor.Desc) string {
	out := make([]string, len(descs))
	for i := range descs {
		out[i] = descs[i].String()
	}
	return strings.Join(out, " ")
}

// places writes where values come from.
func places(values []capture.Value) string {
	out := make([]string, len(values))
	for i := range values {
		v := &values[i]
		if v.Input == sink.Outside {
			out[i] = fmt.Sprintf("%s made by nodes %v", word(&v.Made), v.Producers)
		} else {
			out[i] = fmt.Sprintf("%d bytes of input %d+%d", v.Size, v.Input, v.Off)
		}
	}
	return strings.Join(out, ", ")
}

// noWord is that of an operand without device memory.
const noWord = "-"

// word is the text of an operand's word in the address table.
func word(a *device.Address) string {
	switch a.Type {
	case device.InputMemory, device.OutputMemory:
		return fmt.Sprintf("%s %d+%d", a.Type, a.Index, a.Off)
	case device.WorkspaceMemory:
		return a.Type.String()
	}
	return noWord
}
