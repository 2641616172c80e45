package cpu

import (
	"context"
	"slices"
	"sync"

	"goatb/internal/workpool"
	"sync/atomic"

	"goatb/status"
)

// Event is an event of the CPU device; see device.Event for its contract.
//
// Every Record gets the next generation when it is enqueued, and every Wait
// gets the generation that it waits for: the latest one, or the next one to come
// that no Reset has taken away when there is none since the last Reset. So the meaning of a wait is fixed at
// the moment of enqueuing, whatever the streams do later.
type Event struct {
	dev *Device

	mu       sync.Mutex
	recorded uint64   // generations handed out
	waited   uint64   // largest generation that a wait waits for
	reset    uint64   // largest generation that the last Reset took away
	pending  []uint64 // generations that have not fired, ascending
	recorder *Stream  // of those: a stream that holds its tasks back is told when somebody waits
	streams  []streamWait
	hosts    []hostWait
	closed   bool
}

type streamWait struct {
	s   *Stream
	gen uint64
}

type hostWait struct {
	w    *hostWaiter
	upTo uint64
}

// gate holds a stream at a Wait.
type gate struct {
	event    atomic.Pointer[Event] // what holds the stream, nil when nothing does
	entered  bool                  // the runner's: the wait at the head is registered
	released atomic.Bool
	err      error // why the wait was given up; set before released
	sleep    *workpool.Parker
}

// refuse returns the error of a closed event or device; mu is held.
func (e *Event) refuse() error {
	if e.closed {
		return status.Errorf(status.ErrInvalidParam, "want an open event, got a closed one")
	}
	if e.dev.closing.Load() {
		return errClosed()
	}
	return nil
}

// record returns the generation of a new record on s.
func (e *Event) record(s *Stream) (uint64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.refuse(); err != nil {
		return 0, err
	}
	if e.recorder != s {
		e.hasten()
		e.recorder = s
	}
	e.recorded++
	e.pending = append(e.pending, e.recorded)
	return e.recorded, nil
}

// hasten lets the records that have not fired be run; mu is held.
func (e *Event) hasten() {
	if len(e.pending) > 0 && e.recorder != nil {
		e.recorder.kick()
	}
}

// unawaited reports whether nobody waits for generation gen.
func (e *Event) unawaited(gen uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.waited < gen && len(e.hosts) == 0
}

// soon reports whether generation gen has fired or comes behind nothing but tasks
// that a stream holds back.
func (e *Event) soon(gen uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.fired(gen) || gen <= e.recorded && e.recorder != nil && e.recorder.head.Load() >= e.recorder.due.Load()
}

// recordedOn returns the stream of the records that have not fired, nil for none.
func (e *Event) recordedOn() *Stream {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.pending) == 0 {
		return nil
	}
	return e.recorder
}

// target returns the generation that a wait enqueued now, on any stream, waits
// for.
func (e *Event) target(*Stream) (uint64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.refuse(); err != nil {
		return 0, err
	}
	gen := e.reset + 1
	if e.recorded > e.reset {
		gen = e.recorded
	}
	e.waited = max(e.waited, gen)
	return gen, nil
}

func (e *Event) forget() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.refuse(); err != nil {
		return err
	}
	e.reset = max(e.recorded, e.waited)
	return nil
}

// fired reports whether generation gen has fired; mu is held.
func (e *Event) fired(gen uint64) bool {
	if gen > e.recorded {
		return false
	}
	_, open := slices.BinarySearch(e.pending, gen)
	return !open
}

// enter registers s as waiting for gen; false says that there is nothing to
// wait for, with an error when the wait can never end.
func (e *Event) enter(s *Stream, gen uint64) (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fired(gen) {
		return false, nil
	}
	if e.closed && gen > e.recorded {
		return false, errNeverRecorded()
	}
	s.gate.err = nil
	s.gate.released.Store(false)
	s.gate.event.Store(e)
	e.streams = append(e.streams, streamWait{s: s, gen: gen})
	return true, nil
}

// fire marks generation gen and wakes who waited for it. It reports whether a
// host goroutine was woken.
func (e *Event) fire(gen uint64) bool {
	e.mu.Lock()
	if i, ok := slices.BinarySearch(e.pending, gen); ok {
		e.pending = slices.Delete(e.pending, i, i+1)
	}
	woke := e.wakeHosts()
	e.mu.Unlock()
	for {
		s := e.leave(func(w streamWait) bool { return e.fired(w.gen) }, nil)
		if s == nil {
			return woke
		}
		s.resume()
	}
}

func (e *Event) wakeHosts() bool {
	woke := false
	for i := 0; i < len(e.hosts); {
		h := e.hosts[i]
		if len(e.pending) > 0 && e.pending[0] <= h.upTo {
			i++
			continue
		}
		e.hosts = slices.Delete(e.hosts, i, i+1)
		h.w.ready <- struct{}{}
		woke = true
	}
	return woke
}

// leave takes the first waiting stream that match accepts off the list and
// opens its gate, with err when the wait is given up. The caller resumes it.
func (e *Event) leave(match func(streamWait) bool, err error) *Stream {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.IndexFunc(e.streams, match)
	if i < 0 {
		return nil
	}
	s := e.streams[i].s
	e.streams = slices.Delete(e.streams, i, i+1)
	s.dev.releases.Add(1)
	s.gate.err = err
	s.gate.event.Store(nil)
	s.gate.released.Store(true)
	return s
}

// exists refuses an event that NewEvent has not made.
func (e *Event) exists() error {
	if e != nil && e.dev != nil {
		return nil
	}
	return status.Unmade(status.ErrInvalidParam, "Event", e == nil, "make one with NewEvent")
}

// Query reports whether every record enqueued so far has fired.
func (e *Event) Query() bool {
	if e.exists() != nil {
		return true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hasten()
	return len(e.pending) == 0
}

// Synchronize waits until every record enqueued so far has fired.
func (e *Event) Synchronize(ctx context.Context) error {
	if err := e.exists(); err != nil {
		return err
	}
	if err := status.Given("synchronize", "ctx", ctx); err != nil {
		return err
	}
	e.mu.Lock()
	if err := e.refuse(); err != nil {
		e.mu.Unlock()
		return err
	}
	if len(e.pending) == 0 {
		e.mu.Unlock()
		return nil
	}
	e.hasten()
	w := e.dev.waiters.take()
	defer e.dev.waiters.give(w)
	e.hosts = append(e.hosts, hostWait{w: w, upTo: e.recorded})
	e.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	e.mu.Lock()
	i := slices.IndexFunc(e.hosts, func(h hostWait) bool { return h.w == w })
	if i >= 0 {
		e.hosts = slices.Delete(e.hosts, i, i+1)
	}
	e.mu.Unlock()
	if i < 0 {
		<-w.ready
		return nil
	}
	return context.Cause(ctx)
}

// Close frees the event. Records that are enqueued still fire; waits for a
// record that was not enqueued are given up with an error.
func (e *Event) Close() error {
	if e.exists() != nil {
		return nil
	}
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	for {
		s := e.leave(func(w streamWait) bool { return w.gen > e.recorded }, errNeverRecorded())
		if s == nil {
			return nil
		}
		s.resume()
	}
}

func errNeverRecorded() error {
	return status.Errorf(status.ErrRuntimeFail, "want a record of the event that the stream waits for, got none before the event was closed")
}
