package device

import "goatb/status"

// ModelDevice is a Device that runs task lists by itself: the host enqueues one
// execution, and the device walks the list.
type ModelDevice interface {
	Device
	// Capability asks what the device can do. A query that fails is an error,
	// never a no.
	Capability(c Capability) (int64, error)
	// Load checks a list (TaskList.Check), binds it to streams of its own and
	// distributes its tasks to them. The device does not keep the list. Errors:
	// those of Check, ErrInvalidTensorAddr for freed memory, and those of Alloc
	// and NewStream.
	Load(l *TaskList) (Model, error)
}

// LimitsOf asks a device for what lists are checked against.
func LimitsOf(d ModelDevice) (Limits, error) {
	if err := status.Given("limits", "d", d); err != nil {
		return Limits{}, err
	}
	update, err := d.Capability(CapTaskUpdate)
	if err != nil {
		return Limits{}, err
	}
	blocks, err := d.Capability(CapMaxBlocks)
	return Limits{TaskUpdate: update == 1, MaxBlocks: int(blocks)}, err
}

// Capability is a question to a device.
type Capability uint8

// Capabilities.
const (
	// CapTaskUpdate is 1 where update tasks are supported, else 0.
	CapTaskUpdate Capability = iota
	// CapPrefetch is the number of queue entries past an event wait, not counting
	// its reset, that a stream fetches when it reaches the wait. What is fetched
	// is not fetched again: an update of such an entry comes too late for this
	// execution.
	CapPrefetch
	// CapMaxBlocks is the largest block dim.
	CapMaxBlocks
)

// Model is a task list loaded into a device. It may be used from any goroutine.
//
// An execution runs the tasks of each stream in order. The first error of any
// task is the execution's: it ends the other streams at their next task, wakes
// whatever waits (events, flags), and becomes the error of the stream that the
// execution was enqueued on, with operation and node. The next execution starts
// anew, with all events and flags reset.
type Model interface {
	// Replay enqueues one execution behind the earlier work of stream `on`, whose
	// later work waits for its end. Executions of one model never overlap: they
	// run in the order of their Replay calls, whatever their streams.
	//
	// r may be nil; it and what it points to, but not the memory of its buffers,
	// is copied. When Replay returns an error nothing has been enqueued and no
	// address has changed. Errors: ErrInvalidParam for a stream of another device,
	// an unloaded model or an unknown index, ErrInvalidTensorAddr for memory that
	// is missing or freed, ErrInvalidTensorSize for memory that is too small.
	Replay(on Stream, r *Refresh) error
	// Query reports whether every execution enqueued so far is done: then Unload
	// does not wait.
	Query() bool
	// States appends the state of each task, in list order, to dst: what the
	// queue entries hold now.
	States(dst []TaskState) []TaskState
	// Stats returns counters.
	Stats() ModelStats
	// Unload waits until the enqueued executions are done and frees what the
	// model holds. Unloading twice is legal.
	Unload() error
}

// Refresh is what changes with an execution.
type Refresh struct {
	// Moves are new addresses. Memory without one stays where it was in the
	// Replay before; the first one has to name all.
	Moves []Relocation
	// Writes are values that the device stores before the execution starts.
	Writes []Write
}

// Relocation gives an input, an output or a workspace an address, from this execution
// on.
type Relocation struct {
	Type   MemoryType
	Index  int
	Buffer Buffer
}

// Write stores Data, which Replay copies, at To; both have one size.
type Write struct {
	To   Address
	Data []byte
}

// TaskState is the state of a queue entry.
type TaskState struct {
	// Blocks and Key are the kernel's parameters, those of the last update once
	// there was one. Blocks is BlocksPending for a kernel that is tiled on the
	// device and was not yet. For a super kernel Blocks is the largest block dim
	// of its kernels and Key that of the last of them.
	Blocks uint32
	Key    uint64
	// Runs counts executions of the task.
	Runs int64
}

// ModelStats counts what a model has done.
type ModelStats struct {
	// Replays counts executions that were enqueued, Failures those that ended
	// with an error.
	Replays, Failures int64
	// Kernels, Preprocessed, Updates and Copies count tasks that ran.
	Kernels, Preprocessed, Updates, Copies int64
	// Stale counts kernels that ran with other parameters than their entry held
	// at that moment, because the entry was updated after it had been fetched.
	Stale int64
}

// Fault tells errors of task lists apart: errors.Is(err, FaultStreamModel). The
// error's status code comes beside it.
type Fault string

// Faults.
const (
	// FaultNull is a field that must not be nil.
	FaultNull Fault = "null field"
	// FaultNotSupported is a feature that the device does not have.
	FaultNotSupported Fault = "feature not supported"
	// FaultStreamModel is a stream that is not bound to the model.
	FaultStreamModel Fault = "stream not bound to the model"
	// FaultProgramSize is a kernel table without variants.
	FaultProgramSize Fault = "empty program"
	// FaultNotLaunched is an update of a task that does not stand before it.
	FaultNotLaunched Fault = "update before its target is launched"
	// FaultEvent is an event id out of range.
	FaultEvent Fault = "event id out of range"
	// FaultEngine is a preprocess task for another engine than the AI CPU.
	FaultEngine Fault = "not an AI CPU kernel type"
	// FaultNoEnd is a list that cannot end: an event that nobody records, or tasks
	// that wait for each other.
	FaultNoEnd Fault = "wait without end"
	// FaultVariant is a tiling key that a kernel table does not hold.
	FaultVariant Fault = "tiling key not in the variant table"
	// FaultDeadline is a task that ran longer than it may.
	FaultDeadline Fault = "deadline exceeded"
)

// Error gives the fault's name.
func (f Fault) Error() string { return string(f) }

// Models returns d as a device that runs task lists. Error: FaultNotSupported.
func Models(d Device) (ModelDevice, error) {
	if err := status.Given("models", "d", d); err != nil {
		return nil, err
	}
	if m, ok := d.(ModelDevice); ok {
		return m, nil
	}
	return nil, status.Errorf(status.ErrDeviceFail, "%w: %s does not run task lists", FaultNotSupported, d.Props().Name)
}
