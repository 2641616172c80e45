package operation

import "goatb/kernelgraph"

// Graph returns the kernel graph of the last Setup, nil before one. It is
// immutable.
func (o *Op) Graph() *kernelgraph.Graph {
	if o == nil || o.run == nil || o.run.Plan() == nil {
		return nil
	}
	return o.run.Plan().Graph
}

// Workspace returns the workspace plan of the last Setup, nil before one. It is
// immutable.
func (o *Op) Workspace() *kernelgraph.Workspace {
	if o == nil || o.run == nil || o.run.Plan() == nil {
		return nil
	}
	return o.run.Plan().Workspace
}
