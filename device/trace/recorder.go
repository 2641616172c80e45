package trace

import (
	"slices"
	"sync"
	"time"

	"goatb/device"
)

// Task is what a stream did.
type Task struct {
	// Stream numbers the device's streams from 0.
	Stream int
	// Engine names the engine whose row the task belongs to, such as a copy
	// engine; it is empty for the row of the stream itself.
	Engine string
	// Kind is "launch", "copy", "record", "wait" or "replay", which is an execution
	// of a model; the model's own tasks are "preprocess", "update" and "nop" too.
	Kind string
	// Label is the launch's label, nil when it had none. Tasks of a model that
	// have none get the model's name.
	Label *device.Label
	// Enqueued is when the host enqueued the task, zero when nobody noted it.
	Enqueued time.Time
	// Start and End bound the task's run; a wait ends when its event has fired.
	Start, End time.Time
	// Bytes is the size of a copy, Blocks the block dim of a launch.
	Bytes  int64
	Blocks int
	// Skipped says that the task did not run because of an earlier error.
	Skipped bool
	// Pending says that the launch's tiling is computed on the device and had not
	// reached its entry: it ran with the parameters that it was loaded with. Then
	// a timeline shows device.BlocksPending in place of Blocks.
	Pending bool
}

// Span is a piece of the host's work.
type Span struct {
	// Name says what it worked for, such as an operation's name, Category what
	// it did, such as "setup".
	Name, Category string
	Start, End     time.Time
}

// Sample is the value of a counter from a moment on.
type Sample struct {
	Counter string
	At      time.Time
	Value   int64
}

// DefaultLimit is the number of entries that a Recorder keeps unless New is told
// otherwise: some hundred megabytes of JSON.
const DefaultLimit = 1 << 20

// Recorder keeps tasks, spans and samples in memory. It may be used from any
// goroutine.
type Recorder struct {
	name  string
	limit int

	mu      sync.Mutex
	tasks   []Task
	spans   []Span
	samples []Sample
	dropped int64
}

// New makes an empty recorder. What comes after `limit` entries together is
// counted and dropped; 0 stands for DefaultLimit.
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

// Host adds a span of the host. Spans lie apart or inside each other.
func (r *Recorder) Host(s Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.room() {
		r.spans = append(r.spans, s)
	}
}

// Count adds a sample of a counter.
func (r *Recorder) Count(s Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.room() {
		r.samples = append(r.samples, s)
	}
}

// room reports whether one more is kept, and counts it when not.
func (r *Recorder) room() bool {
	if len(r.tasks)+len(r.spans)+len(r.samples) < r.limit {
		return true
	}
	r.dropped++
	return false
}

// Tasks returns the tasks so far, in the order in which they ended.
func (r *Recorder) Tasks() []Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.tasks)
}

// Spans returns the spans so far.
func (r *Recorder) Spans() []Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.spans)
}

// Append adds what another recorder holds, and counts what it has dropped as
// dropped.
func (r *Recorder) Append(from *Recorder) {
	from.mu.Lock()
	tasks, spans, samples, dropped := slices.Clone(from.tasks), slices.Clone(from.spans), slices.Clone(from.samples), from.dropped
	from.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	keep := func(n int) int {
		fits := min(n, r.limit-len(r.tasks)-len(r.spans)-len(r.samples))
		r.dropped += int64(n - fits)
		return fits
	}
	r.tasks = append(r.tasks, tasks[:keep(len(tasks))]...)
	r.spans = append(r.spans, spans[:keep(len(spans))]...)
	r.samples = append(r.samples, samples[:keep(len(samples))]...)
	r.dropped += dropped
}

// Mark is a point in a recorder's entries.
type Mark struct{ tasks, spans, samples int }

// Entries is the number of entries before the point.
func (m Mark) Entries() int { return m.tasks + m.spans + m.samples }

// Mark returns the point behind the last entry.
func (r *Recorder) Mark() Mark {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Mark{len(r.tasks), len(r.spans), len(r.samples)}
}

// Before returns a recorder of the same name with the entries before a mark. Reset
// makes marks void.
func (r *Recorder) Before(m Mark) *Recorder {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Recorder{
		name: r.name, limit: r.limit,
		tasks:   slices.Clone(r.tasks[:min(m.tasks, len(r.tasks))]),
		spans:   slices.Clone(r.spans[:min(m.spans, len(r.spans))]),
		samples: slices.Clone(r.samples[:min(m.samples, len(r.samples))]),
	}
}

// Reset forgets everything.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tasks, r.spans, r.samples, r.dropped = r.tasks[:0], r.spans[:0], r.samples[:0], 0
}

// Dropped returns how many entries there was no room for.
func (r *Recorder) Dropped() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}
