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
// # Concurrency
//
// A Device and an Event may be used from any goroutine. A Stream takes work
// from one goroutine at a time; Synchronize, Query and Stats may be called from
// any goroutine at any time.
package device
