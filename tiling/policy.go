package tiling

import (
	"context"
	"fmt"

	"goatb/device"
	"goatb/kernel"
	"goatb/mempool"
	"goatb/status"
)

// Policy decides how the tilings of one launch reach the device.
type Policy interface {
	// Name is the policy's name in options and variables.
	Name() string
	// UsesRings says that a launch takes a block of each ring.
	UsesRings() bool
	// UsesCopyStream says that a launch needs Job.Copy.
	UsesCopyStream() bool
	// Group is the number of kernels whose tilings are moved before the first of
	// them is enqueued; 0 stands for all of a launch.
	Group() int
	// Fences says that Before enqueues work on the kernel's stream, so that the
	// kernels are launched one by one.
	Fences() bool
	// Captures says that a launch is captured as a task list and replayed, where
	// that is possible; the rest of the policy serves the kernels that are not.
	Captures() bool
	// Begin opens a launch: it takes what the launch needs from the rings.
	Begin(j *Job) error
	// Move computes the tiling of kernel k. It does not touch the execute
	// streams.
	Move(j *Job, k int) error
	// Send comes after the Moves of a group and sends their tilings on their way:
	// those of kernels from to to-1, the first and the last of which were moved.
	// It does not touch the execute streams.
	Send(j *Job, from, to int) error
	// Flush comes after the last Send: what only the first half needs goes
	// back.
	Flush(j *Job) error
	// Start comes before the first kernel is enqueued.
	Start(j *Job) error
	// Before completes j.Launches[k] and orders it behind its tiling; the
	// runner enqueues the launch next or, where the policy does not fence,
	// soon, in order.
	Before(j *Job, k int) error
	// End closes the launch: ring blocks go back by event.
	End(j *Job) error
	// Abort gives back what the launch still holds. It uses streams only where
	// Job.Started says that some of the launch may be enqueued.
	Abort(j *Job)
}

// Slot is the place of one kernel's tiling in a tiling block.
type Slot struct {
	// Offset is a multiple of 64, Size the tiling's bytes.
	Offset, Size int64
	// Stream is the id of the stream that the kernel runs on.
	Stream int
}

// Source gives the tiling of kernel k: bytes that stay as they are until the
// job ends, and the launch shape.
type Source interface {
	Tiling(k int) ([]byte, kernel.Grid, error)
}

// Job is one launch of an operation. It belongs to its runner, which reuses it;
// one goroutine uses it at a time.
type Job struct {
	// Slots holds the kernels, Bytes the size of all tilings together.
	Slots []Slot
	Bytes int64
	// Launches are the kernels' launches, complete but for the tiling.
	Launches []device.Launch
	Source   Source
	// Streams are the execute streams by id; Main is the id of the stream that
	// every other stream of the launch is joined to at its end.
	Streams []device.Stream
	Main    int
	// HostRing, DeviceRing, Copy and Events are there when the policy uses
	// them.
	HostRing, DeviceRing *mempool.Ring
	Copy                 device.Stream
	Events               *EventRing
	// Started says that the second half has begun; the runner sets it before
	// Start and clears it before Begin.
	Started bool
	// Moved counts the tiling bytes that the launch moved.
	Moved int64

	host, dev       mempool.Block
	hostOut, devOut bool
	// For multi-stream: pending is the copy that each kernel waits for, by its
	// number from 1 on, waited the latest copy that each stream waits for, and
	// copied the events of copies, the latest last.
	pending, waited []int
	copied          []device.Event
}

// setLaunch puts the launch shape of kernel k into its launch.
func (j *Job) setLaunch(k int, g kernel.Grid) {
	l := &j.Launches[k]
	l.Blocks, l.Key = g.Blocks, g.Key
}

