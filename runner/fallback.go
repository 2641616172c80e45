package runner

import (
	"cmp"
	"slices"
	"sync"
)

// Fallback is a tiling that was asked to leave the host and did not.
type Fallback struct {
	// Op is the operation, Node its part; an empty Node stands for all of it.
	Op, Node string
	// Gate is what kept the tiling on the host, and Reason says why.
	Gate, Reason string
	// Times counts the captures in which that was so.
	Times int64
}

// Fallbacks gathers fallbacks. It is safe for concurrent use.
type Fallbacks struct {
	mu    sync.Mutex
	times map[Fallback]int64
	total int64
}

// maxFallbacks bounds the number of different fallbacks that are kept.
const maxFallbacks = 1024

// Add counts a fallback once.
func (f *Fallbacks) Add(b Fallback) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total++
	if f.times == nil {
		f.times = map[Fallback]int64{}
	}
	b.Times = 0
	if _, known := f.times[b]; known || len(f.times) < maxFallbacks {
		f.times[b]++
	}
}

// List returns the number of fallbacks and a sorted list of them; the list keeps
// a bounded number of different ones.
func (f *Fallbacks) List() (total int64, list []Fallback) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for b, n := range f.times {
		b.Times = n
		list = append(list, b)
	}
	slices.SortFunc(list, func(a, b Fallback) int {
		return cmp.Or(cmp.Compare(a.Op, b.Op), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Gate, b.Gate), cmp.Compare(a.Reason, b.Reason))
	})
	return f.total, list
}
