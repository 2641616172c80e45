package runner

import (
	"goatb/device"
	"goatb/status"
	"goatb/tiling/sink"
	"goatb/tiling/sink/capture"
)

// captures takes what a launch captures from a compilation that has the graph, or
// makes it.
func (r *Runner) captures(nodes []capture.Node, s capture.Settings) (*capture.Plan, error) {
	if f := r.env.Sinking.Compiled; f != nil {
		p, err := f.Plan(nodes, s)
		if err != nil {
			return nil, err
		}
		if p != nil {
			r.env.Counters.Compiled.Add(1)
			return p, nil
		}
	}
	return capture.New(nodes, s)
}

// PlanCapture plans what a launch would capture, for tools and compilers: nothing
// is bound and nothing is loaded. Every input counts as lying in device memory. in
// and out are the tensors of the launch: a copy between two that have the same
// memory is left out; they may have no memory. values are host values by input,
// nil where they are not known. option is the compilation's value of
// sink.OptionName; offline asks no device. Errors: a plan of which nothing can be
// captured (ErrInvalidGraph), and those of package capture.
func (r *Runner) PlanCapture(in, out []device.Tensor, values [][]int64, option string, offline bool) (*capture.Plan, error) {
	c := captured{skipped: make([]bool, len(r.skip)), absent: make([]bool, len(r.in))}
	for k := range c.skipped {
		c.skipped[k] = r.plan.leavesOut(k, in, out)
	}
	var err error
	if c.pairs, err = r.findPairs(); err != nil {
		return nil, err
	}
	var models device.ModelDevice
	if r.env.Sinking.Form != sink.V2Form {
		if why := r.hostOnly(&c.pairs); why != "" {
			return nil, status.Place(status.Errorf(status.ErrInvalidGraph, "it cannot be captured: %s", why), status.ErrInvalidGraph, r.plan.root, "capture", "")
		}
		if !offline {
			if models, err = device.Models(r.env.Device); err != nil {
				return nil, err
			}
		}
	}
	s, err := r.settings(models, option)
	if err != nil {
		return nil, err
	}
	s.Build.Offline = offline
	if err := r.takeValues(values); err != nil && values != nil {
		return nil, err
	}
	return capture.New(r.nodes(&c), s)
}
