package load

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/cpu"
	"goatb/status"
	"goatb/tiling/sink"
)

// session replays a model.
type session struct {
	testing.TB
	dev                 device.ModelDevice
	stream              device.Stream
	model               device.Model
	in                  [2]device.Buffer
	out                 [2]device.Buffer
	workspace, contexts device.Buffer
	writes              []device.Write
}

func newSession(t testing.TB, g *graph, nops, prefetch int) *session {
	d, err := cpu.New(cpu.WithPrefetch(prefetch), cpu.WithWorkers(2))
	require.NoError(t, err)
	s := &session{TB: t, dev: d}
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	l := g.list(t, nops, d.Alloc)
	s.contexts, s.writes = l.Memory, l.Writes
	s.stream, err = d.NewStream()
	require.NoError(t, err)
	s.model, err = s.dev.Load(l.List)
	require.NoError(t, err)
	s.in, s.out = [2]device.Buffer{s.alloc(values.Bytes()), s.alloc(values.Bytes())}, [2]device.Buffer{s.alloc(8 * count), s.alloc(8 * count)}
	s.workspace = s.alloc(256)
	return s
}

func (s *session) alloc(n int64) device.Buffer {
	b, err := s.dev.Alloc(n)
	require.NoError(s, err)
	return b
}

// replay runs one execution with the memory as it is.
func (s *session) replay() error {
	r := &device.Refresh{Writes: s.writes, Moves: []device.Relocation{
		{Type: device.InputMemory, Index: 0, Buffer: s.in[0]}, {Type: device.InputMemory, Index: 1, Buffer: s.in[1]},
		{Type: device.OutputMemory, Index: 0, Buffer: s.out[0]}, {Type: device.OutputMemory, Index: 1, Buffer: s.out[1]},
		{Type: device.WorkspaceMemory, Buffer: s.workspace},
	}}
	s.writes = nil
	require.NoError(s, s.model.Replay(s.stream, r))
	return s.stream.Synchronize(s.Context())
}

func (s *session) set(i int, v ...int32) { copy(device.View[int32](s.in[i].Bytes()), v) }

// expect is what an adder stores for values, over memory of zeros.
func expect(id int64, v ...int32) []int64 {
	sum := id * 10
	for _, x := range v {
		sum += int64(x)
	}
	out := make([]int64, count)
	for b := range out[:min(max(v[0], 1), count)] {
		out[b] = sum + sum&1*1000 + int64(b)
	}
	return out
}

// check compares an output and clears it.
func (s *session) check(i int, want []int64) {
	s.Helper()
	got := device.View[int64](s.out[i].Bytes())
	assert.Equal(s, want, got, "output %d", i)
	clear(got)
}

// Tiling key, block dim and tiling data follow the values of each execution, and
// the addresses of each: the host makes no call but the replay.
func TestReplays(t *testing.T) {
	for name, build := range forms() {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, build(t), 8, 8)
			for i := range int32(5) {
				a, b := []int32{i, 7, i * i, 1}, []int32{4 - i, 2, 3, i}
				s.set(0, a...)
				s.set(1, b...)
				require.NoError(t, s.replay())
				s.check(0, expect(2, a...))
				s.check(1, expect(3, b...))
			}
			s.in[1], s.out[0], s.workspace = s.alloc(values.Bytes()), s.alloc(8*count), s.alloc(256)
			s.set(0, 3, 3, 3, 3)
			s.set(1, 2, 40, 50, 61)
			require.NoError(t, s.replay())
			s.check(0, expect(2, 3, 3, 3, 3))
			s.check(1, expect(3, 2, 40, 50, 61))
			stats := s.model.Stats()
			assert.Equal(t, int64(12), stats.Preprocessed, "two tilings on the device for each execution")
			assert.Zero(t, stats.Stale)
		})
	}
}

// A tiling that fails ends the execution with its error; the next one works.
func TestFailedTiling(t *testing.T) {
	for name, build := range forms() {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, build(t), 8, 8)
			s.set(0, 1, 1, 1, 1)
			s.set(1, 1<<30, 1, 1, 1)
			err := s.replay()
			require.ErrorIs(t, err, status.ErrInvalidParam)
			assert.ErrorContains(t, err, "third")
			assert.ErrorContains(t, err, "sum 1073741857 is too large")
			clear(s.out[0].Bytes())
			clear(s.out[1].Bytes())
			s.set(1, 2, 2, 2, 2)
			require.NoError(t, s.replay())
			s.check(0, expect(2, 1, 1, 1, 1))
			s.check(1, expect(3, 2, 2, 2, 2))
		})
	}
}

// With fewer nops than the device fetches past a wait a kernel runs with the
// parameters of the execution before, with as many it never does.
func TestNopsAgainstPrefetch(t *testing.T) {
	for _, tt := range []struct {
		nops, prefetch int
		stale          bool
	}{{0, 0, false}, {8, 8, false}, {10, 8, false}, {7, 8, true}, {0, 1, true}, {5, 10, true}} {
		s := newSession(t, newGraph(t, sink.AllKernelTask), tt.nops, tt.prefetch)
		for i := range int32(20) {
			s.set(0, 1+i%4, 0, 0, i)
			s.set(1, 1+i%4, 0, 0, i)
			require.NoError(t, s.replay())
			if !tt.stale {
				s.check(0, expect(2, 1+i%4, 0, 0, i))
				s.check(1, expect(3, 1+i%4, 0, 0, i))
			}
		}
		assert.Equal(t, tt.stale, s.model.Stats().Stale > 0, "%d nops, %d prefetched", tt.nops, tt.prefetch)
	}
}

func TestSteadyReplayAllocatesNothing(t *testing.T) {
	s := newSession(t, newGraph(t, sink.AllKernelTask), 8, 8)
	s.set(0, 1, 2, 3, 4)
	s.set(1, 4, 3, 2, 1)
	require.NoError(t, s.replay())
	ctx := t.Context()
	assert.Zero(t, testing.AllocsPerRun(50, func() {
		if s.model.Replay(s.stream, nil) != nil || s.stream.Synchronize(ctx) != nil {
			panic("replay failed")
		}
	}))
}
