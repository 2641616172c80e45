package device

import (
	"time"

	"goatb/status"
)

// Work is a kind of work that the host does above the device.
type Work uint8

// Kinds of work.
const (
	// SetupWork is a Setup of an operation.
	SetupWork Work = iota
	// PlanWork is the planning of one kernel in a Setup that does not find its
	// plan unchanged.
	PlanWork
	// LookupWork is the search of a tiling in the caches.
	LookupWork
	// TilingWork is the computing of a tiling.
	TilingWork
	// LaunchWork is what the library does around the launch of a kernel.
	LaunchWork
	// RingWork is waiting for a tiling block of a full ring.
	RingWork
)

// String returns the kind in one word.
func (w Work) String() string {
	return [...]string{"setup", "plan", "lookup", "tiling", "launch", "ring"}[min(w, RingWork)]
}

// Host keeps account of what the host does above a device. A device whose time
// is simulated charges its host there; a real one may record what it is told.
// It may be used from any goroutine.
type Host interface {
	// Now is the time on the host's clock.
	Now() time.Time
	// Begin says that the host begins work w, for kernel p where the work is for
	// one, and End that it is done with it. Work nests, but not in work of its
	// own kind.
	Begin(w Work, p *Program)
	End(w Work)
	// Fired reports whether every record of e enqueued so far has fired, as
	// Event.Query does, but at no cost to the host.
	Fired(e Event) bool
}

// HostOf returns the account of d's host, nil where nobody keeps one. Ask once:
// the answer never changes, and nil is the usual one.
func HostOf(d Device) Host {
	if k, ok := d.(interface{ Host() Host }); ok && !status.IsNil(d) {
		return k.Host()
	}
	return nil
}

// Clock returns the clock of a host, that of the machine for nil, which is looked at
// once and not for the time of day too, as time.Now does.
func Clock(h Host) func() time.Time {
	if status.IsNil(h) {
		begun := time.Now()
		return func() time.Time { return begun.Add(time.Since(begun)) }
	}
	return h.Now
}
