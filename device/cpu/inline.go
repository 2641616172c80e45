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
	stepping := false
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if stepping {
			s.abandon()
		}
	}()
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
		stepping = true
		done := s.inlineStep(&s.slot(head).task)
		stepping = false
		if done {
			s.taskDone(head + 1)
		}
		s.put.Lock()
	}
}

// abandon counts the running task as done when its kernel has ended the
// goroutine, and goes on behind it.
func (s *Stream) abandon() {
	s.taskDone(s.head.Load() + 1)
	s.put.Lock()
	s.running = false
	s.drain()
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
