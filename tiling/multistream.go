package tiling

import (
	"context"

	"goatb/device"
)

// MultiStream copies tilings on a stream of their own that runs ahead of the
// kernels: one copy for a group of kernels, an event after each copy, and the
// first kernel of a group waits for it on its stream.
type MultiStream struct{}

// CopyEvents is the number of events that order copies before kernels.
const CopyEvents = 10

// CopyGroup is the number of kernels whose tilings travel in one copy: a copy, its
// event and the wait cost the host more than the tilings of several kernels.
const CopyGroup = 16

// Name returns "multi-stream".
func (MultiStream) Name() string { return "multi-stream" }

// UsesRings is true.
func (MultiStream) UsesRings() bool { return true }

// UsesCopyStream is true.
func (MultiStream) UsesCopyStream() bool { return true }

// Group is CopyGroup: the copy for a group is enqueued while the device runs the
// one before.
func (MultiStream) Group() int { return CopyGroup }

// Fences is true: kernels wait for their copies.
func (MultiStream) Fences() bool { return true }

// Captures is false: every launch is enqueued kernel by kernel.
func (MultiStream) Captures() bool { return false }

// Begin takes a host and a device block.
func (MultiStream) Begin(j *Job) error {
	if len(j.pending) != len(j.Slots) || len(j.waited) != len(j.Streams) {
		j.pending, j.waited = make([]int, len(j.Slots)), make([]int, len(j.Streams))
	}
	clear(j.pending)
	clear(j.waited)
	j.copied = j.copied[:0]
	return j.takeBlocks()
}

// Move puts the tiling of kernel k into the host block.
func (MultiStream) Move(j *Job, k int) error { return j.stage(k) }

// Send copies a group's tilings on the copy stream and records an event.
func (MultiStream) Send(j *Job, from, to int) error {
	at, last := j.Slots[from].Offset, &j.Slots[to-1]
	size := last.Offset + last.Size - at
	j.Moved += size
	if err := j.Copy.Copy(j.dev.Buffer().At(at, size), j.host.Buffer().At(at, size)); err != nil {
		return err
	}
	e := j.Events.Next()
	if err := j.Copy.Record(e); err != nil {
		return err
	}
	j.copied = append(j.copied, e)
	for k := from; k < to; k++ {
		j.pending[k] = len(j.copied)
	}
	return nil
}

// Flush gives the host block back after the copies.
func (MultiStream) Flush(j *Job) error { return j.releaseHost(j.Copy) }

// Start has nothing to do.
func (MultiStream) Start(*Job) error { return nil }

// Before lets the stream of kernel k wait for the copy, unless it does so already.
// A record made since then on the same event is a later copy's, so waiting for it
// is waiting for this one too.
func (MultiStream) Before(j *Job, k int) error {
	stream, n := j.Slots[k].Stream, j.pending[k]
	if j.waited[stream] >= n {
		return nil
	}
	j.waited[stream] = n
	return j.Streams[stream].Wait(j.copied[n-1])
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
		if e := j.lastCopy(); e != nil {
			_ = e.Synchronize(context.Background()) // fails on a closed device, which does no work
		}
		j.returnBlocks()
		return
	}
	main := j.Streams[j.Main]
	if e := j.lastCopy(); e != nil {
		_ = main.Wait(e) // fails on a closed stream, which has no work
	}
	j.abort(j.Copy, main)
}

// lastCopy returns the event of the latest copy, nil before the first.
func (j *Job) lastCopy() device.Event {
	if n := len(j.copied); n > 0 {
		return j.copied[n-1]
	}
	return nil
}
