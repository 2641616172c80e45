package runner

import (
	"context"

	"goatb/device"
	"goatb/kernelgraph"
	"goatb/status"
)

// Execute binds, tiles, moves and enqueues in one go. It does not wait for the
// device, except where the policy's ring is full.
func (r *Runner) Execute(in, out []device.Tensor, workspace device.Buffer) error {
	if err := r.begin(in, out, workspace); err != nil {
		return err
	}
	return r.enqueue(r.env.Policy.Ahead())
}

// PreLaunch does the first half of Execute: it binds, computes every tiling and
// moves what the policy moves before the launch. It touches no execute stream,
// so another goroutine may run Launch of another operation meanwhile.
func (r *Runner) PreLaunch(in, out []device.Tensor, workspace device.Buffer) error {
	if err := r.begin(in, out, workspace); err != nil {
		return err
	}
	if err := r.moveAll(); err != nil {
		r.env.Policy.Abort(&r.job)
		return err
	}
	r.prepared = true
	return nil
}

// Launch does the second half of Execute. Errors: ErrInvalidParam without a
// PreLaunch before it.
func (r *Runner) Launch() error {
	if !r.prepared {
		return status.Errorf(status.ErrInvalidParam, "launch wants a pre-launch before it")
	}
	r.prepared = false
	return r.enqueuePrepared()
}

// Discard drops a PreLaunch that was not launched.
func (r *Runner) Discard() {
	if r.prepared {
		r.prepared = false
		r.env.Policy.Abort(&r.job)
	}
}

func (r *Runner) begin(in, out []device.Tensor, workspace device.Buffer) error {
	r.Discard()
	if err := r.Bind(in, out, workspace); err != nil {
		return err
	}
	if err := r.readValues(in); err != nil {
		return err
	}
	r.refreshHost(in)
	e := r.env
	j := &r.job
	j.Streams, j.HostRing, j.DeviceRing, j.Copy, j.Events, j.Moved = e.Streams, e.HostRing, e.DeviceRing, e.Copy, e.Events, 0
	j.Started = false
	if err := e.Policy.Begin(j); err != nil {
		e.Policy.Abort(j)
		return err
	}
	return nil
}

func (r *Runner) moveAll() error {
	for k := range r.launches {
		if r.skip[k] {
			continue
		}
		if err := r.env.Policy.Move(&r.job, k); err != nil {
			return err
		}
	}
	return r.env.Policy.Flush(&r.job)
}

func (r *Runner) enqueue(ahead bool) error {
	if ahead {
		if err := r.moveAll(); err != nil {
			r.env.Policy.Abort(&r.job)
			return err
		}
		return r.enqueuePrepared()
	}
	return r.finish(r.enqueueSteps(true))
}

func (r *Runner) enqueuePrepared() error { return r.finish(r.enqueueSteps(false)) }

// finish joins the streams and closes the job, or undoes it on an error.
func (r *Runner) finish(err error) error {
	if jerr := r.joinStreams(); err == nil {
		err = jerr
	}
	r.tally.bytes = r.job.Moved
	r.tally.flush(r.env.Counters)
	if err != nil {
		r.env.Policy.Abort(&r.job)
		return err
	}
	if err := r.env.Policy.End(&r.job); err != nil {
		r.env.Policy.Abort(&r.job)
		return err
	}
	if r.env.SyncOperation {
		return r.syncAll()
	}
	return nil
}

// enqueueSteps enqueues every node in order; with move, the tiling of each
// kernel is moved right before it.
func (r *Runner) enqueueSteps(move bool) error {
	policy := r.env.Policy
	r.job.Started = true
	if err := policy.Start(&r.job); err != nil {
		return err
	}
	if err := r.forkStreams(); err != nil {
		return err
	}
	for i := range r.plan.steps {
		s := &r.plan.steps[i]
		if s.kernel < 0 {
			if err := r.enqueueOther(i, s.node); err != nil {
				return err
			}
		} else if err := r.enqueueKernel(s.kernel, move); err != nil {
			return err
		}
		if s.runnerEnd && r.env.SyncRunner {
			if err := r.env.Streams[s.node.Stream].Synchronize(context.Background()); err != nil {
				return err
			}
		}
	}
	if move {
		return policy.Flush(&r.job)
	}
	return nil
}

