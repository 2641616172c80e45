package runner

import (
	"errors"
	"sync"
)

// Pool keeps the runners of closed operations for the next operation of their
// type: a runner brings its plan and its cached tilings along. It is safe for
// concurrent use.
type Pool struct {
	size   int
	mu     sync.Mutex
	idle   map[string][]*Runner
	closed bool
}

// NewPool makes a pool that keeps up to `size` runners of each type; 0 keeps
// none.
func NewPool(size int) *Pool { return &Pool{size: size, idle: map[string][]*Runner{}} }

// Take returns an idle runner of the type whose owner `same` accepts, or nil.
func (p *Pool) Take(opType string, same func(owner any) bool) *Runner {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.idle[opType]
	for i, r := range list {
		if same(r.Owner) {
			last := len(list) - 1
			list[i] = list[last]
			list[last] = nil
			p.idle[opType] = list[:last]
			return r
		}
	}
	return nil
}

// Put gives a runner back. A full or closed pool closes it.
func (p *Pool) Put(opType string, r *Runner) error {
	r.Discard()
	r.unbind()
	p.mu.Lock()
	keep := !p.closed && len(p.idle[opType]) < p.size
	if keep {
		p.idle[opType] = append(p.idle[opType], r)
	}
	p.mu.Unlock()
	if keep {
		return nil
	}
	return r.Close()
}

// Idle returns the number of runners that wait.
func (p *Pool) Idle() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, list := range p.idle {
		n += len(list)
	}
	return n
}

// Close closes the idle runners. Closing twice is legal.
func (p *Pool) Close() error {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = map[string][]*Runner{}, true
	p.mu.Unlock()
	var errs []error
	for _, list := range idle {
		for _, r := range list {
			errs = append(errs, r.Close())
		}
	}
	return errors.Join(errs...)
}
