package cpu

import (
	"context"

	"goatb/device"
	"goatb/status"
)

// Synchronize waits for everything enqueued so far and takes the first error.
func (s *Stream) Synchronize(ctx context.Context) error {
	if err := s.exists(); err != nil {
		return err
	}
	if err := status.Given("synchronize", "ctx", ctx); err != nil {
		return err
	}
	closed := s.closing.Load()
	if err := s.reach(ctx, s.tail.Load()); err != nil {
		return err
	}
	if f := s.failure.Swap(nil); f != nil {
		return f.err
	}
	if closed {
		return errStreamClosed()
	}
	s.sweep()
	return nil
}

// sweep forgets the operands of finished launches, so that an idle stream does
// not keep Go memory alive.
func (s *Stream) sweep() {
	if !s.put.TryLock() {
		return
	}
	defer s.put.Unlock()
	tail := s.tail.Load()
	if tail == s.swept || s.head.Load() != tail {
		return
	}
	for i := max(s.swept, tail-min(tail, s.mask+1)); i < tail; i++ {
		t := &s.slots[i&s.mask]
		clear(t.bufs)
		t.bufs, t.a, t.b = nil, device.Buffer{}, device.Buffer{}
	}
	s.swept = tail
}

// Query reports whether everything enqueued so far is done.
func (s *Stream) Query() bool { return s == nil || s.head.Load() >= s.tail.Load() }

// Stats returns counters.
func (s *Stream) Stats() device.StreamStats {
	if s.exists() != nil {
		return device.StreamStats{}
	}
	s.put.Lock()
	defer s.put.Unlock()
	out := s.stats
	s.noteDepth(int64(s.tail.Load() - s.head.Load()))
	out.DepthMax = s.depthMax.Load()
	return out
}

// noteDepth raises the largest depth seen.
func (s *Stream) noteDepth(n int64) {
	for {
		old := s.depthMax.Load()
		if n <= old || s.depthMax.CompareAndSwap(old, n) {
			return
		}
	}
}

// Close waits for the work, ends the stream and returns the first error that
// nobody took.
func (s *Stream) Close() error {
	if s.exists() != nil {
		return nil
	}
	s.stop()
	<-s.ended
	s.dev.forgetStream(s)
	if f := s.failure.Swap(nil); f != nil {
		return f.err
	}
	return nil
}
