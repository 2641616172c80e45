package capture

import (
	"errors"
	"slices"
	"sync"
)

// Retired holds graphs that nobody replays any more until their executions are
// done. It may be used from any goroutine.
type Retired struct {
	mu     sync.Mutex
	graphs []*Graph
	errs   []error
	closed bool
}

// Add takes a graph over, nil for none, and closes what is done. It does not wait,
// but after Close, when nothing runs any more.
func (r *Retired) Add(g *Graph) {
	if g == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.graphs = append(r.graphs, g)
	r.sweep()
}

// Sweep closes what is done. It does not wait.
func (r *Retired) Sweep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep()
}

func (r *Retired) sweep() {
	r.graphs = slices.DeleteFunc(r.graphs, func(g *Graph) bool {
		if !r.closed && !g.Done() {
			return false
		}
		r.close(g)
		return true
	})
}

// close closes a graph and keeps the error for Close.
func (r *Retired) close(g *Graph) {
	if err := g.Close(); err != nil {
		r.errs = append(r.errs, err)
	}
}

// Waiting returns the number of graphs that are not done.
func (r *Retired) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.graphs)
}

// Close waits for all executions, closes the graphs, and returns what has failed
// since the last Close. Graphs that are added later are closed at once.
func (r *Retired) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, g := range r.graphs {
		r.close(g)
	}
	err := errors.Join(r.errs...)
	r.graphs, r.errs = nil, nil
	return err
}
