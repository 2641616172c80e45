package sim_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/sim"
	"goatb/device/trace"
)

// listBed is a bed for task lists: replaying costs the host 15 us, an AI CPU takes
// 8 us to start and twice the host's time for a tiling.
func listBed(t *testing.T, opts ...sim.Option) *bed {
	t.Helper()
	rec := trace.New("lists", 0)
	p := roundProfile(t, cost{"graph_replay_host", 15}, cost{"aicpu_dispatch", 8}, cost{"aicpu_factor", 2}, cost{"task_patch", 1}, cost{"aicpu_count", 1})
	dev, err := sim.New(p, append([]sim.Option{sim.WithRecorder(rec)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return &bed{T: t, dev: dev, s: newStream(t, dev), rec: rec}
}

func (b *bed) load(l *device.TaskList) device.Model {
	b.Helper()
	m, err := b.dev.Load(l)
	require.NoError(b, err)
	return m
}

// spanOf returns start and end of the tasks of a kind since the last replay began.
func (b *bed) since(start float64, kind string) (list [][2]float64) {
	for _, x := range b.tasks(kind) {
		list = append(list, [2]float64{x[0] - start, x[1] - start})
	}
	return list
}

func kernelTask(s device.StreamID, p *device.Program, blocks int) device.Task {
	return device.Task{Kind: device.KernelTask, Stream: s, Kernel: &device.Kernel{Program: p, Blocks: blocks, Inline: []byte{1}}}
}

func TestReplayOfAChain(t *testing.T) {
	b := listBed(t)
	l := &device.TaskList{Name: "chain"}
	main := l.Bind("main")
	for range 3 {
		l.Add(kernelTask(main, empty, 8))
	}
	m := b.load(l)
	loaded := b.now()
	exactly(t, 3*10, loaded, "capturing is launching")
	for range 2 {
		require.NoError(t, m.Replay(b.s, nil))
	}
	exactly(t, loaded+2*15, b.now())
	require.False(t, m.Query())
	b.sync()
	first := loaded + 15 + 100
	want := [][2]float64{{0, 30}, {32, 62}, {64, 94}}
	second := first + 94 // the second replay stands in the queue already
	for _, w := range [...][2]float64{{second, second + 30}, {second + 32, second + 62}, {second + 64, second + 94}} {
		want = append(want, [2]float64{w[0] - first, w[1] - first})
	}
	got := b.since(first, "launch")
	require.Len(t, got, len(want))
	for i := range want {
		exactly(t, want[i][0], got[i][0], i)
		exactly(t, want[i][1], got[i][1], i)
	}
	require.Len(t, b.tasks("replay"), 2)
	require.True(t, m.Query())
	require.EqualValues(t, 6, m.Stats().Kernels)
	require.NoError(t, m.Unload())
}

// sunk is one operation that is tiled on the device: tiling, update and record on
// a stream of their own, wait, nops and kernel on the main stream. The tiling asks
// for so many blocks.
func (b *bed) sunk(blocks uint32, nops int) *device.TaskList {
	b.Helper()
	mem, err := b.dev.Alloc(64)
	require.NoError(b, err)
	l := &device.TaskList{Name: "sunk"}
	main, tiling := l.Bind("main"), l.Bind("tiling")
	e := l.NewEvent()
	label := &device.Label{Op: "op", Node: "0", Kernel: "matmul/go"}
	p := program("matmul/go", device.Cube, 5_000_000, 0)
	key, dim, data := device.Absolute(mem.At(0, 8)), device.Absolute(mem.At(8, 4)), device.Absolute(mem.At(16, 8))
	l.Add(device.Task{Kind: device.PreprocessTask, Stream: tiling, Label: label, Preprocess: &device.Preprocess{
		Engine: device.AICPU, Outputs: []device.Address{key, dim},
		Function: &device.Function{Name: "tile", Run: func(a *device.CPUArgs) error {
			binary.LittleEndian.PutUint64(a.Outputs[0], 7)
			binary.LittleEndian.PutUint32(a.Outputs[1], blocks)
			return nil
		}},
	}})
	l.Add(device.Task{Kind: device.EventWaitTask, Stream: main, Event: e})
	for range nops {
		l.Add(device.Task{Kind: device.NopTask, Stream: main})
	}
	id := l.Add(device.Task{Kind: device.KernelTask, Stream: main, Label: label, Kernel: &device.Kernel{Program: p, Blocks: 1, Tiling: data}})
	l.Add(device.Task{Kind: device.UpdateTask, Stream: tiling, Label: label, Update: &device.Update{
		Target: main, Task: id, Patch: device.Patch{Key: key, Blocks: dim, Binary: &device.Binary{Name: "matmul", Variants: []device.Variant{{Key: 7, Program: p}}}},
	}})
	l.Add(device.Task{Kind: device.EventRecordTask, Stream: tiling, Event: e})
	return l
}

// TestSunkKernel: a matrix product is tiled on the host in 13 us, on the AI CPU in
// 8 + 2*13; then comes the patch, the record, the wait, four nops, the kernel.
func TestSunkKernel(t *testing.T) {
	b := listBed(t)
	m := b.load(b.sunk(4, 4))
	start := b.now() + 15 + 100
	require.NoError(t, m.Replay(b.s, nil))
	b.sync()
	tiled := b.since(start, "preprocess")
	require.Len(t, tiled, 1)
	exactly(t, 0, tiled[0][0])
	exactly(t, 34, tiled[0][1])
	exactly(t, 35, b.since(start, "update")[0][1])
	exactly(t, 36, b.since(start, "record")[0][1])
	exactly(t, 36+3, b.since(start, "wait")[0][1])
	run := b.since(start, "launch")[0]
	exactly(t, 36+3+4*2+2, run[0], "a gap before the kernel, and a gap for each nop")
	exactly(t, 40+10*2, run[1]-run[0], "the tiling's 4 blocks, on 8 cores")
	var engine int
	for _, x := range b.rec.Tasks() {
		if x.Engine == "AICPU" {
			engine++
			assert.Equal(t, "preprocess", x.Kind)
		}
		if x.Kind == "launch" {
			assert.Equal(t, 4, x.Blocks)
		}
	}
	assert.Equal(t, 1, engine)
}

// A stale entry runs, and is timed, with what it held when it was fetched.
func TestStaleKernelIsTimedAsItRan(t *testing.T) {
	b := listBed(t)
	m := b.load(b.sunk(8, 0))
	require.NoError(t, m.Replay(b.s, nil))
	b.sync()
	require.EqualValues(t, 1, m.Stats().Stale)
	x := b.tasks("launch")[0]
	exactly(t, 40+10*8, x[1]-x[0], "one block on 8 cores")
}

// TestSuperKernel: one launch for two kernels, the second of which polls a flag
// that its tiling sets.
func TestSuperKernel(t *testing.T) {
	b := listBed(t)
	mem, err := b.dev.Alloc(64)
	require.NoError(t, err)
	l := &device.TaskList{Name: "super"}
	main, tiling := l.Bind("main"), l.Bind("tiling")
	flag := l.NewEvent()
	key, dim := device.Absolute(mem.At(0, 8)), device.Absolute(mem.At(8, 4))
	labels := [2]*device.Label{{Op: "op", Node: "0", Kernel: "binary/float"}, {Op: "op", Node: "1", Kernel: "paged/go"}}
	paged := program("paged/go", device.Mix, 0, 3000)
	l.Add(device.Task{Kind: device.PreprocessTask, Stream: tiling, Label: labels[1], Preprocess: &device.Preprocess{
		Engine: device.AICPU, Outputs: []device.Address{key, dim}, Notify: true, Flag: flag,
		Function: &device.Function{Name: "tile", Run: func(a *device.CPUArgs) error {
			binary.LittleEndian.PutUint32(a.Outputs[1], 2)
			return nil
		}},
	}})
	l.Add(device.Task{Kind: device.SuperKernelTask, Stream: main, Super: []device.SubKernel{
		{Label: labels[0], Kernel: device.Kernel{Program: empty, Blocks: 8, Inline: []byte{1}}},
		{Label: labels[1], Kernel: device.Kernel{Program: paged, Blocks: 1, Inline: []byte{1}}, Sunk: &device.Sunk{
			Flag: flag, Patch: device.Patch{Key: key, Blocks: dim, Binary: &device.Binary{Name: "paged", Variants: []device.Variant{{Program: paged}}}},
		}},
	}})
	m := b.load(l)
	start := b.now() + 15 + 100
	require.NoError(t, m.Replay(b.s, nil))
	b.sync()
	run := b.since(start, "launch")
	require.Len(t, run, 1)
	exactly(t, 0, run[0][0])
	// The first kernel ends at 30; the tiling takes 8 + 2*14 and ends at 36; then the
	// second kernel moves its 3000 bytes, without a fixed part of its own.
	exactly(t, 36+3, run[0][1])
}

// Executions of one model on two streams follow each other.
func TestReplaysDoNotOverlap(t *testing.T) {
	b := listBed(t)
	o := newStream(t, b.dev)
	l := &device.TaskList{Name: "one"}
	main := l.Bind("main")
	l.Add(kernelTask(main, empty, 1))
	m := b.load(l)
	require.NoError(t, m.Replay(b.s, nil))
	require.NoError(t, m.Replay(o, nil))
	require.NoError(t, o.Synchronize(t.Context()))
	x := b.tasks("launch")
	require.Len(t, x, 2)
	require.GreaterOrEqual(t, x[1][0], x[0][1])
	empties := b.load(&device.TaskList{Name: "nothing"})
	require.NoError(t, empties.Replay(b.s, nil))
	b.sync()
	require.True(t, empties.Query())
}

// With numerics off kernels do not run, functions of the AI CPU do, and memory
// without bytes may be moved to and from.
func TestListsWithoutNumerics(t *testing.T) {
	b := listBed(t, sim.WithNumerics(false))
	big, err := b.dev.Alloc(1 << 30)
	require.NoError(t, err)
	l := b.sunk(2, 4)
	never := &device.Program{Name: "never", Run: func(*device.Args, int) error { return errors.New("numerics are off") }}
	at := device.Address{Type: device.InputMemory, Size: 1 << 20}
	l.Add(device.Task{Kind: device.KernelTask, Kernel: &device.Kernel{Program: never, Blocks: 3, Operands: []device.Address{at}, Inputs: 1, Inline: []byte{1}}})
	l.Add(device.Task{Kind: device.CopyTask, Copy: &device.CopyAddresses{Dst: at, Src: device.Absolute(big.At(0, 1<<20))}})
	m := b.load(l)
	require.NoError(t, m.Replay(b.s, &device.Refresh{Moves: []device.Relocation{{Type: device.InputMemory, Buffer: big}}}))
	b.sync()
	require.EqualValues(t, 2, m.Stats().Kernels)
	require.EqualValues(t, 1, m.Stats().Preprocessed)
	x := b.tasks("launch")
	require.Len(t, x, 2)
	exactly(t, 40+10*4, x[0][1]-x[0][0], "the tiling's 2 blocks")
	c := b.tasks("copy")
	require.Len(t, c, 1)
	exactly(t, 50+float64(1<<20)*2/1e3/1, c[0][1]-c[0][0])
}

// An execution that fails is timed by what ran.
func TestFailedReplay(t *testing.T) {
	b := listBed(t)
	l := &device.TaskList{Name: "bad"}
	main := l.Bind("main")
	cause := errors.New("no luck")
	l.Add(kernelTask(main, &device.Program{Name: "bad/go", Run: func(*device.Args, int) error { return cause }}, 1))
	l.Add(kernelTask(main, empty, 1))
	m := b.load(l)
	require.NoError(t, m.Replay(b.s, nil))
	require.ErrorIs(t, b.s.Synchronize(t.Context()), cause)
	require.Len(t, b.tasks("launch"), 2)
	require.True(t, b.rec.Tasks()[1].Skipped)
	require.EqualValues(t, 1, m.Stats().Failures)
}
