package tiling

import (
	"context"

	"goatb/device"
)

// MultiStream copies tilings on a stream of their own that runs ahead of the
// kernels: it records an event after each copy and each kernel waits for its
// copy's event.
type MultiStream struct{}

// CopyEvents is the number of events that order copies before kernels.
const CopyEvents = 10

// Name returns "multi-stream".
func (MultiStream) Name() string { return "multi-stream" }

// UsesRings is true.
func (MultiStream) UsesRings() bool { return true }

// UsesCopyStream is true.
func (MultiStream) UsesCopyStream() bool { return true }

// Ahead is false: the copy of kernel k+1 is enqueued while kernel k runs.
func (MultiStream) Ahead() bool { return false }

// Fences is true: each kernel waits for its copy.
func (MultiStream) Fences() bool { return true }

// Begin takes a host and a device block.
func (MultiStream) Begin(j *Job) error {
	if len(j.pending) != len(j.Slots) {
		j.pending = make([]device.Event, len(j.Slots))
	}
	clear(j.pending)
	j.lastCopy = nil
	return j.takeBlocks()
}

// Move copies the tiling of kernel k on the copy stream and records its event.
func (MultiStream) Move(j *Job, k int) error {
	if err := j.stage(k); err != nil {
		return err
	}
	s := &j.Slots[k]
	j.Moved += s.Size
	if err := j.Copy.Copy(j.dev.Buffer().At(s.Offset, s.Size), j.host.Buffer().At(s.Offset, s.Size)); err != nil {
		return err
	}
	e := j.Events.Next()
	if err := j.Copy.Record(e); err != nil {
		return err
	}
	j.pending[k], j.lastCopy = e, e
	return nil
}

// Flush gives the host block back after the copies.
func (MultiStream) Flush(j *Job) error { return j.releaseHost(j.Copy) }

// Start has nothing to do.
func (MultiStream) Start(*Job) error { return nil }

// Before lets kernel k wait for its copy. A record made since then on the same
// event is a later copy's, so waiting for it is waiting for this one too.
func (MultiStream) Before(j *Job, k int) error {
	return j.Streams[j.Slots[k].Stream].Wait(j.pending[k])
}

// End gives the device block back after the kernels.
func (MultiStream) End(j *Job) error { return j.releaseDevice(j.Streams[j.Main]) }

// Abort gives blocks back that the launch still holds. Before the second half
// only copies may use them, and the copy stream waits for nobody: the host waits
// for the last copy, in whatever goroutine it is. In the second half the main
// stream waits for it, so that neither a copy nor a kernel uses the device block
// once it is free.
func (MultiStream) Abort(j *Job) {
	if !j.hostOut && !j.devOut {
		return
	}
	if !j.Started {
		if j.lastCopy != nil {
			_ = j.lastCopy.Synchronize(context.Background()) // fails on a closed device, which does no work
		}
		j.returnBlocks()
		return
	}
	main := j.Streams[j.Main]
	if j.lastCopy != nil {
		_ = main.Wait(j.lastCopy) // fails on a closed stream, which has no work
	}
	j.abort(j.Copy, main)
}
