package device

import (
	"context"

	"goatb/status"
)

// Device makes streams, events and memory. It may be used from any goroutine.
type Device interface {
	// Props describes the device. The result never changes.
	Props() *Props
	// Alloc reserves device memory, page aligned and zero filled. Size 0 is
	// legal and gives an empty buffer. Errors: ErrOutOfDeviceMemory,
	// ErrInvalidParam for a negative size, ErrDeviceFail once closed.
	Alloc(size int64) (Buffer, error)
	// Reserve is Alloc for a large area of which little is used and that little
	// is scattered, such as a ring: only the parts that are touched become
	// resident.
	Reserve(size int64) (Buffer, error)
	// AllocHost reserves host memory that copies may read and write while the
	// host goes on (pinned memory on an accelerator), zero filled. Errors as
	// Alloc, with ErrOutOfHostMemory.
	AllocHost(size int64) (Buffer, error)
	// Free gives back a whole allocation of Alloc or AllocHost. It does not
	// wait: memory that enqueued work still uses is released when that work is
	// done. A second Free, a window and foreign memory are ErrInvalidParam.
	Free(b Buffer) error
	// NewStream makes a stream, running and empty.
	NewStream() (Stream, error)
	// NewEvent makes an event that was never recorded.
	NewEvent() (Event, error)
	// Close waits for enqueued work, aborts waits that nothing can satisfy any
	// more, and frees everything. Closing twice is legal.
	Close() error
}

// Props describes a device.
type Props struct {
	// Name is for people, such as "cpu (2 workers)".
	Name string
	// Kind names the implementation: "cpu" or "sim".
	Kind string
	// Cores is the number of blocks that run at once: a kernel's block dim
	// gains nothing above it.
	Cores int
	// L1, L2 and L3 are data cache sizes in bytes, L1 and L2 per core.
	L1, L2, L3 int64
	// QueueDepth is the number of tasks that a stream holds; enqueuing into a
	// full stream waits and is counted in StreamStats.
	QueueDepth int
	// Addressable says that Buffer.Bytes works: kernels written in Go can run.
	Addressable bool
	// Accelerator says that the device stands for a machine of its own, not for
	// the processor that the program runs on: a kernel shares a product or a
	// context out among all cores by itself.
	Accelerator bool
	// Chip is the chip that a simulated device stands for, in the names of
	// tiling/sink; empty where task lists are for no chip in particular.
	Chip string
}

// Stream is an ordered queue of work on a device.
type Stream interface {
	// Launch enqueues a kernel. The launch and everything it points to, but
	// not the memory behind its buffers, is copied: the caller may reuse it at
	// once. Errors: ErrInvalidParam, ErrInvalidTensorAddr for freed memory.
	Launch(l *Launch) error
	// Copy enqueues a copy of src to dst, both of the same size, in host or
	// device memory of this device or wrapped.
	Copy(dst, src Buffer) error
	// Record enqueues e: it fires when all earlier work of the stream is done.
	Record(e Event) error
	// Wait makes later work of the stream wait until e's latest record has
	// fired. An event that was never recorded, or was reset since, is waited
	// for until its next record: a wait may be enqueued before its record.
	Wait(e Event) error
	// Reset forgets e's records, and the one to come that the latest Wait
	// waits for: a later Wait waits for a new one. So each Wait with a Reset
	// behind it takes one record, whichever of the two is enqueued first.
	Reset(e Event) error
	// Synchronize waits until everything enqueued so far is done, or ctx is
	// done, and takes the stream's first error. When ctx ends first its error
	// is returned and the work goes on. A nil ctx is ErrInvalidParam.
	Synchronize(ctx context.Context) error
	// Query reports whether everything enqueued so far is done.
	Query() bool
	// Stats returns counters.
	Stats() StreamStats
	// Close waits for the work, then ends the stream. Closing twice is legal;
	// enqueuing on a closed stream is ErrInvalidStream.
	Close() error
}

// BoundStream is a stream that knows whose it is.
type BoundStream interface {
	Stream
	// Usable is nil when work can be enqueued for the device that p, the pointer
	// of its Props, describes. Errors: ErrInvalidStream for a stream that no device
	// made, a closed one, and one of another device.
	Usable(p *Props) error
}

// BatchStream is a stream that takes several kernels in one call at less cost
// than one by one.
type BatchStream interface {
	Stream
	// LaunchAll is Launch for each of ls in order. It returns how many were
	// enqueued and the error of the first that was refused.
	LaunchAll(ls []Launch) (int, error)
}

// LaunchAll enqueues ls on s in order, in one call where s can. It returns how
// many were enqueued and the error of the first that was refused.
func LaunchAll(s Stream, ls []Launch) (int, error) {
	if len(ls) == 0 {
		return 0, nil
	}
	if s == nil {
		return 0, status.Errorf(status.ErrInvalidStream, "launch: the stream is nil")
	}
	if b, ok := s.(BatchStream); ok && len(ls) > 1 {
		return b.LaunchAll(ls)
	}
	for i := range ls {
		if err := s.Launch(&ls[i]); err != nil {
			return i, err
		}
	}
	return len(ls), nil
}

// KeepingStream is a stream that keeps launches which are run again and again,
// so that a run costs little more than its kernels.
type KeepingStream interface {
	Stream
	// Keep checks launches and keeps copies of them, their inline tilings too. It
	// returns nil where the stream looks at single launches as they are enqueued.
	// Errors are those of Launch.
	Keep(ls []Launch) (Kept, error)
}

// Kept is launches that a stream keeps. It belongs to one goroutine at a time.
type Kept interface {
	// Idle reports whether all runs that were enqueued are done.
	Idle() bool
	// Set replaces blocks, key and tiling of launch i by those of l, whose inline
	// tiling is no longer than that of the launch that was kept. It must not be
	// called while the launches are not Idle. Errors are those of Launch.
	Set(i int, l *Launch) error
	// Run enqueues the launches from, ..., to-1 in order: it is LaunchAll of them.
	Run(from, to int) error
}

// StreamStats counts what a stream has seen.
type StreamStats struct {
	// Launches, Copies and CopiedBytes count enqueued work.
	Launches, Copies, CopiedBytes int64
	// QueueStalls counts enqueues that found the queue full and waited.
	QueueStalls int64
	// DepthMax is the largest number of tasks seen in the queue.
	DepthMax int64
}

// Event marks a point in a stream's work. It may be recorded again; a Wait
// refers to the latest record enqueued before it.
type Event interface {
	// Query reports whether every record enqueued so far has fired. An event
	// that was never recorded reports true.
	Query() bool
	// Synchronize waits until every record enqueued so far has fired, or ctx
	// is done. A nil ctx is ErrInvalidParam.
	Synchronize(ctx context.Context) error
	// Close frees the event. Closing twice is legal.
	Close() error
}

// Label names the place of a task in errors, traces and reports. A label is
// immutable; devices keep the pointer.
type Label struct {
	// Op is the user's operation, Node the kernel's place in it.
	Op, Node string
	// Kernel is the kernel's name.
	Kernel string
}

// Place adds the label's names to an error of its task; nil stays nil.
func (l *Label) Place(err error) error {
	if err == nil {
		return nil
	}
	if l == nil {
		return status.Place(err, status.ErrRuntimeFail, "", "execute", "")
	}
	node := l.Node
	switch {
	case node == "":
		node = l.Kernel
	case l.Kernel != "":
		node += " (" + l.Kernel + ")"
	}
	return status.Place(err, status.ErrRuntimeFail, l.Op, "execute", node)
}
