package sim

import (
	"time"

	"goatb/device"
	"goatb/device/trace"
)

// hostClock is the host thread.
type hostClock struct {
	now  int64 // nanoseconds since the device was opened
	busy int64 // of them, those that the host did not wait
	// waits names what a wait is for while somebody has said so.
	waits string
}

// epoch is the moment at which every simulated device is opened.
var epoch = time.Unix(0, 0).UTC()

// at turns a virtual moment into a time.
func at(ns int64) time.Time { return epoch.Add(time.Duration(ns)) }

// round turns computed nanoseconds into whole ones.
func round(ns float64) int64 { return int64(ns + 0.5) }

// charge lets the host work; mu is held.
func (d *Device) charge(category, name string, ns float64) {
	n := round(ns)
	if n == 0 {
		return
	}
	start := d.host.now
	d.host.now += n
	d.host.busy += n
	d.span(category, name, start)
}

// waited moves the host's clock on to a moment that it has waited for; mu is
// held.
func (d *Device) waited(category, name string, until int64) {
	if until <= d.host.now {
		return
	}
	if d.host.waits != "" {
		category = d.host.waits
	}
	start := d.host.now
	d.host.now = until
	d.span(category, name, start)
}

// span records what the host did from start to now.
func (d *Device) span(category, name string, start int64) {
	if d.rec != nil {
		d.rec.Host(trace.Span{Category: category, Name: name, Start: at(start), End: at(d.host.now)})
	}
}

// HostBusy returns the time that the host has worked so far, waits left out.
func (d *Device) HostBusy() time.Duration {
	if d.exists() != nil {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(d.host.busy)
}

// Host returns the account of the host's work, nil of a nil or zero Device.
func (d *Device) Host() device.Host {
	if d.exists() != nil {
		return nil
	}
	return (*account)(d)
}

// account is the device as its host's account.
type account Device

// Now is the time on the host's clock.
func (a *account) Now() time.Time {
	d := (*Device)(a)
	d.mu.Lock()
	defer d.mu.Unlock()
	return at(d.host.now)
}

// Begin charges the host for work.
func (a *account) Begin(w device.Work, p *device.Program) {
	d := (*Device)(a)
	d.mu.Lock()
	defer d.mu.Unlock()
	c := &d.costs
	name := ""
	if p != nil {
		name = p.Name
	}
	switch w {
	case device.SetupWork:
		d.charge("setup", name, c.SetupHost)
	case device.PlanWork:
		d.charge("plan", name, c.PlanHost)
	case device.LookupWork:
		d.charge("lookup", name, c.LookupHost)
	case device.TilingWork:
		d.charge("tiling", name, c.Tiling[groupOf(p)])
	case device.LaunchWork:
		d.charge("launch", name, c.WrapperHost+c.FrameworkHost)
	case device.RingWork:
		d.host.waits = "ring"
	}
}

// End ends what Begin has begun.
func (a *account) End(w device.Work) {
	d := (*Device)(a)
	d.mu.Lock()
	defer d.mu.Unlock()
	if w == device.RingWork {
		d.host.waits = ""
	}
}

// Fired reports whether the records of an event have fired by now.
func (a *account) Fired(e device.Event) bool {
	ev, ok := e.(*Event)
	if !ok || ev.dev != (*Device)(a) {
		return e.Query()
	}
	ev.dev.mu.Lock()
	defer ev.dev.mu.Unlock()
	return ev.fired()
}
