package cpu

import (
	"time"

	"goatb/device"
	"goatb/internal/workpool"
	"goatb/status"
)

// lane is one stream of a model: the entries and how far the execution has come.
type lane struct {
	m       *Model
	name    string
	entries []entry
	worked  bool // has preprocess tasks, so it needs a worker of its own

	// engine runs kernels and copies: a stream without queue and goroutine.
	engine Stream
	sleep  *workpool.Parker
	worker worker

	// Where the walk stands.
	at      int
	sub     int         // kernel of the super kernel at `at`
	held    *modelEvent // what the walk waits for
	since   time.Time   // when the wait began, for the observer
	moved   bool        // something was done since the flag was cleared
	ended   bool
	fetched []uint64 // copies of parameters, by entry
	upTo    int      // entries before it, from the first wait on, were fetched
}

// outcome tells why a walk stops.
type outcome uint8

const (
	walkEnded outcome = iota
	walkHeld
	walkLost // the deadline has taken the lane away from this goroutine
)

// rewind puts the lane at its first entry.
func (l *lane) rewind() { l.at, l.sub, l.held, l.ended, l.upTo = 0, 0, nil, false, 0 }

// walk runs entries until the end, a wait, or the first error of the execution.
func (l *lane) walk() outcome {
	for l.at < len(l.entries) && l.m.latch.Load() == nil {
		e := &l.entries[l.at]
		if !l.pass(e) {
			return walkHeld
		}
		l.moved = true
		if !l.perform(e) {
			return walkLost
		}
		if e.kind == device.SuperKernelTask && l.sub+1 < len(e.parts) {
			l.sub++
			continue
		}
		e.runs.Add(1)
		l.at, l.sub = l.at+1, 0
	}
	l.ended, l.held = true, nil
	return walkEnded
}

// pass reports whether the entry may run now, and takes the event that it waits
// for. At a wait it fetches the entries behind it first.
func (l *lane) pass(e *entry) bool {
	ev := e.event
	switch e.kind {
	case device.EventWaitTask:
	case device.SuperKernelTask:
		ev = e.parts[l.sub].flag
	default:
		return true
	}
	if ev == nil {
		return true
	}
	if l.held == nil {
		l.held = ev
		if e.kind == device.EventWaitTask {
			l.fetch()
		}
		if l.m.dev.cfg.observe != nil {
			l.since = time.Now()
		}
	}
	if !ev.ready() {
		return false
	}
	ev.reset()
	l.held = nil
	l.observeWait(e)
	return true
}

// fetch copies the parameters of the queue entries behind the wait at `at`, as
// many as the device prefetches. What was fetched before is not fetched again.
func (l *lane) fetch() {
	entries := 0
	for i := l.at + 1; i < len(l.entries); i++ {
		if entries += l.entries[i].width(); entries > l.m.prefetch {
			return
		}
		if i < l.upTo {
			continue
		}
		if e := &l.entries[i]; len(e.parts) == 1 {
			l.fetched[i] = e.parts[0].word.Load()
		}
		l.upTo = i + 1
	}
}

// parametersAt returns the parameters that the kernel at `at` runs with.
func (l *lane) parametersAt(p *part) uint64 {
	now := p.word.Load()
	if l.at >= l.upTo {
		return now
	}
	if l.fetched[l.at] != now {
		l.m.stats.stale.Add(1)
	}
	return l.fetched[l.at]
}

// perform runs one entry, or one kernel of a super kernel. An error goes to the
// latch. false says that the lane is lost to this goroutine.
func (l *lane) perform(e *entry) bool {
	start := l.clock()
	switch e.kind {
	case device.KernelTask, device.AllKernelTask:
		p := &e.parts[0]
		l.launch(e, p, l.parametersAt(p), start)
		return true
	case device.SuperKernelTask:
		l.subKernel(e, &e.parts[l.sub], start)
		return true
	case device.PreprocessTask:
		return l.preprocess(e, start)
	case device.EventWaitTask:
		return true
	case device.EventRecordTask:
		e.event.fire()
	case device.UpdateTask:
		l.update(e)
	case device.CopyTask:
		l.engine.copy(&e.copy)
		l.m.stats.copies.Add(1)
		l.takeFailure(e.label)
	}
	l.observe(e, e.label, start)
	return true
}

// launch runs a kernel with the given parameters.
func (l *lane) launch(e *entry, p *part, word uint64, start time.Time) {
	p.prepare(word)
	p.ran.Store(word)
	l.m.stats.kernels.Add(1)
	l.engine.launch(&p.task)
	l.takeFailure(p.label)
	l.observeKernel(e, p, word, start)
}

// subKernel runs one kernel of a super kernel. A sunk one reads its parameters
// from memory.
func (l *lane) subKernel(e *entry, p *part, start time.Time) {
	word := p.word.Load()
	if p.flag != nil {
		var err error
		if word, err = p.source.read(); err != nil {
			l.m.fail(p.label.Place(err))
			return
		}
	}
	l.launch(e, p, word, start)
}

// update patches the entry of another kernel.
func (l *lane) update(e *entry) {
	word, err := e.source.read()
	if err != nil {
		l.m.fail(e.label.Place(err))
		return
	}
	e.target.word.Store(word)
	l.m.stats.updates.Add(1)
}

// takeFailure moves an error of the engine to the latch.
func (l *lane) takeFailure(label *device.Label) {
	if l.engine.failure.Load() == nil {
		return
	}
	if f := l.engine.failure.Swap(nil); f != nil {
		l.m.fail(label.Place(f.err))
	}
}

// hold keeps the lane's goroutine until what the walk waits for has happened, or
// the execution has failed.
func (l *lane) hold() {
	l.setBusy(false)
	defer l.setBusy(true)
	awaitParked(l.m.dev.spin, l.sleep, func() bool { return l.held.ready() || l.m.latch.Load() != nil })
}

// awaitParked spins for a while and then sleeps until ready; who makes it so
// wakes p.
func awaitParked(spin workpool.Spin, p *workpool.Parker, ready func() bool) {
	sp := spin.StartIdle(p)
	for !ready() {
		if sp.Next() {
			continue
		}
		p.Prepare()
		if ready() {
			p.Cancel()
			return
		}
		p.Sleep()
		sp = spin.StartIdle(p)
	}
}

// setBusy tells the pool whether the lane computes.
func (l *lane) setBusy(busy bool) {
	if job := l.engine.run.job; job != nil {
		job.SetBusy(busy)
	}
}

// drive walks the lane to its end on this goroutine; false says that the lane
// was lost. A kernel that ends the goroutine ends the execution.
func (l *lane) drive() (kept bool) {
	for {
		switch l.walk() {
		case walkEnded:
			return true
		case walkLost:
			return false
		}
		l.hold()
	}
}

// abandon ends the walk of a lane whose task has ended the goroutine.
func (l *lane) abandon() {
	l.ended = true
	e := &l.entries[l.at]
	l.takeFailure(e.label)
	l.m.fail(e.label.Place(status.Errorf(status.ErrRuntimeFail, "%s task ended its goroutine", e.kind)))
}

// closeEngine gives the lane's place in the pool back.
func (l *lane) closeEngine() {
	if job := l.engine.run.job; job != nil {
		job.Close()
	}
}

// fail makes err the execution's error unless it has one, and wakes every lane.
func (m *Model) fail(err error) {
	if !m.latch.CompareAndSwap(nil, &failure{err: err}) {
		return
	}
	for _, l := range m.lanes {
		l.sleep.Wake()
	}
}
