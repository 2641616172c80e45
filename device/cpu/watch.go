package cpu

import (
	"context"
	"time"

	"goatb/internal/workpool"
)

// hostSpin is how long a host goroutine looks for the end of its work before it
// sleeps: longer than a wake-up costs, short against a kernel that matters. While
// small kernels end one after the other, on the stream's goroutine alone, it goes
// on looking for hostStay in all.
const (
	hostSpin = 20 * time.Microsecond
	hostStay = workpool.DefaultSpin
)

// watch is something to do when a stream has done its tasks before `at`: wake a
// host goroutine, or take the stream off the list of a deferred free.
type watch struct {
	at   uint64
	host *hostWaiter
	free *retired
}

// hostWaiter lets a host goroutine sleep until one thing has happened.
type hostWaiter struct{ ready chan struct{} }

// reach waits until the tasks before `at` are done.
func (s *Stream) reach(ctx context.Context, at uint64) error {
	if s.head.Load() >= at || s.runHeld(at) {
		return nil
	}
	s.syncs.Add(1)
	begun, shared, seen := time.Now(), s.shared(), s.head.Load()
	spin := s.dev.spin.AtMost(hostSpin)
	for sp := spin.Start(); seen < at; {
		if head := s.head.Load(); head != seen {
			if seen = head; s.shared() == shared && time.Since(begun) < hostStay {
				sp = spin.Start()
			}
		} else if !sp.Next() {
			return s.sleepUntil(ctx, at)
		}
	}
	return nil
}

// shared returns how many launches were shared with helpers so far.
func (s *Stream) shared() uint32 {
	if s.run.job == nil {
		return 0
	}
	return s.run.job.Shared()
}

func (s *Stream) sleepUntil(ctx context.Context, at uint64) error {
	w := s.dev.waiters.take()
	if !s.watch(watch{at: at, host: w}) {
		s.dev.waiters.give(w)
		return nil
	}
	select {
	case <-w.ready:
		s.dev.waiters.give(w)
		return nil
	case <-ctx.Done():
	}
	if !s.unwatch(w) {
		<-w.ready
		s.dev.waiters.give(w)
		return nil
	}
	s.dev.waiters.give(w)
	return context.Cause(ctx)
}

// watch registers w; false says that its tasks are done already.
func (s *Stream) watch(w watch) bool {
	s.watchMu.Lock()
	defer s.watchMu.Unlock()
	s.attention.Add(1)
	if s.head.Load() >= w.at {
		s.attention.Add(-1)
		return false
	}
	s.watches = append(s.watches, w)
	return true
}

// unwatch takes a host goroutine off the list; false says that it was woken.
func (s *Stream) unwatch(w *hostWaiter) bool {
	s.watchMu.Lock()
	defer s.watchMu.Unlock()
	for i := range s.watches {
		if s.watches[i].host == w {
			s.dropWatch(i)
			return true
		}
	}
	return false
}

// dropWatch removes entry i, in any order; watchMu is held.
func (s *Stream) dropWatch(i int) {
	last := len(s.watches) - 1
	s.watches[i] = s.watches[last]
	s.watches[last] = watch{}
	s.watches = s.watches[:last]
	s.attention.Add(-1)
}

// attend serves watches and stalled enqueuers after a task. It reports whether
// it woke anybody.
func (s *Stream) attend(head uint64) bool {
	woke := s.serveWatches(head)
	if s.stalled.Load() && s.tail.Load()-head <= s.lowMark() {
		s.put.Lock()
		if s.stalled.Swap(false) {
			s.attention.Add(-1)
		}
		s.space.Broadcast()
		s.put.Unlock()
		woke = true
	}
	return woke
}

func (s *Stream) serveWatches(head uint64) bool {
	woke := false
	for {
		w, ok := s.nextWatch(head)
		if !ok {
			return woke
		}
		if w.host != nil {
			w.host.ready <- struct{}{}
			woke = true
		}
		if w.free != nil {
			s.dev.noteError(w.free.done())
		}
	}
}

// nextWatch takes a watch off the list whose tasks are done.
func (s *Stream) nextWatch(head uint64) (watch, bool) {
	s.watchMu.Lock()
	defer s.watchMu.Unlock()
	for i, w := range s.watches {
		if w.at <= head {
			s.dropWatch(i)
			return w, true
		}
	}
	return watch{}, false
}
