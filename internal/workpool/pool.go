package workpool

import (
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
)

// Pool holds the helpers of one device. It is safe for concurrent use.
type Pool struct {
	size    int
	spin    Spin
	helpers []*Parker
	done    sync.WaitGroup

	mu   sync.Mutex // guards changes of jobs
	jobs atomic.Pointer[[]*Job]

	_      [64]byte
	epoch  atomic.Uint64 // grows with every job that offers blocks
	closed atomic.Bool
	_      [64]byte
	active atomic.Int64 // submitters that run a kernel now
	_      [64]byte
}

// New starts a pool of size workers: size-1 helpers, because the submitter of
// a job is a worker too. Idle helpers spin as long as spin says.
func New(size int, spin Spin) *Pool {
	p := &Pool{size: max(size, 1), spin: spin}
	p.jobs.Store(new([]*Job))
	for range p.size - 1 {
		p.helpers = append(p.helpers, NewParker())
	}
	for i := range p.helpers {
		p.done.Go(func() { p.help(i) })
	}
	return p
}

// Size returns the number of workers, the submitter included.
func (p *Pool) Size() int { return p.size }

// Close ends the helpers and waits for them. Jobs must not run any more.
func (p *Pool) Close() {
	p.closed.Store(true)
	p.epoch.Add(1)
	for _, h := range p.helpers {
		h.Wake()
	}
	p.done.Wait()
}

// help is the loop of helper i.
func (p *Pool) help(i int) {
	debug.SetPanicOnFault(true)
	for !p.closed.Load() {
		seen := p.epoch.Load()
		if p.serve(i) {
			continue
		}
		p.idle(i, seen)
	}
}

// idle returns when there may be work again.
func (p *Pool) idle(i int, seen uint64) {
	sp := p.spin.StartYielding()
	for n := 1; sp.Next(); n++ {
		if p.epoch.Load() != seen || (n&63 == 0 && p.serve(i)) {
			return
		}
	}
	h := p.helpers[i]
	h.Prepare()
	if p.epoch.Load() != seen {
		h.Cancel()
		return
	}
	h.Sleep()
}

// serve works on every open job and reports whether it did anything.
func (p *Pool) serve(i int) bool {
	worked := false
	for _, j := range *p.jobs.Load() {
		first := true
		for p.allowed(i) && j.claimAndRun() {
			if first {
				first, worked = false, true
				if j.open() {
					p.wake(i + 1)
				}
			}
		}
	}
	return worked
}

// allowed keeps the number of busy goroutines at the pool's size when several
// submitters run at once: each of them is a worker already.
func (p *Pool) allowed(i int) bool { return int64(i+1)+p.active.Load() <= int64(p.size) }

// wake wakes the first sleeping helper from number `from` on.
func (p *Pool) wake(from int) {
	for _, h := range p.helpers[min(from, len(p.helpers)):] {
		if h.Wake() {
			return
		}
	}
}

// add makes a job visible to the helpers.
func (p *Pool) add(j *Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := append(slices.Clone(*p.jobs.Load()), j)
	p.jobs.Store(&list)
}

// remove hides a job from the helpers.
func (p *Pool) remove(j *Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(*p.jobs.Load()), func(o *Job) bool { return o == j })
	p.jobs.Store(&list)
}
