package sim

import "goatb/device"

// engine simulates the device: streams whose head tasks become ready, begin on
// the units that they need, and end. Moments are handled in order of time, those
// of one time in the order in which they were planned. The owner's mu guards it.
type engine struct {
	dev   *Device
	now   int64
	heap  []moment
	count uint64 // moments planned so far
	tasks int    // booked and not done

	cores  pool
	up     pool // copies to the device
	down   pool // copies to the host
	across pool // copies inside the device
	aicpus pool
}

// moment is something that will happen to the head task of a stream.
type moment struct {
	at    int64
	order uint64
	s     *Stream
	ends  bool // the task ends, else it begins
}

// pool is a number of equal units that tasks take in the order in which they
// become ready.
type pool struct {
	name  string // its row in timelines, "" for none
	total int
	free  int
	queue []*task
}

func (e *engine) open(d *Device) {
	e.dev = d
	e.cores = newPool("", int(d.costs.Cores))
	e.up = newPool("copy engine to device", 1)
	e.down = newPool("copy engine to host", 1)
	e.across = newPool("copy engine on device", 1)
	e.aicpus = newPool("AICPU", int(d.costs.AICPUs))
}

func newPool(name string, units int) pool { return pool{name: name, total: units, free: units} }

// advance lets everything happen that happens up to a moment.
func (e *engine) advance(limit int64) {
	for len(e.heap) > 0 && e.heap[0].at <= limit {
		e.step()
	}
	e.now = max(e.now, limit)
}

// step lets the next thing happen; false says that there is none.
func (e *engine) step() bool {
	if len(e.heap) == 0 {
		return false
	}
	m := e.pop()
	e.now = m.at
	t := m.s.head()
	if m.ends {
		e.finish(t)
	} else {
		e.ready(t)
	}
	return true
}

// book appends a task to its stream; it is visible to the device from now on.
func (e *engine) book(t *task) {
	s := t.stream
	s.queue = append(s.queue, t)
	e.tasks++
	if s.length() == 1 {
		e.consider(s)
	}
}

// consider plans the beginning of a stream's head task.
func (e *engine) consider(s *Stream) {
	t, c := s.head(), &e.dev.costs
	when := max(e.now, s.last, t.enq)
	switch t.kind {
	case launchTask:
		when = max(when, s.last+round(c.TaskGap), s.fetched()+round(c.TaskFetch))
		if t.listed == nil {
			when = max(when, t.enq+round(c.LaunchToStart))
		}
	case replayTask:
		when = max(when, t.enq+round(c.LaunchToStart))
	case waitTask:
		if !t.mark.fired {
			t.mark.waiting = append(t.mark.waiting, s)
			return
		}
		when = max(when, t.mark.at)
	}
	e.plan(when, s, false)
}

// ready begins a task, or queues it for the units that it needs.
func (e *engine) ready(t *task) {
	if t.kind == replayTask {
		e.replayed(t)
		return
	}
	p := t.pool
	if p == nil {
		e.begin(t)
		return
	}
	if len(p.queue) == 0 && p.free >= t.units {
		p.free -= t.units
		e.begin(t)
		return
	}
	p.queue = append(p.queue, t)
}

// begin starts a task that has all it needs.
func (e *engine) begin(t *task) {
	t.start = e.now
	t.stream.began(e.now, int(e.dev.costs.Prefetch))
	if l := t.listed; l != nil && l.kind == device.SuperKernelTask {
		e.poll(t)
		return
	}
	e.plan(e.now+e.dev.duration(t), t.stream, true)
}

// finish ends a task and lets others go on.
func (e *engine) finish(t *task) {
	if e.onward(t) {
		return
	}
	s := t.stream
	t.end, s.last = e.now, e.now
	s.done++
	e.tasks--
	s.drop()
	e.dev.report(t)
	if p := t.pool; p != nil {
		e.release(p, t.units)
	}
	if t.kind == recordTask {
		e.fire(t.mark)
	}
	switch {
	case t.listed != nil:
		t.exec.finished(e, t)
	case t.exec != nil:
		t.exec.over(e)
	}
	e.dev.reuse(t)
	if s.length() > 0 {
		e.consider(s)
	}
}

// release gives units back to those that wait for them.
func (e *engine) release(p *pool, units int) {
	p.free += units
	for len(p.queue) > 0 && p.free >= p.queue[0].units {
		t := p.queue[0]
		copy(p.queue, p.queue[1:])
		p.queue = p.queue[:len(p.queue)-1]
		p.free -= t.units
		e.begin(t)
	}
}

// fire lets the streams go on that wait for a mark.
func (e *engine) fire(m *mark) {
	m.fired, m.at = true, e.now
	for _, s := range m.waiting {
		e.consider(s)
	}
	for _, t := range m.polling {
		e.plan(e.now+e.dev.duration(t), t.stream, true)
	}
	m.waiting, m.polling = nil, nil
}

// plan adds a moment.
func (e *engine) plan(when int64, s *Stream, ends bool) {
	e.heap = append(e.heap, moment{when, e.count, s, ends})
	e.count++
	for i := len(e.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !e.heap[i].before(&e.heap[up]) {
			break
		}
		e.heap[i], e.heap[up] = e.heap[up], e.heap[i]
		i = up
	}
}

// pop takes the earliest moment.
func (e *engine) pop() moment {
	m, last := e.heap[0], len(e.heap)-1
	e.heap[0] = e.heap[last]
	e.heap = e.heap[:last]
	for i := 0; ; {
		least := i
		for _, c := range [...]int{2*i + 1, 2*i + 2} {
			if c < last && e.heap[c].before(&e.heap[least]) {
				least = c
			}
		}
		if least == i {
			return m
		}
		e.heap[i], e.heap[least] = e.heap[least], e.heap[i]
		i = least
	}
}

func (m *moment) before(o *moment) bool {
	return m.at < o.at || m.at == o.at && m.order < o.order
}
