package trace_test

import (
	"bytes"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goatb/device/trace"
)

// strictEvent has every key that an event may have.
type strictEvent struct {
	Name string         `json:"name"`
	Cat  string         `json:"cat"`
	Ph   string         `json:"ph"`
	Ts   *float64       `json:"ts"`
	Dur  *float64       `json:"dur"`
	PID  *int           `json:"pid"`
	TID  *int           `json:"tid"`
	Args map[string]any `json:"args"`
}

func read(t *testing.T, b []byte) []strictEvent {
	t.Helper()
	var f struct {
		Unit   string        `json:"displayTimeUnit"`
		Events []strictEvent `json:"traceEvents"`
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&f))
	require.Equal(t, "ns", f.Unit)
	for _, e := range f.Events {
		require.NotEmpty(t, e.Name)
		require.NotNil(t, e.Ts)
		require.NotNil(t, e.PID)
		require.NotNil(t, e.TID)
		switch e.Ph {
		case "X":
			require.NotNil(t, e.Dur)
			require.GreaterOrEqual(t, *e.Dur, 0.0)
			require.GreaterOrEqual(t, *e.Ts, 0.0)
		case "M":
			require.Equal(t, "thread_name", e.Name)
			require.NotEmpty(t, e.Args["name"])
		default:
			require.Fail(t, "phase", e.Ph)
		}
	}
	return f.Events
}

func TestTimeline(t *testing.T) {
	var r trace.Recorder
	at := func(us int) time.Time { return time.Unix(1000, int64(us)*1000) }
	r.Add(trace.Span{Row: "stream 1", Name: "k2", Category: "kernel", Start: at(30), End: at(45)})
	r.Add(trace.Span{Row: "stream 0", Name: "k1", Category: "kernel", Start: at(20), End: at(21), Args: map[string]any{"blocks": 2}})
	r.Add(trace.Span{Row: "host", Name: "Setup", Category: "host", Start: at(10), End: at(12)})
	var b bytes.Buffer
	require.NoError(t, r.Write(&b))
	events := read(t, b.Bytes())
	require.Len(t, events, 6)
	rows := map[int]string{}
	for _, e := range events[:3] {
		rows[*e.TID] = e.Args["name"].(string)
	}
	require.Equal(t, map[int]string{0: "host", 1: "stream 0", 2: "stream 1"}, rows)
	var names []string
	for _, e := range events[3:] {
		names = append(names, e.Name)
	}
	require.Equal(t, []string{"Setup", "k1", "k2"}, names)
	require.Equal(t, 0.0, *events[3].Ts)
	require.Equal(t, 10.0, *events[4].Ts)
	require.Equal(t, 15.0, *events[5].Dur)
	require.Equal(t, 2.0, events[4].Args["blocks"])
}

func TestEmptyTimeline(t *testing.T) {
	var r trace.Recorder
	var b bytes.Buffer
	require.NoError(t, r.Write(&b))
	require.Empty(t, read(t, b.Bytes()))
}

func TestManyWriters(t *testing.T) {
	var r trace.Recorder
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				r.Add(trace.Span{Row: "host", Name: "x", Start: time.Now(), End: time.Now()})
			}
		})
	}
	wg.Wait()
	var b bytes.Buffer
	require.NoError(t, r.Write(&b))
	require.Len(t, read(t, b.Bytes()), 801)
}
