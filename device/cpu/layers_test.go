package cpu_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/cpu"
)

// layers is a list like a captured decode step: for each layer ten kernels, one
// of which is tiled on the device, with input 0 as its value.
func layers(n, nops int) *device.TaskList {
	l := &device.TaskList{Name: fmt.Sprintf("%d layers", n)}
	main, tiling := l.Bind("main"), l.Bind("tiling")
	empty := emptyLaunch().Program
	tile := &device.Function{Name: "tile", Run: func(a *device.CPUArgs) error {
		binary.LittleEndian.PutUint64(a.Outputs[0], uint64(a.Inputs[0][0]%2))
		binary.LittleEndian.PutUint32(a.Outputs[1], 1)
		return nil
	}}
	table := &device.Binary{Name: "empty", Variants: []device.Variant{{Key: 0, Program: empty}, {Key: 1, Program: empty}}}
	value, out := device.Address{Type: device.InputMemory, Size: 8}, device.Address{Type: device.OutputMemory, Size: 64}
	scratch := device.Address{Type: device.WorkspaceMemory, Size: 64}
	mem := device.Wrap(make([]byte, 256))
	kernel := device.Kernel{Program: empty, Blocks: 1, Operands: []device.Address{value, out}, Inputs: 1, Scratch: scratch, Tiling: device.Absolute(mem)}
	for range n {
		for range 9 {
			l.Add(device.Task{Kind: device.KernelTask, Stream: main, Kernel: &kernel})
		}
		e := l.NewEvent()
		patch := device.Patch{Key: device.Absolute(mem.At(0, 8)), Blocks: device.Absolute(mem.At(8, 4)), Binary: table}
		l.Add(device.Task{Kind: device.PreprocessTask, Stream: tiling, Preprocess: &device.Preprocess{
			Function: tile, Engine: device.AICPU, Inputs: []device.Address{value}, Outputs: []device.Address{patch.Key, patch.Blocks},
		}})
		l.Add(device.Task{Kind: device.EventWaitTask, Stream: main, Event: e})
		for range nops {
			l.Add(device.Task{Kind: device.NopTask, Stream: main})
		}
		id := l.Add(device.Task{Kind: device.KernelTask, Stream: main, Kernel: &kernel})
		l.Add(device.Task{Kind: device.UpdateTask, Stream: tiling, Update: &device.Update{Target: main, Task: id, Patch: patch}})
		l.Add(device.Task{Kind: device.EventRecordTask, Stream: tiling, Event: e})
	}
	return l
}

// step is a loaded list of layers with its stream.
type step struct {
	dev    *cpu.Device
	model  device.Model
	s      device.Stream
	opener device.Stream
	all    *device.Refresh // every address
	some   *device.Refresh // a moved input and new values
}

func newStep(t testing.TB, n int, opts ...cpu.Option) *step {
	d := open(t, opts...)
	m, err := d.Load(layers(n, cpu.DefaultPrefetch))
	require.NoError(t, err)
	in, err := d.Alloc(64)
	require.NoError(t, err)
	out, err := d.Alloc(64)
	require.NoError(t, err)
	s := &step{dev: d, model: m, s: newStream(t, d), opener: newStream(t, d)}
	s.all = &device.Refresh{Moves: []device.Relocation{
		{Type: device.InputMemory, Buffer: in}, {Type: device.OutputMemory, Buffer: out}, {Type: device.WorkspaceMemory, Buffer: out},
	}}
	s.some = &device.Refresh{Moves: s.all.Moves[:1], Writes: []device.Write{{To: device.Address{Type: device.InputMemory, Size: 8}, Data: make([]byte, 8)}}}
	require.NoError(t, m.Replay(s.s, s.all))
	require.NoError(t, s.s.Synchronize(t.Context()))
	return s
}

func TestReplayDoesNotAllocate(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			s := newStep(t, 8, m.opts...)
			require.Zero(t, testing.AllocsPerRun(200, func() {
				for _, r := range []*device.Refresh{nil, s.some, s.all} {
					if err := s.model.Replay(s.s, r); err != nil {
						t.Fatal(err)
					}
				}
				if err := s.s.Synchronize(t.Context()); err != nil {
					t.Fatal(err)
				}
			}))
			require.Zero(t, s.model.Stats().Failures)
		})
	}
}

// BenchmarkReplayHost times the host's part of a replay: the one call that
// enqueues it, into streams that stand still. Lists of 4 and of 32 layers take
// turns in being first of a round, so that both find the processor in one state;
// medians of rounds count.
func BenchmarkReplayHost(b *testing.B) {
	for _, arguments := range []string{"same", "moved"} {
		b.Run("arguments="+arguments, func(b *testing.B) {
			const round = 200
			steps := []*step{newStep(b, 4), newStep(b, 32)}
			rounds := make([][]time.Duration, len(steps))
			b.ReportAllocs()
			for turn := 0; b.Loop(); turn++ {
				release := make([]func(), len(steps))
				for i, s := range steps {
					release[i] = s.standStill(b)
				}
				for i := range steps {
					which := (i + turn) % len(steps)
					s := steps[which]
					refresh := s.some
					if arguments == "same" {
						refresh = nil
					}
					start := time.Now()
					for range round {
						if err := s.model.Replay(s.s, refresh); err != nil {
							b.Fatal(err)
						}
					}
					rounds[which] = append(rounds[which], time.Since(start))
				}
				for _, f := range release {
					f()
				}
			}
			median := func(i int) float64 {
				slices.Sort(rounds[i])
				return float64(rounds[i][len(rounds[i])/2].Nanoseconds()) / round
			}
			b.ReportMetric(median(0), "ns/replay-of-4-layers")
			b.ReportMetric(median(1), "ns/replay-of-32-layers")
			b.ReportMetric(median(1)/median(0), "ratio")
		})
	}
}

// standStill makes the stream hold its tasks until the returned function is
// called, which waits until they are done.
func (s *step) standStill(b *testing.B) (release func()) {
	gate := newEvent(b, s.dev)
	require.NoError(b, s.s.Wait(gate))
	return func() {
		require.NoError(b, s.opener.Record(gate))
		require.NoError(b, s.s.Synchronize(b.Context()))
		require.NoError(b, gate.Close())
	}
}

// BenchmarkReplay times whole executions, each with the host's wait for its end.
func BenchmarkReplay(b *testing.B) {
	for _, m := range modes {
		for _, n := range []int{4, 32} {
			b.Run(fmt.Sprintf("mode=%s/layers=%d", m.name, n), func(b *testing.B) {
				s := newStep(b, n, m.opts...)
				b.ReportAllocs()
				for b.Loop() {
					if err := s.model.Replay(s.s, s.some); err != nil {
						b.Fatal(err)
					}
					if err := s.s.Synchronize(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/layer")
			})
		}
	}
}
