package cpu

import (
	"context"
	"time"

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
	at := s.tail.Load()
	early, came := s.head.Load() < at, time.Duration(0)
	if s.due.Load() < at && early {
		came = s.dev.now()
	}
	if err := s.reach(ctx, at); err != nil {
		return err
	}
	if f := s.failure.Swap(nil); f != nil {
		return f.err
	}
	if closed {
		return errStreamClosed()
	}
	s.sweep(early, came)
	return nil
}

// sweep forgets the operands of finished launches, so that an idle stream does
// not keep Go memory alive, and begins with the first slot again: a host that waits
// often stays with few of them, which are in its caches. It notes when the host came
// for them.
func (s *Stream) sweep(early bool, came time.Duration) {
	if !s.put.TryLock() {
		return
	}
	defer s.put.Unlock()
	tail := s.tail.Load()
	if tail == s.swept || s.head.Load() != tail {
		return
	}
	for i := max(s.swept, tail-min(tail, s.mask+1)); i < tail; i++ {
		t := s.slot(i)
		clear(t.bufs)
		t.bufs, t.a, t.b, t.kept, t.took = nil, device.Buffer{}, device.Buffer{}, nil, nil
	}
	s.swept, s.headSeen, s.first = tail, tail, tail
	s.holding.came(early, came, s.dev.now)
}

// Query reports whether everything enqueued so far is done.
func (s *Stream) Query() bool {
	if s == nil || s.head.Load() >= s.tail.Load() {
		return true
	}
	s.kick()
	return false
}

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
