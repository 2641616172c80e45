package sim

import (
	"sync"

	"goatb/device"
	"goatb/device/sim/profile"
)

// Model is a task list loaded into a simulated device. The inner device runs the
// list; each execution is then timed task by task, on lanes that stand for the
// streams of the list.
//
// An execution is timed by what its kernels did when the inner device ran it,
// inside the call that replayed it. One that had to wait there, for an event that
// the host had not recorded yet, is timed by what its kernels did last.
type Model struct {
	dev   *Device
	inner device.Model
	label device.Label
	lanes []*Stream
	tasks []listed // in list order
	// used tells which inputs, outputs and workspaces the inner list touches, when
	// numerics are off.
	used device.Extents

	// replaying is held during Replay. It comes before the device's locks.
	replaying sync.Mutex

	mu   sync.Mutex // guards runs
	runs []run      // of the kernels, in list order
	// operands are those of the kernels, and memory what inputs, outputs and
	// workspaces are by type and index: replaced, never changed.
	operands [][]device.Address
	memory   *bases

	// Guarded by the device's mu.
	current *execution
	waiting []*task // replays that have begun while another was under way
	pending int     // executions that are not done
}

// listed is one task of a list, as it is timed.
type listed struct {
	kind  device.TaskKind
	lane  int
	label *device.Label
	// first is the task's first kernel among the model's, kernels their number.
	first, kernels int
	// flags are the events that the sub kernels of a super kernel poll, -1 for
	// none.
	flags []int
	event int // that is awaited, recorded or set; -1 for none
	group profile.Group
	bytes int64
	dst   device.Space
	src   device.Space
}

// run is what a kernel did when it last ran.
type run struct {
	program *device.Program
	ran     bool
	blocks  int
	inputs  int
	cost    device.Cost
}

// execution is one run of a model that is being timed.
type execution struct {
	model  *Model
	replay *task // in the queue of the stream that it was enqueued on
	runs   []run
	marks  []mark
	left   int // tasks that are not done
	memory *bases
	late   bool
}

// bases is the memory of inputs, outputs and workspaces.
type bases [device.WorkspaceMemory + 1][]device.Buffer

// moved returns the memory after moves.
func (b *bases) moved(moves []device.Relocation) *bases {
	if len(moves) == 0 {
		return b
	}
	out := *b
	for i := range out {
		out[i] = append([]device.Buffer(nil), out[i]...)
	}
	for _, v := range moves {
		list := &out[v.Type]
		for len(*list) <= v.Index {
			*list = append(*list, device.Buffer{})
		}
		(*list)[v.Index] = v.Buffer
	}
	return &out
}

// at returns the memory at an address.
func (b *bases) at(a *device.Address) device.Buffer {
	if a.Type == device.AbsoluteMemory {
		return a.Buffer
	}
	if list := b[a.Type]; a.Index < len(list) {
		return list[a.Index].At(a.Off, a.Size)
	}
	return device.Buffer{}
}

// Capability asks the inner device.
func (d *Device) Capability(c device.Capability) (int64, error) {
	if err := d.exists(); err != nil {
		return 0, err
	}
	return d.inner.Capability(c)
}

// Replay enqueues one execution.
func (m *Model) Replay(on device.Stream, r *device.Refresh) error {
	s, ok := on.(*Stream)
	if !ok || s == nil || s.dev != m.dev {
		return m.inner.Replay(on, r) // refused with the right words
	}
	d := m.dev
	t := s.room(replayTask)
	m.replaying.Lock()
	defer m.replaying.Unlock()
	m.forget()
	if err := m.inner.Replay(s.inner, m.moved(r)); err != nil {
		return s.refuse(t, err)
	}
	if r != nil {
		m.memory = m.memory.moved(r.Moves)
	}
	x := &execution{model: m, replay: t, memory: m.memory, late: !m.inner.Query()}
	if !x.late {
		x.runs = m.snapshot()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	t.exec, t.label = x, &m.label
	m.pending++
	written := 0
	if r != nil {
		for i := range r.Writes {
			written += len(r.Writes[i].Data)
		}
	}
	s.book(t, "replay", m.label.Op, d.costs.ReplayHost+d.costs.LaunchPerKiB*float64(written)/1024)
	return nil
}

// moved leaves out what the inner list does not touch.
func (m *Model) moved(r *device.Refresh) *device.Refresh {
	if r == nil || m.dev.numerics {
		return r
	}
	out := device.Refresh{Writes: r.Writes}
	for _, v := range r.Moves {
		if v.Type <= device.WorkspaceMemory {
			if used := m.used.Of(v.Type); v.Index >= 0 && v.Index < len(used) && used[v.Index] >= 0 {
				out.Moves = append(out.Moves, v)
			}
		}
	}
	return &out
}

// forget drops what the kernels did in earlier executions.
func (m *Model) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.runs {
		m.runs[i].ran = false
	}
}

func (m *Model) snapshot() []run {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]run(nil), m.runs...)
}

// States returns what the queue entries hold.
func (m *Model) States(dst []device.TaskState) []device.TaskState { return m.inner.States(dst) }

// Stats returns the inner device's counters.
func (m *Model) Stats() device.ModelStats { return m.inner.Stats() }

// Query reports whether every execution enqueued so far is done.
func (m *Model) Query() bool {
	d := m.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return m.inner.Query()
	}
	d.charge("query", "", d.costs.QueryHost)
	d.engine.advance(d.host.now)
	return m.pending == 0
}

// Unload waits until the enqueued executions are done and frees the model.
func (m *Model) Unload() error {
	err := m.inner.Unload()
	d := m.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	d.await(func() bool { return m.pending == 0 })
	return err
}

var (
	_ device.ModelDevice = (*Device)(nil)
	_ device.Model       = (*Model)(nil)
)
