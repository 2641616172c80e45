package context

import (
	"goatb/device"
	"goatb/kernelgraph"
	"goatb/mempool"
	"goatb/runner"
	"goatb/status"
)

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
// with it. Errors: ErrInvalidStream, ErrInvalidWorkspaceSize for a negative
// size, and those of the device.
func (c *Context) WorkspaceOn(stream int, size int64) (device.Buffer, error) {
	if c == nil {
		return device.Buffer{}, errClosed()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed.Load():
		return device.Buffer{}, errClosed()
	case stream < 0 || stream >= len(c.env.Streams):
		return device.Buffer{}, status.Errorf(status.ErrInvalidStream, "workspace: want a stream id below %d, got %d", len(c.env.Streams), stream)
	case size < 0:
		return device.Buffer{}, status.Errorf(status.ErrInvalidWorkspaceSize, "workspace: want a size of at least 0, got %d", size)
	}
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
