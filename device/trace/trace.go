// Package trace gathers spans of time and writes them as a timeline in the
// JSON format of Chrome's tracing page, which Perfetto reads too: a row per
// stream of the device and one for the host.
package trace

import (
	"encoding/json"
	"io"
	"slices"
	"sync"
	"time"
)

// Span is a piece of work with a start and an end.
type Span struct {
	// Row names the row that the span is drawn in, such as "host" or
	// "stream 0".
	Row string
	// Name says what was done, Category what kind of work it was.
	Name, Category string
	Start, End     time.Time
	// Args are details to show; they may be nil.
	Args map[string]any
}

// Recorder gathers spans. It is safe for concurrent use.
type Recorder struct {
	mu    sync.Mutex
	spans []Span
}

// Add adds a span.
func (r *Recorder) Add(s Span) {
	r.mu.Lock()
	r.spans = append(r.spans, s)
	r.mu.Unlock()
}

// event is an entry of the format: a complete event (ph X) with times in
// microseconds, or the name of a row (ph M).
type event struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Phase string         `json:"ph"`
	Time  float64        `json:"ts"`
	Dur   *float64       `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Args  map[string]any `json:"args,omitempty"`
}

// file is the whole timeline.
type file struct {
	Unit   string  `json:"displayTimeUnit"`
	Events []event `json:"traceEvents"`
}

// process is the one process of a timeline.
const process = 1

// Write writes the spans gathered so far, ordered by time; time 0 is the start
// of the first.
func (r *Recorder) Write(w io.Writer) error {
	r.mu.Lock()
	spans := slices.Clone(r.spans)
	r.mu.Unlock()
	slices.SortStableFunc(spans, func(a, b Span) int { return a.Start.Compare(b.Start) })
	f := file{Unit: "ns", Events: []event{}}
	rows := rowIDs(spans)
	for name, id := range rows {
		f.Events = append(f.Events, event{Name: "thread_name", Phase: "M", PID: process, TID: id, Args: map[string]any{"name": name}})
	}
	slices.SortFunc(f.Events, func(a, b event) int { return a.TID - b.TID })
	for i := range spans {
		s := &spans[i]
		dur := micros(s.End.Sub(s.Start))
		f.Events = append(f.Events, event{
			Name: s.Name, Cat: s.Category, Phase: "X", Time: micros(s.Start.Sub(spans[0].Start)), Dur: &dur,
			PID: process, TID: rows[s.Row], Args: s.Args,
		})
	}
	return json.NewEncoder(w).Encode(f)
}

// rowIDs numbers the rows by name, the host first.
func rowIDs(spans []Span) map[string]int {
	var names []string
	for i := range spans {
		if !slices.Contains(names, spans[i].Row) {
			names = append(names, spans[i].Row)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		switch {
		case a == b:
			return 0
		case a == "host" || (b != "host" && a < b):
			return -1
		}
		return 1
	})
	ids := map[string]int{}
	for i, n := range names {
		ids[n] = i
	}
	return ids
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
