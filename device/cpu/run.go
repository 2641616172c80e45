package cpu

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"goatb/device"
	"goatb/internal/workpool"
	"goatb/status"
)

// runState is what the runner of a stream needs for the task that it runs.
type runState struct {
	job  *workpool.Job
	prog *device.Program
	args *device.Args // of the launch that runs
	own  device.Args  // of a launch that a slot holds
	held Task         // inline device: the wait that holds the stream, to report
	pace pace
	_    [cacheLine]byte
	// ahead is what workers without blocks fetch, which they look at again and again.
	ahead atomic.Pointer[ahead]
	_     [cacheLine]byte

	bad   atomic.Bool // a block of the launch has failed
	mu    sync.Mutex  // guards err and block
	err   error
	block int
}

// loop is the stream's goroutine. A kernel that ended it (runtime.Goexit, as a
// failing test does) counts as done, and a new goroutine goes on.
func (s *Stream) loop() {
	defer func() {
		if !s.over.Load() {
			s.taskDone(s.head.Load() + 1)
			s.pass()
			go s.loop()
		}
	}()
	debug.SetPanicOnFault(true)
	for s.await() {
		s.run.job.SetBusy(true)
		woke := s.runDue()
		s.run.job.SetBusy(false)
		s.pass()
		if woke {
			s.offer()
		}
	}
	s.run.job.Close()
	s.over.Store(true)
	s.finish()
}

// runDue runs the tasks that are due, and reports whether the last of them woke
// anybody.
func (s *Stream) runDue() (woke bool) {
	for head, due := s.head.Load(), uint64(0); ; {
		if head >= due {
			if due = s.due.Load(); head >= due {
				return woke
			}
			s.noteDepth(int64(due - head))
		}
		woke = s.step(&s.slot(head).task)
		head++
		woke = s.taskDone(head) || woke
	}
}

// taskDone moves the head of the queue and tells who waits for that. It reports
// whether it woke anybody.
func (s *Stream) taskDone(head uint64) bool {
	s.head.Store(head)
	return s.attention.Load() != 0 && s.attend(head)
}

// offer gives the processor to a goroutine that was just woken when this one
// has nothing to do. It has passed its turn: what was woken may come back before it
// is on a processor again.
func (s *Stream) offer() {
	if s.tail.Load() == s.head.Load() {
		runtime.Gosched()
	}
}

// await returns with the turn when a task is due, or false when the stream is
// closed and empty.
func (s *Stream) await() bool {
	s.run.pace.rest()
	sp := s.dev.spin.StartIdle(s.work)
	for {
		if s.takeTurn() {
			s.run.pace.found(sp.Count(), s.syncs.Load())
			sp.Found()
			return true
		}
		if s.drained() {
			return false
		}
		if sp.Next() {
			continue
		}
		s.work.Prepare()
		if s.wanted() || s.drained() {
			s.work.Cancel()
			continue
		}
		s.work.Sleep()
		sp = s.dev.spin.StartIdle(s.work)
	}
}

// wanted reports whether a task is due and nobody runs any.
func (s *Stream) wanted() bool { return s.head.Load() < s.due.Load() && !s.turn.Load() }

// drained reports whether the stream is closed and empty.
func (s *Stream) drained() bool {
	return s.closing.Load() && !s.turn.Load() && s.head.Load() >= s.due.Load()
}

// takeTurn takes the turn when a task is due.
func (s *Stream) takeTurn() bool {
	if !s.wanted() || !s.turn.CompareAndSwap(false, true) {
		return false
	}
	if s.head.Load() < s.due.Load() {
		return true
	}
	s.turn.Store(false)
	return false
}

// pass gives the turn back.
func (s *Stream) pass() {
	s.turn.Store(false)
	if s.head.Load() < s.due.Load() || s.closing.Load() {
		s.work.Wake()
	}
}

// hold keeps the stream's goroutine at a wait until its gate opens.
func (s *Stream) hold() {
	if s.gate.released.Load() {
		return
	}
	s.run.job.SetBusy(false)
	defer s.run.job.SetBusy(true)
	s.dev.nudge()
	defer func() { s.noteDepth(int64(s.tail.Load() - s.head.Load())) }()
	sp := s.dev.spin.StartIdle(s.gate.sleep)
	for !s.gate.released.Load() {
		if sp.Next() {
			continue
		}
		s.gate.sleep.Prepare()
		if s.gate.released.Load() {
			s.gate.sleep.Cancel()
			return
		}
		s.gate.sleep.Sleep()
	}
}

// endWait takes over why the gate opened.
func (s *Stream) endWait() {
	s.gate.entered = false
	if err := s.gate.err; err != nil {
		s.gate.err = nil
		s.fail(err)
	}
}

