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
	idle func(worker int) bool
	done *Parker
	join Spin
	gen  uint64
	busy bool

	helped account
	mine   int64 // blocks of the run that the submitter computed

	parts []part // one for each worker

	_    [64]byte
	left atomic.Int64 // blocks that are not done
	// total is the number of blocks of the run, which unit blocks are claimed of at
	// least; both are stable while a claimed block is not done.
	total, unit int64
	_           [64]byte
}

// part is a worker's part of the blocks: neighbours, which the worker claims from
// the first one on, so that what it reads lies behind each other as a rule. Who has
// done his own part takes from the end of another.
//
// word is the generation in the high half, and in the low half the first unit that
// nobody has claimed, of 16 bits, and the end of them. A compare-and-swap that
// narrows them claims units of that generation only, and the generation cannot end
// before they are done: so a helper that comes late never touches the state of a
// later run. Nothing but words decides whether there is a block to claim.
type part struct{ word atomic.Uint64 }

// newParts makes the parts of a number of workers. They lie together, for a run
// writes all of them, and a cache line away from everything else.
func newParts(workers int) []part {
	const line = 64 / 8
	return make([]part, workers+2*line)[line : line+workers : line+workers]
}

// maxUnits is the most units of a run.
const maxUnits = 1<<16 - 1

// unclaimed returns the units of a word that nobody has claimed.
func unclaimed(w uint64) (lo, hi int64) { return int64(uint16(w >> 16)), int64(uint16(w)) }

// wordOf makes a word of a generation.
func wordOf(gen uint64, lo, hi int64) uint64 { return gen<<32 | uint64(lo)<<16 | uint64(hi) }

// NewJob makes a job of the pool. body computes the blocks [lo, hi) of the
// current run; it is called from several goroutines at once and must not
// panic. A body that ends its goroutine loses the rest of its blocks.
//
// idle, unless it is nil, is what a worker does meanwhile that finds no block: a
// helper between runs, and the submitter, worker 0, while it waits for helpers. It is
// called again and again while it reports that there is more to do, and should take a
// fraction of a microsecond.
func (p *Pool) NewJob(body func(lo, hi int), idle func(worker int) bool) *Job {
	j := &Job{pool: p, body: body, idle: idle, done: NewParker(), join: p.spin.AtMost(joinSpin), parts: newParts(p.size)}
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
	j.deal(int64(n))
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
func (j *Job) Shared() uint32 { return uint32(j.parts[0].word.Load() >> 32) }

// deal gives each worker its part of n blocks. Helpers may claim as soon as the
// first one has his.
func (j *Job) deal(n int64) {
	size := int64(len(j.parts))
	j.total, j.unit = n, unitOf(n)
	j.left.Store(n)
	units := unitsOf(n)
	lo := int64(0)
	for w := range size {
		hi := partOf(w+1, units, size)
		j.parts[w].word.Store(wordOf(j.gen, lo, hi))
		lo = hi
	}
}

// partOf is the first unit of a worker's part.
func partOf(worker, units, workers int64) int64 { return (worker*units + workers - 1) / workers }

// FirstBlock is the block that a worker begins a run of n blocks with, unless another
// one was faster.
func (p *Pool) FirstBlock(worker, n int) int {
	unit := unitOf(int64(n))
	return int(min(partOf(int64(worker), unitsOf(int64(n)), int64(p.size))*unit, int64(n)-1))
}

// unitOf is the number of blocks of a unit of a run of n, and unitsOf that of units.
func unitOf(n int64) int64  { return (n-1)/maxUnits + 1 }
func unitsOf(n int64) int64 { return (n-1)/unitOf(n) + 1 }

// open reports whether blocks are left to claim.
func (j *Job) open() bool {
	for i := range j.parts {
		if lo, hi := unclaimed(j.parts[i].word.Load()); lo < hi {
			return true
		}
	}
	return false
}

// claimAndRun takes some of the blocks that are left, of the worker's own part if
// there are any, and computes them. Shares shrink towards the end, so that the
// workers finish together. A helper that comes to a job first wakes the next one
// while there is more to claim. The result is the number of blocks.
func (j *Job) claimAndRun(worker int, first bool) int64 {
	from, share := j.claim(worker)
	if share == 0 {
		return 0
	}
	if first && j.open() {
		j.pool.wake(worker)
	}
	lo, n := j.blocks(from, share)
	j.runShare(lo, n)
	return n
}

// claim takes the first half of the units that are left of the worker's own part, or
// the last half of the fullest part.
func (j *Job) claim(worker int) (from, share int64) {
	for at := worker; at >= 0; at = j.fullest() {
		own := &j.parts[at].word
		w := own.Load()
		lo, hi := unclaimed(w)
		if lo == hi {
			continue
		}
		from, share = lo, max((hi-lo)/2, 1)
		left := wordOf(w>>32, lo+share, hi)
		if at != worker {
			from, left = hi-share, wordOf(w>>32, lo, hi-share)
		}
		if own.CompareAndSwap(w, left) {
			return from, share
		}
	}
	return 0, 0
}

// blocks turns claimed units into blocks: the last unit may be short.
func (j *Job) blocks(from, share int64) (lo, n int64) {
	lo = from * j.unit
	return lo, min(share*j.unit, j.total-lo)
}

// fullest returns the number of the part of which most is left, -1 when nothing is.
func (j *Job) fullest() (at int) {
	at, most := -1, int64(0)
	for i := range j.parts {
		if lo, hi := unclaimed(j.parts[i].word.Load()); hi-lo > most {
			at, most = i, hi-lo
		}
	}
	return at
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
	for from, share := j.claim(0); share > 0; from, share = j.claim(0) {
		_, n := j.blocks(from, share)
		j.left.Add(-n)
	}
	own := time.Since(start)
	waited := j.await()
	j.helped.book(start, own, waited, j.mine, j.total)
}

// idles lets a worker do what it does without blocks, and reports whether it did.
func (j *Job) idles(worker int) bool { return j.idle != nil && j.idle(worker) }

// await returns when helpers have finished the blocks that they claimed, and how
// long that took, 0 for a moment.
func (j *Job) await() time.Duration {
	if j.left.Load() == 0 {
		return 0
	}
	sp := j.join.Start()
	for j.left.Load() != 0 {
		if j.idles(0) || sp.Next() {
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
