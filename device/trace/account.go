package trace

import (
	"sync"
	"time"

	"goatb/device"
)

// Account is the account of a host whose time is real: it writes down how long
// each piece of work above the device took. It may be used from any goroutine.
type Account struct {
	rec *Recorder

	mu    sync.Mutex
	begun [device.RingWork + 1]struct {
		at   time.Time
		name string
	}
}

// NewAccount makes an account that writes to a recorder.
func NewAccount(r *Recorder) *Account { return &Account{rec: r} }

// Now is the machine's time.
func (a *Account) Now() time.Time { return time.Now() }

// Begin notes the start of work.
func (a *Account) Begin(w device.Work, p *device.Program) {
	name := ""
	if p != nil {
		name = p.Name
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begun[w].at, a.begun[w].name = time.Now(), name
}

// End records the work that was begun.
func (a *Account) End(w device.Work) {
	now := time.Now()
	a.mu.Lock()
	b := a.begun[w]
	a.mu.Unlock()
	a.rec.Host(Span{Category: w.String(), Name: b.name, Start: b.at, End: now})
}

// Fired asks the event.
func (a *Account) Fired(e device.Event) bool { return e.Query() }

var _ device.Host = (*Account)(nil)
