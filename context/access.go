package context

import (
	"goatb/device"
	"goatb/kernelgraph"
	"goatb/mempool"
	"goatb/runner"
	"goatb/status"
)

// Side is a part of a context that one goroutine at a time may use.
type Side uint8

// Sides.
const (
	// HostSide is planning, tiling and moving.
	HostSide Side = 1 << iota
	// LaunchSide is the execute streams.
	LaunchSide
)

// Enter claims sides of the context for the calling operation. Errors:
// ErrInvalidContextAddr for a nil or closed context, ErrInvalidParam when
// another goroutine is inside.
func (c *Context) Enter(s Side) error {
	if c == nil || c.closed.Load() {
		return errClosed()
	}
	if s&HostSide != 0 && !c.hostBusy.CompareAndSwap(false, true) {
		return errBusy()
	}
	if s&LaunchSide != 0 && !c.launchBusy.CompareAndSwap(false, true) {
		if s&HostSide != 0 {
			c.hostBusy.Store(false)
		}
		return errBusy()
	}
	return nil
}

func errBusy() error {
	return status.Errorf(status.ErrInvalidParam, "the context is in use by another goroutine")
}

// Leave gives claimed sides back.
func (c *Context) Leave(s Side) {
	if s&LaunchSide != 0 {
		c.launchBusy.Store(false)
	}
	if s&HostSide != 0 {
		c.hostBusy.Store(false)
	}
}

// Env returns what runners need. It is for the operation package.
func (c *Context) Env() *runner.Env { return &c.env }

// Lowering returns what lowering needs. It is for the operation package.
func (c *Context) Lowering() *kernelgraph.Env { return &c.lower }

// Planner returns the workspace planner, which belongs to the host side.
func (c *Context) Planner() *mempool.Planner { return &c.planner }

// Pool returns the pool of idle runners.
func (c *Context) Pool() *runner.Pool { return c.pool }

// Counters returns the counters that Stats shows.
func (c *Context) Counters() *runner.Counters { return &c.count }

// Epoch changes whenever plans made before are out of date.
func (c *Context) Epoch() uint64 { return c.epoch.Load() }

// WorkspaceOptions returns how workspaces are planned.
func (c *Context) WorkspaceOptions() kernelgraph.WorkspaceOptions {
	return kernelgraph.WorkspaceOptions{Solver: c.cfg.Solver, PerOperation: !c.cfg.WorkspaceGlobal}
}

// SetupReuse reports whether an unchanged Setup may be skipped.
func (c *Context) SetupReuse() bool { return c.cfg.SetupReuse }

// Alloc reserves device memory; see device.Device.
func (c *Context) Alloc(size int64) (device.Buffer, error) {
	if c == nil || c.closed.Load() {
		return device.Buffer{}, errClosed()
	}
	return c.dev.Alloc(size)
}

// Free gives device memory back; enqueued work may still use it.
func (c *Context) Free(b device.Buffer) error {
	if c == nil {
		return errClosed()
	}
	return c.dev.Free(b)
}

// Workspace returns the context's workspace for operations on stream 0, grown
// to at least `size` bytes. Operations on one stream run one after the other
// and may share it.
func (c *Context) Workspace(size int64) (device.Buffer, error) { return c.WorkspaceOn(0, size) }

// WorkspaceOn returns the context's workspace for operations on stream id
// `stream`. Growing it gives the old memory back once enqueued work is done
// with it.
func (c *Context) WorkspaceOn(stream int, size int64) (device.Buffer, error) {
	if c == nil || c.closed.Load() {
		return device.Buffer{}, errClosed()
	}
	if stream < 0 || stream >= len(c.env.Streams) {
		return device.Buffer{}, status.Errorf(status.ErrInvalidStream, "workspace: want a stream id below %d, got %d", len(c.env.Streams), stream)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.workspaces) <= stream {
		c.workspaces = append(c.workspaces, device.Buffer{})
	}
	old := c.workspaces[stream]
	if old.Size() >= size && (size == 0 || !old.IsNil()) {
		return old, nil
	}
	b, err := c.dev.Alloc(size)
	if err != nil {
		return device.Buffer{}, err
	}
	c.workspaces[stream] = b
	if !old.IsNil() {
		err = c.dev.Free(old)
	}
	return b, err
}

// Close waits for enqueued work and gives everything back: streams, rings,
// idle runners, workspaces. Operations may be closed before or after it, the
// device too. Closing twice is legal.
func (c *Context) Close() error {
	if c == nil || c.closed.Swap(true) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs closeErrors
	for _, s := range c.own {
		errs.add(s.Close())
	}
	if c.env.Copy != nil {
		errs.add(c.env.Copy.Close())
	}
	errs.add(c.pool.Close())
	if c.env.Events != nil {
		errs.add(c.env.Events.Close())
	}
	for _, r := range [...]*mempool.Ring{c.env.HostRing, c.env.DeviceRing} {
		if r != nil {
			errs.add(r.Close())
		}
	}
	release := func(b device.Buffer, free func(device.Buffer) error) {
		if b.Live() {
			errs.add(free(b))
		}
	}
	release(c.hostMem, c.freeHost)
	release(c.deviceMem, c.freeDev)
	for _, w := range c.workspaces {
		release(w, c.dev.Free)
	}
	if c.env.Overflow != nil {
		release(c.env.Overflow.Flag, c.dev.Free)
	}
	return errs.join()
}
