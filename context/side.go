package context

import (
	"runtime"
	"sync/atomic"

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

// claim is the state of a side: odd while somebody is inside. Whoever is inside
// may lend the side, which makes it even again, two levels up.
type claim struct{ level atomic.Int32 }

func (c *claim) take() bool {
	n := c.level.Load()
	return n&1 == 0 && c.level.CompareAndSwap(n, n+1)
}

func (c *claim) leave()     { c.level.Add(-1) }
func (c *claim) lend()      { c.level.Add(1) }
func (c *claim) busy() bool { return c.level.Load()&1 != 0 }

// reclaim ends a loan. It waits for a goroutine that is inside by mistake.
func (c *claim) reclaim() {
	for {
		if n := c.level.Load(); n&1 == 0 && c.level.CompareAndSwap(n, n-1) {
			return
		}
		runtime.Gosched()
	}
}

// Enter claims sides of the context for the calling operation. Errors:
// ErrInvalidContextAddr for a nil or closed context, ErrInvalidParam when
// another goroutine is inside.
func (c *Context) Enter(s Side) error {
	if err := c.unusable(); err != nil {
		return err
	}
	if s&HostSide != 0 && !c.host.take() {
		return errBusy()
	}
	if s&LaunchSide != 0 && !c.launch.take() {
		c.Leave(s & HostSide)
		return errBusy()
	}
	if c.closed.Load() {
		c.Leave(s)
		return c.unusable()
	}
	return nil
}

func errBusy() error {
	return status.Errorf(status.ErrInvalidParam, "the context is in use by another goroutine")
}

// Leave gives claimed sides back.
func (c *Context) Leave(s Side) { c.each(s, (*claim).leave) }

// Lend lets operations enter sides that the caller has claimed, until Reclaim:
// a user's own operation is called meanwhile, which may run others inside.
func (c *Context) Lend(s Side) { c.each(s, (*claim).lend) }

// Reclaim ends a Lend; the caller has its sides again, also after an error:
// ErrInvalidContextAddr when the context was closed meanwhile.
func (c *Context) Reclaim(s Side) error {
	c.each(s, (*claim).reclaim)
	return c.unusable()
}

// each changes the claims of sides and tells a Close that waits.
func (c *Context) each(s Side, change func(*claim)) {
	if c == nil || c.dev == nil {
		return
	}
	if s&LaunchSide != 0 {
		change(&c.launch)
	}
	if s&HostSide != 0 {
		change(&c.host)
	}
	if c.closed.Load() {
		c.mu.Lock()
		c.left.Broadcast()
		c.mu.Unlock()
	}
}

// awaitSides returns once nobody is inside; mu is held and given up meanwhile.
func (c *Context) awaitSides() {
	for c.host.busy() || c.launch.busy() {
		c.left.Wait()
	}
}
