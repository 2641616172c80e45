package cpu

import (
	"runtime/debug"
	"sync/atomic"
	"time"

	"goatb/device"
	"goatb/status"
)

// preprocess is a task of the AI CPU.
type preprocess struct {
	name            string
	run             func(*device.CPUArgs) error
	inputs, outputs []device.Buffer
	deadline        time.Duration
	flag            *modelEvent // nil without notification
	call            *call
}

// call is what a running function sees and writes. A function that was given up
// keeps its call; the task gets a new one.
type call struct {
	args device.CPUArgs
	gone atomic.Bool
}

// newPreprocess makes the entry's part of a preprocess task.
func (m *Model) newPreprocess(t *device.Task) *preprocess {
	d := t.Preprocess
	p := &preprocess{
		name: d.Function.Name, run: d.Function.Run, deadline: d.Deadline,
		inputs: make([]device.Buffer, len(d.Inputs)), outputs: make([]device.Buffer, len(d.Outputs)),
	}
	if p.deadline == 0 {
		p.deadline = m.dev.cfg.deadline
	}
	for i := range d.Inputs {
		m.table.bind(&p.inputs[i], &d.Inputs[i])
	}
	sizes := make([]int64, len(d.Outputs))
	for i := range d.Outputs {
		m.table.bind(&p.outputs[i], &d.Outputs[i])
		sizes[i] = d.Outputs[i].Bytes()
	}
	if d.Notify {
		p.flag = &m.events[d.Flag]
	}
	p.call = m.newCall(len(p.inputs), sizes)
	return p
}

func (m *Model) newCall(inputs int, sizes []int64) *call {
	c := &call{}
	c.args.Inputs, c.args.Outputs = make([][]byte, inputs), make([][]byte, len(sizes))
	for i, n := range sizes {
		c.args.Outputs[i] = alignedBytes(int(n))[:n:n]
	}
	c.args.Aborted = func() bool { return c.gone.Load() || m.latch.Load() != nil }
	return c
}

// fresh makes the call that takes the place of one that was given up.
func (p *preprocess) fresh(m *Model) {
	sizes := make([]int64, len(p.outputs))
	for i, out := range p.call.args.Outputs {
		sizes[i] = int64(len(out))
	}
	p.call.gone.Store(true)
	p.call = m.newCall(len(p.inputs), sizes)
}

// gather shows the function its memory. Memory that is gone is an error.
func (p *preprocess) gather() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = status.Errorf(status.ErrRuntimeFail, "read the memory of %s: %v", p.name, v)
		}
	}()
	for i := range p.inputs {
		p.call.args.Inputs[i] = p.inputs[i].Bytes()
	}
	for i := range p.outputs {
		copy(p.call.args.Outputs[i], p.outputs[i].Bytes())
	}
	return nil
}

// publish stores what the function has written.
func (p *preprocess) publish() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = status.Errorf(status.ErrRuntimeFail, "store what %s has written: %v", p.name, v)
		}
	}()
	for i := range p.outputs {
		copy(p.outputs[i].Bytes(), p.call.args.Outputs[i])
	}
	return nil
}

// worker is the goroutine of a lane: an AI CPU core where the lane has
// preprocess tasks. One whose function runs beyond its deadline is given up: the
// lane gets another, and the old one ends when its function does.
type worker struct {
	turns   atomic.Uint64 // how often the lane was told to go
	closing atomic.Bool
	errand  *entry // inline device: the task of this turn

	// state says who owns the lane and what it does: the number of the worker in
	// the high half, below it the number of the function's run, and in the lowest
	// bit whether one runs. Who changes it from running decides how it ends.
	state   atomic.Uint64
	expires atomic.Int64 // of the run, since base
	base    time.Time
	running *entry
	timer   *time.Timer
}

// turnSpin is how long a worker that has done its turn looks for the next one
// before it sleeps. It is short: the processor is wanted for blocks of kernels
// while the rest of an execution runs.
const turnSpin = 5 * time.Microsecond

const (
	workerRuns  = 1
	workerRun   = 2
	workerShift = 32
)

// start gives the lane its first worker.
func (l *lane) start() {
	w := &l.worker
	w.base = time.Now()
	w.timer = time.AfterFunc(time.Hour, l.expire)
	w.timer.Stop()
	l.m.workers.Add(1)
	go l.work(0, 0)
}

