package cpu

import (
	"runtime/debug"
	"time"
)

// A host that enqueues a little work and waits for it at once gains nothing from
// another goroutine: the work and its operands move to another core and back, and
// two cores are busy with what one can do. So a stream whose host was that prompt
// several times in a row holds light tasks back, and the host runs them itself when
// it synchronizes. Light is what is known to end soon: copies of few bytes, kept
// launches that have run in a short time, records that nobody waits for, and waits
// for what other streams hold. A stream that comes to a wait runs itself what is held
// before the record.
//
// Nothing waits for a host that does not come. Whoever else could notice that
// tasks are held, by a Query, an Event or a task that is not light, makes them
// due; and so does a timer.
const (
	lightBytes = 64 << 10
	lightTime  = 500 * time.Microsecond
	// mostHeld bounds the tasks that are held.
	mostHeld = 24
	// promptEnough is the credit of a host whose tasks are held. It gains 1 whenever
	// it comes in time, up to promptMost, and loses promptLoss when it does not.
	promptEnough = 4
	promptMost   = 64
	promptLoss   = 16
	// holdTime is how long tasks are held at most. Holding them for too long costs no
	// more than the time that they take, which is little; looking after them wakes a
	// thread, often on the processor of the very host, which costs several times what
	// light tasks do and so must be rare.
	holdTime = 100 * lightTime
	// A host that comes lateHost after the first task, which is what handing work over
	// and waiting for it costs, and half the time that they take, comes late: they
	// could have been run meanwhile.
	lateHost = 20 * time.Microsecond
)

// holding is what a stream knows for holding tasks back. It is guarded by put.
type holding struct {
	light  bool          // the task written last is
	prompt int           // the host's credit
	since  time.Duration // when the first of the tasks that are held was written
	timer  *time.Timer
	armed  bool
}

// holdsBack reports whether the task that was just written may stay without being
// due; put is held and tail is not moved yet.
func (s *Stream) holdsBack() bool {
	h := &s.holding
	light := h.light
	h.light = false
	if !light || h.prompt < promptEnough || s.shut || s.dev.cfg.inline {
		return false
	}
	head, tail := s.head.Load(), s.tail.Load()
	if head < s.due.Load() || s.next-head > mostHeld {
		return false
	}
	if head == tail {
		h.since = s.dev.now()
		s.arm()
	}
	return true
}

// arm starts the timer that looks after tasks that are held.
func (s *Stream) arm() {
	switch h := &s.holding; {
	case h.armed:
		return
	case h.timer == nil:
		h.timer = time.AfterFunc(holdTime, s.overdue)
	default:
		h.timer.Reset(holdTime)
	}
	s.holding.armed = true
}

// overdue is called by the timer: it makes tasks due that are held for too long,
// and looks again later while the stream is in use.
func (s *Stream) overdue() {
	s.put.Lock()
	defer s.put.Unlock()
	h := &s.holding
	age := s.dev.now() - h.since
	if s.due.Load() < s.tail.Load() && s.head.Load() < s.tail.Load() && age >= holdTime {
		h.prompt = 0
		s.kick()
	}
	if h.armed = age < holdTime && !s.shut; h.armed {
		h.timer.Reset(holdTime)
	}
}

// came notes that the host came to a Synchronize: early, which is before the work
// was done, and for work that was held at a time that is not zero. now is asked for
// the time when the work was done.
func (h *holding) came(early bool, at time.Duration, now func() time.Duration) {
	if late := at - h.since - lateHost; early && at != 0 && late > 0 {
		early = late <= (now()-at)/2
	}
	if early {
		h.prompt = min(h.prompt+1, promptMost)
	} else {
		h.prompt = max(h.prompt-promptLoss, 0)
	}
}

// kick makes all tasks due.
func (s *Stream) kick() {
	for {
		due, tail := s.due.Load(), s.tail.Load()
		if due >= tail {
			return
		}
		if s.due.CompareAndSwap(due, tail) {
			s.work.Wake()
			return
		}
	}
}

// runHeld runs the tasks before `at`, on a host's goroutine, when all of them are
// held back. Otherwise it makes them due and reports false.
func (s *Stream) runHeld(at uint64) bool {
	if s.due.Load() >= at {
		return false
	}
	if !s.turn.CompareAndSwap(false, true) {
		s.kick()
		return false
	}
	head := s.head.Load()
	if head < s.due.Load() {
		s.kick()
		s.pass()
		return false
	}
	old, ended := debug.SetPanicOnFault(true), true
	defer func() {
		if ended {
			s.taskDone(head + 1)
		}
		debug.SetPanicOnFault(old)
		s.run.job.SetBusy(false)
		s.pass()
	}()
	s.run.job.SetBusy(true)
	s.noteDepth(int64(at - head))
	for ; head < at; head++ {
		s.step(&s.slot(head).task)
		s.taskDone(head + 1)
	}
	ended = false
	return true
}

// help runs what stands before the record of an event that s waits for, as far as
// it is light and nobody runs it. s has its turn and keeps it.
func (s *Stream) help(e *Event) {
	r := e.recordedOn()
	if r == nil || r == s {
		return
	}
	if r.turn.CompareAndSwap(false, true) {
		helped := s.runFor(r)
		r.pass()
		if helped && r.put.TryLock() {
			r.holding.came(true, 0, nil)
			r.put.Unlock()
		}
	}
	if !s.gate.released.Load() {
		r.kick()
	}
}

// runFor runs the light tasks at the head of r, whose turn it has been given, and
// reports whether there were any. Once s may go on it stops at a wait.
func (s *Stream) runFor(r *Stream) (helped bool) {
	head, done := r.head.Load(), true
	defer func() {
		if !done {
			r.taskDone(head + 1)
			r.pass()
		}
	}()
	for ; head < r.tail.Load(); head++ {
		t := &r.slot(head).task
		light := head >= r.due.Load() || t.kind == recordTask || t.kind == copyTask && t.a.Size() <= lightBytes
		if !light || t.kind == waitTask && s.gate.released.Load() {
			break
		}
		done = false
		r.step(t)
		r.taskDone(head + 1)
		helped, done = true, true
	}
	return helped
}
