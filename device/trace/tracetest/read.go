// Package tracetest reads timelines as strictly as no viewer does, for the tests of
// those who write them.
package tracetest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// File is a trace file as viewers read it.
type File struct {
	DisplayTimeUnit string `json:"displayTimeUnit"`
	OtherData       struct {
		Dropped int64 `json:"dropped"`
	} `json:"otherData"`
	TraceEvents []Event `json:"traceEvents"`
}

// Event is one entry of a trace file. Times are microseconds.
type Event struct {
	Name string         `json:"name"`
	Cat  string         `json:"cat"`
	Ph   string         `json:"ph"`
	TS   *float64       `json:"ts"`
	Dur  *float64       `json:"dur"`
	PID  int            `json:"pid"`
	TID  int            `json:"tid"`
	ID   int            `json:"id"`
	BP   string         `json:"bp"`
	Args map[string]any `json:"args"`
}

// Row names the row of an event by its process and its thread.
func (e *Event) Row() string { return fmt.Sprintf("%d/%d", e.PID, e.TID) }

func (e *Event) end() float64 { return *e.TS + *e.Dur }

// Count counts the events that a predicate likes.
func (f *File) Count(like func(*Event) bool) (n int) {
	for i := range f.TraceEvents {
		if like(&f.TraceEvents[i]) {
			n++
		}
	}
	return n
}

// Read reads a trace and checks everything that a viewer relies on: known keys
// and phases only, every row named once, times of at least 0, slices of a row
// one after the other or inside each other, every arrow with one foot inside a
// slice and one head at the start of a slice, not before its foot, and counters
// with one number each, in order of time.
func Read(t testing.TB, b []byte) *File {
	t.Helper()
	var f File
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&f))
	_, err := d.Token()
	require.ErrorIs(t, err, io.EOF)
	r := reader{t: t, named: map[string]bool{}, slices: map[string][]*Event{}, feet: map[int]*Event{}, heads: map[int]*Event{}, counted: map[string]float64{}}
	for i := range f.TraceEvents {
		r.event(&f.TraceEvents[i])
	}
	for row, list := range r.slices {
		require.True(t, r.named[row], "row %s has no name", row)
		checkNesting(t, row, list)
	}
	r.arrows()
	return &f
}

// reader sorts the events of a trace.
type reader struct {
	t           testing.TB
	named       map[string]bool
	slices      map[string][]*Event // of each row
	feet, heads map[int]*Event
	counted     map[string]float64 // the last moment of each counter
}

func (r *reader) event(e *Event) {
	r.t.Helper()
	require.NotNil(r.t, e.TS, "%v", e)
	require.GreaterOrEqual(r.t, *e.TS, 0.0, "%v", e)
	switch e.Ph {
	case "M":
		if e.Name == "thread_name" {
			require.False(r.t, r.named[e.Row()], "row %s has two names", e.Row())
			require.NotEmpty(r.t, e.Args["name"])
			r.named[e.Row()] = true
		}
	case "X":
		require.NotNil(r.t, e.Dur, "%v", e)
		require.GreaterOrEqual(r.t, *e.Dur, 0.0, "%v", e)
		r.slices[e.Row()] = append(r.slices[e.Row()], e)
	case "s":
		require.Nil(r.t, r.feet[e.ID], "%v", e)
		r.feet[e.ID] = e
	case "f":
		require.Nil(r.t, r.heads[e.ID], "%v", e)
		require.Equal(r.t, "e", e.BP)
		r.heads[e.ID] = e
	case "C":
		key := fmt.Sprint(e.PID, e.Name)
		require.Len(r.t, e.Args, 1)
		require.IsType(r.t, 0.0, e.Args["value"])
		require.GreaterOrEqual(r.t, *e.TS, r.counted[key])
		r.counted[key] = *e.TS
	default:
		r.t.Fatalf("unknown phase in %v", e)
	}
}

// arrows checks that each arrow goes from within a slice to the start of another.
func (r *reader) arrows() {
	r.t.Helper()
	require.Len(r.t, r.heads, len(r.feet))
	for id, foot := range r.feet {
		head := r.heads[id]
		require.NotNil(r.t, head, "%v", foot)
		require.LessOrEqual(r.t, *foot.TS, *head.TS)
		require.True(r.t, slices.ContainsFunc(r.slices[foot.Row()], func(e *Event) bool { return *e.TS <= *foot.TS+tick && *foot.TS <= e.end()+tick }), "%v", foot)
		require.True(r.t, slices.ContainsFunc(r.slices[head.Row()], func(e *Event) bool { return *e.TS == *head.TS }), "%v", head)
	}
}

// tick is less than a nanosecond, in microseconds: the sums of floats are not
// exact.
const tick = 1e-4

// checkNesting wants slices apart or inside each other.
func checkNesting(t testing.TB, row string, list []*Event) {
	t.Helper()
	slices.SortStableFunc(list, func(a, b *Event) int {
		return cmp.Or(cmp.Compare(*a.TS, *b.TS), cmp.Compare(*b.Dur, *a.Dur))
	})
	var open []*Event
	for _, e := range list {
		for len(open) > 0 && open[len(open)-1].end() <= *e.TS+tick {
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			require.LessOrEqual(t, e.end(), open[len(open)-1].end()+tick, "slices of row %s cross: %v", row, e)
		}
		open = append(open, e)
	}
}
