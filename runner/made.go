package runner

import (
	"context"
	"slices"

	"goatb/device"
	"goatb/kernelgraph"
	"goatb/status"
	"goatb/tensor"
)

// made reports whether the launch itself makes the values of w.
func (w *window) made() bool { return w.input < 0 }

// madeValue is the window of values that a node of the graph makes. Errors:
// ErrInvalidTensorDType for values that tilings cannot read,
// ErrInvalidTensorAddr for a window that is not aligned to them.
func (p *Plan) madeValue(n *kernelgraph.Node, r kernelgraph.Ref) (window, error) {
	t := &p.Graph.Tensors[r]
	switch t.Desc.DType {
	case tensor.Int32, tensor.Uint32, tensor.Int64:
	default:
		return window{}, status.Errorf(status.ErrInvalidTensorDType, "the tiling of %s reads the values of %s: want int32, uint32 or int64, got %s", n.Path, t.Name, t.Desc.DType)
	}
	w := window{input: -1, n: int(t.Desc.Numel()), at: p.locate(r)}
	if w.at.off%t.Desc.DType.Size() != 0 {
		return window{}, status.Errorf(status.ErrInvalidTensorAddr, "the tiling of %s reads the values of %s at byte %d: want a multiple of %d", n.Path, t.Name, w.at.off, t.Desc.DType.Size())
	}
	return w, nil
}

// staging makes room for the values of one tiling on their way to the host.
func (p *Plan) staging() device.Buffer {
	size := int64(0)
	for k := range p.kernels {
		need := int64(0)
		for i := range p.kernels[k].values {
			if w := &p.kernels[k].values[i]; w.made() {
				need += stagingBytes(w)
			}
		}
		size = max(size, need)
	}
	if size == 0 {
		return device.Buffer{}
	}
	return device.WrapHost(device.BytesOf(make([]int64, size/8)))
}

// stagingBytes is the room for a value: a multiple of what values are aligned to.
func stagingBytes(w *window) int64 { return (w.at.size + 7) / 8 * 8 }

// readMade brings the values that the tiling of kernel k reads, and that the
// launch makes, to the host. It waits for what was enqueued before on the stream
// that kernel k goes to.
func (r *Runner) readMade(k int) error {
	if err := r.launchHeld(); err != nil {
		return err
	}
	if r.ready == nil {
		e, err := r.env.Device.NewEvent()
		if err != nil {
			return err
		}
		r.ready = e
	}
	stream := r.job.Streams[r.streamOf(k)]
	ks, at := &r.plan.kernels[k], int64(0)
	for i := range ks.values {
		if w := &ks.values[i]; w.made() {
			if err := stream.Copy(r.staging.At(at, w.at.size), r.address(&w.at)); err != nil {
				return ks.label.Place(err)
			}
			at += stagingBytes(w)
		}
	}
	if err := stream.Record(r.ready); err != nil {
		return err
	}
	if err := r.ready.Synchronize(context.Background()); err != nil {
		return err
	}
	return ks.label.Place(r.takeMade(k))
}

// streamOf is the id of the stream that kernel k goes to in the launch at hand.
func (r *Runner) streamOf(k int) int {
	if r.replays() {
		return r.plan.main
	}
	return r.plan.slots[k].Stream
}

// takeMade takes the values of kernel k over from the staging memory and drops its
// current tiling where they changed.
func (r *Runner) takeMade(k int) error {
	p, at := &r.problems[k], int64(0)
	for i := range r.plan.kernels[k].values {
		w := &r.plan.kernels[k].values[i]
		if !w.made() {
			continue
		}
		t := device.Tensor{Desc: p.Val[i], Host: r.staging.At(at, w.at.size).Bytes()}
		at += stagingBytes(w)
		var err error
		if r.fresh, err = t.AppendValues(r.fresh[:0]); err != nil {
			return err
		}
		if p.Values[i] == nil || !slices.Equal(r.fresh, p.Values[i]) {
			p.Values[i] = append(p.Values[i][:0], r.fresh...)
			r.current[k] = nil
		}
	}
	return nil
}

// madeOnHost returns the first kernel that the host tiles in the launch at hand
// from values that the launch makes, -1 for none.
func (r *Runner) madeOnHost() int {
	if !r.plan.made {
		return -1
	}
	if !r.replays() {
		return slices.IndexFunc(r.plan.kernels, func(ks kernelStep) bool { return ks.made })
	}
	c := &r.captured
	for i := range c.plan.Segments {
		seg := &c.plan.Segments[i]
		if k := r.plan.steps[c.steps[seg.First]].kernel; seg.Host && k >= 0 && r.plan.kernels[k].made {
			return k
		}
	}
	return -1
}

// groupEnd is where the group of kernels ends that starts with k and is moved
// together: a kernel whose tiling reads what the launch makes starts a group.
func (r *Runner) groupEnd(k int) int {
	end := min(k+r.policy.Group(), len(r.launches))
	for i := k + 1; i < end; i++ {
		if r.plan.kernels[i].made {
			return i
		}
	}
	return end
}

// producers appends the captured nodes, by their number, that write what r names
// before a step. A move that is left out stands for the writers of what it would
// move.
func (r *Runner) producers(c *captured, nodes []int, step int, ref kernelgraph.Ref, dst []int) []int {
	for i := range step {
		s := &r.plan.steps[i]
		for _, out := range s.node.Out {
			if out == kernelgraph.Absent || !r.plan.Graph.Overlap(out, ref) {
				continue
			}
			if s.kernel >= 0 && c.skipped[s.kernel] {
				for _, in := range s.node.In {
					dst = r.producers(c, nodes, i, in, dst)
				}
			} else if !slices.Contains(dst, nodes[i]) {
				dst = append(dst, nodes[i])
			}
		}
	}
	return dst
}
