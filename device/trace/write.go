package trace

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// hostRow is the row of the host; stream i has row i+1.
const hostRow = 0

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
		parts = append(parts, part{pid: i + 1, name: r.name, tasks: r.tasks[:len(r.tasks):len(r.tasks)], spans: r.spans[:len(r.spans):len(r.spans)]})
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
	pid   int
	name  string
	tasks []Task
	spans []Span
}

// earliest is the first start of all.
func earliest(parts []part) (t time.Time) {
	see := func(x time.Time) {
		if t.IsZero() || x.Before(t) {
			t = x
		}
	}
	for i := range parts {
		for j := range parts[i].tasks {
			see(parts[i].tasks[j].Start)
		}
		for j := range parts[i].spans {
			see(parts[i].spans[j].Start)
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
	launches := map[int][]*Task{}
	for i := range p.tasks {
		t := &p.tasks[i]
		if _, ok := launches[t.Stream]; !ok {
			launches[t.Stream] = nil
			w.name(p.pid, t.Stream+1, "thread_name", fmt.Sprintf("stream %d", t.Stream))
		}
		if t.Kind == "launch" {
			launches[t.Stream] = append(launches[t.Stream], t)
		}
		w.task(p.pid, t)
	}
	for i := range p.spans {
		s := &p.spans[i]
		w.slice(event{Name: label(s.Category, s.Name), Cat: s.Category, PID: p.pid, TID: hostRow}, s.Start, s.End)
		if queue := launches[s.Stream]; s.Launches > 0 && len(queue) > 0 {
			w.flow(p.pid, s, queue[0])
			launches[s.Stream] = queue[min(s.Launches, int64(len(queue))):]
		}
	}
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

func (w *writer) task(pid int, t *Task) {
	e := event{Name: t.Kind, Cat: t.Kind, PID: pid, TID: t.Stream + 1, Args: map[string]any{}}
	switch t.Kind {
	case "launch":
		e.Args["blocks"] = t.Blocks
		if t.Label != nil {
			e.Name = t.Label.Kernel
			e.Args["operation"], e.Args["node"] = t.Label.Op, t.Label.Node
		}
	case "copy":
		e.Args["bytes"] = t.Bytes
	}
	if t.Skipped {
		e.Args["skipped"] = true
	}
	w.slice(e, t.Start, t.End)
}

// flow draws an arrow from the middle of a host span to the start of a launch.
// A launch that began before the middle moves the arrow's foot to the span's
// start.
func (w *writer) flow(pid int, s *Span, t *Task) {
	w.flows++
	from := s.Start.Add(s.End.Sub(s.Start) / 2)
	if t.Start.Before(from) {
		from = s.Start
	}
	e := event{Name: "enqueue", Cat: "enqueue", PID: pid, ID: w.flows}
	e.Phase, e.TID, e.TS = "s", hostRow, w.at(from)
	w.event(e)
	e.Phase, e.TID, e.TS, e.Bind = "f", t.Stream+1, w.at(t.Start), "e"
	w.event(e)
}
