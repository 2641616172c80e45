package runner

import (
	"context"

	"goatb/device"
	"goatb/kernelgraph"
	"goatb/status"
	"goatb/tiling"
)

// Execute binds, tiles, moves and enqueues in one go. It does not wait for the
// device, except where the policy's ring is full. values holds the host values
// of the inputs whose values the plan reads, by input; the runner keeps a copy.
func (r *Runner) Execute(in, out []device.Tensor, workspace device.Buffer, values [][]int64) error {
	if err := r.begin(in, out, workspace, values); err != nil {
		return err
	}
	return r.launch(in)
}

// Repeatable reports whether a launch with the addresses of the last one, and this
// workspace, may replay a captured graph or run what its stream keeps.
func (r *Runner) Repeatable(workspace device.Buffer) bool {
	if !r.bound || r.workspace != workspace {
		return false
	}
	if c := &r.captured; r.env.Policy.Captures() {
		return c.graph != nil && c.version == r.version
	}
	return r.resident.launches != nil && r.resident.version == r.version
}

// Repeat is Execute with the addresses of the last launch, which must be Repeatable;
// in has the host data. The device looks at the memory.
func (r *Runner) Repeat(in []device.Tensor, values [][]int64) error {
	r.Discard()
	if err := r.open(in, values); err != nil {
		return err
	}
	return r.launch(in)
}

// launch is the part of Execute behind begin.
func (r *Runner) launch(in []device.Tensor) error {
	if r.replays() {
		r.hostData(in, false)
		return r.finish(r.replay(true))
	}
	if r.runsResident() {
		return r.executeResident()
	}
	move := r.policy.Group() > 0
	if !move {
		if err := r.moveAll(); err != nil {
			r.policy.Abort(&r.job)
			return err
		}
	}
	err := r.finish(r.enqueueSteps(move))
	if err == nil {
		r.keep()
	}
	return err
}

// PreLaunch does the first half of Execute: it binds, computes every tiling and
// moves what the policy moves before the launch. It touches no execute stream,
// so another goroutine may run Launch of another operation meanwhile. Errors:
// ErrInvalidParam where the host tiles from values that the launch itself makes.
func (r *Runner) PreLaunch(in, out []device.Tensor, workspace device.Buffer, values [][]int64) error {
	if err := r.begin(in, out, workspace, values); err != nil {
		return err
	}
	if k := r.madeOnHost(); k >= 0 {
		r.policy.Abort(&r.job)
		err := status.Errorf(status.ErrInvalidParam, "the host tiles it from values that the launch makes: the halves of the launch cannot be apart")
		return r.plan.kernels[k].label.Place(err)
	}
	moveAll := r.moveAll
	if r.replays() {
		r.hostData(in, true)
		moveAll = r.moveHosted
	}
	if err := moveAll(); err != nil {
		r.policy.Abort(&r.job)
		return err
	}
	r.prepared = true
	return nil
}

// Launch does the second half of Execute, under the policy of the first.
// Errors: ErrInvalidParam without a PreLaunch before it.
func (r *Runner) Launch() error {
	if !r.prepared {
		return status.Errorf(status.ErrInvalidParam, "launch wants a pre-launch before it")
	}
	r.prepared, r.resident.behind = false, true
	if r.replays() {
		return r.finish(r.replay(false))
	}
	return r.finish(r.enqueueSteps(false))
}

// Discard drops a PreLaunch that was not launched, and what a launch that a panic
// has ended still holds.
func (r *Runner) Discard() {
	r.prepared = false
	if r.policy != nil {
		r.policy.Abort(&r.job)
	}
}

func (r *Runner) begin(in, out []device.Tensor, workspace device.Buffer, values [][]int64) error {
	r.Discard()
	if err := r.Bind(in, out, workspace); err != nil {
		return err
	}
	return r.open(in, values)
}

// open opens a launch with the bound addresses.
func (r *Runner) open(in []device.Tensor, values [][]int64) error {
	e, j := r.env, &r.job
	if err := r.choose(e.Policy, values); err != nil {
		return err
	}
	r.refreshHost(in)
	r.forked = false
	r.held, r.moved = held{full: minHeld}, 0
	if r.policy.UsesRings() && (r.plan.bytes == 0 || r.plan.made && r.policy.Group() == 0) {
		// Nothing to move: an event needs no block of a ring. Or a tiling that is
		// known only when kernels before it have run: it cannot travel with theirs.
		r.policy = tiling.KernelFollow{}
	}
	j.Streams, j.HostRing, j.DeviceRing, j.Copy, j.Events = e.Streams, e.HostRing, e.DeviceRing, e.Copy, e.Events
	j.Moved, j.Started = 0, false
	if err := r.policy.Begin(j); err != nil {
		r.policy.Abort(j)
		return err
	}
	return nil
}

// choose takes the policy of the launch at hand, with what it captures, and the
// host values that tilings on the host read.
func (r *Runner) choose(p tiling.Policy, values [][]int64) error {
	r.policy = p
	if !p.Captures() {
		return r.takeValues(values)
	}
	fits := r.fits()
	if !fits || r.captured.hosted {
		if err := r.takeValues(values); err != nil {
			return err
		}
	}
	if !fits {
		if err := r.capture(); err != nil {
			return err
		}
	}
	if w := r.captured.wired; w != nil {
		r.policy = w
	}
	return nil
}

// moveAll moves every tiling before the first kernel is enqueued.
func (r *Runner) moveAll() error {
	if err := r.moveGroup(0, len(r.launches)); err != nil {
		return err
	}
	return r.policy.Flush(&r.job)
}

