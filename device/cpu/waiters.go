package cpu

import "sync"

// waiterList keeps host waiters for reuse.
type waiterList struct {
	mu   sync.Mutex
	free []*hostWaiter
}

func (l *waiterList) take() *hostWaiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.free); n > 0 {
		w := l.free[n-1]
		l.free = l.free[:n-1]
		return w
	}
	return &hostWaiter{ready: make(chan struct{}, 1)}
}

// give takes back a waiter whose channel is empty.
func (l *waiterList) give(w *hostWaiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, w)
}
