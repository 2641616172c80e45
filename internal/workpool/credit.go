package workpool

import "time"

// A helper that loses its processor in the middle of a block holds the whole
// run up for a time slice of the system, a few milliseconds, and one that is put
// on the submitter's own processor only takes turns with it. Where cores are
// short both cost more than helpers gain. So each job keeps an account: runs
// that go well pay in the time that helpers saved; late helpers cost the time
// that they were waited for, and one that found itself on its waker's processor
// costs a time slice. When the account is overdrawn the job works alone for a
// while, and then starts with enough for one bad wake-up: helpers that have slept
// meanwhile may be put anywhere once, also on a machine that has room for them.
const (
	// lateFactor and lateFloor tell a late helper from blocks of unequal size:
	// the wait is longer than so many times the submitter's own work, plus the
	// floor.
	lateFactor = 3
	lateFloor  = 50 * time.Microsecond
	// maxBalance bounds what good times can save up.
	maxBalance = 10 * time.Millisecond
	// crowdedCost is what a helper on its waker's processor costs: the time slice
	// in which the two take turns.
	crowdedCost = 500 * time.Microsecond
	// minPause and maxPause bound how long a job works alone before it tries
	// helpers again. The pause doubles when they go wrong again soon, which is
	// within soon pauses.
	minPause = 5 * time.Millisecond
	maxPause = 160 * time.Millisecond
	soon     = 5
)

// account decides whether a job uses helpers. The zero account does.
type account struct {
	balance time.Duration
	pause   time.Duration
	alone   time.Time // until then the job works alone
}

// open reports whether helpers may be used now.
func (a *account) open(now time.Time) bool { return !now.Before(a.alone) }

// book enters a run in which the submitter computed `mine` of n blocks in own
// time and then waited for the others.
func (a *account) book(now time.Time, own, wait time.Duration, mine, n int64) {
	if wait <= lateFactor*own+lateFloor {
		if mine > 0 {
			a.balance = min(a.balance+own*time.Duration(n-mine)/time.Duration(mine), maxBalance)
		}
		return
	}
	a.charge(now, wait-own)
}

// charge takes a cost from the account.
func (a *account) charge(now time.Time, cost time.Duration) {
	if a.balance -= cost; a.balance < 0 {
		a.close(now)
	}
}

// close makes the job work alone for a while.
func (a *account) close(now time.Time) {
	a.balance = crowdedCost
	if now.Sub(a.alone) < soon*a.pause {
		a.pause = min(2*a.pause, maxPause)
	} else {
		a.pause = minPause
	}
	a.alone = now.Add(a.pause)
}
