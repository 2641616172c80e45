package sim

import (
	"time"

	"goatb/device"
	"goatb/device/trace"
)

type kind uint8

const (
	launchTask kind = iota
	copyTask
	recordTask
	waitTask
	replayTask
	// Kinds of tasks in lists alone.
	preprocessTask
	updateTask
	nopTask
)

var kindNames = [...]string{"launch", "copy", "record", "wait", "replay", "preprocess", "update", "nop"}

// task is one entry of a stream's launch queue.
type task struct {
	kind   kind
	stream *Stream
	label  *device.Label

	// A launch: the user's program and operands, and what the inner device runs
	// in its place.
	program *device.Program
	stand   device.Program
	launch  device.Launch // for the inner device, during the call alone
	bufs    []device.Buffer
	inputs  int
	blocks  int
	// ran says that the launch was not skipped; cost is what it did.
	ran  bool
	cost device.Cost

	bytes int64 // of a copy
	rate  float64
	mark  *mark // of a record or a wait

	exec   *execution // of a replay, and of a task of a list
	listed *listed    // a task of a list
	sub    int        // the kernel of the model that runs

	pool  *pool // the units that the task runs on, nil for none
	units int
	enq   int64 // when the task became visible to the device
	start int64
	end   int64
}

// newTask takes a task that is not in use; mu is held.
func (d *Device) newTask(s *Stream, k kind) *task {
	var t *task
	if n := len(d.spare); n > 0 {
		t = d.spare[n-1]
		d.spare = d.spare[:n-1]
	} else {
		t = &task{}
		t.stand.Begin, t.stand.Run = t.begin, t.run
	}
	t.kind, t.stream = k, s
	return t
}

// reuse gives a task back; mu is held.
func (d *Device) reuse(t *task) {
	clear(t.bufs)
	*t = task{stand: device.Program{Begin: t.stand.Begin, Run: t.stand.Run}, bufs: t.bufs[:0]}
	d.spare = append(d.spare, t)
}

// begin is how the inner device begins a launch: it notes what the launch costs and,
// with numerics on, lets the kernel begin.
func (t *task) begin(a *device.Args) error {
	t.meet(a)
	if !t.stream.dev.numerics {
		return nil
	}
	return t.program.Prepare(a)
}

// run runs a block of the kernel with numerics on.
func (t *task) run(a *device.Args, block int) error {
	if !t.stream.dev.numerics {
		return nil
	}
	return t.program.Run(a, block)
}

// meet asks the kernel for its cost under the tiling that it runs with.
func (t *task) meet(a *device.Args) {
	t.ran, t.blocks = true, a.Blocks
	t.cost = costOf(t.program, a)
	if t.cost == (device.Cost{}) {
		for _, b := range t.bufs {
			t.cost.Bytes += b.Size()
		}
	}
}

// costOf asks a program for the cost of a launch, zero where it does not know.
func costOf(p *device.Program, a *device.Args) device.Cost {
	if p.Cost == nil || len(a.Tiling) == 0 {
		return device.Cost{}
	}
	return p.Cost(a.Tiling, a.Key, a.Blocks)
}

// report tells the recorder about a task that is done.
func (d *Device) report(t *task) {
	if d.rec == nil || t.kind == nopTask {
		return
	}
	x := trace.Task{
		Stream: t.stream.id, Kind: kindNames[t.kind], Label: t.label,
		Enqueued: at(t.enq), Start: at(t.start), End: at(t.end), Bytes: t.bytes, Blocks: t.blocks,
		Skipped: t.kind == launchTask && !t.ran,
	}
	if t.listed != nil && len(t.exec.runs) > 0 && t.kind == launchTask {
		x.Blocks = t.exec.runs[t.listed.first].blocks
	}
	d.rec.Task(x)
	if t.pool != nil && t.pool.name != "" {
		x.Engine, x.Enqueued = t.pool.name, time.Time{}
		d.rec.Task(x)
	}
}
