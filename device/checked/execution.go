package checked

import (
	"fmt"

	"goatb/device"
	"goatb/status"
)

// execution books the tasks of one execution: those of each stream of the list,
// in list order, behind the replay on the stream that it was enqueued on, and
// the end of the replay behind them all.
type execution struct {
	m       *Model
	s       *Stream
	at      site
	events  []*record     // by event of the list
	updates map[int]*task // by index of the update and of its target
}

// fetched is a kernel that is fetched at a wait, and its update.
type fetched struct {
	kernel origin
	update *task
}

// book enqueues an execution; the device's mu is held.
func (m *Model) book(s *Stream, r *device.Refresh, at site) {
	x := &execution{m: m, s: s, at: at, events: make([]*record, m.list.Events), updates: map[int]*task{}}
	d := m.dev
	for i := range x.events {
		x.events[i] = &record{event: m.made}
	}
	if m.last != nil {
		d.enqueue(s.model, x.task("earlier replay", s.model, nil, m.last, nil))
	}
	start := &record{event: m.made}
	begin := x.task("start", s.model, nil, nil, start)
	for i := range r.Writes {
		begin.use(m.resolve(&r.Writes[i].To), "value", true)
	}
	d.enqueue(s.model, begin)
	for _, lane := range m.lanes {
		lane.of = s.model
		d.enqueue(lane, x.task("start", lane, nil, start, nil))
	}
	x.findUpdates()
	for i := range m.list.Tasks {
		x.entry(i)
	}
	for _, lane := range m.lanes {
		end := &record{event: m.made}
		d.enqueue(lane, x.task("end", lane, nil, nil, end))
		d.enqueue(s.model, x.task("end", s.model, nil, end, nil))
	}
	m.last = &record{event: m.made}
	d.enqueue(s.model, x.task("end", s.model, nil, nil, m.last))
}

// task makes a task of the execution that waits for one record and fires one.
func (x *execution) task(what string, on *model, label *device.Label, waits, fires *record) *task {
	t := &task{origin: origin{what: what + " in the replay of " + x.m.list.Name, label: label, stream: on.id, at: x.at}, waits: waits, fires: fires}
	if fires != nil {
		fires.by = t
	}
	return t
}

// resolve returns the memory of an address in this execution.
func (m *Model) resolve(a *device.Address) device.Buffer {
	if a.Type == device.AbsoluteMemory {
		return a.Buffer
	}
	return m.now[a.Type][a.Index].At(a.Off, a.Size)
}

// findUpdates makes the tasks of updates, by the index of their target, before
// anything is booked: the windows of earlier waits name them.
func (x *execution) findUpdates() {
	type name struct {
		stream device.StreamID
		id     device.TaskID
	}
	if x.m.dev.cfg.stale {
		return
	}
	at := map[name]int{}
	for i := range x.m.list.Tasks {
		t := &x.m.list.Tasks[i]
		at[name{t.Stream, t.ID}] = i
		if u := t.Update; t.Kind == device.UpdateTask {
			target := at[name{u.Target, u.Task}]
			x.updates[target] = x.task("update", x.m.lanes[t.Stream], t.Label, nil, nil)
			x.updates[i] = x.updates[target]
			if x.m.entries[target].IsNil() {
				x.m.entries[target] = device.Whole(device.NewAllocation(device.DeviceSpace, 1, nil))
			}
			x.m.entries[i] = x.m.entries[target]
		}
	}
}

// entry books task i of the list.
func (x *execution) entry(i int) {
	l := &x.m.list.Tasks[i]
	lane := x.m.lanes[l.Stream]
	t := x.task(l.Kind.String(), lane, l.Label, nil, nil)
	if u := x.updates[i]; u != nil && l.Kind == device.UpdateTask {
		t = u
	}
	switch l.Kind {
	case device.EventWaitTask:
		t.waits = x.events[l.Event]
		x.fetch(i, t)
	case device.EventRecordTask:
		t.fires = x.events[l.Event]
		t.fires.by = t
	case device.PreprocessTask:
		if l.Preprocess.Notify {
			t.fires = x.events[l.Preprocess.Flag]
			t.fires.by = t
		}
	case device.SuperKernelTask:
		x.super(lane, l)
		return
	}
	t.overlay = l.Kernel != nil && l.Kernel.Program.Overlay
	for u := range l.Uses() {
		t.use(x.m.resolve(u.At), u.Name, u.Write)
	}
	if b := x.m.entries[i]; !b.IsNil() && x.updates[i] != nil {
		t.use(b, "queue entry", l.Kind == device.UpdateTask)
	}
	x.enqueue(lane, t, l.Kind)
}

func (x *execution) enqueue(lane *model, t *task, kind device.TaskKind) {
	if kind == device.KernelTask || kind == device.AllKernelTask || kind == device.SuperKernelTask {
		for _, f := range overlapFindings(t) {
			lane.report(f)
		}
	}
	x.m.dev.enqueue(lane, t)
}

// super books each kernel of a super kernel as a task.
func (x *execution) super(lane *model, l *device.Task) {
	for i := range l.Super {
		s := &l.Super[i]
		label := s.Label
		if label == nil {
			label = l.Label
		}
		t := x.task("sub kernel", lane, label, nil, nil)
		t.overlay = s.Kernel.Program.Overlay
		if s.Sunk != nil {
			t.waits = x.events[s.Sunk.Flag]
		}
		for u := range l.Uses() {
			if u.Sub == i {
				t.use(x.m.resolve(u.At), u.Name, u.Write)
			}
		}
		x.enqueue(lane, t, l.Kind)
	}
}

// fetch notes which kernels are fetched when the wait at i is reached: those of
// its stream's next queue entries, as many as the device prefetches.
func (x *execution) fetch(i int, wait *task) {
	tasks, entries := x.m.list.Tasks, int64(0)
	for j := i + 1; j < len(tasks); j++ {
		l := &tasks[j]
		if l.Stream != tasks[i].Stream {
			continue
		}
		if entries += int64(l.Kind.Entries()); entries > x.m.prefetch {
			return
		}
		if update := x.updates[j]; update != nil && l.Kind != device.UpdateTask {
			kernel := x.task(l.Kind.String(), x.m.lanes[l.Stream], l.Label, nil, nil)
			wait.fetches = append(wait.fetches, fetched{kernel: kernel.origin, update: update})
		}
	}
}

// checkFetch reports an update that is not done when the wait t is reached, but
// belongs to an entry that is fetched then; the device's mu is held.
func (m *model) checkFetch(t *task, f fetched) {
	u := f.update
	if u.index != 0 && m.clock.at(u.origin.stream) >= u.index {
		return
	}
	text := fmt.Sprintf("%s is fetched when its stream reaches the %s, and nothing orders the %s before that", f.kernel.String(), t.origin.String(), u.origin.String())
	m.report((&Finding{Kind: Stale, Text: text}).failure(status.ErrRuntimeFail, f.kernel.label))
}
