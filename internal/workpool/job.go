package workpool

import "sync/atomic"

// MaxBlocks is the largest number of blocks of one Run.
const MaxBlocks = 1<<31 - 1

// Job is a submitter's place in a pool. It runs one set of blocks at a time,
// again and again, without allocating. A Job belongs to one goroutine.
type Job struct {
	pool *Pool
	body func(lo, hi int)
	done *Parker
	gen  uint64

	_ [64]byte
	// word is the generation in the high half and the next block to claim in
	// the low half. A successful compare-and-swap on it claims blocks of that
	// generation only, and the generation cannot end before they are done: so a
	// helper that comes late never touches a later run's state.
	word  atomic.Uint64
	limit atomic.Int64
	_     [64]byte
	left  atomic.Int64 // blocks that are not done
	_     [64]byte
}

// NewJob makes a job of the pool. body computes the blocks [lo, hi) of the
// current run; it is called from several goroutines at once and must not
// panic.
func (p *Pool) NewJob(body func(lo, hi int)) *Job {
	j := &Job{pool: p, body: body, done: NewParker()}
	if p.size > 1 {
		p.add(j)
	}
	return j
}

// Close takes the job out of its pool. No Run may be going on.
func (j *Job) Close() { j.pool.remove(j) }

// Run computes n blocks, each exactly once, and returns when all are done. One
// block, or a pool of one worker, runs on the calling goroutine alone.
func (j *Job) Run(n int) {
	p := j.pool
	if p.size == 1 {
		j.body(0, n)
		return
	}
	p.active.Add(1)
	defer p.active.Add(-1)
	if n == 1 {
		j.body(0, 1)
		return
	}
	j.gen++
	j.left.Store(int64(n))
	j.limit.Store(int64(n))
	j.word.Store(j.gen << 32)
	p.epoch.Add(1)
	p.wake(0)
	for j.claimAndRun() {
	}
	j.await()
}

// open reports whether blocks are left to claim.
func (j *Job) open() bool { return int64(uint32(j.word.Load())) < j.limit.Load() }

// claimAndRun takes some of the blocks that are left and computes them. Shares
// shrink towards the end, so that the workers finish together.
func (j *Job) claimAndRun() bool {
	for {
		w := j.word.Load()
		next, limit := int64(uint32(w)), j.limit.Load()
		if next >= limit {
			return false
		}
		share := max((limit-next)/int64(2*j.pool.size), 1)
		if j.word.CompareAndSwap(w, w+uint64(share)) {
			j.body(int(next), int(next+share))
			if j.left.Add(-share) == 0 {
				j.done.Wake()
			}
			return true
		}
	}
}

// await returns when helpers have finished the blocks that they claimed.
func (j *Job) await() {
	sp := j.pool.spin.Start()
	for j.left.Load() != 0 {
		if sp.Next() {
			continue
		}
		j.done.Prepare()
		if j.left.Load() == 0 {
			j.done.Cancel()
			return
		}
		j.done.Sleep()
	}
}
