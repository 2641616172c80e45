package cpu

import (
	"runtime/debug"
	"time"
)

// resume lets the stream go on after its gate was opened.
func (s *Stream) resume() {
	if !s.dev.cfg.inline {
		s.gate.sleep.Wake()
		return
	}
	s.put.Lock()
	s.drain()
}

// drain runs the tasks of an inline stream until none is left or a wait holds
// it, unless another goroutine does so already. put is held on entry and not
// on return.
func (s *Stream) drain() {
	if s.running {
		s.put.Unlock()
		return
	}
	s.running = true
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	for {
		head := s.head.Load()
		held := s.gate.entered && !s.gate.released.Load()
		if held || head == s.tail.Load() {
			s.running = false
			ended := !held && s.shut && !s.over.Swap(true)
			s.put.Unlock()
			if ended {
				s.finish()
			}
			if held {
				s.dev.nudge()
			}
			return
		}
		s.noteDepth(int64(s.tail.Load() - head))
		s.put.Unlock()
		if s.inlineStep(&s.slots[head&s.mask].task) {
			s.head.Store(head + 1)
			if s.attention.Load() != 0 {
				s.attend(head + 1)
			}
		}
		s.put.Lock()
	}
}

// inlineStep runs one task; false says that a wait holds the stream.
func (s *Stream) inlineStep(t *task) bool {
	if s.gate.entered {
		s.endWait()
		if observe := s.dev.cfg.observe; observe != nil {
			s.run.held.End = time.Now()
			observe(s.run.held)
		}
		return true
	}
	s.step(t)
	return !s.gate.entered
}
