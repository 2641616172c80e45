package sim

import (
	"context"

	"goatb/device"
	"goatb/status"
)

// Event is an event of the simulated device. Every record gets the next
// generation when it is enqueued, and a wait the generation that it waits for:
// the latest one, or the next one to come that no Reset has taken away.
type Event struct {
	dev   *Device
	inner device.Event

	// Guarded by the device's mu.
	recorded uint64
	waited   uint64
	reset    uint64
	marks    []*mark // generations that were asked for and have not all fired
	closed   bool
}

// mark is one generation of an event.
type mark struct {
	gen     uint64
	fired   bool
	at      int64     // when
	waiting []*Stream // streams whose head waits for it
	polling []*task   // super kernels that poll it
}

// mark returns the mark of a generation.
func (e *Event) mark(gen uint64) *mark {
	kept := e.marks[:0]
	var found *mark
	for _, m := range e.marks {
		if m.gen == gen {
			found = m
		}
		if !m.fired || m.gen >= e.recorded {
			kept = append(kept, m)
		}
	}
	clear(e.marks[len(kept):])
	e.marks = kept
	if found == nil {
		found = &mark{gen: gen}
		e.marks = append(e.marks, found)
	}
	return found
}

// record returns the mark of a new record.
func (e *Event) record() *mark {
	e.recorded++
	return e.mark(e.recorded)
}

// target returns the mark that a wait enqueued now waits for.
func (e *Event) target() *mark {
	gen := e.reset + 1
	if e.recorded > e.reset {
		gen = e.recorded
	}
	e.waited = max(e.waited, gen)
	return e.mark(gen)
}

func (e *Event) forget() { e.reset = max(e.recorded, e.waited) }

// fired reports whether every record enqueued so far has fired by the host's
// time.
func (e *Event) fired() bool {
	e.dev.engine.advance(e.dev.host.now)
	return e.firedUpTo(e.recorded)
}

func (e *Event) firedUpTo(gen uint64) bool {
	for _, m := range e.marks {
		if m.gen <= gen && !m.fired {
			return false
		}
	}
	return true
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
	d := e.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return e.inner.Query()
	}
	d.charge("query", "", d.costs.QueryHost)
	return e.fired()
}

// Synchronize waits until every record enqueued so far has fired.
func (e *Event) Synchronize(ctx context.Context) error {
	if err := e.exists(); err != nil {
		return err
	}
	if err := status.Given("synchronize", "ctx", ctx); err != nil {
		return err
	}
	d := e.dev
	d.mu.Lock()
	gen := e.recorded
	d.mu.Unlock()
	if err := e.inner.Synchronize(ctx); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.await(func() bool { return e.firedUpTo(gen) })
	d.charge("sync", "", d.costs.SyncHost)
	return nil
}

// Close frees the event. Waits for a record that was not enqueued are given up.
func (e *Event) Close() error {
	if e.exists() != nil {
		return nil
	}
	err := e.inner.Close()
	d := e.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range e.marks {
		if m.gen > e.recorded && !m.fired {
			d.engine.advance(d.host.now)
			d.engine.fire(m)
		}
	}
	d.booked.Broadcast()
	return err
}
