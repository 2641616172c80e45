// Package cpu is the embedded device: the processor that the program runs on,
// behind the same contract as an accelerator.
//
// # Streams
//
// Each stream is an ordered queue with a goroutine of its own. Enqueuing copies
// the task into a preallocated slot and returns; it allocates nothing once the
// stream has seen its largest launch. The stream's goroutine runs copies and
// kernel blocks itself, and helpers (Props.Cores - 1 of them, shared by all
// streams) join it for launches of more than one block. Idle goroutines look
// for work for a bounded time (WithSpin) and then sleep: a device without work
// uses no processor time. Where they lose their processors meanwhile, others have
// work, and they look for a shorter time until that pays again.
//
// Helpers have to earn their keep: while the machine is short of processors, so
// that a helper takes turns with the goroutine that it should help, a stream
// works alone and tries again later.
//
// A host that enqueues a little and synchronizes at once, again and again, runs
// the work itself: launches that the stream keeps (device.KeepingStream) and that
// took less than half a millisecond before, small copies, and records that nobody
// waits for are held back for it, on its own core. Such a Synchronize looks at its
// context again when that work is done, and a kernel that ends its goroutine then
// ends the host's. Work that the host does not come for is started by whoever asks
// for it, and by a timer after two milliseconds.
//
// With WithInline nothing runs beside the caller: a task runs inside the call
// that enqueues it. A Wait for an event that has not fired makes the stream hold
// its later tasks until the call that records the event runs them.
//
// # Memory
//
// Device and host memory lie outside the Go heap, page aligned and zero filled,
// and become resident when they are touched. Free takes effect at once for new
// launches and copies and gives the memory back when the tasks enqueued before
// it are done. Programs must not keep slices of Buffer.Bytes beyond that. A
// kernel that touches memory that is gone gets an error, not a crash.
//
// # Models
//
// A model is a loaded task list. Each of its streams is a lane. An execution is
// one task of the stream that it was enqueued on, whose goroutine walks the first
// lane that has no preprocess tasks; every other lane has a worker, a goroutine
// that lives as long as the model. A function of a preprocess task runs on its
// lane's worker, an AI CPU core so to speak. When it runs beyond its deadline
// (WithDeadline) the execution fails and the lane gets another worker. The old one
// cannot be ended: it stays until its function returns, which then finds nothing
// that it could still change.
//
// Updates are seen as an accelerator sees them: a stream that reaches an event wait
// fetches the next entries (WithPrefetch), and what is fetched runs as it was. An
// event wait is one entry here and counts as two.
//
// # Waits without end
//
// A Wait for a record that nobody enqueues holds its stream until Close of the
// device, or of the event, aborts it with an error. In a task list no wait is
// without end: Load refuses such a list, and an error ends all waits.
package cpu
