package cpu

import (
	"time"

	"goatb/device"
	"goatb/status"
)

// replay runs one execution of a model in the place of the stream's task t. It
// reports whether a host goroutine was woken.
func (s *Stream) replay(t *task) (woke bool) {
	m, gen := t.model, t.gen
	t.model = nil
	skipped := s.failure.Load() != nil
	err := m.refresh(t.blocks, int(t.key), skipped)
	if err != nil {
		s.fail(m.place(err))
	}
	if skipped || err != nil {
		return m.ended.fire(gen)
	}
	m.begin()
	defer func() { woke = m.finish(s, gen) }()
	if m.home != nil {
		m.home.engine.id = s.id
	}
	if s.dev.cfg.inline {
		m.takeTurns()
		return false
	}
	s.run.job.SetBusy(false)
	for _, l := range m.lanes {
		if l != m.home {
			l.tell()
		}
	}
	if m.home != nil {
		m.walked = m.home
		m.home.setBusy(true)
		m.home.drive()
		m.walked = nil
	}
	return false
}

// refresh takes the next moves and writes over; a skipped execution writes
// nothing.
func (m *Model) refresh(moves, writes int, skipped bool) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() {
		if v := recover(); v != nil {
			err = status.Errorf(status.ErrRuntimeFail, "write values for the execution: %v", v)
		}
	}()
	for _, move := range m.moves.pop(moves) {
		m.table.refresh(&move)
	}
	for _, w := range m.writes.pop(writes) {
		if data := m.written.pop(w.size); !skipped {
			copy(m.table.resolve(&w.to).Bytes(), data)
		}
	}
	return nil
}

// begin makes the model ready for an execution.
func (m *Model) begin() {
	m.latch.Store(nil)
	if m.dirty {
		for i := range m.events {
			m.events[i].reset()
		}
		m.dirty = false
	}
	others := int32(0)
	for _, l := range m.lanes {
		l.rewind()
		if l != m.home {
			others++
		}
	}
	if !m.dev.cfg.inline {
		m.left.Store(others)
	}
}

// takeTurns walks all lanes on the goroutine of an inline device.
func (m *Model) takeTurns() {
	for {
		moved, open := false, false
		for _, l := range m.lanes {
			if l.ended {
				continue
			}
			m.walked, l.moved = l, false
			l.walk()
			m.walked = nil
			moved, open = moved || l.moved, open || !l.ended
		}
		if !open {
			return
		}
		if !moved {
			m.fail(m.place(status.Errorf(status.ErrInternal, "%w: no stream of the model can go on", device.FaultNoEnd)))
		}
	}
}

// finish ends an execution on s: all lanes have to come to their end first. It
// also runs when a task has ended the goroutine.
func (m *Model) finish(s *Stream, gen uint64) bool {
	if m.walked != nil {
		m.walked.abandon()
	}
	m.awaitOthers()
	if !s.dev.cfg.inline {
		if m.home != nil {
			m.home.setBusy(false)
		}
		s.run.job.SetBusy(true)
	}
	if f := m.latch.Load(); f != nil {
		m.dirty = true
		m.stats.failures.Add(1)
		s.fail(f.err)
	}
	return m.ended.fire(gen)
}

// awaitOthers waits for the goroutines of other lanes.
func (m *Model) awaitOthers() {
	if m.left.Load() == 0 {
		return
	}
	awaitParked(m.dev.spin, m.done, func() bool { return m.left.Load() == 0 })
}

// clock is the time where somebody observes, else the zero time.
func (l *lane) clock() (t time.Time) {
	if l.m.dev.cfg.observe != nil {
		t = time.Now()
	}
	return t
}

// observe reports an entry that is done.
func (l *lane) observe(e *entry, label *device.Label, start time.Time) {
	observe := l.m.dev.cfg.observe
	if observe == nil {
		return
	}
	r := Task{Stream: l.engine.id, Kind: entryNames[e.kind], Label: label, Start: start, End: time.Now()}
	switch e.kind {
	case device.CopyTask:
		r.Bytes = e.copy.a.Size()
	case device.PreprocessTask:
		r.Engine = "AICPU"
	}
	observe(r)
}

// observeKernel reports a kernel that is done.
func (l *lane) observeKernel(e *entry, p *part, word uint64, start time.Time) {
	if observe := l.m.dev.cfg.observe; observe != nil {
		pending := word>>32 == 0 && e.sunk && (p.flag != nil || e.kind != device.SuperKernelTask)
		observe(Task{
			Stream: l.engine.id, Kind: taskNames[launchTask], Label: p.label, Start: start, End: time.Now(),
			Blocks: int(uint32(word)), Pending: pending,
		})
	}
}

// observeWait reports a wait that is over.
func (l *lane) observeWait(e *entry) {
	if observe := l.m.dev.cfg.observe; observe != nil {
		observe(Task{Stream: l.engine.id, Kind: taskNames[waitTask], Label: e.label, Start: l.since, End: time.Now()})
	}
}

// entryNames names tasks for an observer.
var entryNames = [...]string{
	device.PreprocessTask: "preprocess", device.EventRecordTask: "record", device.NopTask: "nop",
	device.UpdateTask: "update", device.CopyTask: "copy",
}
