package trace_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/cpu"
	"goatb/device/trace"
)

// timeline is a trace file as viewers read it.
type timeline struct {
	DisplayTimeUnit string `json:"displayTimeUnit"`
	OtherData       struct {
		Dropped int64 `json:"dropped"`
	} `json:"otherData"`
	TraceEvents []event `json:"traceEvents"`
}

type event struct {
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

func (e *event) row() string { return fmt.Sprintf("%d/%d", e.PID, e.TID) }

// read reads a trace and checks everything that a viewer relies on: known keys
// and phases only, every row named once, times of at least 0, slices of a row
// one after the other or inside each other, every arrow with one foot inside a
// slice and one head at the start of a slice, not before its foot, and counters
// with one number each, in order of time.
func read(t *testing.T, b []byte) timeline {
	t.Helper()
	var tl timeline
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&tl))
	_, err := d.Token()
	require.ErrorIs(t, err, io.EOF)
	rows, slicesOf := map[string]string{}, map[string][]event{}
	feet, heads, counted := map[int]event{}, map[int]event{}, map[string]float64{}
	for _, e := range tl.TraceEvents {
		require.NotNil(t, e.TS, "%v", e)
		require.GreaterOrEqual(t, *e.TS, 0.0, "%v", e)
		switch e.Ph {
		case "M":
			if e.Name == "thread_name" {
				require.NotContains(t, rows, e.row())
				rows[e.row()] = e.Args["name"].(string)
			}
		case "X":
			require.NotNil(t, e.Dur)
			require.GreaterOrEqual(t, *e.Dur, 0.0)
			slicesOf[e.row()] = append(slicesOf[e.row()], e)
		case "s":
			require.NotContains(t, feet, e.ID)
			feet[e.ID] = e
		case "f":
			require.NotContains(t, heads, e.ID)
			require.Equal(t, "e", e.BP)
			heads[e.ID] = e
		case "C":
			key := fmt.Sprint(e.PID, e.Name)
			require.Len(t, e.Args, 1)
			require.IsType(t, 0.0, e.Args["value"])
			require.GreaterOrEqual(t, *e.TS, counted[key])
			counted[key] = *e.TS
		default:
			t.Fatalf("unknown phase in %v", e)
		}
	}
	for row, list := range slicesOf {
		require.Contains(t, rows, row)
		checkNesting(t, row, list)
	}
	require.Len(t, heads, len(feet))
	for id, foot := range feet {
		head := heads[id]
		require.LessOrEqual(t, *foot.TS, *head.TS)
		require.True(t, slices.ContainsFunc(slicesOf[foot.row()], func(e event) bool { return *e.TS <= *foot.TS+tick && *foot.TS <= e.end()+tick }))
		require.True(t, slices.ContainsFunc(slicesOf[head.row()], func(e event) bool { return *e.TS == *head.TS }))
	}
	return tl
}

// tick is less than a nanosecond, in microseconds: the sums of floats are not
// exact.
const tick = 1e-4

