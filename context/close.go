package context

import (
	"errors"

	"goatb/device"
	"goatb/mempool"
)

// Close waits for calls in progress and for enqueued work and gives everything
// back: streams, rings, idle runners, workspaces. Operations may be closed
// before or after it, the device too. Closing twice is legal. It must not be
// called from a function that the context itself is calling, such as the
// condition of an If.
func (c *Context) Close() error {
	if c == nil || c.dev == nil || c.closed.Swap(true) {
		return nil
	}
	c.mu.Lock()
	c.awaitSides()
	streams, copies, events, workspaces := c.own, c.env.Copy, c.env.Events, c.workspaces
	c.workspaces = nil
	c.mu.Unlock()
	var errs closeErrors
	for _, s := range streams {
		errs.add(s.Close())
	}
	if copies != nil {
		errs.add(copies.Close())
	}
	errs.add(c.pool.Close())
	errs.add(c.env.Sinking.Retired.Close())
	if events != nil {
		errs.add(events.Close())
	}
	for _, r := range [...]*mempool.Ring{c.env.HostRing, c.env.DeviceRing} {
		if r != nil {
			errs.add(r.Close())
		}
	}
	errs.release(c.hostMem, c.freeHost)
	errs.release(c.deviceMem, c.freeDev)
	for _, w := range workspaces {
		errs.release(w, c.dev.Free)
	}
	if c.env.Overflow != nil {
		errs.release(c.env.Overflow.Flag, c.dev.Free)
	}
	return errors.Join(errs...)
}

// closeErrors gathers the errors of a Close that goes on after each.
type closeErrors []error

func (e *closeErrors) add(err error) {
	if err != nil {
		*e = append(*e, err)
	}
}

// release frees memory that is there and was not freed before.
func (e *closeErrors) release(b device.Buffer, free func(device.Buffer) error) {
	if b.Live() {
		e.add(free(b))
	}
}
