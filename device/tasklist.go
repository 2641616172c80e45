package device

import "time"

// TaskList is a graph captured as plain data: the streams of a model, and the
// tasks in the order in which they are distributed to them. Each stream runs its
// tasks in list order; only events order tasks of different streams. A list is
// built with Bind, NewEvent and Add, or recorded with Capture, and loaded with
// ModelDevice.Load, after which it must not change.
type TaskList struct {
	// Name is the graph's, for errors and dumps.
	Name string
	// Streams names the streams that are bound to the model, such as "main" and
	// "tiling". A StreamID is an index into it.
	Streams []string
	// Events is the number of events. Each is recorded and waited for once, by
	// tasks of the list, or set and polled once as a flag in memory.
	Events int
	// Tasks are in order of distribution.
	Tasks []Task
}

// StreamID names a stream of a list: an index into TaskList.Streams.
type StreamID int

// EventID names an event of a list, 0 to TaskList.Events-1.
type EventID int

// TaskID numbers the queue entries of one stream from 0, in the order in which
// they were submitted.
type TaskID uint32

// Bind adds a stream to the model.
func (l *TaskList) Bind(name string) StreamID {
	l.Streams = append(l.Streams, name)
	return StreamID(len(l.Streams) - 1)
}

// NewEvent adds an event.
func (l *TaskList) NewEvent() EventID {
	l.Events++
	return EventID(l.Events - 1)
}

// Add appends a task and gives it the next id of its stream, which an update
// needs to name it. Nothing is checked before Check.
func (l *TaskList) Add(t Task) TaskID {
	t.ID = 0
	for i := len(l.Tasks) - 1; i >= 0; i-- {
		if last := &l.Tasks[i]; last.Stream == t.Stream {
			t.ID = last.ID + TaskID(last.Kind.Entries())
			break
		}
	}
	l.Tasks = append(l.Tasks, t)
	return t.ID
}

// Task is one entry of a list. Kind says which of the pointers is set.
type Task struct {
	Kind   TaskKind
	Stream StreamID
	// ID is unique on its stream; Add sets it.
	ID TaskID
	// Label names the operation and node in errors, dumps and traces.
	Label *Label
	// OpIndex is the operation's id in the graph, and Format the argument format
	// string that the task was made from. Both are for dumps alone.
	OpIndex int64
	Format  string

	Kernel     *Kernel        // KernelTask, AllKernelTask
	Super      []SubKernel    // SuperKernelTask
	Preprocess *Preprocess    // PreprocessTask
	Event      EventID        // EventWaitTask, EventRecordTask
	Update     *Update        // UpdateTask
	Copy       *CopyAddresses // CopyTask
}

// TaskKind is a sort of task.
type TaskKind uint8

// Task kinds. The zero kind is none.
const (
	_ TaskKind = iota
	// KernelTask runs a kernel on one engine.
	KernelTask
	// AllKernelTask runs a mixed kernel: each of its blocks is a cube part and,
	// behind it, Kernel.Ratio vector parts.
	AllKernelTask
	// SuperKernelTask runs several kernels fused in one launch.
	SuperKernelTask
	// PreprocessTask runs a function on the AI CPU, such as a tiling function.
	PreprocessTask
	// EventWaitTask waits for an event and then resets it, so that the next
	// execution needs a new record. It takes two queue entries.
	EventWaitTask
	// EventRecordTask sets an event when the earlier work of its stream is done.
	EventRecordTask
	// NopTask does nothing but fill a queue entry.
	NopTask
	// UpdateTask rewrites a kernel entry that is queued already.
	UpdateTask
	// CopyTask copies bytes.
	CopyTask
)

// Entries returns the number of queue entries that a task of this kind takes.
func (k TaskKind) Entries() int {
	if k == EventWaitTask {
		return 2
	}
	return 1
}

// MemoryType tells how a word of the address table gets its address.
type MemoryType uint8

// Memory types.
const (
	// AbsoluteMemory keeps the address that it was loaded with.
	AbsoluteMemory MemoryType = iota
	// InputMemory, OutputMemory and WorkspaceMemory refresh: an execution gives
	// them new addresses.
	InputMemory
	OutputMemory
	WorkspaceMemory
)

// Address is a word of the address table: a window of an input, an output or a
// workspace of the model, or memory that never moves. The zero Address is no
// memory, an absent operand.
type Address struct {
	Type MemoryType
	// Index numbers the inputs, outputs or workspaces from 0, and the window is
	// [Off, Off+Size) of that memory. All three are 0 for AbsoluteMemory.
	Index     int
	Off, Size int64
	// Buffer is the memory of AbsoluteMemory.
	Buffer Buffer
}

