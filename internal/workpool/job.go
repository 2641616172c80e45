package workpool

import (
	"sync/atomic"
	"time"
)

// MaxBlocks is the largest number of blocks of one Run.
const MaxBlocks = 1<<31 - 1

// joinSpin bounds the busy wait for helpers that have not finished their last
// blocks. It is short: blocks are of one size as a rule, so a helper that needs
// much longer has lost its processor and can use the submitter's.
const joinSpin = 30 * time.Microsecond

// Job is a submitter's place in a pool. It runs one set of blocks at a time,
// again and again, without allocating. A Job belongs to one goroutine.
type Job struct {
	pool *Pool
	body func(lo, hi int)
	done *Parker
	join Spin
	gen  uint64
	busy bool

	helped account
	mine   int64 // blocks of the run that the submitter computed

	_ [64]byte
	// word is the generation in the high half and the number of blocks that
	// nobody has claimed in the low half. A compare-and-swap that lowers it
	// claims blocks of that generation only, and the generation cannot end
	// before they are done: so a helper that comes late never touches the state
	// of a later run. Nothing but word decides whether there is a block to claim.
	word  atomic.Uint64
	left  atomic.Int64 // blocks that are not done
	total int64        // blocks of the run; stable while a claimed block is not done
	_     [64]byte
}

// NewJob makes a job of the pool. body computes the blocks [lo, hi) of the
// current run; it is called from several goroutines at once and must not
// panic. A body that ends its goroutine loses the rest of its blocks.
func (p *Pool) NewJob(body func(lo, hi int)) *Job {
	j := &Job{pool: p, body: body, done: NewParker(), join: p.spin.AtMost(joinSpin)}
	if p.size > 1 {
		p.add(j)
	}
	return j
}

// Close takes the job out of its pool. No Run may be going on.
func (j *Job) Close() {
	j.SetBusy(false)
	j.pool.remove(j)
}

// SetBusy tells the pool whether the submitter has work, runs or not: the
// helpers leave a processor to each submitter that has. A submitter that never
// calls it is taken for the only one.
func (j *Job) SetBusy(busy bool) {
	if j.busy == busy || j.pool.size == 1 {
		return
	}
	j.busy = busy
	if busy {
		j.pool.busy.Add(1)
	} else {
		j.pool.busy.Add(-1)
	}
}

// Run computes n blocks, each exactly once, and returns when all are done. One
// block, or a pool of one worker, runs on the calling goroutine alone.
func (j *Job) Run(n int) {
	if n == 1 || j.pool.size == 1 {
		j.body(0, n)
		return
	}
	start := time.Now()
	if j.pool.crowded.Load() && j.pool.crowded.Swap(false) {
		j.helped.charge(start, crowdedCost)
	}
	if !j.helped.open(start) {
		j.body(0, n)
		return
	}
	j.gen++
	j.mine = 0
	j.total = int64(n)
	j.left.Store(int64(n))
	j.word.Store(j.gen<<32 | uint64(n))
	j.pool.wake(0)
	defer j.end(start)
	for {
		share := j.claimAndRun(0, false)
		if share == 0 {
			return
		}
		j.mine += share
	}
}

// Shared returns the number of runs so far, modulo 2^32, that helpers were asked
// to share. It may be called from any goroutine.
func (j *Job) Shared() uint32 { return uint32(j.word.Load() >> 32) }

// open reports whether blocks are left to claim.
func (j *Job) open() bool { return uint32(j.word.Load()) != 0 }

// claimAndRun takes some of the blocks that are left and computes them. Shares
// shrink towards the end, so that the workers finish together. A helper that
// comes to a job first wakes the next one while there is more to claim. The
// result is the number of blocks.
func (j *Job) claimAndRun(helper int, first bool) int64 {
	for {
		w := j.word.Load()
		unclaimed := int64(uint32(w))
		if unclaimed == 0 {
			return 0
		}
		share := max(unclaimed/int64(2*j.pool.size), 1)
		if !j.word.CompareAndSwap(w, w-uint64(share)) {
			continue
		}
		if first && unclaimed > share {
			j.pool.wake(helper + 1)
		}
		j.runShare(j.total-unclaimed, share)
		return share
	}
}

// runShare computes claimed blocks. They count as done even when the body ends
// its goroutine (runtime.Goexit, as a failing test does): nobody may wait for
// them in vain.
func (j *Job) runShare(lo, share int64) {
	defer j.finish(share)
	j.body(int(lo), int(lo+share))
}

func (j *Job) finish(share int64) {
	if j.left.Add(-share) == 0 {
		j.done.Wake()
	}
}

// end drops the blocks that nobody has claimed, which are none unless the body
// ended the submitter's goroutine, and waits for the others.
func (j *Job) end(start time.Time) {
	for {
		w := j.word.Load()
		unclaimed := uint64(uint32(w))
		if unclaimed == 0 {
			break
		}
		if j.word.CompareAndSwap(w, w-unclaimed) {
			j.left.Add(-int64(unclaimed))
		}
	}
	own := time.Since(start)
	waited := j.await()
	j.helped.book(start, own, waited, j.mine, j.total)
}

// await returns when helpers have finished the blocks that they claimed, and how
// long that took, 0 for a moment.
func (j *Job) await() time.Duration {
	if j.left.Load() == 0 {
		return 0
	}
	sp := j.join.Start()
	for j.left.Load() != 0 {
		if sp.Next() {
			continue
		}
		j.done.Prepare()
		if j.left.Load() == 0 {
			j.done.Cancel()
			break
		}
		j.done.Sleep()
	}
	return sp.Passed()
}
