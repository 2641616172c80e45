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
	closed  atomic.Bool
	crowded atomic.Bool // a helper found itself on its waker's processor

	mu   sync.Mutex // guards changes of jobs
	jobs atomic.Pointer[[]*Job]

	_    [64]byte
	busy atomic.Int64 // submitters that have work now
	_    [64]byte
}

// New starts a pool of size workers: size-1 helpers, because the submitter of
// a job is a worker too. Idle helpers spin as long as spin says.
func New(size int, spin Spin) *Pool {
	p := &Pool{size: max(size, 1), spin: spin}
	p.jobs.Store(new([]*Job))
	for range p.size - 1 {
		p.helpers = append(p.helpers, NewParker())
	}
	p.done.Add(len(p.helpers))
	for i := range p.helpers {
		go p.help(i)
	}
	return p
}

// Size returns the number of workers, the submitter included.
func (p *Pool) Size() int { return p.size }

// Close ends the helpers and waits for them. Jobs must not run any more.
func (p *Pool) Close() {
	p.closed.Store(true)
	for _, h := range p.helpers {
		h.Wake()
	}
	p.done.Wait()
}

// help is the loop of helper i. A body that ended the goroutine gets a new one
// in its place.
func (p *Pool) help(i int) {
	defer func() {
		if p.closed.Load() {
			p.done.Done()
		} else {
			go p.help(i)
		}
	}()
	debug.SetPanicOnFault(true)
	me := p.helpers[i]
	sp := p.spin.StartIdle(me)
	for !p.closed.Load() {
		if p.serve(i) {
			sp.Found()
			sp = p.spin.StartIdle(me)
			continue
		}
		if p.idles(i) || sp.Next() {
			continue
		}
		if sp.Crowded() {
			p.crowded.Store(true)
		}
		me.Prepare()
		if p.closed.Load() || p.wanted(i) {
			me.Cancel()
			continue
		}
		me.Sleep()
		sp = p.spin.StartIdle(me)
	}
}

// serve works on every open job and reports whether it did anything.
func (p *Pool) serve(i int) bool {
	worked := false
	for _, j := range *p.jobs.Load() {
		for first := true; j.open() && p.allowed(i) && j.claimAndRun(i+1, first) > 0; first = false {
			worked = true
		}
	}
	return worked
}

// idles lets helper i do what jobs have for helpers without blocks, and reports whether
// there was anything.
func (p *Pool) idles(i int) (did bool) {
	for _, j := range *p.jobs.Load() {
		did = did || j.idles(i+1)
	}
	return did
}

// wanted reports whether there is work for helper i.
func (p *Pool) wanted(i int) bool {
	for _, j := range *p.jobs.Load() {
		if j.open() {
			return p.allowed(i)
		}
	}
	return false
}

// allowed keeps the number of busy goroutines at the pool's size when several
// submitters have work: each of them is a worker already.
func (p *Pool) allowed(i int) bool { return int64(i+1)+max(p.busy.Load(), 1) <= int64(p.size) }

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
