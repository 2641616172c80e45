package checked

import (
	"context"
	"slices"
	"sync"

	"goatb/device"
	"goatb/status"
)

// Event is an event of the layer.
type Event struct {
	dev   *Device
	inner device.Event
	made  site

	// enqueuing makes the inner event and the model see records, waits and
	// resets in one order.
	enqueuing sync.Mutex

	// Guarded by the device's mu.
	last *record   // the latest record since the last reset
	next []*record // what waits enqueued before their record wait for, in turn
	// taken says that a reset took the last of next away: a wait wants another.
	taken bool
	open  []*record // enqueued and not settled
	sum   clock     // of all settled records
}

// recorded books a record by t; the device's mu is held.
func (e *Event) recorded(t *task) {
	r := &record{event: e}
	e.last = r
	if len(e.next) > 0 {
		r, e.next = e.next[0], e.next[1:]
		e.last = r
		if len(e.next) > 0 || e.taken {
			e.last = nil
		}
	}
	r.by, t.fires = t, r
	e.open = slices.DeleteFunc(e.open, func(r *record) bool { return r.settled })
	e.open = append(e.open, r)
}

// awaited books a wait by t; the device's mu is held.
func (e *Event) awaited(t *task) {
	if e.last != nil {
		t.waits = e.last
		return
	}
	if len(e.next) == 0 || e.taken {
		e.next, e.taken = append(e.next, &record{event: e}), false
	}
	t.waits = e.next[len(e.next)-1]
}

// forgotten books a reset; the device's mu is held.
func (e *Event) forgotten() {
	e.last = nil
	e.taken = len(e.next) > 0
}

// before returns the clock of the records enqueued so far and those of them
// that are not settled; the device's mu is held.
func (e *Event) before() (clock, []*record) {
	e.open = slices.DeleteFunc(e.open, func(r *record) bool { return r.settled })
	return e.sum.clone(), slices.Clone(e.open)
}

// done tells the host that the records of before have fired.
func (e *Event) done(c clock, open []*record) {
	e.dev.mu.Lock()
	defer e.dev.mu.Unlock()
	for _, r := range open {
		c = c.join(r.clock)
	}
	e.dev.learn(c)
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
	e.dev.mu.Lock()
	c, open := e.before()
	e.dev.mu.Unlock()
	if !e.inner.Query() {
		return false
	}
	e.done(c, open)
	return true
}

// Synchronize waits until every record enqueued so far has fired. A wait that
// cannot end is a Deadlock finding.
func (e *Event) Synchronize(ctx context.Context) error {
	if err := e.exists(); err != nil {
		return err
	}
	if err := status.Given("synchronize", "ctx", ctx); err != nil {
		return err
	}
	e.dev.mu.Lock()
	c, open := e.before()
	e.dev.mu.Unlock()
	_, err := e.dev.await(ctx, e.inner.Synchronize, func() (*Finding, bool) {
		e.dev.mu.Lock()
		defer e.dev.mu.Unlock()
		for _, r := range open {
			if f, forGood := e.dev.stuck(e.dev.models[r.by.origin.stream], r.by.index); f != nil {
				return f, forGood
			}
		}
		return nil, false
	})
	if err == nil {
		e.done(c, open)
	}
	return err
}

// Close frees the event.
func (e *Event) Close() error {
	if e.exists() != nil {
		return nil
	}
	e.enqueuing.Lock()
	defer e.enqueuing.Unlock()
	err := e.inner.Close()
	e.dev.mu.Lock()
	defer e.dev.mu.Unlock()
	e.dev.events = slices.DeleteFunc(e.dev.events, func(o *Event) bool { return o == e })
	for _, r := range e.next {
		r.given = true
		for _, m := range r.blocking {
			e.dev.settle(m)
		}
		r.blocking = nil
	}
	return err
}

// own returns e as an event of this layer.
func (d *Device) own(e device.Event) (*Event, error) {
	ev, ok := e.(*Event)
	if !ok || ev == nil || ev.dev != d {
		return nil, status.Errorf(status.ErrInvalidParam, "want an event of this device, got %T", e)
	}
	return ev, nil
}
