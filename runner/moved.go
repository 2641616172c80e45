package runner

import (
	"goatb/device"
	"goatb/kernelgraph"
)

// run is a run of bytes that a kernel moves from one operand to another.
type run struct {
	from, to     int // operands
	fromAt, toAt int64
	bytes        int64
}

// runsOf returns the runs that all outputs of a node consist of, nil for a node
// that does more than move bytes. On an accelerator only copies have any: there
// the kernels of an operation are launched as its own library does.
func runsOf(n *kernelgraph.Node, operands []operand) []run {
	if n.Kind != kernelgraph.CopyNode && n.Problem.Machine.Accelerator {
		return nil
	}
	var runs []run
	left := int64(0)
	for o := range n.Out {
		to := len(n.In) + o
		left += operands[to].size
		for i := range n.In {
			if m := n.Kernel.Moves(&n.Problem, o, i); m.Bytes > 0 {
				runs = append(runs, run{i, to, m.InAt, m.OutAt, m.Bytes})
				left -= m.Bytes
			}
		}
	}
	if left != 0 {
		return nil
	}
	return runs
}

// skippable reports whether kernel k only moves bytes to where they are already
// under the current binding.
func (r *Runner) skippable(k int) bool {
	runs, b := r.plan.kernels[k].runs, r.launches[k].Buffers
	for i := range runs {
		x := &runs[i]
		if !b[x.from].At(x.fromAt, x.bytes).Same(b[x.to].At(x.toAt, x.bytes)) {
			return false
		}
	}
	return runs != nil
}

// leavesOut is skippable for a launch with these tensors, which may have no
// memory.
func (p *Plan) leavesOut(k int, in, out []device.Tensor) bool {
	ks := &p.kernels[k]
	for i := range ks.runs {
		x := &ks.runs[i]
		a, b := ks.operands[x.from].part(x.fromAt, x.bytes), ks.operands[x.to].part(x.toAt, x.bytes)
		if a == b {
			continue
		}
		from, to := a.within(in, out), b.within(in, out)
		if from.IsNil() || !from.Same(to) {
			return false
		}
	}
	return ks.runs != nil
}

// part is a window of an operand.
func (o *operand) part(at, bytes int64) operand {
	return operand{source: o.source, index: o.index, off: o.off + at, size: bytes}
}

// within is the memory of an operand among tensors, none for one in the workspace.
func (o *operand) within(in, out []device.Tensor) device.Buffer {
	ts := in
	switch o.source {
	case fromInput:
	case fromOutput:
		ts = out
	default:
		return device.Buffer{}
	}
	if o.index >= len(ts) || ts[o.index].Data.IsNil() {
		return device.Buffer{}
	}
	return ts[o.index].Data.At(o.off, o.size)
}
