package runner

import (
	"goatb/device"
	"goatb/kernelgraph"
	"goatb/status"
)

// ForeignCall is an operation inside a graph that is not made of kernels, such
// as a user's own. Call enqueues it; scratch is memory of the size that the
// graph was lowered with.
type ForeignCall interface {
	Call(in, out []device.Tensor, scratch device.Buffer) error
}

// EventSlot gives the event of a record or wait node.
type EventSlot interface {
	// Event returns nil when the slot is empty.
	Event() device.Event
}

// foreignArgs holds the bound operands of one foreign node.
type foreignArgs struct {
	step    int
	in, out []device.Tensor
	// fromInput maps an operand to the input it is, for its host data; -1 else.
	fromInput []int
	scratch   device.Buffer
}

func newForeignArgs(p *Plan) []foreignArgs {
	var list []foreignArgs
	for i := range p.steps {
		n := p.steps[i].node
		if n.Kind != kernelgraph.ForeignNode {
			continue
		}
		f := foreignArgs{step: i, in: make([]device.Tensor, len(n.In)), out: make([]device.Tensor, len(n.Out))}
		for j, r := range n.In {
			f.fromInput = append(f.fromInput, -1)
			if r != kernelgraph.Absent {
				f.in[j].Desc = p.Graph.Tensors[r].Desc
				if p.Graph.Tensors[r].Kind == kernelgraph.Input {
					f.fromInput[j] = p.Graph.Tensors[r].Index
				}
			}
		}
		for j, r := range n.Out {
			if r != kernelgraph.Absent {
				f.out[j].Desc = p.Graph.Tensors[r].Desc
			}
		}
		list = append(list, f)
	}
	return list
}

func (r *Runner) bindForeign() {
	for x := range r.foreign {
		f := &r.foreign[x]
		ops := r.plan.steps[f.step].operands
		for j := range f.in {
			f.in[j].Data = r.address(&ops[j])
		}
		for j := range f.out {
			f.out[j].Data = r.address(&ops[len(f.in)+j])
		}
		f.scratch = r.address(&ops[len(ops)-1])
	}
}

// refreshHost gives foreign operands the host data of this launch's inputs.
func (r *Runner) refreshHost(in []device.Tensor) {
	for x := range r.foreign {
		f := &r.foreign[x]
		for j, i := range f.fromInput {
			if i >= 0 {
				f.in[j].Host = in[i].Host
			}
		}
	}
}

func (r *Runner) callForeign(step int) error {
	for x := range r.foreign {
		if f := &r.foreign[x]; f.step == step {
			n := r.plan.steps[step].node
			call, ok := n.Foreign.(ForeignCall)
			if !ok {
				return status.Errorf(status.ErrInternal, "foreign node %s is a %T", n.Path, n.Foreign)
			}
			return status.Place(call.Call(f.in, f.out, f.scratch), status.ErrRuntimeFail, n.Op, "execute", n.Path)
		}
	}
	return nil
}

func (r *Runner) event(n *kernelgraph.Node) (device.Event, error) {
	slot, ok := n.Event.(EventSlot)
	if !ok {
		return nil, status.Errorf(status.ErrInternal, "event node %s is a %T", n.Path, n.Event)
	}
	e := slot.Event()
	if e == nil {
		err := status.Errorf(status.ErrInvalidParam, "the event is nil")
		return nil, status.Place(err, status.ErrInvalidParam, n.Op, "execute", n.Path)
	}
	return e, nil
}
