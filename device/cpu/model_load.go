package cpu

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"goatb/device"
	"goatb/internal/workpool"
	"goatb/status"
)

// Load checks a task list and makes a model of it.
func (d *Device) Load(l *device.TaskList) (device.Model, error) {
	if err := d.exists(); err != nil {
		return nil, err
	}
	can, err := device.LimitsOf(d)
	if err != nil {
		return nil, err
	}
	if err := l.Check(can); err != nil {
		return nil, err
	}
	m := &Model{
		dev: d, name: l.Name, label: &device.Label{Op: l.Name}, prefetch: d.cfg.prefetch, checked: d.frees.Load(),
		ended: &Event{dev: d}, done: workpool.NewParker(), events: make([]modelEvent, l.Events), tasks: make([]*entry, len(l.Tasks)),
	}
	extents := l.Extents()
	m.bases, m.table = newBases(extents), newTable(extents)
	if err := m.takeFlags(l); err != nil {
		return nil, status.Place(err, status.ErrInternal, l.Name, "load", "")
	}
	if err := m.checkAbsolute(l); err != nil {
		return nil, err
	}
	for i, name := range l.Streams {
		m.lanes = append(m.lanes, m.newLane(l, device.StreamID(i), name))
	}
	m.linkUpdates(l)
	return m, d.startModel(m)
}

// takeFlags makes the memory of events that are polled as flags.
func (m *Model) takeFlags(l *device.TaskList) error {
	var flags []device.EventID
	for i := range l.Tasks {
		for j := range l.Tasks[i].Super {
			if s := l.Tasks[i].Super[j].Sunk; s != nil {
				flags = append(flags, s.Flag)
			}
		}
	}
	if len(flags) == 0 {
		return nil
	}
	var err error
	if m.flags, err = m.dev.Alloc(int64(flagBytes * len(flags))); err != nil {
		return err
	}
	mem := m.flags.Bytes()
	for i, e := range flags {
		m.events[e].flag = (*uint64)(unsafe.Pointer(&mem[flagBytes*i]))
	}
	return nil
}

// flagBytes is the size of a flag in memory.
const flagBytes = 8

// checkAbsolute refuses memory that the device cannot use, and notes the rest.
func (m *Model) checkAbsolute(l *device.TaskList) error {
	seen := map[*device.Allocation]bool{}
	for i := range l.Tasks {
		for u := range l.Tasks[i].Uses() {
			if u.At.Type != device.AbsoluteMemory {
				continue
			}
			if problem := checkBuffer(u.At.Buffer); problem != "" {
				err := status.Errorf(status.ErrInvalidTensorAddr, "want live memory for %s, got %s", u.Name, problem)
				label := l.Tasks[i].Label
				if label == nil {
					label = m.label
				}
				return status.Place(err, status.ErrInvalidTensorAddr, label.Op, "load", fmt.Sprintf("task %d (%s) %s", i, l.Tasks[i].Kind, label.Node))
			}
			if a := u.At.Buffer.Allocation(); a != nil && !seen[a] {
				seen[a] = true
				m.bases.absolute = append(m.bases.absolute, u.At.Buffer)
			}
		}
	}
	return nil
}

// newLane makes the lane of one stream with its tasks.
func (m *Model) newLane(l *device.TaskList, id device.StreamID, name string) *lane {
	lane := &lane{m: m, name: name, sleep: workpool.NewParker()}
	n := 0
	for i := range l.Tasks {
		if l.Tasks[i].Stream == id {
			n++
		}
	}
	lane.entries, lane.fetched = make([]entry, 0, n), make([]uint64, n)
	for i := range l.Tasks {
		if l.Tasks[i].Stream != id {
			continue
		}
		lane.entries = append(lane.entries, entry{})
		e := &lane.entries[len(lane.entries)-1]
		m.fill(e, &l.Tasks[i], lane)
		m.tasks[i] = e
	}
	return lane
}

