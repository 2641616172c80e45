package checked

import "time"

// DefaultGrace is how long a Synchronize waits for a record that nobody has
// enqueued before it reports a deadlock.
const DefaultGrace = 10 * time.Second

type config struct {
	grace time.Duration
	leaks bool
	stale bool
}

// Option changes how New makes a layer.
type Option func(*config)

// WithGrace sets how long a Synchronize waits for a record that nobody has
// enqueued. A context with a deadline takes its place: then the deadlock is
// reported together with the context's error.
func WithGrace(d time.Duration) Option { return func(c *config) { c.grace = d } }

// WithStale lets kernels of task lists run with the parameters of before their
// update: there are no Stale findings, and no Race between a kernel and its
// update.
func WithStale() Option { return func(c *config) { c.stale = true } }

// WithLeaks makes Close return a Leak finding for each allocation, stream,
// event and model that was not freed, closed or unloaded before.
func WithLeaks() Option { return func(c *config) { c.leaks = true } }
