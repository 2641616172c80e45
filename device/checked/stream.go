package checked

import (
	"context"
	"slices"
	"sync/atomic"

	"goatb/device"
	"goatb/status"
)

// Stream is a stream of the layer.
type Stream struct {
	dev   *Device
	inner device.Stream
	model *model // guarded by the device's mu
	made  site

	launches, copies, copied atomic.Int64
}

// Usable says why nothing can be enqueued for the device that p describes.
func (s *Stream) Usable(p *device.Props) error {
	if err := s.exists(); err != nil {
		return err
	}
	if b, ok := s.inner.(device.BoundStream); ok {
		return b.Usable(p)
	}
	return nil
}

// exists refuses a stream that NewStream has not made.
func (s *Stream) exists() error {
	if s != nil && s.dev != nil {
		return nil
	}
	return status.Unmade(status.ErrInvalidStream, "Stream", s == nil, "make one with NewStream")
}

// Launch enqueues a kernel and its checks.
func (s *Stream) Launch(l *device.Launch) error {
	if err := s.exists(); err != nil {
		return err
	}
	if l == nil || l.Program == nil || l.Program.Run == nil {
		return s.inner.Launch(l)
	}
	t := &task{origin: origin{what: "launch of " + l.Program.Name, label: l.Label, stream: s.model.id, at: here()}}
	inner := *l
	inner.Buffers = make([]device.Buffer, len(l.Buffers))
	for i, b := range l.Buffers {
		inner.Buffers[i] = s.dev.translate(b)
	}
	inner.Scratch, inner.Tiling = s.dev.translate(l.Scratch), s.dev.translate(l.Tiling)
	inner.Program = s.watched(l, t)
	if err := s.inner.Launch(&inner); err != nil {
		return s.dev.explain(err, t.origin, append([]device.Buffer{l.Scratch, l.Tiling}, l.Buffers...)...)
	}
	s.launches.Add(1)
	t.overlay = l.Program.Overlay
	for i, b := range l.Buffers {
		t.use(b, operandName(i), i >= l.Inputs)
	}
	t.use(l.Scratch, "scratch", true)
	if l.Inline == nil {
		t.use(l.Tiling, "tiling", false)
	}
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	for _, f := range overlapFindings(t) {
		s.model.report(f)
	}
	s.dev.enqueue(s.model, t)
	return nil
}

// Copy enqueues a copy and its checks.
func (s *Stream) Copy(dst, src device.Buffer) error {
	if err := s.exists(); err != nil {
		return err
	}
	t := &task{origin: origin{what: "copy", stream: s.model.id, at: here()}}
	var err error
	if l := s.verified(dst, src, t); l != nil {
		err = s.inner.Launch(l)
	} else {
		err = s.inner.Copy(s.dev.translate(dst), s.dev.translate(src))
	}
	if err != nil {
		return s.dev.explain(err, t.origin, dst, src)
	}
	s.copies.Add(1)
	s.copied.Add(dst.Size())
	t.use(src, "source", false)
	t.use(dst, "destination", true)
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	s.dev.enqueue(s.model, t)
	return nil
}

// Record enqueues e.
func (s *Stream) Record(e device.Event) error {
	if err := s.exists(); err != nil {
		return err
	}
	t := &task{origin: origin{what: "record", stream: s.model.id, at: here()}}
	return s.order(e, s.inner.Record, func(ev *Event) {
		ev.recorded(t)
		s.dev.enqueue(s.model, t)
	})
}

// Wait makes later work wait for e.
func (s *Stream) Wait(e device.Event) error {
	if err := s.exists(); err != nil {
		return err
	}
	t := &task{origin: origin{what: "wait", stream: s.model.id, at: here()}}
	return s.order(e, s.inner.Wait, func(ev *Event) {
		ev.awaited(t)
		s.dev.enqueue(s.model, t)
	})
}

// Reset forgets e's records.
func (s *Stream) Reset(e device.Event) error {
	if err := s.exists(); err != nil {
		return err
	}
	return s.order(e, s.inner.Reset, (*Event).forgotten)
}

// order does a call that concerns an event and then books it.
func (s *Stream) order(e device.Event, call func(device.Event) error, book func(*Event)) error {
	ev, err := s.dev.own(e)
	if err != nil {
		return err
	}
	ev.enqueuing.Lock()
	defer ev.enqueuing.Unlock()
	if err := call(ev.inner); err != nil {
		return err
	}
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	book(ev)
	return nil
}

// Synchronize waits for everything enqueued so far and returns the stream's
// first error and the findings.
func (s *Stream) Synchronize(ctx context.Context) error {
	if err := s.exists(); err != nil {
		return err
	}
	if err := status.Given("synchronize", "ctx", ctx); err != nil {
		return err
	}
	s.dev.mu.Lock()
	here := s.model.mark()
	s.dev.mu.Unlock()
	done, err := s.dev.await(ctx, s.inner.Synchronize, func() (*Finding, bool) {
		s.dev.mu.Lock()
		defer s.dev.mu.Unlock()
		return s.dev.stuck(s.model, here.index)
	})
	if done {
		s.known(here)
	}
	return join(append([]error{err}, s.take(done)...))
}

// known tells the host that the tasks before a mark are done.
func (s *Stream) known(m *mark) {
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	s.dev.learn(m.clock.clone().set(s.model.id, m.index))
}

// take returns the findings of the stream, after a look at all guards.
func (s *Stream) take(guards bool) []error {
	var found []error
	if guards {
		for _, f := range s.dev.checkGuards() {
			found = append(found, f.failure(status.ErrRuntimeFail, nil))
		}
	}
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	found = append(s.model.found, found...)
	s.model.found = nil
	return found
}

// Query reports whether everything enqueued so far is done.
func (s *Stream) Query() bool {
	if s.exists() != nil {
		return true
	}
	s.dev.mu.Lock()
	here := s.model.mark()
	s.dev.mu.Unlock()
	if !s.inner.Query() {
		return false
	}
	s.known(here)
	return true
}

// Stats returns counters of the calls that the layer saw.
func (s *Stream) Stats() device.StreamStats {
	if s.exists() != nil {
		return device.StreamStats{}
	}
	out := s.inner.Stats()
	out.Launches, out.Copies, out.CopiedBytes = s.launches.Load(), s.copies.Load(), s.copied.Load()
	return out
}

// Close waits for the work, ends the stream and returns what nobody took.
func (s *Stream) Close() error {
	if s.exists() != nil {
		return nil
	}
	err := s.inner.Close()
	s.dev.mu.Lock()
	s.dev.streams = slices.DeleteFunc(s.dev.streams, func(o *Stream) bool { return o == s })
	here := s.model.mark()
	s.dev.mu.Unlock()
	s.known(here)
	return join(append([]error{err}, s.take(true)...))
}
