package mempool

import (
	"context"
	"sync"

	"goatb/device"
	"goatb/status"
)

// fakeDevice makes events and streams that obey the device contract inside a
// synctest bubble; nothing else of a device is used by a ring.
type fakeDevice struct {
	device.Device // nil: any other call is a bug of the ring
	events        int
	failEvents    bool
}

func (d *fakeDevice) NewEvent() (device.Event, error) {
	if d.failEvents {
		return nil, status.Errorf(status.ErrDeviceFail, "no more events")
	}
	d.events++
	return &fakeEvent{}, nil
}

// fakeEvent fires when as many records ran as were enqueued.
type fakeEvent struct {
	mu             sync.Mutex
	enqueued, done int
	fired          chan struct{} // closed when done reaches enqueued
	closed         bool
}

func (e *fakeEvent) enqueue() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done == e.enqueued {
		e.fired = make(chan struct{})
	}
	e.enqueued++
}

func (e *fakeEvent) fire() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done++; e.done == e.enqueued {
		close(e.fired)
	}
}

func (e *fakeEvent) Query() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.done == e.enqueued
}

func (e *fakeEvent) Synchronize(ctx context.Context) error {
	e.mu.Lock()
	fired, done := e.fired, e.done == e.enqueued
	e.mu.Unlock()
	if done {
		return nil
	}
	select {
	case <-fired:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *fakeEvent) Close() error {
	e.closed = true
	return nil
}

// fakeStream queues tasks; a test runs them one by one or lets them run.
type fakeStream struct {
	device.Stream // nil: any other call is a bug of the ring
	tasks         chan func()
	failRecord    error
}

func newFakeStream(depth int) *fakeStream { return &fakeStream{tasks: make(chan func(), depth)} }

func (s *fakeStream) do(task func()) { s.tasks <- task }

func (s *fakeStream) Record(e device.Event) error {
	if s.failRecord != nil {
		return s.failRecord
	}
	ev := e.(*fakeEvent)
	ev.enqueue()
	s.tasks <- ev.fire
	return nil
}

// step runs n queued tasks.
func (s *fakeStream) step(n int) {
	for range n {
		(<-s.tasks)()
	}
}

// idleStream fires records at once and allocates nothing.
type idleStream struct{ device.Stream }

func (idleStream) Record(device.Event) error { return nil }
