package cpu

import (
	"math"
	"time"

	"goatb/device"
	"goatb/device/trace"
	"goatb/internal/workpool"
	"goatb/status"
)

// DefaultQueueDepth is the number of tasks that a stream holds unless
// WithQueueDepth says otherwise.
const DefaultQueueDepth = 1024

// maxQueueDepth bounds the memory of one stream's slots.
const maxQueueDepth = 1 << 20

// maxWorkers bounds the goroutines of one device.
const maxWorkers = 4096

type config struct {
	workers int // noWorkers until an option says otherwise
	inline  bool
	depth   int
	limit   int64
	spin    time.Duration
	observe func(Task)
	host    device.Host

	prefetch   int
	taskUpdate bool
	deadline   time.Duration
}

// Defaults of what concerns task lists.
const (
	// DefaultPrefetch is that of an Ascend 910B.
	DefaultPrefetch = 8
	// DefaultDeadline bounds a preprocess task that has no deadline of its own.
	DefaultDeadline = 30 * time.Second
)

// maxPrefetch bounds the prefetch depth.
const maxPrefetch = 1024

const noWorkers = math.MinInt

// Option changes how New makes a device.
type Option func(*config)

// WithWorkers sets the number of blocks that run at once. The default is the
// least of GOMAXPROCS, the processors of the affinity mask and the quota of the
// control group. An inline device runs its blocks one after the other; there
// the number only tells kernels how many blocks to cut their work into.
func WithWorkers(n int) Option { return func(c *config) { c.workers = n } }

// WithInline makes tasks run inside the call that enqueues them. No goroutine
// is started, but for preprocess tasks of models: the caller waits for a goroutine
// that runs them, so that a deadline can end the wait.
func WithInline() Option { return func(c *config) { c.inline = true } }

// WithQueueDepth sets the number of tasks that a stream holds, 1 to 1048576.
func WithQueueDepth(n int) Option { return func(c *config) { c.depth = n } }

// WithMemoryLimit bounds the bytes that Alloc has handed out and Free has not
// taken back. Memory whose Free waits for enqueued work still counts. The
// default is no limit.
func WithMemoryLimit(bytes int64) Option { return func(c *config) { c.limit = bytes } }

// WithSpin sets how long idle goroutines look for work before they sleep; 0
// makes them sleep at once. The default is 100 microseconds.
func WithSpin(d time.Duration) Option { return func(c *config) { c.spin = d } }

// WithObserver calls f after every task, from the goroutine that ran it, so f
// must be quick and safe for concurrent use.
func WithObserver(f func(Task)) Option { return func(c *config) { c.observe = f } }

// WithPrefetch sets how many queue entries past an event wait a stream of a
// model fetches before the wait is over, 0 to 1024 (device.CapPrefetch).
func WithPrefetch(entries int) Option { return func(c *config) { c.prefetch = entries } }

// WithTaskUpdate says whether task lists may hold update tasks
// (device.CapTaskUpdate). They may by default.
func WithTaskUpdate(on bool) Option { return func(c *config) { c.taskUpdate = on } }

// WithDeadline bounds preprocess tasks that have no deadline of their own.
func WithDeadline(d time.Duration) Option { return func(c *config) { c.deadline = d } }

// WithHost makes the device keep account of its host's work: the device.Host that
// device.HostOf finds. What costs the host time is not batched then.
func WithHost(h device.Host) Option { return func(c *config) { c.host = h } }

// Task tells an observer what a stream did. Streams are numbered from 0 in the
// order of their making.
type Task = trace.Task

func newConfig(opts []Option) (config, error) {
	c := config{workers: noWorkers, depth: DefaultQueueDepth, limit: math.MaxInt64, spin: workpool.DefaultSpin,
		prefetch: DefaultPrefetch, taskUpdate: true, deadline: DefaultDeadline}
	for _, o := range opts {
		if o != nil {
			o(&c)
		}
	}
	switch {
	case c.workers != noWorkers:
	case c.inline:
		c.workers = 1
	default:
		c.workers = defaultWorkers()
	}
	switch {
	case c.workers < 1 || c.workers > maxWorkers:
		return c, status.Errorf(status.ErrInvalidParam, "want 1 to %d workers, got %d", maxWorkers, c.workers)
	case c.depth < 1 || c.depth > maxQueueDepth:
		return c, status.Errorf(status.ErrInvalidParam, "want a queue depth of 1 to %d, got %d", maxQueueDepth, c.depth)
	case c.limit < 0:
		return c, status.Errorf(status.ErrInvalidParam, "want a memory limit of at least 0 bytes, got %d", c.limit)
	case c.prefetch < 0 || c.prefetch > maxPrefetch:
		return c, status.Errorf(status.ErrInvalidParam, "want a prefetch depth of 0 to %d, got %d", maxPrefetch, c.prefetch)
	case c.deadline <= 0:
		return c, status.Errorf(status.ErrInvalidParam, "want a deadline above 0, got %v", c.deadline)
	case c.spin < 0:
		return c, status.Errorf(status.ErrInvalidParam, "want a spin time of at least 0, got %v", c.spin)
	}
	return c, nil
}