// fill makes a queue entry of a task.
func (m *Model) fill(e *entry, t *device.Task, l *lane) {
	e.kind, e.label = t.Kind, t.Label
	if e.label == nil {
		e.label = m.label
	}
	switch t.Kind {
	case device.KernelTask, device.AllKernelTask:
		e.parts = []part{{label: e.label}}
		m.fillPart(&e.parts[0], t.Kernel)
	case device.SuperKernelTask:
		e.parts = make([]part, len(t.Super))
		for i := range t.Super {
			p, s := &e.parts[i], &t.Super[i]
			p.label = s.Label
			if p.label == nil {
				p.label = e.label
			}
			m.fillPart(p, &s.Kernel)
			if s.Sunk != nil {
				e.sunk = true
				p.flag = &m.events[s.Sunk.Flag]
				p.flag.waiter = l
				m.fillPatch(&p.source, &s.Sunk.Patch)
				p.source.first = uint64(len(p.choices))
				p.addChoices(s.Sunk.Binary)
			}
		}
	case device.EventWaitTask:
		e.event = &m.events[t.Event]
		e.event.waiter = l
	case device.EventRecordTask:
		e.event = &m.events[t.Event]
	case device.PreprocessTask:
		l.worked = true
		e.prep = m.newPreprocess(t)
	case device.UpdateTask:
		m.fillPatch(&e.source, &t.Update.Patch)
	case device.CopyTask:
		e.copy.kind = copyTask
		m.table.bind(&e.copy.a, &t.Copy.Dst)
		m.table.bind(&e.copy.b, &t.Copy.Src)
	}
}

// fillPart makes a launch of a kernel.
func (m *Model) fillPart(p *part, k *device.Kernel) {
	t := &p.task
	t.kind, t.label, t.inline = launchTask, p.label, k.Inline != nil
	t.bufs = make([]device.Buffer, len(k.Operands))
	for i := range k.Operands {
		m.table.bind(&t.bufs[i], &k.Operands[i])
	}
	m.table.bind(&t.a, &k.Scratch)
	if t.inline {
		t.data = alignedBytes(len(k.Inline))
		copy(t.data, k.Inline)
	} else {
		m.table.bind(&t.b, &k.Tiling)
	}
	p.addChoice(k.Key, k.Program, k.Vector, k.Ratio)
	p.word.Store(uint64(k.Blocks))
}

func (m *Model) fillPatch(s *patchSource, p *device.Patch) {
	s.binary = p.Binary
	m.table.bind(&s.key, &p.Key)
	m.table.bind(&s.blocks, &p.Blocks)
}

// linkUpdates finds the targets of updates and gives them their variants.
func (m *Model) linkUpdates(l *device.TaskList) {
	type name struct {
		stream device.StreamID
		id     device.TaskID
	}
	at := map[name]*entry{}
	for i := range l.Tasks {
		t := &l.Tasks[i]
		at[name{t.Stream, t.ID}] = m.tasks[i]
		if t.Kind != device.UpdateTask {
			continue
		}
		e, target := m.tasks[i], at[name{t.Update.Target, t.Update.Task}]
		e.target, target.sunk = &target.parts[0], true
		e.source.first = uint64(len(e.target.choices))
		e.target.addChoices(t.Update.Binary)
	}
}

// startModel numbers the streams of a model and starts its goroutines.
func (d *Device) startModel(m *Model) error {
	for _, l := range m.lanes {
		if m.home == nil && !l.worked {
			m.home = l
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing.Load() {
		return errClosed()
	}
	if d.models == nil {
		d.models = map[*Model]struct{}{}
	}
	d.models[m] = struct{}{}
	for _, l := range m.lanes {
		l.engine.dev = d
		if !d.cfg.inline {
			l.engine.run.job = d.pool.NewJob(l.engine.runBlocks, nil)
		}
		if l == m.home {
			continue
		}
		l.engine.id = d.next
		d.next++
		if !d.cfg.inline || l.worked {
			l.start()
		}
	}
	return nil
}

// modelEvent is an event between the streams of a model, or a flag in memory.
type modelEvent struct {
	set    atomic.Bool
	flag   *uint64 // in device memory; nil for an event
	waiter *lane
}

// ready reports whether a wait for the event would end.
func (e *modelEvent) ready() bool {
	if e.flag == nil {
		return e.set.Load()
	}
	return atomic.LoadUint64(e.flag) == 1 && e.set.Load()
}

// fire sets the event, behind all earlier stores of the caller, and wakes who
// waits for it. A flag is set after its twin in Go's memory, which orders what
// the race detector, blind outside Go's memory, would not see in order.
func (e *modelEvent) fire() {
	e.set.Store(true)
	if e.flag != nil {
		atomic.StoreUint64(e.flag, 1)
	}
	if e.waiter != nil {
		e.waiter.sleep.Wake()
	}
}

// reset makes the event wait for its next record.
func (e *modelEvent) reset() {
	if e.flag != nil {
		atomic.StoreUint64(e.flag, 0)
	}
	e.set.Store(false)
}
