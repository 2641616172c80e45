package checked

import (
	"slices"
	"sync"

	"goatb/device"
	"goatb/status"
)

// Model is a task list loaded through the layer.
type Model struct {
	dev   *Device
	inner device.Model
	list  *device.TaskList // as the caller sees its memory
	// made stands for the events of the list in what is reported about waits.
	made     *Event
	prefetch int64

	// replaying makes the inner model and the books see executions in one order.
	replaying sync.Mutex

	// Guarded by the device's mu.
	lanes   []*model // of the list's streams
	entries map[int]device.Buffer
	now     [device.WorkspaceMemory + 1]map[int]device.Buffer
	last    *record // end of the latest execution
}

// Capability asks the inner device. One that runs no task lists has no task
// update.
func (d *Device) Capability(c device.Capability) (int64, error) {
	if err := d.exists(); err != nil {
		return 0, err
	}
	inner, err := device.Models(d.inner)
	if err == nil {
		return inner.Capability(c)
	}
	if c == device.CapTaskUpdate && !d.closed.Load() {
		return 0, nil
	}
	return 0, err
}

// Load loads a list into the inner device.
func (d *Device) Load(l *device.TaskList) (device.Model, error) {
	if err := d.exists(); err != nil {
		return nil, err
	}
	at := here()
	inner, err := device.Models(d.inner)
	if err != nil {
		return nil, err
	}
	if l == nil {
		return inner.Load(nil)
	}
	prefetch, err := inner.Capability(device.CapPrefetch)
	if err != nil {
		return nil, err
	}
	own, through := cloneList(l), cloneList(l)
	for i := range through.Tasks {
		for u := range through.Tasks[i].Uses() {
			u.At.Buffer = d.translate(u.At.Buffer)
		}
	}
	loaded, err := inner.Load(through)
	if err != nil {
		return nil, d.explain(err, origin{what: "list " + l.Name, at: at}, absolutes(own)...)
	}
	m := &Model{dev: d, inner: loaded, list: own, made: &Event{dev: d, made: at}, prefetch: prefetch, entries: map[int]device.Buffer{}}
	for t := range m.now {
		m.now[t] = map[int]device.Buffer{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for range l.Streams {
		lane := &model{id: len(d.models)}
		d.models, m.lanes = append(d.models, lane), append(m.lanes, lane)
	}
	d.loaded = append(d.loaded, m)
	return m, nil
}

// cloneList copies a list down to its addresses.
func cloneList(l *device.TaskList) *device.TaskList {
	out := *l
	out.Streams = slices.Clone(l.Streams)
	out.Tasks = slices.Clone(l.Tasks)
	for i := range out.Tasks {
		t := &out.Tasks[i]
		t.Kernel, t.Preprocess, t.Update, t.Copy = clonePointer(t.Kernel), clonePointer(t.Preprocess), clonePointer(t.Update), clonePointer(t.Copy)
		if t.Kernel != nil {
			t.Kernel.Operands = slices.Clone(t.Kernel.Operands)
		}
		if p := t.Preprocess; p != nil {
			p.Inputs, p.Outputs = slices.Clone(p.Inputs), slices.Clone(p.Outputs)
		}
		t.Super = slices.Clone(t.Super)
		for j := range t.Super {
			s := &t.Super[j]
			s.Kernel.Operands, s.Sunk = slices.Clone(s.Kernel.Operands), clonePointer(s.Sunk)
		}
	}
	return &out
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	out := *p
	return &out
}

// absolutes returns the memory of a list that never moves.
func absolutes(l *device.TaskList) []device.Buffer {
	var out []device.Buffer
	for i := range l.Tasks {
		for u := range l.Tasks[i].Uses() {
			if u.At.Type == device.AbsoluteMemory {
				out = append(out, u.At.Buffer)
			}
		}
	}
	return out
}

// Replay enqueues one execution and books its tasks.
func (m *Model) Replay(on device.Stream, r *device.Refresh) error {
	s, ok := on.(*Stream)
	if !ok || s == nil || s.dev != m.dev {
		return status.Errorf(status.ErrInvalidParam, "want a stream of this device to replay %s, got %T", m.list.Name, on)
	}
	if r == nil {
		r = &device.Refresh{}
	}
	at := here()
	through := &device.Refresh{Moves: slices.Clone(r.Moves), Writes: slices.Clone(r.Writes)}
	for i := range through.Moves {
		through.Moves[i].Buffer = m.dev.translate(r.Moves[i].Buffer)
	}
	for i := range through.Writes {
		through.Writes[i].To.Buffer = m.dev.translate(r.Writes[i].To.Buffer)
	}
	m.replaying.Lock()
	defer m.replaying.Unlock()
	if err := m.inner.Replay(s.inner, through); err != nil {
		return m.dev.explain(err, origin{what: "replay of " + m.list.Name, stream: s.model.id, at: at}, m.memory(r)...)
	}
	m.dev.mu.Lock()
	defer m.dev.mu.Unlock()
	for _, move := range r.Moves {
		m.now[move.Type][move.Index] = move.Buffer
	}
	m.book(s, r, at)
	return nil
}

// memory lists what an execution uses, for the explanation of a refusal.
func (m *Model) memory(r *device.Refresh) []device.Buffer {
	out := absolutes(m.list)
	for _, move := range r.Moves {
		out = append(out, move.Buffer)
	}
	m.dev.mu.Lock()
	defer m.dev.mu.Unlock()
	for _, bases := range m.now {
		for _, b := range bases {
			out = append(out, b)
		}
	}
	return out
}

// Query reports whether every execution enqueued so far is done.
func (m *Model) Query() bool { return m.inner.Query() }

// States appends the state of each task.
func (m *Model) States(dst []device.TaskState) []device.TaskState { return m.inner.States(dst) }

// Stats returns counters.
func (m *Model) Stats() device.ModelStats { return m.inner.Stats() }

// Unload waits for the executions and frees the model.
func (m *Model) Unload() error {
	m.dev.mu.Lock()
	m.dev.loaded = slices.DeleteFunc(m.dev.loaded, func(o *Model) bool { return o == m })
	m.dev.mu.Unlock()
	return m.inner.Unload()
}

var (
	_ device.ModelDevice = (*Device)(nil)
	_ device.Model       = (*Model)(nil)
)
