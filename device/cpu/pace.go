package cpu

import "goatb/internal/workpool"

// pace keeps a runner from following its enqueuer at the heels. Both would then
// wait for each other's cache lines at every task, which makes a launch several
// times as expensive. A runner that has found the next task at once several
// times rests for a moment before it looks again, so that the enqueuer gets a
// few tasks ahead. A host that synchronizes in between wants answers and is
// never made to wait.
type pace struct {
	streak int
	syncs  uint64
}

const (
	paceSoon   = 8  // moments in which the next task counts as found at once
	paceStreak = 4  // so many times in a row
	paceRest   = 12 // moments
)

func (p *pace) rest() {
	if p.streak >= paceStreak {
		workpool.Pause(paceRest)
	}
}

// found notes that a task came after a busy wait of n moments.
func (p *pace) found(n int, syncs uint64) {
	if n > paceSoon || syncs != p.syncs {
		p.streak = 0
	} else {
		p.streak++
	}
	p.syncs = syncs
}
