package sim

import "goatb/device"

// A replay is a task in the queue of the stream that it was enqueued on. While it
// runs, the tasks of its list run in the lanes of the model, which are streams
// without queues of their own. Their queue entries lie on the device already: none
// of them waits for the host.

// replayed begins an execution, unless one of the model is under way; mu is held.
func (e *engine) replayed(t *task) {
	m := t.exec.model
	if m.current != nil {
		m.waiting = append(m.waiting, t)
		return
	}
	m.current = t.exec
	t.start = e.now
	t.stream.began(e.now, int(e.dev.costs.Prefetch))
	t.exec.begin(e)
}

// begin books the tasks of an execution.
func (x *execution) begin(e *engine) {
	m := x.model
	if x.late {
		x.runs = m.snapshot()
	}
	events := 0
	for i := range m.tasks {
		events = max(events, m.tasks[i].event+1)
		for _, f := range m.tasks[i].flags {
			events = max(events, f+1)
		}
	}
	x.marks, x.left = make([]mark, events), len(m.tasks)
	for _, l := range m.lanes {
		l.last, l.begun = e.now-round(e.dev.costs.TaskGap), 0 // no gap before the first task
	}
	for i := range m.tasks {
		e.book(x.task(e, i))
	}
	if x.left == 0 {
		e.plan(e.now, x.replay.stream, true)
	}
}

// task makes task i of an execution.
func (x *execution) task(e *engine, i int) *task {
	m, l := x.model, &x.model.tasks[i]
	t := e.dev.newTask(m.lanes[l.lane], launchTask)
	t.exec, t.listed, t.label, t.enq = x, l, l.label, x.replay.enq
	switch l.kind {
	case device.KernelTask, device.AllKernelTask, device.SuperKernelTask:
		t.sub = l.first
		t.pool, t.units = &e.cores, 1
		for k := l.first; k < l.first+l.kernels; k++ {
			r := &x.runs[k]
			t.ran = t.ran || r.ran
			t.units = min(max(t.units, r.blocks), e.cores.total)
		}
	case device.PreprocessTask:
		t.kind, t.pool, t.units = preprocessTask, &e.aicpus, 1
	case device.EventWaitTask:
		t.kind, t.mark = waitTask, &x.marks[l.event]
	case device.EventRecordTask:
		t.kind, t.mark = recordTask, &x.marks[l.event]
	case device.UpdateTask:
		t.kind = updateTask
	case device.CopyTask:
		t.kind, t.bytes, t.units = copyTask, l.bytes, 1
		t.pool, t.rate = e.dev.routeBetween(l.dst, l.src, true)
	default:
		t.kind = nopTask
	}
	return t
}

// finished tells an execution that one of its tasks is done.
func (x *execution) finished(e *engine, t *task) {
	if t.kind == preprocessTask && t.listed.event >= 0 {
		e.fire(&x.marks[t.listed.event])
	}
	if x.left--; x.left == 0 {
		e.plan(e.now, x.replay.stream, true)
	}
}

// over ends an execution and lets the next one of the model begin.
func (x *execution) over(e *engine) {
	m := x.model
	m.current = nil
	m.pending--
	if len(m.waiting) > 0 {
		next := m.waiting[0]
		m.waiting = append(m.waiting[:0], m.waiting[1:]...)
		e.replayed(next)
	}
}

// onward plans what comes after a kernel of a super kernel has run: the next of
// them, as soon as the flag that it polls is set, or the end. false says that the
// task is over.
func (e *engine) onward(t *task) bool {
	l := t.listed
	if l == nil || l.kind != device.SuperKernelTask || t.sub+1 >= l.first+l.kernels {
		return false
	}
	t.sub++
	e.poll(t)
	return true
}

// poll begins the kernel that a super kernel has come to, once its flag is set.
func (e *engine) poll(t *task) {
	if f := t.listed.flags[t.sub-t.listed.first]; f >= 0 {
		if m := &t.exec.marks[f]; !m.fired {
			m.polling = append(m.polling, t)
			return
		}
	}
	e.plan(e.now+e.dev.duration(t), t.stream, true)
}
