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
	waker  int32     // the processor of the last waker, for the owner
	_      [104]byte // wakers look at parked often: nothing else shares its line
}

// NewParker returns a parker.
func NewParker() *Parker { return &Parker{token: make(chan struct{}, 1), waker: -1} }

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
		p.waker = processor()
		p.token <- struct{}{}
		return true
	}
	return false
}

// crowded reports whether the owner runs on the processor of its last waker.
// Then the system had no other processor for it, and a busy wait for more work
// only keeps from running who would give it.
func (p *Parker) crowded() bool { return p.waker >= 0 && p.waker == processor() }
