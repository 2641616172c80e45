package runner

import (
	"goatb/device"
	"goatb/kernelgraph"
	"goatb/tiling"
	"goatb/tiling/sink/capture"
)

// replays reports whether the launch at hand replays a captured graph.
func (r *Runner) replays() bool { return r.policy.Captures() && r.captured.graph != nil }

// moveHosted computes the tilings of the kernels that split the captured graph.
func (r *Runner) moveHosted() error {
	c := &r.captured
	if !c.hosted {
		return nil
	}
	for i := range c.plan.Segments {
		seg := &c.plan.Segments[i]
		if k := r.plan.steps[c.steps[seg.First]].kernel; seg.Host && k >= 0 {
			if err := r.moveGroup(k, k+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// replay enqueues the captured segments, and what the host does between them, on
// the main stream: other streams of the plan wait for it, and it for them. With
// move, the tiling of a kernel on the host is computed right before it.
func (r *Runner) replay(move bool) error {
	r.job.Started = true
	if err := r.policy.Start(&r.job); err != nil {
		return err
	}
	if err := r.gather(); err != nil {
		return err
	}
	c := &r.captured
	main := r.job.Streams[r.plan.main]
	for i := range c.plan.Segments {
		seg := &c.plan.Segments[i]
		if seg.Host {
			if err := r.hostStep(c.steps[seg.First], move); err != nil {
				return err
			}
			continue
		}
		moved, err := c.graph.Replay(i, main, &r.memory)
		if err != nil {
			return err
		}
		r.job.Moved += moved
		r.tally.kernels += c.graph.Kernels(i)
	}
	r.tally.skipped += c.copies
	r.tally.replays++
	if err := r.settlePairs(); err != nil {
		return err
	}
	return r.scatter()
}

// hostStep does a step between captured segments.
func (r *Runner) hostStep(i int, move bool) error {
	s := &r.plan.steps[i]
	if s.kernel < 0 {
		return r.enqueueOther(i, s.node)
	}
	if move {
		if err := r.moveGroup(s.kernel, s.kernel+1); err != nil {
			return err
		}
	}
	if err := r.policy.Before(&r.job, s.kernel); err != nil {
		return r.launches[s.kernel].Label.Place(err)
	}
	return r.launchOne(s.kernel, r.plan.main)
}

// gather lets the main stream wait for the others.
func (r *Runner) gather() error {
	if len(r.plan.streams) < 2 {
		return nil
	}
	if err := r.makeEvents(); err != nil {
		return err
	}
	return r.join()
}

// scatter lets the other streams wait for the main one.
func (r *Runner) scatter() error {
	if len(r.plan.streams) < 2 {
		return nil
	}
	return r.fan()
}

// hostData notes the host data of the inputs for a replay; with keep they are
// copied, since the launch comes later.
func (r *Runner) hostData(in []device.Tensor, keep bool) {
	for _, i := range r.plan.values {
		if h := in[i].Host; keep {
			r.kept[i] = append(r.kept[i][:0], h...)
			r.memory.Host[i] = r.kept[i]
		} else {
			r.memory.Host[i] = h
		}
	}
}

// constant reports whether the tiling of kernel k is a constant of the launch at
// hand.
func (r *Runner) constant(k int) bool {
	w, ok := r.policy.(*tiling.Wired)
	return ok && w.Constants[k].Data != nil
}

// Capture is a captured launch.
type Capture struct {
	// Plan is nil where everything is launched from the host, and Graph also in
	// form v2.
	Plan  *capture.Plan
	Graph *capture.Graph
	// Nodes are the nodes of the plan in the kernel graph.
	Nodes []*kernelgraph.Node
}

// Captured describes the last capture for tools: nil before one, and where the
// policy does not capture. It is immutable.
func (r *Runner) Captured() *Capture {
	c := &r.captured
	if !c.made {
		return nil
	}
	out := &Capture{Plan: c.plan, Graph: c.graph}
	for _, i := range c.steps {
		out.Nodes = append(out.Nodes, r.plan.steps[i].node)
	}
	return out
}
