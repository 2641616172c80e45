package operation

import (
	"slices"

	"goatb/kernel"
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

// Launched is a kernel as an Execute launched it.
type Launched struct {
	Kernel *kernel.Kernel
	Grid   kernel.Grid
	// Tiling is a copy of the tiling's bytes.
	Tiling []byte
}

// Launches returns the kernels of the last Setup in order, with their tilings for
// the values of the last Execute. Errors: ErrInvalidParam without a Setup, or where
// a tiling reads values and there was no Execute or the launch makes them itself;
// and those of tilings.
func (o *Op) Launches() ([]Launched, error) {
	if err := o.enter(); err != nil {
		return nil, err
	}
	defer o.leave()
	if !o.ready || o.run == nil || o.run.Plan() == nil {
		return nil, status.Place(status.Errorf(status.ErrInvalidParam, "want a successful setup first"), status.ErrInvalidParam, o.name, "launches", "")
	}
	out := make([]Launched, 0, o.run.Plan().Kernels())
	for i := range o.run.Plan().Graph.Nodes {
		n := &o.run.Plan().Graph.Nodes[i]
		if n.Kernel == nil {
			continue
		}
		if !o.run.Tilable(len(out)) {
			return nil, status.Place(status.Errorf(status.ErrInvalidParam, "the tiling of %s reads values that are not known: execute first", n.Kernel.Name()),
				status.ErrInvalidParam, o.name, "launches", "")
		}
		bytes, grid, err := o.run.Tiling(len(out))
		if err != nil {
			return nil, status.Place(err, status.ErrInternal, o.name, "launches", "")
		}
		out = append(out, Launched{n.Kernel, grid, slices.Clone(bytes)})
	}
	return out, nil
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