// step runs one task. It reports whether a host goroutine was woken.
func (s *Stream) step(t *task) bool {
	if s.dev.cfg.observe != nil {
		return s.observed(t)
	}
	return s.perform(t)
}

func (s *Stream) perform(t *task) bool {
	switch t.kind {
	case launchTask:
		if s.failure.Load() == nil {
			s.launch(t)
		}
	case copyTask:
		if s.failure.Load() == nil {
			s.copy(t)
		}
	case recordTask:
		return t.event.fire(t.gen)
	case waitTask:
		s.wait(t)
	case replayTask:
		return s.replay(t)
	case keptTask:
		s.runKept(t)
	}
	return false
}

// wait holds the stream until t's event has fired. On an inline device it only
// leaves the gate entered.
func (s *Stream) wait(t *task) {
	held, err := t.event.enter(s, t.gen)
	if err != nil {
		s.fail(err)
	}
	s.gate.entered = held
	if held && !s.dev.cfg.inline {
		s.help(t.event)
		s.hold()
		s.endWait()
	}
}

// observed is perform with a report to the device's observer.
func (s *Stream) observed(t *task) bool {
	r := Task{Stream: s.id, Kind: taskNames[t.kind], Enqueued: t.enqueued, Start: time.Now()}
	switch t.kind {
	case launchTask:
		r.Label, r.Blocks, r.Skipped = t.label, t.blocks, s.failure.Load() != nil
	case copyTask:
		r.Bytes, r.Skipped = t.a.Size(), s.failure.Load() != nil
	case replayTask:
		r.Label, r.Skipped = t.label, s.failure.Load() != nil
	}
	woke := s.perform(t)
	if s.gate.entered {
		s.run.held = r
		return woke
	}
	r.End = time.Now()
	s.dev.cfg.observe(r)
	return woke
}

// launch runs a kernel's blocks.
func (s *Stream) launch(t *task) {
	r := &s.run
	r.prog, r.args = t.prog, &r.own
	r.args.Blocks, r.args.Key, r.args.Buffers, r.args.Scratch = t.blocks, t.key, t.bufs, t.a
	if t.inline {
		r.args.Tiling = t.data
	} else {
		r.args.Tiling = t.b.Bytes()
	}
	defer s.endLaunch(t.label)
	if !s.begin() {
		return
	}
	if r.job != nil {
		r.job.Run(t.blocks)
	} else {
		s.runBlocks(0, t.blocks)
	}
}

// begin prepares the current launch and reports whether its blocks may run.
func (s *Stream) begin() bool {
	r := &s.run
	if r.prog.Begin == nil {
		return true
	}
	at := 0
	defer s.caught(&at)
	if err := r.prog.Begin(r.args); err != nil {
		s.badBlock(at, coded(err))
	}
	at = noBlock
	return !r.bad.Load()
}

// endLaunch makes the error of a launch the stream's.
func (s *Stream) endLaunch(l *device.Label) {
	if r := &s.run; r.bad.Load() {
		s.fail(l.Place(r.err))
		r.err = nil
		r.bad.Store(false)
	}
}

// runBlocks runs the blocks [lo, hi) of the current launch. Once a block has
// failed the others are left out.
func (s *Stream) runBlocks(lo, hi int) {
	at := lo
	defer s.caught(&at)
	if err := s.share(s.run.prog, s.run.args, &at, hi); err != nil {
		s.badBlock(at, coded(err))
	}
	at = noBlock
}

// share runs the blocks [*at, hi) of a launch, until one has failed; at is left
// where it is.
func (s *Stream) share(p *device.Program, a *device.Args, at *int, hi int) error {
	if p.Share != nil {
		return p.Share(a, *at, hi)
	}
	for ; *at < hi && !s.run.bad.Load(); *at++ {
		if err := p.Run(a, *at); err != nil {
			return err
		}
	}
	return nil
}

// badBlock keeps the error of the first block that failed.
func (s *Stream) badBlock(block int, err error) {
	r := &s.run
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil || block < r.block {
		r.err, r.block = err, block
	}
	r.bad.Store(true)
}

// copy copies bytes; memory that is gone is an error.
func (s *Stream) copy(t *task) {
	defer func() {
		if v := recover(); v != nil {
			s.fail(status.Errorf(status.ErrRuntimeFail, "copy of %d bytes: %v", t.a.Size(), v))
		}
	}()
	copy(t.a.Bytes(), t.b.Bytes())
}

// fail makes err the stream's error unless it has one.
func (s *Stream) fail(err error) { s.failure.CompareAndSwap(nil, &failure{err: err}) }

// finish tells that the stream is over.
func (s *Stream) finish() {
	close(s.ended)
	s.dev.nudge()
}
