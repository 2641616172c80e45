package checked

import (
	"slices"

	"goatb/device"
)

// The layer keeps a model of what the program has enqueued. A task is settled
// once everything that it waits for has been enqueued too; then its vector
// clock is known and its memory accesses can be compared with those of other
// tasks. A wait for a record that nobody has enqueued, or whose record lies
// behind such a wait, keeps its stream unsettled: that is also what a deadlock
// looks like.

// task is one enqueued task.
type task struct {
	origin origin
	index  uint64 // in its stream, from 1
	host   clock  // what the host knew to be done when the task was enqueued
	uses   []access
	// overlay is that of the task's program.
	overlay bool
	waits   *record
	fires   *record
	// fetches are updates that come too late for kernels behind this wait unless
	// they are done when the wait is reached.
	fetches []fetched
}

// record is one record of an event, made when it is enqueued or when a wait
// asks for it first.
type record struct {
	event    *Event
	by       *task // nil until it is enqueued
	given    bool  // the event was closed: nobody waits any more
	settled  bool
	clock    clock
	blocking []*model // streams whose next task waits for it
}

// model is the enqueued side of one stream; the device's mu guards it.
type model struct {
	id      int
	last    uint64 // index of the last enqueued task
	settled uint64 // index of the last settled task
	clock   clock
	pending []*task
	marks   []*mark
	found   []error
	// of is the stream that findings are reported to, nil for the model's own.
	of *model
}

// mark is the clock of a stream after one of its tasks.
type mark struct {
	index uint64
	clock clock // nil until the task is settled
}

// mark returns a mark after the last task; the device's mu is held.
func (m *model) mark() *mark {
	if n := len(m.marks); n > 0 && m.marks[n-1].index == m.last {
		return m.marks[n-1]
	}
	k := &mark{index: m.last}
	m.marks = append(m.marks, k)
	m.fillMarks()
	return k
}

func (m *model) fillMarks() {
	m.marks = slices.DeleteFunc(m.marks, func(k *mark) bool {
		if k.index != m.settled {
			return k.index < m.settled
		}
		k.clock = m.clock.clone()
		return true
	})
}

// enqueue adds a task to a stream and settles what can be settled; mu is held.
func (d *Device) enqueue(m *model, t *task) {
	m.last++
	t.index, t.host = m.last, d.host
	m.pending = append(m.pending, t)
	d.settle(m)
}

// settle goes on with m and with the streams that its records let go on.
func (d *Device) settle(m *model) {
	todo := []*model{m}
	for len(todo) > 0 {
		m := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for len(m.pending) > 0 {
			t := m.pending[0]
			if r := t.waits; r != nil {
				if !r.settled && !r.given {
					r.blocking = append(r.blocking, m)
					break
				}
				for _, f := range t.fetches {
					m.checkFetch(t, f)
				}
				m.clock = m.clock.join(r.clock)
			}
			m.pending = m.pending[1:]
			m.settled = t.index
			m.clock = m.clock.join(t.host).set(m.id, t.index)
			m.fillMarks()
			d.settleUses(m, t)
			if r := t.fires; r != nil {
				r.settled, r.clock = true, m.clock.clone()
				r.event.sum = r.event.sum.join(r.clock)
				todo = append(todo, r.blocking...)
				r.blocking = nil
			}
		}
	}
}

// settleUses compares a task's accesses with those of other tasks.
func (d *Device) settleUses(m *model, t *task) {
	reported := map[*task]bool{}
	for i := range t.uses {
		u := &t.uses[i]
		earlier := d.historyOf(u.span, u.keep).add(*u, m.clock, d.host)
		if earlier != nil && !reported[earlier.task] {
			reported[earlier.task] = true
			m.report(raceFinding(u, earlier))
		}
	}
}

// maxFindings bounds what is kept for one Synchronize.
const maxFindings = 20

// report keeps a finding for the stream's next Synchronize.
func (m *model) report(err error) {
	if m.of != nil {
		m = m.of
	}
	if len(m.found) < maxFindings {
		m.found = append(m.found, err)
	}
}

// learn tells that the host knows that the tasks in c are done; mu is held.
func (d *Device) learn(c clock) { d.host = d.host.clone().join(c) }

// use lists an access of a task, unless it is of no memory.
func (t *task) use(b device.Buffer, name string, write bool) {
	if s := spanOf(b); s.lo < s.hi {
		t.uses = append(t.uses, access{span: s, write: write, name: name, keep: b, task: t})
	}
}

// mayBeWritten reports whether an enqueued task that may not be done yet writes
// into b; mu is held.
func (d *Device) mayBeWritten(b device.Buffer) bool {
	s := spanOf(b)
	if d.historyOf(s, b).written(s, d.host) {
		return true
	}
	for _, m := range d.models {
		for _, t := range m.pending {
			for i := range t.uses {
				if t.uses[i].write && t.uses[i].overlaps(s) {
					return true
				}
			}
		}
	}
	return false
}