// moveGroup moves the tilings of kernels from to to-1. One that has to be looked
// up or computed first keeps no launch waiting.
func (r *Runner) moveGroup(from, to int) error {
	first, last := -1, -1
	for k := from; k < to; k++ {
		if r.skip[k] {
			continue
		}
		if last = k; first < 0 {
			first = k
		}
		if r.plan.kernels[k].made {
			if err := r.readMade(k); err != nil {
				return err
			}
		} else if r.current[k] == nil && !r.constant(k) {
			if err := r.launchHeld(); err != nil {
				return err
			}
		}
		if err := r.policy.Move(&r.job, k); err != nil {
			return err
		}
	}
	r.moved = to
	if first < 0 {
		return nil
	}
	return r.policy.Send(&r.job, first, last+1)
}

// finish joins the streams and closes the job, or undoes it on an error.
func (r *Runner) finish(err error) error {
	if jerr := r.joinStreams(); err == nil {
		err = jerr
	}
	r.tally.bytes = r.job.Moved
	r.tally.flush(r.env.Counters)
	if err == nil {
		err = r.policy.End(&r.job)
	}
	if err != nil {
		r.policy.Abort(&r.job)
		return err
	}
	if r.env.SyncOperation {
		return r.syncAll()
	}
	return nil
}

// enqueueSteps enqueues every node in order; with move, the tilings of each group
// of kernels are moved right before the first of them.
func (r *Runner) enqueueSteps(move bool) error {
	r.job.Started = true
	if err := r.policy.Start(&r.job); err != nil {
		return err
	}
	if err := r.forkStreams(); err != nil {
		return err
	}
	e := r.env
	r.together = !r.policy.Fences() && e.Host == nil && !e.SyncKernel && e.Overflow == nil && !(e.CompareTiling && r.policy.UsesRings())
	for i := range r.plan.steps {
		s := &r.plan.steps[i]
		if s.kernel >= 0 {
			if err := r.enqueueKernel(s.kernel, move); err != nil {
				return err
			}
		} else {
			if err := r.launchHeld(); err != nil {
				return err
			}
			if err := r.enqueueOther(i, s.node); err != nil {
				return err
			}
		}
		if s.runnerEnd && e.SyncRunner {
			if err := r.launchHeld(); err != nil {
				return err
			}
			if err := r.job.Streams[s.node.Stream].Synchronize(context.Background()); err != nil {
				return err
			}
		}
	}
	if err := r.launchHeld(); err != nil {
		return err
	}
	if move {
		return r.policy.Flush(&r.job)
	}
	return nil
}

// enqueueKernel moves kernel k's tiling where that is asked for and hands its
// launch to the held ones. They go to the device at once where something looks
// at single kernels.
func (r *Runner) enqueueKernel(k int, move bool) error {
	if r.skip[k] {
		r.tally.skipped++
		return nil
	}
	if move && k >= r.moved {
		if err := r.moveGroup(k, r.groupEnd(k)); err != nil {
			return err
		}
	}
	if err := r.policy.Before(&r.job, k); err != nil {
		return r.launches[k].Label.Place(err)
	}
	id := r.plan.slots[k].Stream
	stream := r.job.Streams[id]
	compare := r.env.CompareTiling && r.policy.UsesRings()
	if compare {
		if err := r.compareTiling(k, stream, "before"); err != nil {
			return err
		}
	}
	if r.together {
		return r.hold(k, id)
	}
	if err := r.launchOne(k, id); err != nil {
		return err
	}
	if r.env.SyncKernel {
		if err := stream.Synchronize(context.Background()); err != nil {
			return err
		}
	}
	if compare {
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
	stream := r.job.Streams[n.Stream]
	switch n.Kind {
	case kernelgraph.ForeignNode:
		return r.callForeign(i)
	case kernelgraph.RecordNode:
		e, err := r.event(n)
		if err != nil {
			return err
		}
		return status.Place(stream.Record(e), status.ErrDeviceFail, "", "", n.Path)
	default:
		e, err := r.event(n)
		if err != nil {
			return err
		}
		if err := stream.Wait(e); err != nil {
			return status.Place(err, status.ErrDeviceFail, "", "", n.Path)
		}
		return status.Place(stream.Reset(e), status.ErrDeviceFail, "", "", n.Path)
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
	r.forked = true
	return r.fan()
}

// fan lets every other stream of the plan wait for the main one.
func (r *Runner) fan() error {
	if err := r.job.Streams[r.plan.main].Record(r.fork); err != nil {
		return err
	}
	for _, s := range r.plan.streams {
		if s != r.plan.main {
			if err := r.job.Streams[s].Wait(r.fork); err != nil {
				return err
			}
		}
	}
	return nil
}

// joinStreams lets the main stream wait for the others of a launch that has
// reached them. A stream that refuses is closed; the others are joined still.
func (r *Runner) joinStreams() error {
	if !r.forked {
		return nil
	}
	return r.join()
}

// join lets the main stream wait for every other one of the plan.
func (r *Runner) join() error {
	var first error
	for i, s := range r.plan.streams {
		if s == r.plan.main {
			continue
		}
		err := r.job.Streams[s].Record(r.joins[i])
		if err == nil {
			err = r.job.Streams[r.plan.main].Wait(r.joins[i])
		}
		if first == nil {
			first = err
		}
	}
	return first
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
		if err := r.job.Streams[s].Synchronize(context.Background()); first == nil {
			first = err
		}
	}
	return first
}
