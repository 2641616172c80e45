package trace

import (
	"sync"
	"time"

	"goatb/device"
)

// Task is what a stream did. Its fields are those of cpu.Task, so that one
// converts to the other.
type Task struct {
	// Stream numbers the device's streams from 0.
	Stream int
	// Kind is "launch", "copy", "record" or "wait".
	Kind string
	// Label is the launch's label, nil when it had none.
	Label *device.Label
	// Start and End bound the task's run; a wait ends when its event has fired.
	Start, End time.Time
	// Bytes is the size of a copy, Blocks the block dim of a launch.
	Bytes  int64
	Blocks int
	// Skipped says that the task did not run because of an earlier error.
	Skipped bool
}

// Span is a piece of the host's work.
type Span struct {
	// Name says what it worked for, such as an operation's name, Category what
	// it did, such as "setup".
	Name, Category string
	Start, End     time.Time
	// Stream is where it has enqueued Launches kernels. Spans that enqueue must
	// be added in the order in which they did.
	Stream   int
	Launches int64
}

// DefaultLimit is the number of tasks and spans that a Recorder keeps unless New
// is told otherwise: some hundred megabytes of JSON.
const DefaultLimit = 1 << 20

// Recorder keeps tasks and spans in memory. It may be used from any goroutine.
type Recorder struct {
	name  string
	limit int

	mu      sync.Mutex
	tasks   []Task
	spans   []Span
	dropped int64
}

// New makes an empty recorder. What comes after `limit` tasks and spans together
// is counted and dropped; 0 stands for DefaultLimit.
func New(name string, limit int) *Recorder {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &Recorder{name: name, limit: limit}
}

// Task adds a task of a stream.
func (r *Recorder) Task(t Task) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.room() {
		r.tasks = append(r.tasks, t)
	}
}

// Host adds a span of the host.
func (r *Recorder) Host(s Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.room() {
		r.spans = append(r.spans, s)
	}
}

// room reports whether one more is kept, and counts it when not.
func (r *Recorder) room() bool {
	if len(r.tasks)+len(r.spans) < r.limit {
		return true
	}
	r.dropped++
	return false
}

// Dropped returns how many tasks and spans there was no room for.
func (r *Recorder) Dropped() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}
