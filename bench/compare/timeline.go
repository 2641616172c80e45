package compare

import (
	"strconv"
	"time"

	"goatb/device/trace"
)

// Timeline is what happened in the steps measured under one policy. On the row of
// the host a span "step 0", "step 1", … lies around what each of them did.
type Timeline struct {
	Recorder *trace.Recorder
	// Steps are the points behind each step in Recorder.
	Steps []trace.Mark
}

// add adds a step.
func (t *Timeline) add(step *trace.Recorder, start, end time.Time) {
	t.Recorder.Append(step)
	t.Recorder.Host(trace.Span{Category: "step", Name: strconv.Itoa(len(t.Steps)), Start: start, End: end})
	t.Steps = append(t.Steps, t.Recorder.Mark())
}

// Recorders are the recorders of all timelines, for trace.Write.
func (r *Result) Recorders() []*trace.Recorder {
	list := make([]*trace.Recorder, 0, len(r.Timelines))
	for _, t := range r.Timelines {
		list = append(list, t.Recorder)
	}
	return list
}

// FirstSteps are recorders of the first steps, as many as have at most the given
// number of entries in all timelines together, but at least one. It returns the
// number of these steps.
func (r *Result) FirstSteps(entries int) ([]*trace.Recorder, int) {
	n := 0
	for n < r.Steps && (n == 0 || r.entries(n+1) <= entries) {
		n++
	}
	list := make([]*trace.Recorder, 0, len(r.Timelines))
	for _, t := range r.Timelines {
		list = append(list, t.Recorder.Before(t.Steps[n-1]))
	}
	return list, n
}

// entries counts the entries of the first steps in all timelines.
func (r *Result) entries(steps int) (n int) {
	for _, t := range r.Timelines {
		n += t.Steps[steps-1].Entries()
	}
	return n
}
