package workpool

import "sync/atomic"

// Parker lets one goroutine sleep until another wakes it, without losing a
// wake-up that comes early. The sleeper calls Prepare, looks at its condition
// once more, and then calls Cancel or Sleep; the waker changes the condition
// first and calls Wake after it. Wake costs one atomic load while the owner is
// awake.
type Parker struct {
	parked atomic.Bool
	token  chan struct{}
	waker  location // of the last wake-up, until the owner has looked at it

	_ [104]byte // wakers look at parked often: nothing else shares its line
}

// NewParker returns a parker.
func NewParker() *Parker { return &Parker{token: make(chan struct{}, 1), waker: nowhere} }

// Prepare announces that the owner is about to sleep.
func (p *Parker) Prepare() { p.parked.Store(true) }

// Cancel takes the announcement back.
func (p *Parker) Cancel() {
	if !p.parked.CompareAndSwap(true, false) {
		<-p.token
	}
}

// Sleep sleeps until Wake. The owner then looks at its condition again.
func (p *Parker) Sleep() { <-p.token }

// Wake ends the sleep of the owner, if it sleeps or is about to, and reports
// whether it did.
func (p *Parker) Wake() bool {
	if p.parked.Load() && p.parked.CompareAndSwap(true, false) {
		p.waker = here()
		p.token <- struct{}{}
		return true
	}
	return false
}

// location is where a goroutine runs.
type location struct{ processor, thread int32 }

var nowhere = location{-1, -1}

// crowded reports whether the owner was woken onto the processor of its waker,
// by another thread. Then the system had no other processor for it, and a busy
// wait for more work only keeps from running who would give it. A waker soon
// moves on, so only the first question after a wake-up can be answered.
func (p *Parker) crowded() bool {
	waker := p.waker
	if waker == nowhere {
		return false
	}
	p.waker = nowhere
	me := here()
	return waker.processor == me.processor && waker.thread != me.thread
}
