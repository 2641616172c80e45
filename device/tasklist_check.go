package device

import (
	"fmt"

	"goatb/status"
)

// Limits is what a list is checked against: the device that loads it.
type Limits struct {
	// TaskUpdate says that update tasks are supported.
	TaskUpdate bool
	// MaxBlocks is the largest block dim.
	MaxBlocks int
}

// maxIndex bounds the numbers of inputs, outputs and workspaces, maxEvents that
// of events.
const (
	maxIndex  = 1 << 16
	maxEvents = 1 << 20
)

// Check refuses a list that a device with these limits cannot run, with an error
// that carries a Fault where one fits and names the operation. For an update the
// order is: nil fields (FaultNull), support (FaultNotSupported), both streams
// bound to the model (FaultStreamModel), an empty table (FaultProgramSize), and
// the target in the list before it (FaultNotLaunched). A list that passes ends,
// whatever its tasks do, unless one of them never returns. Whether memory is
// live is left to the device.
func (l *TaskList) Check(can Limits) error {
	if l == nil {
		return status.Errorf(status.ErrInvalidParam, "%w: want a task list, got none", FaultNull)
	}
	if l.Events < 0 || l.Events > maxEvents {
		return status.Errorf(status.ErrInvalidParam, "want 0 to %d events, got %d", maxEvents, l.Events)
	}
	c := checker{list: l, can: can, events: make([]eventUse, l.Events), ids: map[entryName]TaskKind{}}
	for i := range l.Tasks {
		if err := c.task(&l.Tasks[i]); err != nil {
			return l.place(i, err)
		}
	}
	return c.ends()
}

// place adds the names of task i to an error of loading it.
func (l *TaskList) place(i int, err error) error {
	t := &l.Tasks[i]
	op, node := l.Name, fmt.Sprintf("task %d (%s)", i, t.Kind)
	if t.Label != nil {
		op, node = t.Label.Op, node+" "+t.Label.Node
	}
	return status.Place(err, status.ErrInvalidParam, op, "load", node)
}

type entryName struct {
	stream StreamID
	id     TaskID
}

// eventUse counts how a list uses an event.
type eventUse struct{ records, waits, sets, polls int }

type checker struct {
	list   *TaskList
	can    Limits
	events []eventUse
	ids    map[entryName]TaskKind // of the tasks seen so far
}

func (c *checker) bound(s StreamID) bool { return s >= 0 && int(s) < len(c.list.Streams) }

// task checks one task and books it.
func (c *checker) task(t *Task) error {
	if t.Kind != UpdateTask && !c.bound(t.Stream) {
		return c.unbound(t.Stream)
	}
	if err := c.body(t); err != nil {
		return err
	}
	for u := range t.Uses() {
		if err := u.At.check(); err != nil {
			return status.Errorf(status.CodeOf(err), "%s: %w", u.Name, err)
		}
	}
	name := entryName{t.Stream, t.ID}
	if _, twice := c.ids[name]; twice {
		return status.Errorf(status.ErrInvalidParam, "want ids that are unique on a stream, got two tasks %d on stream %d", t.ID, t.Stream)
	}
	c.ids[name] = t.Kind
	return nil
}

func (c *checker) unbound(s StreamID) error {
	return status.Errorf(status.ErrInvalidStream, "%w: want stream 0 to %d, got %d", FaultStreamModel, len(c.list.Streams)-1, s)
}

// body checks what Kind says the task holds.
func (c *checker) body(t *Task) error {
	switch t.Kind {
	case KernelTask, AllKernelTask:
		return c.kernel(t.Kernel, t.Kind == AllKernelTask)
	case SuperKernelTask:
		return c.super(t.Super)
	case PreprocessTask:
		return c.preprocess(t.Preprocess)
	case EventWaitTask:
		return c.event(t.Event, func(u *eventUse) *int { return &u.waits })
	case EventRecordTask:
		return c.event(t.Event, func(u *eventUse) *int { return &u.records })
	case UpdateTask:
		return c.update(t)
	case CopyTask:
		return checkCopy(t.Copy)
	case NopTask:
		return nil
	}
	return status.Errorf(status.ErrInvalidParam, "want a kind of task, got %d", t.Kind)
}