// takeBlocks takes a host and a device block. It waits, and the ring counts the
// stall, while the oldest block is in flight.
func (j *Job) takeBlocks() error {
	var err error
	if j.host, err = j.HostRing.Take(context.Background()); err != nil {
		return err
	}
	j.hostOut = true
	if j.dev, err = j.DeviceRing.Take(context.Background()); err != nil {
		return err
	}
	j.devOut = true
	return nil
}

// stage copies the tiling of kernel k into the host block and completes its
// launch to read the device block.
func (j *Job) stage(k int) error {
	b, g, err := j.Source.Tiling(k)
	if err != nil {
		return err
	}
	s := &j.Slots[k]
	copy(j.host.Buffer().At(s.Offset, s.Size).Bytes(), b)
	j.setLaunch(k, g)
	l := &j.Launches[k]
	l.Inline = nil
	l.Tiling = j.dev.Buffer().At(s.Offset, s.Size)
	return nil
}

// releaseHost gives the host block back when the work enqueued on s is done.
func (j *Job) releaseHost(s device.Stream) error {
	j.hostOut = false
	return j.HostRing.Release(j.host, s)
}

// releaseDevice gives the device block back when the work enqueued on s is done.
func (j *Job) releaseDevice(s device.Stream) error {
	j.devOut = false
	return j.DeviceRing.Release(j.dev, s)
}

// abort gives blocks back that the launch still holds, the host block by an
// event of `host` and the device block by one of `dev`: some of the launch may
// be enqueued on them. Where a stream refuses, it is closed and uses nothing.
func (j *Job) abort(host, dev device.Stream) {
	if j.hostOut && j.releaseHost(host) != nil {
		_ = j.HostRing.Return(j.host)
	}
	if j.devOut && j.releaseDevice(dev) != nil {
		_ = j.DeviceRing.Return(j.dev)
	}
}

// returnBlocks gives blocks back that no enqueued work uses.
func (j *Job) returnBlocks() {
	if j.hostOut {
		j.hostOut = false
		_ = j.HostRing.Return(j.host) // fails when the ring is closed
	}
	if j.devOut {
		j.devOut = false
		_ = j.DeviceRing.Return(j.dev)
	}
}

// Policies lists the policies, the default first.
func Policies() []Policy { return []Policy{KernelFollow{}, Overall{}, MultiStream{}, DeviceSink{}} }

// ByName returns the policy with the name; "kernel" is accepted for
// kernel-follow.
func ByName(name string) (Policy, error) {
	if name == "kernel" {
		name = KernelFollow{}.Name()
	}
	names := ""
	for _, p := range Policies() {
		if p.Name() == name {
			return p, nil
		}
		names += " " + p.Name()
	}
	return nil, fmt.Errorf("unknown tiling policy %q, want one of%s", name, names)
}

// EventRing is a fixed number of events used in turn, for ordering a copy
// before a kernel. A wait refers to the record made just before it, so an
// event may be recorded again while an older wait on it is pending.
type EventRing struct {
	events []device.Event
	next   int
}

// maxEvents bounds a ring of events.
const maxEvents = 1 << 16

// NewEventRing makes a ring of n events, at least one and at most 65536.
func NewEventRing(d device.Device, n int) (*EventRing, error) {
	if err := status.Given("event ring", "d", d); err != nil {
		return nil, err
	}
	if n < 1 || n > maxEvents {
		return nil, status.Errorf(status.ErrInvalidParam, "event ring: want 1 to %d events, got %d", maxEvents, n)
	}
	r := &EventRing{}
	for range n {
		e, err := d.NewEvent()
		if err != nil {
			r.Close()
			return nil, err
		}
		r.events = append(r.events, e)
	}
	return r, nil
}

// Next returns the next event.
func (r *EventRing) Next() device.Event {
	e := r.events[r.next]
	r.next = (r.next + 1) % len(r.events)
	return e
}

// Close closes the events. Closing twice is legal.
func (r *EventRing) Close() error {
	var err error
	for _, e := range r.events {
		if cerr := e.Close(); err == nil {
			err = cerr
		}
	}
	return err
}
