package trace

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sort"
	"time"

	"goatb/device"
)

// Rows: the host's, then those of the streams in order of their numbers, then
// those of engines in order of their names.
const (
	hostRow     = 0
	firstStream = 1
	firstEngine = 1 << 16
)

// event is one entry of traceEvents. Times are microseconds since the first
// thing recorded.
type event struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Phase string         `json:"ph"`
	TS    float64        `json:"ts"`
	Dur   *float64       `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	ID    int            `json:"id,omitempty"`
	Bind  string         `json:"bp,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

// Write writes the timelines of recorders, each a process of its own, as one
// JSON object. Times count from the earliest thing recorded. The recorders may
// go on recording; what comes during Write is left out.
func Write(w io.Writer, recorders ...*Recorder) error {
	var parts []part
	var dropped int64
	for i, r := range recorders {
		r.mu.Lock()
		parts = append(parts, part{pid: i + 1, name: r.name, tasks: slices.Clone(r.tasks), spans: slices.Clone(r.spans), samples: slices.Clone(r.samples)})
		dropped += r.dropped
		r.mu.Unlock()
	}
	out := writer{w: bufio.NewWriter(w), origin: earliest(parts)}
	out.text(`{"displayTimeUnit":"ns","otherData":{"dropped":` + fmt.Sprint(dropped) + `},"traceEvents":[`)
	for i := range parts {
		out.part(&parts[i])
	}
	out.text("\n]}\n")
	if out.err != nil {
		return out.err
	}
	return out.w.Flush()
}

// part is what Write takes of one recorder.
type part struct {
	pid     int
	name    string
	tasks   []Task
	spans   []Span
	samples []Sample
	engines []string
	// reach is the latest end of the sorted spans up to each.
	reach []time.Time
}

// earliest is the first moment of all.
func earliest(parts []part) (t time.Time) {
	see := func(x time.Time) {
		if t.IsZero() || x.Before(t) {
			t = x
		}
	}
	for i := range parts {
		for _, x := range parts[i].tasks {
			see(x.Start)
			if !x.Enqueued.IsZero() {
				see(x.Enqueued)
			}
		}
		for _, x := range parts[i].spans {
			see(x.Start)
		}
		for _, x := range parts[i].samples {
			see(x.At)
		}
	}
	return t
}

// writer writes events and keeps the first error.
type writer struct {
	w      *bufio.Writer
	origin time.Time
	events int
	flows  int
	err    error
}

func (w *writer) text(s string) {
	if w.err == nil {
		_, w.err = w.w.WriteString(s)
	}
}

func (w *writer) event(e event) {
	if w.err != nil {
		return
	}
	b, err := json.Marshal(e)
	if err != nil {
		w.err = err
		return
	}
	if w.events > 0 {
		w.text(",")
	}
	w.text("\n")
	w.events++
	w.text(string(b))
}

// at is t in microseconds.
func (w *writer) at(t time.Time) float64 { return float64(t.Sub(w.origin).Nanoseconds()) / 1e3 }

// slice is an event with a length.
func (w *writer) slice(e event, start, end time.Time) {
	dur := float64(end.Sub(start).Nanoseconds()) / 1e3
	e.Phase, e.TS, e.Dur = "X", w.at(start), &dur
	w.event(e)
}

// part writes the rows of one recorder.
func (w *writer) part(p *part) {
	w.name(p.pid, hostRow, "process_name", p.name)
	w.name(p.pid, hostRow, "thread_name", "host")
	p.nameRows(w)
	slices.SortStableFunc(p.spans, func(a, b Span) int {
		if c := a.Start.Compare(b.Start); c != 0 {
			return c
		}
		return b.End.Compare(a.End) // the outer one first
	})
	for i := range p.spans {
		s := &p.spans[i]
		p.reach = append(p.reach, s.End)
		if i > 0 && p.reach[i-1].After(s.End) {
			p.reach[i] = p.reach[i-1]
		}
		w.slice(event{Name: label(s.Category, s.Name), Cat: s.Category, PID: p.pid, TID: hostRow}, s.Start, s.End)
	}
	for i := range p.tasks {
		t := &p.tasks[i]
		w.task(p, t)
		if from, ok := p.call(t); ok {
			w.flow(p, t, from)
		}
	}
	for _, s := range p.samples {
		w.event(event{Name: s.Counter, Phase: "C", TS: w.at(s.At), PID: p.pid, TID: hostRow, Args: map[string]any{"value": s.Value}})
	}
}

// nameRows names the rows of streams and engines.
func (p *part) nameRows(w *writer) {
	var streams []int
	for i := range p.tasks {
		t := &p.tasks[i]
		if t.Engine == "" {
			streams = append(streams, t.Stream)
		} else {
			p.engines = append(p.engines, t.Engine)
		}
	}
	slices.Sort(streams)
	for _, s := range slices.Compact(streams) {
		w.name(p.pid, firstStream+s, "thread_name", fmt.Sprintf("stream %d", s))
	}
	slices.Sort(p.engines)
	p.engines = slices.Compact(p.engines)
	for i, name := range p.engines {
		w.name(p.pid, firstEngine+i, "thread_name", name)
	}
}

// row is the row of a task.
func (p *part) row(t *Task) int {
	if t.Engine == "" {
		return firstStream + t.Stream
	}
	at, _ := slices.BinarySearch(p.engines, t.Engine)
	return firstEngine + at
}

// call returns the moment inside a span of the host at which a launch or a copy
// was enqueued.
func (p *part) call(t *Task) (time.Time, bool) {
	if t.Enqueued.IsZero() || t.Start.Before(t.Enqueued) || t.Kind == "record" || t.Kind == "wait" {
		return time.Time{}, false
	}
	after := sort.Search(len(p.spans), func(i int) bool { return p.spans[i].Start.After(t.Enqueued) })
	return t.Enqueued, after > 0 && !p.reach[after-1].Before(t.Enqueued)
}

func label(category, name string) string {
	if name == "" {
		return category
	}
	return category + " " + name
}

// name names a process or a row.
func (w *writer) name(pid, tid int, what, name string) {
	w.event(event{Name: what, Phase: "M", PID: pid, TID: tid, Args: map[string]any{"name": name}})
}

func (w *writer) task(p *part, t *Task) {
	e := event{Name: t.Kind, Cat: t.Kind, PID: p.pid, TID: p.row(t), Args: map[string]any{}}
	switch {
	case t.Pending:
		e.Args["blocks"] = fmt.Sprintf("0x%X", device.BlocksPending)
	case t.Blocks > 0:
		e.Args["blocks"] = t.Blocks
	case t.Kind == "copy":
		e.Args["bytes"] = t.Bytes
	}
	if t.Label != nil {
		e.Name = t.Label.Kernel
		if t.Kind != "launch" {
			e.Name = label(t.Kind, t.Label.Kernel)
		}
		e.Args["operation"], e.Args["node"] = t.Label.Op, t.Label.Node
	}
	if t.Skipped {
		e.Args["skipped"] = true
	}
	w.slice(e, t.Start, t.End)
}

// flow draws an arrow from the host's call to the start of its task.
func (w *writer) flow(p *part, t *Task, from time.Time) {
	w.flows++
	e := event{Name: "enqueue", Cat: "enqueue", PID: p.pid, ID: w.flows}
	e.Phase, e.TID, e.TS = "s", hostRow, w.at(from)
	w.event(e)
	e.Phase, e.TID, e.TS, e.Bind = "f", p.row(t), w.at(t.Start), "e"
	w.event(e)
}
