package workpool

import "sync/atomic"

// courtesy is what the busy waits of a device have learned about the machine.
// One that lost its processor took it from somebody who has work: from then on all
// give up earlier, and sleep. Waits that end with what they waited for earn the
// full time back, step by step.
type courtesy struct {
	level atomic.Int32 // busy waits last 1/2^level of their bound
	paid  atomic.Int32 // that ended well since the level changed
}

const (
	// mostCourtesy leaves a busy wait of 100 us a time of 1.6 us.
	mostCourtesy = 6
	// courtesyStep is what a lost processor adds to the level, and courtesyPay the
	// number of waits that ended well for which it falls by 1.
	courtesyStep = 2
	courtesyPay  = 32
)

// lost notes that a busy wait lost its processor.
func (c *courtesy) lost() {
	if c != nil {
		c.level.Store(min(c.level.Load()+courtesyStep, mostCourtesy))
		c.paid.Store(0)
	}
}

// found notes that a busy wait has ended well.
func (c *courtesy) found() {
	if c == nil || c.level.Load() == 0 || c.paid.Add(1) < courtesyPay {
		return
	}
	c.paid.Store(0)
	c.level.Store(max(c.level.Load()-1, 0))
}

// shift is the level, 0 of no courtesy.
func (c *courtesy) shift() int {
	if c == nil {
		return 0
	}
	return int(c.level.Load())
}
