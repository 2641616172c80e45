package operation

import (
	"goatb/kernelgraph"
	"goatb/runner"
	"goatb/status"
	"goatb/tiling/sink/capture"
)

// UnusedInputs names the inputs of a graph operation that no node uses, as errors
// name tensors; none for other operations. Such an input is no error, as in ATB,
// but often a mistake: the command line warns of it.
func (o *Op) UnusedInputs() []string {
	if o == nil {
		return nil
	}
	if g, ok := o.spec.(*graph); ok {
		return g.unusedInputs()
	}
	return nil
}

// Graph returns the kernel graph of the last Setup, nil before one. It is
// immutable.
func (o *Op) Graph() *kernelgraph.Graph {
	if o == nil || o.run == nil || o.run.Plan() == nil {
		return nil
	}
	return o.run.Plan().Graph
}

// Capture describes what policy device-sink captured at the last Execute: nil
// before one, and under other policies. It is immutable.
func (o *Op) Capture() *runner.Capture {
	if o == nil || o.run == nil {
		return nil
	}
	return o.run.Captured()
}

// PlanCapture plans the task lists that policy device-sink would capture after the
// last Setup, without memory and, offline, without a device. option is the
// compilation's value of ge.tiling_schedule_optimize, nearer than those of graph
// and context. Errors: ErrInvalidParam without a Setup, and those of
// runner.Runner.PlanCapture.
func (o *Op) PlanCapture(option string, offline bool) (*capture.Plan, error) {
	if err := o.enter(); err != nil {
		return nil, err
	}
	defer o.leave()
	if !o.ready || o.run == nil {
		return nil, status.Place(status.Errorf(status.ErrInvalidParam, "want a successful setup first"), status.ErrInvalidParam, o.name, "capture", "")
	}
	p, err := o.run.PlanCapture(o.in, o.out, o.values.byInput, option, offline)
	return p, status.Place(err, status.ErrInvalidGraph, o.name, "capture", "")
}

// Workspace returns the workspace plan of the last Setup, nil before one. It is
// immutable.
func (o *Op) Workspace() *kernelgraph.Workspace {
	if o == nil || o.run == nil || o.run.Plan() == nil {
		return nil
	}
	return o.run.Plan().Workspace
}