// Absolute is the address of memory that never moves.
func Absolute(b Buffer) Address { return Address{Buffer: b} }

// IsNil reports whether a is no memory at all.
func (a *Address) IsNil() bool { return a.Type == AbsoluteMemory && a.Buffer.IsNil() }

// Bytes returns the window's size.
func (a *Address) Bytes() int64 {
	if a.Type == AbsoluteMemory {
		return a.Buffer.Size()
	}
	return a.Size
}

// Kernel is a launch in a list, as Launch with addresses in place of buffers.
// Loading copies it.
type Kernel struct {
	// Program is the kernel, the cube part of a mixed one.
	Program *Program
	// Vector is the vector part of an AllKernelTask; it runs Ratio times for each
	// block, on blocks block*Ratio to block*Ratio+Ratio-1 of Blocks*Ratio. It may
	// be nil, with a Ratio of 0: then Program is both parts.
	Vector *Program
	Ratio  int
	// Blocks is the block dim and Key the tiling key that the entry carries until
	// the first update.
	Blocks int
	Key    uint64
	// Operands, Inputs, Scratch, Inline and Tiling are as in Launch. The tiling of
	// a kernel that is tiled on the device lies at a fixed address, Tiling.
	Operands []Address
	Inputs   int
	Scratch  Address
	Inline   []byte
	Tiling   Address
}

// Binary is the table of a kernel's variants: what an update may choose from.
// It is immutable.
type Binary struct {
	Name     string
	Variants []Variant
}

// Variant is one row of a Binary: the code that a tiling key stands for.
type Variant struct {
	Key     uint64
	Program *Program
	// Vector and Ratio are as in Kernel.
	Vector *Program
	Ratio  int
}

// Patch is where the variant and the block dim of a kernel come from at run
// time: a tiling key, 8 bytes, and a block dim, 4 bytes, both little-endian in
// memory, written by a PreprocessTask. A key that the table does not hold and a
// block dim of 0 are errors that name the operation.
type Patch struct {
	Key, Blocks Address
	Binary      *Binary
}

// Update patches the entry of task Task on stream Target, which must stand in
// the list before it: program, tiling key and block dim. Operands, scratch and
// the address of the tiling stay as they are. The patch lasts until the next
// one, over the end of the execution. An entry that its stream has fetched
// before the patch runs as it was (see CapPrefetch).
type Update struct {
	Target StreamID
	Task   TaskID
	Patch
}

// SubKernel is one kernel of a super kernel. Sunk is nil where it runs as loaded.
type SubKernel struct {
	Label  *Label
	Kernel Kernel
	Sunk   *Sunk
}

// Sunk makes a sub kernel wait for its tiling: it polls the memory flag Flag, an
// 8-byte word of device memory that a Preprocess sets to 1, resets it and then
// reads its variant and block dim itself.
type Sunk struct {
	Flag EventID
	Patch
}

// Preprocess is a task of the AI CPU.
type Preprocess struct {
	Function *Function
	// Engine is AICPU, or CustomAICPU for a function that the library does not
	// bring along.
	Engine CPUEngine
	// Inputs and Outputs are the memory that the function sees.
	Inputs, Outputs []Address
	// Notify says that success sets memory flag Flag, behind a store barrier.
	Notify bool
	Flag   EventID
	// Deadline bounds the run; 0 is the device's default.
	Deadline time.Duration
}

// CPUEngine tells where a Preprocess runs.
type CPUEngine uint8

// Engines. The zero engine is none and refused.
const (
	_ CPUEngine = iota
	AICPU
	CustomAICPU
)

// Function is code for the AI CPU. It is immutable.
type Function struct {
	Name string
	// Run reads a.Inputs and writes a.Outputs. An error, a panic and a run beyond
	// the deadline end the execution of the model with an error that names the
	// task's label; then nothing of the outputs reaches device memory. A Run that
	// never returns keeps its goroutine, and nothing else, for ever.
	Run func(a *CPUArgs) error
}

// CPUArgs is what a running Function sees.
type CPUArgs struct {
	// Inputs is device memory, only to be read; nil is an absent one.
	Inputs [][]byte
	// Outputs are copies of device memory that go back when Run succeeds. Their
	// capacity is their length: nothing can be written behind them.
	Outputs [][]byte
	// Aborted reports that nobody waits for the result any more.
	Aborted func() bool
}

// CopyAddresses is a copy in a list; both windows have one size.
type CopyAddresses struct{ Dst, Src Address }

// BlocksPending stands in dumps and traces for the block dim of a kernel whose
// tiling is computed on the device, until it has been.
const BlocksPending uint32 = 0xFFFFFFFF
