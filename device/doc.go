// Package device is the contract between the library and the machine that runs
// its kernels: devices, streams, events, memory handles and the launch of one
// kernel. It knows nothing of operations.
//
// The model is that of an accelerator. A Stream is an ordered queue that runs
// beside the host; an Event orders streams against each other and against the
// host; memory is named by handles (Buffer) and only kernels and copies see
// bytes. Every device passes the suite of package device/devicetest.
//
// # Errors
//
// A call that finds bad arguments returns an error at once and enqueues
// nothing. An error of the work itself (a kernel that fails, a copy that is
// refused) is sticky on its stream: later work of that stream is skipped,
// though its event records still fire, until Synchronize takes the first error
// and returns it. After that the stream is usable again.
//
// # Task lists
//
// A TaskList is a graph captured as data: streams, events and tasks, among them
// functions of the AI CPU (PreprocessTask) and patches of queued kernels
// (UpdateTask). A ModelDevice loads it, and each Model.Replay is one call of the
// host, after which the device walks the list by itself. Capture makes a list of
// what is enqueued on streams.
//
// A kernel that is tiled on the device takes part in two streams: on the
// attached one a tiling function computes tiling data, tiling key and block dim
// from input data, an update patches the kernel's entry, and a record lets the
// main stream go on, which waits, passes some nops, and runs the kernel. The nops
// keep the entry out of the window that the device fetches at the wait
// (CapPrefetch): what is fetched runs as it was.
//
// # Concurrency
//
// A Device and an Event may be used from any goroutine. A Stream takes work
// from one goroutine at a time; Synchronize, Query and Stats may be called from
// any goroutine at any time.
package device
