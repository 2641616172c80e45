package context

import (
	"goatb/device"
	"goatb/kernelgraph"
	"goatb/mempool"
	"goatb/runner"
	"goatb/status"
)

// Env returns what runners need. It is for the operation package, which enters the
// context before; so are the functions below, which return nil or zero of a nil
// context.
func (c *Context) Env() *runner.Env {
	if c == nil {
		return nil
	}
	return &c.env
}

// Lowering returns what lowering needs. It is for the operation package.
func (c *Context) Lowering() *kernelgraph.Env {
	if c == nil {
		return nil
	}
	return &c.lower
}

// Planner returns the workspace planner, which belongs to the host side.
func (c *Context) Planner() *mempool.Planner {
	if c == nil {
		return nil
	}
	return &c.planner
}

// Pool returns the pool of idle runners.
func (c *Context) Pool() *runner.Pool {
	if c == nil {
		return nil
	}
	return c.pool
}

// Counters returns the counters that Stats shows.
func (c *Context) Counters() *runner.Counters {
	if c == nil {
		return nil
	}
	return &c.count
}

// Epoch changes whenever plans made before are out of date.
func (c *Context) Epoch() uint64 {
	if c == nil {
		return 0
	}
	return c.epoch.Load()
}

// WorkspaceOptions returns how workspaces are planned.
func (c *Context) WorkspaceOptions() kernelgraph.WorkspaceOptions {
	if c == nil {
		return kernelgraph.WorkspaceOptions{}
	}
	return kernelgraph.WorkspaceOptions{Solver: c.cfg.Solver, PerOperation: !c.cfg.WorkspaceGlobal}
}

// SetupReuse reports whether an unchanged Setup may be skipped.
func (c *Context) SetupReuse() bool { return c != nil && c.cfg.SetupReuse }

// Alloc reserves device memory; see device.Device.
func (c *Context) Alloc(size int64) (device.Buffer, error) {
	if err := c.unusable(); err != nil {
		return device.Buffer{}, err
	}
	return c.dev.Alloc(size)
}

// Free gives device memory back, also of a closed context; enqueued work may
// still use it.
func (c *Context) Free(b device.Buffer) error {
	if c == nil || c.dev == nil {
		return c.unusable()
	}
	return c.dev.Free(b)
}

// Workspace returns the context's workspace for operations on stream 0, grown
// to at least `size` bytes. Operations on one stream run one after the other
// and may share it. A call for more than before frees what earlier calls
// returned: ask again before the next Execute, or once for the largest size.
func (c *Context) Workspace(size int64) (device.Buffer, error) { return c.WorkspaceOn(0, size) }

// WorkspaceOn returns the context's workspace for operations on stream id
// `stream`. Growing it gives the old memory back once enqueued work is done
// with it. Errors: ErrInvalidStream, ErrInvalidWorkspaceSize for a negative
// size, and those of the device.
func (c *Context) WorkspaceOn(stream int, size int64) (device.Buffer, error) {
	if c == nil {
		return device.Buffer{}, c.unusable()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.unusable(); err != nil {
		return device.Buffer{}, err
	}
	switch {
	case stream < 0 || stream >= len(c.env.Streams):
		return device.Buffer{}, status.Place(c.NoStream("stream id", stream), status.ErrInvalidStream, "workspace", "", "")
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