func null(what string) error {
	return status.Errorf(status.ErrInvalidParam, "%w: want %s, got none", FaultNull, what)
}

func (c *checker) kernel(k *Kernel, mixed bool) error {
	if k == nil {
		return null("a kernel")
	}
	if err := checkProgram(k.Program, k.Vector, k.Ratio, mixed); err != nil {
		return err
	}
	if k.Blocks < 1 || k.Blocks > c.can.MaxBlocks {
		return status.Errorf(status.ErrInvalidParam, "want 1 to %d blocks, got %d", c.can.MaxBlocks, k.Blocks)
	}
	if k.Inputs < 0 || k.Inputs > len(k.Operands) {
		return status.Errorf(status.ErrInvalidParam, "want 0 to %d inputs, got %d", len(k.Operands), k.Inputs)
	}
	return nil
}

// maxRatio bounds the vector parts of a block, so that their number fits an int.
const maxRatio = 64

// checkProgram checks the code of a kernel or a variant.
func checkProgram(p, vector *Program, ratio int, mixed bool) error {
	switch {
	case p == nil || p.Run == nil:
		return null("a program with a run function")
	case vector != nil && !mixed:
		return status.Errorf(status.ErrInvalidParam, "want a vector part only in an all-kernel task, got %s", vector.Name)
	case vector != nil && vector.Run == nil:
		return null("a run function of the vector part")
	case (vector == nil) != (ratio == 0) || ratio < 0 || ratio > maxRatio:
		return status.Errorf(status.ErrInvalidParam, "want 1 to %d vector parts for each block where there is a vector program and 0 where not, got %d", maxRatio, ratio)
	}
	return nil
}

func (c *checker) super(subs []SubKernel) error {
	if len(subs) == 0 {
		return null("the kernels of a super kernel")
	}
	for i := range subs {
		s := &subs[i]
		err := c.kernel(&s.Kernel, true)
		if err == nil && s.Sunk != nil {
			err = c.sunk(s.Sunk)
		}
		if err != nil {
			return status.Errorf(status.CodeOf(err), "sub kernel %d: %w", i, err)
		}
	}
	return nil
}

func (c *checker) sunk(s *Sunk) error {
	if err := s.Patch.checkNull(); err != nil {
		return err
	}
	if err := s.Patch.checkTable(); err != nil {
		return err
	}
	if err := s.Patch.check(true); err != nil {
		return err
	}
	return c.event(s.Flag, func(u *eventUse) *int { return &u.polls })
}

func (c *checker) preprocess(p *Preprocess) error {
	switch {
	case p == nil:
		return null("a preprocess description")
	case p.Engine != AICPU && p.Engine != CustomAICPU:
		return status.Errorf(status.ErrInvalidParam, "%w: want AI_CPU or CUST_AI_CPU, got %d", FaultEngine, p.Engine)
	case p.Function == nil || p.Function.Run == nil:
		return null("a function with a run function")
	case p.Deadline < 0:
		return status.Errorf(status.ErrInvalidParam, "want a deadline of at least 0, got %v", p.Deadline)
	}
	for i := range p.Outputs {
		if p.Outputs[i].IsNil() {
			return null(fmt.Sprintf("memory for output %d", i))
		}
	}
	if p.Notify {
		return c.event(p.Flag, func(u *eventUse) *int { return &u.sets })
	}
	return nil
}

// event books one use of an event.
func (c *checker) event(e EventID, use func(*eventUse) *int) error {
	if e < 0 || int(e) >= len(c.events) {
		return status.Errorf(status.ErrInternal, "%w: want event 0 to %d, got %d", FaultEvent, len(c.events)-1, e)
	}
	u := &c.events[e]
	n := use(u)
	if *n++; *n > 1 {
		return status.Errorf(status.ErrInvalidParam, "want one record and one wait for event %d, got a second", e)
	}
	if u.records+u.waits > 0 && u.sets+u.polls > 0 {
		return status.Errorf(status.ErrInvalidParam, "want event %d as an event or as a flag in memory, got both", e)
	}
	return nil
}