func (r *Runner) enqueueKernel(k int, move bool) error {
	if r.skip[k] {
		r.tally.skipped++
		return nil
	}
	policy, l := r.env.Policy, &r.launches[k]
	if move {
		if err := policy.Move(&r.job, k); err != nil {
			return err
		}
	}
	if err := policy.Before(&r.job, k); err != nil {
		return err
	}
	stream := r.env.Streams[r.plan.slots[k].Stream]
	if r.env.CompareTiling && policy.UsesRings() {
		if err := r.compareTiling(k, stream, "before"); err != nil {
			return err
		}
	}
	if err := stream.Launch(l); err != nil {
		return l.Label.Place(err)
	}
	r.tally.kernels++
	return r.afterKernel(k, stream)
}

// afterKernel makes the checks that were asked for; each waits for the stream.
func (r *Runner) afterKernel(k int, stream device.Stream) error {
	if r.env.SyncKernel {
		if err := stream.Synchronize(context.Background()); err != nil {
			return err
		}
	}
	if r.env.CompareTiling && r.env.Policy.UsesRings() {
		if err := r.compareTiling(k, stream, "after"); err != nil {
			return err
		}
	}
	if r.env.Overflow != nil {
		return r.scanOverflow(k, stream)
	}
	return nil
}

func (r *Runner) enqueueOther(i int, n *kernelgraph.Node) error {
	stream := r.env.Streams[n.Stream]
	switch n.Kind {
	case kernelgraph.ForeignNode:
		return r.callForeign(i)
	case kernelgraph.RecordNode:
		e, err := r.event(n)
		if err != nil {
			return err
		}
		return status.Place(stream.Record(e), status.ErrDeviceFail, n.Op, "execute", n.Path)
	default:
		e, err := r.event(n)
		if err != nil {
			return err
		}
		if err := stream.Wait(e); err != nil {
			return status.Place(err, status.ErrDeviceFail, n.Op, "execute", n.Path)
		}
		return status.Place(stream.Reset(e), status.ErrDeviceFail, n.Op, "execute", n.Path)
	}
}

// forkStreams lets every other stream of the plan start behind the main one, so
// that launches of one workspace follow each other.
func (r *Runner) forkStreams() error {
	if len(r.plan.streams) < 2 {
		return nil
	}
	if err := r.makeEvents(); err != nil {
		return err
	}
	if err := r.env.Streams[r.plan.main].Record(r.fork); err != nil {
		return err
	}
	for _, s := range r.plan.streams {
		if s != r.plan.main {
			if err := r.env.Streams[s].Wait(r.fork); err != nil {
				return err
			}
		}
	}
	return nil
}

// joinStreams lets the main stream wait for the others.
func (r *Runner) joinStreams() error {
	if len(r.plan.streams) < 2 || r.fork == nil {
		return nil
	}
	for i, s := range r.plan.streams {
		if s == r.plan.main {
			continue
		}
		if err := r.env.Streams[s].Record(r.joins[i]); err != nil {
			return err
		}
		if err := r.env.Streams[r.plan.main].Wait(r.joins[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runner) makeEvents() error {
	if r.fork == nil {
		e, err := r.env.Device.NewEvent()
		if err != nil {
			return err
		}
		r.fork = e
	}
	for len(r.joins) < len(r.plan.streams) {
		e, err := r.env.Device.NewEvent()
		if err != nil {
			return err
		}
		r.joins = append(r.joins, e)
	}
	return nil
}

func (r *Runner) syncAll() error {
	var first error
	for _, s := range r.plan.streams {
		if err := r.env.Streams[s].Synchronize(context.Background()); first == nil {
			first = err
		}
	}
	return first
}
