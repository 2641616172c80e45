package operation

import (
	"goatb/kernelgraph"
	"goatb/runner"
)

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

// Workspace returns the workspace plan of the last Setup, nil before one. It is
// immutable.
func (o *Op) Workspace() *kernelgraph.Workspace {
	if o == nil || o.run == nil || o.run.Plan() == nil {
		return nil
	}
	return o.run.Plan().Workspace
}