// checkNesting wants slices apart or inside each other.
func checkNesting(t *testing.T, row string, list []event) {
	slices.SortStableFunc(list, func(a, b event) int {
		return cmp.Or(cmp.Compare(*a.TS, *b.TS), cmp.Compare(*b.Dur, *a.Dur))
	})
	var open []event
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

func (e *event) end() float64 { return *e.TS + *e.Dur }

// count counts the events that a predicate likes.
func (tl *timeline) count(like func(*event) bool) (n int) {
	for i := range tl.TraceEvents {
		if like(&tl.TraceEvents[i]) {
			n++
		}
	}
	return n
}

func TestWriteIsExact(t *testing.T) {
	at := func(ns int) time.Time { return time.Unix(1000, int64(ns)) }
	r := trace.New("one", 0)
	r.Host(trace.Span{Name: "add", Category: "execute", Start: at(500), End: at(2500)})
	r.Host(trace.Span{Name: "elementwise/add", Category: "launch", Start: at(1000), End: at(1500)})
	r.Host(trace.Span{Category: "wait", Start: at(2500), End: at(9000)})
	lab := &device.Label{Op: "add", Node: "0", Kernel: "elementwise/add"}
	r.Task(trace.Task{Kind: "launch", Label: lab, Blocks: 3, Enqueued: at(1500), Start: at(1500), End: at(4000)})
	r.Task(trace.Task{Kind: "launch", Start: at(4000), End: at(4001), Blocks: 1, Skipped: true})
	r.Task(trace.Task{Stream: 1, Kind: "copy", Bytes: 64, Enqueued: at(600), Start: at(700), End: at(900)})
	r.Task(trace.Task{Stream: 1, Engine: "copy engine", Kind: "copy", Bytes: 64, Start: at(750), End: at(900)})
	r.Task(trace.Task{Kind: "wait", Enqueued: at(9500), Start: at(9600), End: at(9700)}) // no call of the host that is recorded
	r.Count(trace.Sample{Counter: "blocks", At: at(2500), Value: 3})
	var b bytes.Buffer
	require.NoError(t, trace.Write(&b, r))
	read(t, b.Bytes())
	require.Equal(t, `{"displayTimeUnit":"ns","otherData":{"dropped":0},"traceEvents":[
{"name":"process_name","ph":"M","ts":0,"pid":1,"tid":0,"args":{"name":"one"}},
{"name":"thread_name","ph":"M","ts":0,"pid":1,"tid":0,"args":{"name":"host"}},
{"name":"thread_name","ph":"M","ts":0,"pid":1,"tid":1,"args":{"name":"stream 0"}},
{"name":"thread_name","ph":"M","ts":0,"pid":1,"tid":2,"args":{"name":"stream 1"}},
{"name":"thread_name","ph":"M","ts":0,"pid":1,"tid":65536,"args":{"name":"copy engine"}},
{"name":"execute add","cat":"execute","ph":"X","ts":0,"dur":2,"pid":1,"tid":0},
{"name":"launch elementwise/add","cat":"launch","ph":"X","ts":0.5,"dur":0.5,"pid":1,"tid":0},
{"name":"wait","cat":"wait","ph":"X","ts":2,"dur":6.5,"pid":1,"tid":0},
{"name":"elementwise/add","cat":"launch","ph":"X","ts":1,"dur":2.5,"pid":1,"tid":1,"args":{"blocks":3,"node":"0","operation":"add"}},
{"name":"enqueue","cat":"enqueue","ph":"s","ts":1,"pid":1,"tid":0,"id":1},
{"name":"enqueue","cat":"enqueue","ph":"f","ts":1,"pid":1,"tid":1,"id":1,"bp":"e"},
{"name":"launch","cat":"launch","ph":"X","ts":3.5,"dur":0.001,"pid":1,"tid":1,"args":{"blocks":1,"skipped":true}},
{"name":"copy","cat":"copy","ph":"X","ts":0.2,"dur":0.2,"pid":1,"tid":2,"args":{"bytes":64}},
{"name":"enqueue","cat":"enqueue","ph":"s","ts":0.1,"pid":1,"tid":0,"id":2},
{"name":"enqueue","cat":"enqueue","ph":"f","ts":0.2,"pid":1,"tid":2,"id":2,"bp":"e"},
{"name":"copy","cat":"copy","ph":"X","ts":0.25,"dur":0.15,"pid":1,"tid":65536,"args":{"bytes":64}},
{"name":"wait","cat":"wait","ph":"X","ts":9.1,"dur":0.1,"pid":1,"tid":1},
{"name":"blocks","ph":"C","ts":2,"pid":1,"tid":0,"args":{"value":3}}
]}
`, b.String())
}

func TestEmptyAndFull(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, trace.Write(&b))
	require.Empty(t, read(t, b.Bytes()).TraceEvents)
	b.Reset()
	r := trace.New("small", 3)
	now := time.Unix(5, 0)
	for i := range 5 {
		r.Task(trace.Task{Kind: "launch", Start: now.Add(time.Duration(2 * i)), End: now.Add(time.Duration(2*i + 1))})
	}
	r.Host(trace.Span{Category: "wait", Start: now, End: now})
	require.Equal(t, int64(3), r.Dropped())
	require.NoError(t, trace.Write(&b, r))
	tl := read(t, b.Bytes())
	require.Equal(t, int64(3), tl.OtherData.Dropped)
	require.Equal(t, 3, tl.count(func(e *event) bool { return e.Ph == "X" }))
}

var errFull = errors.New("full")

// stuck takes n bytes.
type stuck struct{ n int }

func (s *stuck) Write(b []byte) (int, error) {
	if s.n -= len(b); s.n < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestWriteReturnsErrors(t *testing.T) {
	r := trace.New("r", 0)
	for range 1000 {
		r.Task(trace.Task{Kind: "wait", Start: time.Unix(1, 0), End: time.Unix(1, 0)})
	}
	for _, n := range []int{0, 4096, 20000} {
		require.ErrorIs(t, trace.Write(&stuck{n}, r), errFull, "%d bytes", n)
	}
}

// TestDevice records two streams of a real device that wait for each other.
func TestDevice(t *testing.T) {
	for _, opts := range [][]cpu.Option{nil, {cpu.WithInline()}} {
		r := trace.New("device", 0)
		dev, err := cpu.New(append(opts, cpu.WithObserver(r.Task))...)
		require.NoError(t, err)
		defer dev.Close()
		a, err := dev.NewStream()
		require.NoError(t, err)
		b, err := dev.NewStream()
		require.NoError(t, err)
		e, err := dev.NewEvent()
		require.NoError(t, err)
		mem, err := dev.Alloc(128)
		require.NoError(t, err)
		var mu sync.Mutex
		ran := 0
		prog := &device.Program{Name: "count", Run: func(*device.Args, int) error {
			mu.Lock()
			defer mu.Unlock()
			ran++
			return nil
		}}
		const launches = 20
		for range launches {
			start := time.Now()
			require.NoError(t, a.Launch(&device.Launch{Program: prog, Blocks: 2, Label: &device.Label{Op: "op", Node: "n", Kernel: "count"}, Inline: []byte{1}}))
			r.Host(trace.Span{Name: "op", Category: "execute", Start: start, End: time.Now()})
		}
		require.NoError(t, a.Record(e))
		require.NoError(t, b.Wait(e))
		require.NoError(t, b.Copy(mem.At(0, 64), mem.At(64, 64)))
		require.NoError(t, b.Synchronize(t.Context()))
		require.NoError(t, a.Synchronize(t.Context()))
		require.NoError(t, dev.Close())
		require.Equal(t, 2*launches, ran)
		var buf bytes.Buffer
		require.NoError(t, trace.Write(&buf, r))
		tl := read(t, buf.Bytes())
		for what, n := range map[string]int{"count": launches, "record": 1, "wait": 1, "copy": 1, "execute op": launches} {
			assert.Equal(t, n, tl.count(func(e *event) bool { return e.Ph == "X" && e.Name == what }), what)
		}
		assert.Equal(t, launches, tl.count(func(e *event) bool { return e.Ph == "s" }))
		assert.Equal(t, 3, tl.count(func(e *event) bool { return e.Name == "thread_name" }))
	}
}