func (c *checker) update(t *Task) error {
	u := t.Update
	if u == nil {
		return null("an update description")
	}
	if err := u.Patch.checkNull(); err != nil {
		return err
	}
	if !c.can.TaskUpdate {
		return errNoUpdate()
	}
	for _, s := range [...]StreamID{u.Target, t.Stream} {
		if !c.bound(s) {
			return c.unbound(s)
		}
	}
	if err := u.Patch.checkTable(); err != nil {
		return err
	}
	kind, launched := c.ids[entryName{u.Target, u.Task}]
	if !launched {
		return errNotLaunched(u.Target, u.Task)
	}
	if kind != KernelTask && kind != AllKernelTask {
		return status.Errorf(status.ErrInvalidGraph, "want a kernel or all-kernel task to update, got %s", kind)
	}
	return u.Patch.check(kind == AllKernelTask)
}

// checkNull refuses missing fields.
func (p *Patch) checkNull() error {
	switch {
	case p.Key.IsNil():
		return null("the address of a tiling key")
	case p.Blocks.IsNil():
		return null("the address of a block dim")
	case p.Binary == nil:
		return null("a kernel table")
	}
	return nil
}

// checkTable refuses a table without variants.
func (p *Patch) checkTable() error {
	if len(p.Binary.Variants) == 0 {
		return status.Errorf(status.ErrInvalidParam, "%w: %s has no kernel", FaultProgramSize, p.Binary.Name)
	}
	return nil
}

func errNoUpdate() error {
	return status.Errorf(status.ErrDeviceFail, "%w: the device has no task update", FaultNotSupported)
}

func errNotLaunched(s StreamID, id TaskID) error {
	return status.Errorf(status.ErrInvalidGraph, "%w: task %d of stream %d", FaultNotLaunched, id, s)
}

// Sizes of what a Patch reads.
const (
	keyBytes    = 8
	blocksBytes = 4
)

// check refuses tables and windows that cannot be read.
func (p *Patch) check(mixed bool) error {
	if p.Key.Bytes() != keyBytes || p.Blocks.Bytes() != blocksBytes {
		return status.Errorf(status.ErrInvalidParam, "want a tiling key of %d bytes and a block dim of %d, got %d and %d", keyBytes, blocksBytes, p.Key.Bytes(), p.Blocks.Bytes())
	}
	seen := make(map[uint64]bool, len(p.Binary.Variants))
	for i := range p.Binary.Variants {
		v := &p.Binary.Variants[i]
		if err := checkProgram(v.Program, v.Vector, v.Ratio, mixed); err != nil {
			return status.Errorf(status.CodeOf(err), "variant %d of %s: %w", i, p.Binary.Name, err)
		}
		if seen[v.Key] {
			return status.Errorf(status.ErrInvalidParam, "want one variant of %s for each tiling key, got two for %d", p.Binary.Name, v.Key)
		}
		seen[v.Key] = true
	}
	return nil
}

func checkCopy(c *CopyAddresses) error {
	switch {
	case c == nil:
		return null("a copy description")
	case c.Dst.IsNil() || c.Src.IsNil():
		return null("both ends of a copy")
	case c.Dst.Bytes() != c.Src.Bytes():
		return status.Errorf(status.ErrInvalidParam, "want a copy between windows of one size, got %d bytes from %d", c.Dst.Bytes(), c.Src.Bytes())
	}
	return nil
}

// check refuses a window that no memory can have.
func (a *Address) check() error {
	switch {
	case a.Type > WorkspaceMemory:
		return status.Errorf(status.ErrInvalidParam, "want a memory type, got %d", a.Type)
	case a.Type == AbsoluteMemory && (a.Index != 0 || a.Off != 0 || a.Size != 0):
		return status.Errorf(status.ErrInvalidParam, "want no window of absolute memory, got %d bytes at %d of %d", a.Size, a.Off, a.Index)
	case a.Type != AbsoluteMemory && !a.Buffer.IsNil():
		return status.Errorf(status.ErrInvalidParam, "want no buffer in an address of type %s", a.Type)
	case a.Index < 0 || a.Index >= maxIndex:
		return status.Errorf(status.ErrInvalidParam, "want an index of 0 to %d, got %d", maxIndex-1, a.Index)
	case a.Off < 0 || a.Size < 0 || a.Off+a.Size < 0:
		return status.Errorf(status.ErrInvalidParam, "want a window inside int64, got %d bytes at %d", a.Size, a.Off)
	}
	return nil
}
