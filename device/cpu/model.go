package cpu

import (
	"context"
	"sync"
	"sync/atomic"

	"goatb/device"
	"goatb/internal/workpool"
	"goatb/status"
)

// Model is a task list loaded into a CPU device; see device.Model for its
// contract.
//
// An execution is one task in the queue of the stream that it was enqueued on.
// That stream's goroutine starts the lanes of the model, one for each stream of
// the list, and waits for their end. It walks one lane itself, the home lane,
// where there is one without preprocess tasks; the others have goroutines of
// their own, which stay for the life of the model. On an inline device the
// caller walks all lanes in turns.
type Model struct {
	dev      *Device
	name     string
	label    *device.Label // of its executions, apart from the model: a used queue slot keeps it
	prefetch int
	lanes    []*lane
	home     *lane
	tasks    []*entry // in list order
	events   []modelEvent
	flags    device.Buffer
	ended    *Event // recorded by each execution
	workers  sync.WaitGroup

	// enqueuing orders Replay calls. It comes before the locks of streams.
	enqueuing sync.Mutex
	last      *Stream // of the latest Replay
	bases     bases
	checked   uint64 // the device's count of frees when all memory was last seen to be live
	unloaded  bool
	shutOnce  sync.Once

	// mu guards what is on its way from Replay to the executions.
	mu      sync.Mutex
	moves   fifo[device.Relocation]
	writes  fifo[pendingWrite]
	written fifo[byte]

	// The executions' side.
	table  table
	walked *lane // by the goroutine of the replay
	dirty  bool  // the last execution may have left events set
	latch  atomic.Pointer[failure]
	left   atomic.Int32     // goroutines that have not done their part
	done   *workpool.Parker // who waits for them

	stats modelStats
}

// modelStats counts what device.ModelStats reports.
type modelStats struct {
	replays, failures, kernels, preprocessed, updates, copies, stale atomic.Int64
}

// Replay enqueues one execution.
func (m *Model) Replay(on device.Stream, r *device.Refresh) error {
	s, ok := on.(*Stream)
	if !ok || s == nil || s.dev != m.dev {
		return m.place(status.Errorf(status.ErrInvalidParam, "want a stream of this device, got %T", on))
	}
	if r == nil {
		r = &device.Refresh{}
	}
	m.enqueuing.Lock()
	defer m.enqueuing.Unlock()
	if m.unloaded {
		return m.place(status.Errorf(status.ErrInvalidParam, "want a loaded model, got an unloaded one"))
	}
	if err := m.bases.check(r); err != nil {
		return m.place(err)
	}
	if m.last != s && m.last != nil {
		if err := s.Wait(m.ended); err != nil {
			return err
		}
	}
	return m.enqueue(s, r)
}

// enqueue puts a checked execution into the queue of s; enqueuing is held.
func (m *Model) enqueue(s *Stream, r *device.Refresh) error {
	s.put.Lock()
	t, err := s.nextSlot(func() error { return m.checkLive(r) })
	if err == nil {
		t.gen, err = m.ended.record(s)
	}
	if err != nil {
		s.put.Unlock()
		return m.place(err)
	}
	m.bases.move(r.Moves)
	m.mu.Lock()
	m.moves.push(r.Moves)
	for i := range r.Writes {
		w := &r.Writes[i]
		m.writes.add(pendingWrite{to: w.To, size: len(w.Data)})
		m.written.push(w.Data)
	}
	m.mu.Unlock()
	t.kind, t.model, t.label = replayTask, m, m.label
	t.blocks, t.key = len(r.Moves), uint64(len(r.Writes))
	m.stats.replays.Add(1)
	m.last = s
	s.enqueue(t)
	return nil
}

// checkLive refuses an execution with freed memory. It looks at what did not
// move only when something was freed since it looked last. The queue of the
// stream is locked: what is freed from now on waits for this execution.
func (m *Model) checkLive(r *device.Refresh) error {
	frees := m.dev.frees.Load()
	if err := m.bases.checkMoved(r); err != nil {
		return err
	}
	if frees == m.checked {
		return nil
	}
	if err := m.bases.checkUnmoved(r.Moves); err != nil {
		return err
	}
	m.checked = frees
	return nil
}

func (m *Model) place(err error) error {
	return status.Place(err, status.ErrRuntimeFail, m.name, "replay", "")
}

// Query reports whether every execution enqueued so far is done.
func (m *Model) Query() bool { return m.ended.Query() }

// States appends the state of each task.
func (m *Model) States(dst []device.TaskState) []device.TaskState {
	for _, e := range m.tasks {
		dst = append(dst, e.state())
	}
	return dst
}

// Stats returns counters.
func (m *Model) Stats() device.ModelStats {
	c := &m.stats
	return device.ModelStats{
		Replays: c.replays.Load(), Failures: c.failures.Load(), Kernels: c.kernels.Load(),
		Preprocessed: c.preprocessed.Load(), Updates: c.updates.Load(), Copies: c.copies.Load(), Stale: c.stale.Load(),
	}
}

// Unload waits until the enqueued executions are done and frees the model.
func (m *Model) Unload() error {
	m.enqueuing.Lock()
	m.unloaded = true
	m.enqueuing.Unlock()
	if err := m.ended.Synchronize(context.Background()); err != nil && m.dev.closing.Load() {
		<-m.dev.closed
		return nil
	}
	m.dev.forgetModel(m)
	m.shut()
	return nil
}

// shut ends the lanes. No execution may be enqueued any more.
func (m *Model) shut() {
	m.shutOnce.Do(func() {
		for _, l := range m.lanes {
			l.stop()
		}
		m.workers.Wait()
		for _, l := range m.lanes {
			l.closeEngine()
		}
		if !m.flags.IsNil() && !m.dev.closing.Load() {
			m.dev.noteError(m.dev.Free(m.flags))
		}
		_ = m.ended.Close() // nobody waits for it any more
	})
}

// forgetModel takes an unloaded model off the books.
func (d *Device) forgetModel(m *Model) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.models, m)
}

// unloadModels ends the models that are left when all streams have ended.
func (d *Device) unloadModels() {
	d.mu.Lock()
	models := d.models
	d.models = nil
	d.mu.Unlock()
	for m := range models {
		m.enqueuing.Lock()
		m.unloaded = true
		m.enqueuing.Unlock()
		m.shut()
	}
}

// Capability tells what the device can do with task lists.
func (d *Device) Capability(c device.Capability) (int64, error) {
	if err := d.exists(); err != nil {
		return 0, err
	}
	if d.closing.Load() {
		return 0, errClosed()
	}
	switch c {
	case device.CapTaskUpdate:
		if d.cfg.taskUpdate {
			return 1, nil
		}
		return 0, nil
	case device.CapPrefetch:
		return int64(d.cfg.prefetch), nil
	case device.CapMaxBlocks:
		return maxBlocks, nil
	}
	return 0, status.Errorf(status.ErrInvalidParam, "want a capability, got %d", c)
}

var (
	_ device.ModelDevice = (*Device)(nil)
	_ device.Model       = (*Model)(nil)
)
