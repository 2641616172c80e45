package trace_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/cpu"
	"goatb/device/trace"
	"goatb/device/trace/tracetest"
)

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
	tracetest.Read(t, b.Bytes())
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
	require.Empty(t, tracetest.Read(t, b.Bytes()).TraceEvents)
	b.Reset()
	r := trace.New("small", 3)
	now := time.Unix(5, 0)
	for i := range 5 {
		r.Task(trace.Task{Kind: "launch", Start: now.Add(time.Duration(2 * i)), End: now.Add(time.Duration(2*i + 1))})
	}
	r.Host(trace.Span{Category: "wait", Start: now, End: now})
	require.Equal(t, int64(3), r.Dropped())
	require.NoError(t, trace.Write(&b, r))
	tl := tracetest.Read(t, b.Bytes())
	require.Equal(t, int64(3), tl.OtherData.Dropped)
	require.Equal(t, 3, tl.Count(func(e *tracetest.Event) bool { return e.Ph == "X" }))
}

// TestAppend: entries of another recorder follow, up to the limit, and those before
// a mark can be had alone.
func TestAppend(t *testing.T) {
	now := time.Unix(5, 0)
	step := trace.New("step", 0)
	step.Task(trace.Task{Kind: "launch", Start: now, End: now})
	step.Host(trace.Span{Category: "wait", Start: now, End: now})
	step.Count(trace.Sample{Counter: "c", At: now, Value: 1})
	all := trace.New("all", 7)
	all.Append(step)
	first := all.Mark()
	require.Equal(t, 3, first.Entries())
	all.Append(step)
	require.Zero(t, all.Dropped())
	all.Append(step)
	require.Equal(t, int64(2), all.Dropped())
	require.Len(t, all.Tasks(), 3, "one more has room")
	require.Len(t, all.Spans(), 2)
	all.Append(all)
	require.Equal(t, int64(2+7+2), all.Dropped(), "what another has dropped counts too")
	head := all.Before(first)
	require.Equal(t, first, head.Mark())
	require.Equal(t, step.Tasks(), head.Tasks())
	require.Equal(t, step.Spans(), head.Spans())
	require.Zero(t, head.Dropped())
	all.Reset()
	require.Zero(t, all.Before(first).Mark().Entries())
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
		tl := tracetest.Read(t, buf.Bytes())
		for what, n := range map[string]int{"count": launches, "record": 1, "wait": 1, "copy": 1, "execute op": launches} {
			assert.Equal(t, n, tl.Count(func(e *tracetest.Event) bool { return e.Ph == "X" && e.Name == what }), what)
		}
		assert.Equal(t, launches, tl.Count(func(e *tracetest.Event) bool { return e.Ph == "s" }))
		assert.Equal(t, 3, tl.Count(func(e *tracetest.Event) bool { return e.Name == "thread_name" }))
	}
}
