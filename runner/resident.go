package runner

import (
	"goatb/device"
	"goatb/status"
)

// resident is the launches of a plan that its stream keeps, for the first binding of
// the plan and for one that was used more than once: then a launch enqueues what has
// changed, and not every kernel anew.
type resident struct {
	launches device.Kept
	stream   device.Stream
	// version is that of the addresses, inline says that tilings travel with the
	// launches.
	version uint64
	inline  bool
	// at is the place of each kernel among the launches; one that is left out has
	// that of the next kernel.
	at []int
	// kernels lists the kernels that are launched, changing those of them whose
	// tilings may change from launch to launch.
	kernels, changing []int
	// behind says that kernels were enqueued in another way meanwhile, so that
	// every launch has to be set.
	behind bool
	// once is the version of the addresses that were used last, 0 before the first,
	// refused says that the stream keeps nothing.
	once    uint64
	refused bool
}

// isAlike reports whether launches of the plan consist of nothing but kernels on
// one stream, whose tilings do not read what the launch makes.
func (p *Plan) isAlike() bool {
	for i := range p.steps {
		if p.steps[i].kernel < 0 {
			return false
		}
	}
	return len(p.streams) == 1 && !p.made
}

// keepable reports whether the launch at hand could run kernels that are kept:
// nothing looks at single ones.
func (r *Runner) keepable() bool {
	e := r.env
	return r.plan.alike && e.Host == nil && e.Singly() == "" && !(e.CompareTiling && r.policy.UsesRings())
}

// runsResident reports whether the launch at hand can run what is kept.
func (r *Runner) runsResident() bool {
	k := &r.resident
	if k.launches == nil {
		return false
	}
	if k.version != r.version || k.inline == r.policy.UsesRings() || k.stream != r.job.Streams[r.plan.main] || !r.keepable() {
		r.resident = resident{once: k.once}
		return false
	}
	k.behind = k.behind || !k.launches.Idle()
	return k.launches.Idle()
}

// keep lets the stream keep the launches when their addresses are the plan's first or
// were used before.
func (r *Runner) keep() {
	k := &r.resident
	k.behind = true
	if k.launches != nil || k.refused || !r.keepable() {
		return
	}
	if k.once != 0 && k.once != r.version {
		k.once = r.version
		return
	}
	stream := r.job.Streams[r.plan.main]
	s, ok := stream.(device.KeepingStream)
	if !ok {
		k.refused = true
		return
	}
	kept := resident{stream: stream, version: r.version, inline: !r.policy.UsesRings(), once: r.version}
	list := make([]device.Launch, 0, len(r.launches))
	for i := range r.launches {
		kept.at = append(kept.at, len(list))
		if r.skip[i] {
			continue
		}
		list, kept.kernels = append(list, r.launches[i]), append(kept.kernels, i)
		if r.changes(i) {
			kept.changing = append(kept.changing, i)
		}
	}
	kept.at = append(kept.at, len(list))
	var err error
	if kept.launches, err = s.Keep(list); err != nil || kept.launches == nil {
		k.refused = true // memory that is gone since: the next launch says so
		return
	}
	*k = kept
}

// changes reports whether the tiling of kernel k may change from launch to launch, or
// is computed anew each time.
func (r *Runner) changes(k int) bool {
	ks := &r.plan.kernels[k]
	return len(ks.values) > 0 || !ks.cacheable || !r.env.LocalOn
}

// executeResident is the part of Execute behind begin for launches that are kept.
func (r *Runner) executeResident() error {
	move := r.policy.Group() > 0
	if !move {
		if err := r.moveAll(); err != nil {
			r.policy.Abort(&r.job)
			return err
		}
	}
	err := r.enqueueResident(move)
	r.resident.behind = err != nil
	return r.finish(err)
}

// enqueueResident runs the launches that are kept; with move, tilings are moved
// first.
func (r *Runner) enqueueResident(move bool) error {
	r.job.Started = true
	if err := r.policy.Start(&r.job); err != nil {
		return err
	}
	if r.resident.inline {
		return r.runChanged()
	}
	for k := 0; k < len(r.launches); {
		end := len(r.launches)
		if move {
			end = r.groupEnd(k)
			if err := r.moveGroup(k, end); err != nil {
				return err
			}
		}
		if err := r.runGroup(k, end); err != nil {
			return err
		}
		k = end
	}
	if move {
		return r.policy.Flush(&r.job)
	}
	return nil
}

// runChanged moves the tilings that have changed, which travel with the launches,
// and runs all.
func (r *Runner) runChanged() error {
	list, behind := r.resident.kernels, r.resident.behind
	if !behind {
		list = r.resident.changing
		r.tally.localHits += int64(len(r.resident.kernels) - len(list))
	}
	for _, k := range list {
		if r.current[k] != nil && !behind {
			r.tally.localHits++
			continue
		}
		if err := r.policy.Move(&r.job, k); err != nil {
			return err
		}
		if err := r.set(k); err != nil {
			return err
		}
	}
	return r.runRange(0, len(r.launches))
}

// runGroup runs kernels from to to-1, whose tilings were moved.
func (r *Runner) runGroup(from, to int) error {
	for k := from; k < to; k++ {
		if r.skip[k] {
			continue
		}
		if err := r.set(k); err != nil {
			return err
		}
		if err := r.policy.Before(&r.job, k); err != nil {
			return r.launches[k].Label.Place(err)
		}
	}
	return r.runRange(from, to)
}

func (r *Runner) set(k int) error {
	return status.Place(r.resident.launches.Set(r.resident.at[k], &r.launches[k]), status.ErrRuntimeFail, "", "", "")
}

func (r *Runner) runRange(from, to int) error {
	first, end := r.resident.at[from], r.resident.at[to]
	if err := r.resident.launches.Run(first, end); err != nil {
		return err
	}
	r.tally.kernels += int64(end - first)
	r.tally.skipped += int64(to - from - (end - first))
	return nil
}
