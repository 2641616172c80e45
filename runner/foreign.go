package runner

import (
	"errors"

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
	// host tells which bytes of which input an operand is, for its host data.
	host    []hostWindow
	scratch device.Buffer
}

// hostWindow is a window of the host data of an input, of none when input is
// below 0.
type hostWindow struct {
	input     int
	off, size int64
}

// foreignArgs makes room for the operands of the foreign nodes.
func (p *Plan) foreignArgs() []foreignArgs {
	var list []foreignArgs
	for i := range p.steps {
		n := p.steps[i].node
		if n.Kind != kernelgraph.ForeignNode {
			continue
		}
		f := foreignArgs{step: i, in: p.tensors(n.In), out: p.tensors(n.Out)}
		for _, r := range n.In {
			w := hostWindow{input: -1}
			if r != kernelgraph.Absent {
				t := &p.Graph.Tensors[r]
				if base := &p.Graph.Tensors[t.Base]; base.Kind == kernelgraph.Input {
					w = hostWindow{base.Index, t.Offset, t.Desc.Bytes()}
				}
			}
			f.host = append(f.host, w)
		}
		list = append(list, f)
	}
	return list
}

// tensors makes tensors without data.
func (p *Plan) tensors(refs []kernelgraph.Ref) []device.Tensor {
	ts := make([]device.Tensor, len(refs))
	for i, r := range refs {
		if r != kernelgraph.Absent {
			ts[i].Desc = p.Graph.Tensors[r].Desc
		}
	}
	return ts
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
		for j, w := range f.host {
			if w.input < 0 {
				continue
			}
			f.in[j].Host = nil
			if h := in[w.input].Host; int64(len(h)) >= w.off+w.size {
				f.in[j].Host = h[w.off : w.off+w.size : w.off+w.size]
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
			return foreignError(call.Call(f.in, f.out, f.scratch), n)
		}
	}
	return nil
}

// foreignError names the node before the place that a user's own operation gave
// its error.
func foreignError(err error, n *kernelgraph.Node) error {
	if err == nil {
		return nil
	}
	e := &status.OpError{Code: status.ErrRuntimeFail, Node: n.Path, Err: err}
	if inner, ok := errors.AsType[*status.OpError](err); ok && inner != nil {
		e.Code = inner.Code
	}
	return e
}

func (r *Runner) event(n *kernelgraph.Node) (device.Event, error) {
	slot, ok := n.Event.(EventSlot)
	if !ok {
		return nil, status.Errorf(status.ErrInternal, "event node %s is a %T", n.Path, n.Event)
	}
	e := slot.Event()
	if status.IsNil(e) {
		return nil, status.Place(status.Errorf(status.ErrInvalidParam, "the event is nil"), status.ErrInvalidParam, "", "", n.Path)
	}
	return e, nil
}
