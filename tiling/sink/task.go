package sink

import (
	"fmt"
	"io"
	"strings"

	"goatb/device"
)

// TaskKind is a sort of task in a compiled list.
type TaskKind uint8

// Task kinds.
const (
	// KernelTask runs a kernel on one engine. It cannot be updated outside of a
	// super kernel.
	KernelTask TaskKind = iota
	// AllKernelTask and VectorAllKernelTask run kernels that an update may change.
	AllKernelTask
	VectorAllKernelTask
	// FFTSPlusTask runs mixed kernels as a list of contexts.
	FFTSPlusTask
	// SuperKernelTask runs several kernels fused in one launch.
	SuperKernelTask
	// PreprocessTask runs a function on the scalar processor.
	PreprocessTask
	// WaitTask waits for an event and resets it, RecordTask sets one.
	WaitTask
	RecordTask
	// NopTask fills a queue entry.
	NopTask
	// UpdateTask changes a kernel that is queued.
	UpdateTask
)

// String gives the kind as compiled lists name it.
func (k TaskKind) String() string {
	return [...]string{
		"KERNEL", "ALL_KERNEL", "VECTOR_ALL_KERNEL", "FFTS_PLUS", "SUPER_KERNEL", "PREPROCESS_KERNEL", "EVENT_WAIT", "EVENT_RECORD", "NOP", "UPDATE",
	}[k]
}

// KindOf is the kind of task that the launch of a kernel becomes. Mixed kernels
// go the way of FFTS+, on platforms that have it, only where their tiling runs on
// the device.
func KindOf(class device.Class, sunk, fftsPlus bool) TaskKind {
	switch class {
	case device.Cube:
		return AllKernelTask
	case device.Mix:
		if sunk && fftsPlus {
			return FFTSPlusTask
		}
		return AllKernelTask
	}
	return VectorAllKernelTask
}

// Engine tells which functions a scalar processor loads.
type Engine uint8

// Engines.
const (
	// AICPU runs functions of the library, CustomAICPU others.
	AICPU Engine = iota
	CustomAICPU
)

// String gives the kernel type.
func (e Engine) String() string { return [...]string{"AI_CPU", "CUST_AI_CPU"}[e&1] }

// Entry is the function that the device starts for every tiling.
const Entry = "RunAicpuRpcSrvLaunch"

// Task is one task of a compiled list: plain data. Kind tells which fields count.
type Task struct {
	Kind   TaskKind
	Stream int
	// Op is the id of the operation.
	Op int64
	// Event is that of a wait or record, or whose flag a tiling sets.
	Event int
	// Args is the format of the arguments.
	Args string
	// Engine, Library and Entry say what a PreprocessTask runs. In a super kernel
	// it belongs to sub node Sub and sets the flag of Event.
	Engine         Engine
	Library, Entry string
	InSuper        bool
	Sub            int64
	// BlockDim and Key are a kernel's until the first update. Updated says that
	// there will be one.
	BlockDim uint32
	Key      uint64
	Updated  bool
	// Contexts are those of an FFTSPlusTask.
	Contexts []Context
	// Subs are the kernels of a SuperKernelTask.
	Subs []SubKernel
	// Target is the kernel that an UpdateTask changes: the index of its task in
	// the operation's list, and in the whole list once that is put together.
	Target int
}

// Context is one part of an FFTSPlusTask.
type Context struct {
	// OpType is the part's type; Atomic parts clear memory.
	OpType string
	Args   string
	// Addresses are the part's addresses, one for each word that the device
	// completes; AddressSize counts them.
	Addresses   []uint64
	AddressSize int
}

// Atomic is the type of the parts of an FFTSPlusTask that clear memory.
const Atomic = "ATOMIC"

// SubKernel is a kernel of a super kernel.
type SubKernel struct {
	Op   int64
	Args string
	// Dynamic says that the kernel waits for a flag in memory and then reads its
	// variant and block dim; Flag is the event whose flag it is, None otherwise.
	Dynamic  bool
	Flag     int
	BlockDim uint32
	Key      uint64
}

// BlockDimPending stands in dumps for the block dim of a kernel that is updated,
// until it has been.
const BlockDimPending = 0xFFFFFFFF

// List is the task list of a captured segment.
type List struct {
	// Streams names the streams by id.
	Streams []string
	Events  int
	// Tasks are in order of distribution.
	Tasks []Task
}

// WriteText writes a line for each task, for people and transcripts.
func (l *List) WriteText(w io.Writer) error {
	for i := range l.Tasks {
		t := &l.Tasks[i]
		if _, err := fmt.Fprintf(w, "%d stream %d (%s) %s\n", i, t.Stream, l.Streams[t.Stream], t.describe(l.Tasks)); err != nil {
			return err
		}
	}
	return nil
}

// describe is the task without its place.
func (t *Task) describe(all []Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s op %d", t.Kind, t.Op)
	switch t.Kind {
	case WaitTask, RecordTask:
		fmt.Fprintf(&b, " event %d", t.Event)
	case PreprocessTask:
		fmt.Fprintf(&b, " %s %s %s", t.Engine, t.Library, t.Entry)
	case UpdateTask:
		fmt.Fprintf(&b, " task %d (stream %d)", t.Target, all[t.Target].Stream)
	}
	if t.Args != "" {
		b.WriteString(" " + t.Args)
	}
	if t.Kind <= FFTSPlusTask {
		b.WriteString(blockText(t.BlockDim, t.Updated))
	}
	for _, c := range t.Contexts {
		fmt.Fprintf(&b, "\n    %s %s addresses %d", c.OpType, c.Args, c.AddressSize)
	}
	for _, s := range t.Subs {
		fmt.Fprintf(&b, "\n    op %d%s", s.Op, blockText(s.BlockDim, s.Dynamic))
		if s.Dynamic {
			fmt.Fprintf(&b, " SPK_task_type=dynamic flag %d", s.Flag)
		}
	}
	return b.String()
}

func blockText(n uint32, pending bool) string {
	if pending {
		n = BlockDimPending
		return fmt.Sprintf(" block_dim=0x%X", n)
	}
	return fmt.Sprintf(" block_dim=%d", n)
}
