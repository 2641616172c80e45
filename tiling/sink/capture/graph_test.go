package capture_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/cpu"
	"goatb/status"
	"goatb/tiling/sink"
	"goatb/tiling/sink/capture"
	"goatb/tiling/sink/sinktest"
)

// session replays sinktest.Graph.
type session struct {
	testing.TB
	dev    *cpu.Device
	stream device.Stream
	graph  *capture.Graph
	tiled  atomic.Int64
	bound  capture.Bound
}

func newSession(t testing.TB, form sink.Form) *session {
	d, err := cpu.New(cpu.WithWorkers(2))
	require.NoError(t, err)
	s := &session{TB: t, dev: d}
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	s.stream, err = d.NewStream()
	require.NoError(t, err)
	settings := sinktest.Settings(form)
	settings.Tilings = &s.tiled
	p, err := capture.New(sinktest.Graph(), settings)
	require.NoError(t, err)
	s.graph, err = p.Load(d)
	require.NoError(t, err)
	s.bound = capture.Bound{
		In: []device.Buffer{s.alloc(), s.alloc()}, Out: []device.Buffer{s.alloc(), s.alloc(), s.alloc()}, Workspace: s.alloc(),
		Host: make([][]byte, 2), Version: 1,
	}
	s.set(1, 2, 3, 4)
	return s
}

func (s *session) alloc() device.Buffer {
	b, err := s.dev.Alloc(64)
	require.NoError(s, err)
	return b
}

// set makes the values that tilings read.
func (s *session) set(v ...int32) { s.bound.Host[1] = device.BytesOf(v) }

// replay runs both captured segments.
func (s *session) replay() {
	s.Helper()
	for _, i := range []int{0, 2} {
		_, err := s.graph.Replay(i, s.stream, &s.bound)
		require.NoError(s, err)
	}
	require.NoError(s, s.stream.Synchronize(s.Context()))
}

func (s *session) out(i int) int64 { return device.View[int64](s.bound.Out[i].Bytes())[0] }

// expect is what Adder stores.
func expect(start int64, v ...int32) int64 {
	for _, x := range v {
		start += int64(x)
	}
	return start + 1000*(start&1)
}

// patched are the forms that tile on the device.
var patched = []sink.Form{sink.UpdateForm, sink.FFTSPlusForm, sink.SuperKernelForm}

// A replay reads host data anew, finds memory where it is now, and tiles on the
// device.
func TestReplay(t *testing.T) {
	for _, form := range patched {
		t.Run(form.String(), func(t *testing.T) {
			s := newSession(t, form)
			assert.Equal(t, []int64{2, 0, 1}, []int64{s.graph.Kernels(0), s.graph.Kernels(1), s.graph.Kernels(2)})
			device.View[int64](s.bound.In[0].Bytes())[0] = 5
			for i := range int32(4) {
				s.set(i, 0, 7, 0)
				s.replay()
				assert.Equal(t, []int64{10, expect(10, i, 7), expect(21, i, 7)}, []int64{s.out(0), s.out(1), s.out(2)})
			}
			assert.Equal(t, int64(8), s.tiled.Load())
			s.bound.In[0], s.bound.Out[2], s.bound.Workspace = s.alloc(), s.alloc(), s.alloc()
			device.View[int64](s.bound.In[0].Bytes())[0] = 6
			s.bound.Version++
			s.replay()
			assert.Equal(t, []int64{12, expect(10, 3, 7), expect(21, 3, 7)}, []int64{s.out(0), s.out(1), s.out(2)})
			require.NoError(t, s.graph.Close())
			require.NoError(t, s.graph.Close(), "closing twice is legal")
		})
	}
}

// The host moves the contexts once and the values each time, and makes nothing.
func TestReplayMovesOnlyValues(t *testing.T) {
	s := newSession(t, sink.UpdateForm)
	first, err := s.graph.Replay(0, s.stream, &s.bound)
	require.NoError(t, err)
	later, err := s.graph.Replay(0, s.stream, &s.bound)
	require.NoError(t, err)
	assert.Greater(t, first, later)
	assert.Equal(t, int64(16), later, "four values of 4 bytes")
	require.NoError(t, s.stream.Synchronize(t.Context()))
	assert.Zero(t, testing.AllocsPerRun(20, func() {
		_, rerr := s.graph.Replay(0, s.stream, &s.bound)
		if serr := s.stream.Synchronize(t.Context()); rerr != nil || serr != nil {
			panic("replay failed")
		}
	}))
	require.NoError(t, s.graph.Close())
}

// Missing host data and freed memory are errors that enqueue nothing; the next
// replay works.
func TestReplayRefuses(t *testing.T) {
	s := newSession(t, sink.UpdateForm)
	s.set(1, 2, 3)
	_, err := s.graph.Replay(0, s.stream, &s.bound)
	require.ErrorIs(t, err, status.ErrInvalidTensorAddr)
	assert.ErrorContains(t, err, "input 1: want 16 bytes of host data that tilings read, got 12")
	s.set(1, 2, 3, 5)
	s.replay()
	assert.Equal(t, expect(10, 1, 2, 3, 5), s.out(1))
	old := s.bound.Out[1]
	s.bound.Out[1] = s.alloc()
	require.NoError(t, s.dev.Free(s.bound.Out[1]))
	s.bound.Version++
	_, err = s.graph.Replay(0, s.stream, &s.bound)
	require.ErrorIs(t, err, status.ErrInvalidTensorAddr)
	s.bound.Out[1] = old
	s.bound.Version++
	s.set(9, 9, 9, 9)
	s.replay()
	assert.Equal(t, expect(10, 9, 9, 9, 9), s.out(1))
	require.NoError(t, s.graph.Close())
}

// A device that cannot update tasks loads nothing.
func TestLoadRefuses(t *testing.T) {
	d, err := cpu.New(cpu.WithTaskUpdate(false))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	p, err := capture.New(sinktest.Graph(), sinktest.Settings(sink.UpdateForm))
	require.NoError(t, err)
	g, err := p.Load(d)
	assert.Nil(t, g)
	require.ErrorIs(t, err, device.FaultNotSupported)
	assert.ErrorContains(t, err, "graph: load")
}

// What is given up is closed when it is done, without waiting; Close waits.
func TestRetired(t *testing.T) {
	s := newSession(t, sink.UpdateForm)
	var r capture.Retired
	r.Add(nil)
	assert.Zero(t, r.Waiting())
	gate, err := s.dev.NewEvent()
	require.NoError(t, err)
	opener, err := s.dev.NewStream()
	require.NoError(t, err)
	require.NoError(t, s.stream.Wait(gate))
	_, err = s.graph.Replay(0, s.stream, &s.bound)
	require.NoError(t, err)
	assert.False(t, s.graph.Done())
	r.Add(s.graph)
	r.Sweep()
	assert.Equal(t, 1, r.Waiting())
	require.NoError(t, opener.Record(gate))
	require.NoError(t, s.stream.Synchronize(t.Context()))
	assert.True(t, s.graph.Done())
	r.Sweep()
	assert.Zero(t, r.Waiting())
	assert.Equal(t, expect(10, 1, 2, 3, 4), s.out(1), "it ran to its end")

	load := func() *capture.Graph {
		g, err := s.graph.Plan.Load(s.dev)
		require.NoError(t, err)
		return g
	}
	late := load()
	_, err = late.Replay(0, s.stream, &s.bound)
	require.NoError(t, err)
	r.Add(late)
	require.NoError(t, r.Close())
	assert.Zero(t, r.Waiting())
	r.Add(load())
	assert.Zero(t, r.Waiting(), "after Close nothing waits")
}