// stop ends the worker after its last turn.
func (l *lane) stop() {
	l.worker.closing.Store(true)
	l.sleep.Wake()
}

// tell lets the worker do one turn.
func (l *lane) tell() {
	l.worker.turns.Add(1)
	l.sleep.Wake()
}

// work is worker number `number` of the lane, which has seen the given turns. A
// task that ends the goroutine ends the execution, and another worker goes on.
func (l *lane) work(number, turn uint64) {
	w := &l.worker
	over := false
	defer func() {
		switch {
		case over:
			l.m.workers.Done()
		case w.state.Load()>>workerShift == number:
			l.abandon()
			l.endTurn()
			go l.work(number, turn)
		}
	}()
	debug.SetPanicOnFault(true)
	for {
		awaitParked(l.m.dev.spin.AtMost(turnSpin), l.sleep, func() bool { return w.turns.Load() != turn || w.closing.Load() })
		if w.turns.Load() == turn {
			over = true
			return
		}
		turn++
		if l.m.dev.cfg.inline {
			if !l.invoke(w.errand, l.clock()) {
				return
			}
		} else {
			l.setBusy(true)
			if !l.drive() {
				return
			}
		}
		l.endTurn()
	}
}

// endTurn tells that the worker has done its part.
func (l *lane) endTurn() {
	if !l.m.dev.cfg.inline {
		l.setBusy(false)
	}
	if l.m.left.Add(-1) == 0 {
		l.m.done.Wake()
	}
}

// preprocess runs a task of the AI CPU; false says that the lane was lost. On an
// inline device the caller waits for the worker.
func (l *lane) preprocess(e *entry, start time.Time) bool {
	if !l.m.dev.cfg.inline {
		return l.invoke(e, start)
	}
	l.worker.errand = e
	l.m.left.Store(1)
	l.tell()
	l.m.awaitOthers()
	return true
}

// invoke runs a function and stores its results when it succeeds.
func (l *lane) invoke(e *entry, start time.Time) bool {
	p, w := e.prep, &l.worker
	c := p.call // from the store of state on it may belong to this goroutine alone
	err := p.gather()
	if err == nil {
		w.running = e
		w.expires.Store(int64(time.Since(w.base) + p.deadline))
		run := w.state.Load()&^(1<<workerShift-1) | (w.state.Load()+workerRun)&(1<<workerShift-1) | workerRuns
		w.state.Store(run)
		w.timer.Reset(p.deadline)
		var lost bool
		if err, lost = l.call(p, c, run); lost {
			return false
		}
	}
	l.m.stats.preprocessed.Add(1)
	if err == nil {
		err = p.publish()
	}
	switch {
	case err != nil:
		l.m.fail(e.label.Place(coded(err)))
	case p.flag != nil:
		p.flag.fire()
	}
	l.observe(e, e.label, start)
	return true
}

// call calls the function. lost says that its deadline has passed.
func (l *lane) call(p *preprocess, c *call, run uint64) (err error, lost bool) {
	defer func() {
		v := recover()
		if lost = !l.worker.state.CompareAndSwap(run, run&^workerRuns); lost {
			return // the timer belongs to another worker now
		}
		l.worker.timer.Stop()
		if v == nil {
			return
		}
		where := panicPlace()
		if cause, ok := v.(error); ok {
			err = status.Errorf(codeOf(cause), "%s panicked%s: %w", p.name, where, cause)
		} else {
			err = status.Errorf(status.ErrRuntimeFail, "%s panicked%s: %v", p.name, where, v)
		}
	}()
	return p.run(&c.args), false
}

// expire gives up a function whose deadline has passed, and with it its worker.
func (l *lane) expire() {
	w := &l.worker
	run := w.state.Load()
	if run&workerRuns == 0 || int64(time.Since(w.base)) < w.expires.Load() {
		return
	}
	next := run>>workerShift + 1
	if !w.state.CompareAndSwap(run, next<<workerShift) {
		return
	}
	e := w.running
	e.prep.fresh(l.m)
	l.m.fail(e.label.Place(status.Errorf(status.ErrRuntimeFail, "%w: %s ran longer than %v", device.FaultDeadline, e.prep.name, e.prep.deadline)))
	l.ended = true
	go l.work(next, w.turns.Load())
	l.endTurn()
}
