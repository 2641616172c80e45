package checked_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/checked"
	"goatb/device/cpu"
	"goatb/status"
)

// task is a kernel of a list that reads the first `inputs` of its operands and
// writes the others.
func task(on device.StreamID, name string, inputs int, at ...device.Address) device.Task {
	l := kernel(name, inputs)
	return device.Task{Kind: device.KernelTask, Stream: on, Label: l.Label, Kernel: &device.Kernel{
		Program: l.Program, Blocks: 1, Inputs: inputs, Operands: at,
	}}
}

// load loads a list.
func (b *bed) load(l *device.TaskList) device.Model {
	b.Helper()
	m, err := b.Load(l)
	require.NoError(b, err)
	return m
}

// ordered makes stream `to` wait for what stream `from` has done.
func ordered(l *device.TaskList, from, to device.StreamID) {
	e := l.NewEvent()
	l.Add(device.Task{Kind: device.EventRecordTask, Stream: from, Event: e})
	l.Add(device.Task{Kind: device.EventWaitTask, Stream: to, Event: e})
}

// sunk adds a kernel of `main` that is tiled on `tiling`.
func sunk(l *device.TaskList, main, tiling device.StreamID, nops int, mem device.Buffer, orderly bool) {
	label := &device.Label{Op: "attention"}
	patch := device.Patch{
		Key: device.Absolute(mem.At(0, 8)), Blocks: device.Absolute(mem.At(8, 4)),
		Binary: &device.Binary{Name: "k", Variants: []device.Variant{{Program: kernel("attend", 0).Program}}},
	}
	e := l.NewEvent()
	l.Add(device.Task{Kind: device.PreprocessTask, Stream: tiling, Label: label, Preprocess: &device.Preprocess{
		Engine: device.AICPU, Outputs: []device.Address{patch.Key, patch.Blocks}, Function: &device.Function{Name: "tile", Run: func(a *device.CPUArgs) error {
			a.Outputs[1][0] = 1
			return nil
		}},
	}})
	if orderly {
		l.Add(device.Task{Kind: device.EventWaitTask, Stream: main, Event: e})
	}
	for range nops {
		l.Add(device.Task{Kind: device.NopTask, Stream: main})
	}
	t := task(main, "attend", 0)
	t.Label = label
	id := l.Add(t)
	l.Add(device.Task{Kind: device.UpdateTask, Stream: tiling, Label: label, Update: &device.Update{Target: main, Task: id, Patch: patch}})
	if orderly {
		l.Add(device.Task{Kind: device.EventRecordTask, Stream: tiling, Event: e})
	}
}

func TestRaceInsideAList(t *testing.T) {
	inModes(t, func(b *bed) {
		x := b.alloc(64)
		for _, order := range []bool{true, false} {
			l := &device.TaskList{Name: "step", Streams: []string{"a", "b"}}
			l.Add(task(0, "first", 0, device.Absolute(x.At(0, 32))))
			if order {
				ordered(l, 0, 1)
			}
			l.Add(task(1, "second", 1, device.Absolute(x.At(24, 8))))
			m, s := b.load(l), b.stream()
			b.ok(m.Replay(s, nil))
			if order {
				b.sync(s, "")
				continue
			}
			found := b.sync(s, checked.Race)
			require.Contains(b, found, "kernel in the replay of step (op: second)")
			require.Contains(b, found, "reads 8 bytes (its operand 0) that kernel in the replay of step (op: first)")
			b.ok(m.Replay(s, nil))
			b.sync(s, checked.Race)
		}
	})
}

// TestRaceAroundAList has work of other streams use what an execution uses.
func TestRaceAroundAList(t *testing.T) {
	inModes(t, func(b *bed) {
		x, y, e := b.alloc(64), b.alloc(64), b.event()
		l := &device.TaskList{Name: "step", Streams: []string{"a", "b"}}
		l.Add(task(1, "deep", 0, device.Address{Type: device.OutputMemory, Size: 64}))
		m, s, o := b.load(l), b.stream(), b.stream()
		to := func(buf device.Buffer) *device.Refresh {
			return &device.Refresh{Moves: []device.Relocation{{Type: device.OutputMemory, Buffer: buf}}}
		}
		b.ok(m.Replay(s, to(x)))
		b.ok(s.Launch(kernel("behind", 1, x)))
		b.ok(s.Record(e))
		b.ok(o.Wait(e))
		b.ok(o.Launch(kernel("ordered", 1, x)))
		b.ok(o.Launch(kernel("apart", 0, y)))
		b.sync(s, "")
		b.sync(o, "")
		b.ok(m.Replay(s, nil))
		b.ok(o.Launch(kernel("beside", 1, x)))
		require.Contains(b, b.sync(o, checked.Race), "that kernel in the replay of step (op: deep)")
		b.sync(s, "")
		b.ok(m.Replay(s, to(y)))
		b.ok(o.Launch(kernel("beside", 1, x)))
		b.sync(o, "")
		b.ok(m.Replay(o, nil))
		b.ok(o.Launch(kernel("behind both", 0, y)))
		b.sync(o, "")
		b.sync(s, "")
		b.ok(m.Replay(s, &device.Refresh{Writes: []device.Write{{To: device.Address{Type: device.OutputMemory, Size: 8}, Data: make([]byte, 8)}}}))
		b.ok(o.Launch(kernel("reader", 1, y.At(0, 4))))
		require.Contains(b, b.sync(o, checked.Race), "the replay of step")
		b.sync(s, "")
	})
}

func TestRaceOfAnUpdate(t *testing.T) {
	inModes(t, func(b *bed) {
		l := &device.TaskList{Name: "step", Streams: []string{"main", "tiling"}}
		sunk(l, 0, 1, 20, b.alloc(64), false)
		m, s := b.load(l), b.stream()
		b.ok(m.Replay(s, nil))
		require.Contains(b, b.sync(s, checked.Race), "(its queue entry)")
	})
}

// TestStale pads with too few nops for the device: the kernel may run before its
// update, whether it did this time or not.
func TestStale(t *testing.T) {
	for _, c := range []struct {
		nops  int
		stale bool
	}{{0, true}, {cpu.DefaultPrefetch - 1, true}, {cpu.DefaultPrefetch, false}, {20, false}} {
		t.Run(fmt.Sprint(c.nops, " nops"), func(t *testing.T) {
			inModes(t, func(b *bed) {
				l := &device.TaskList{Name: "step", Streams: []string{"main", "tiling"}}
				sunk(l, 0, 1, c.nops, b.alloc(64), true)
				m, s := b.load(l), b.stream()
				for range 2 {
					b.ok(m.Replay(s, nil))
					if !c.stale {
						b.sync(s, "")
						continue
					}
					require.Contains(b, b.sync(s, checked.Stale), "kernel in the replay of step (attention) on stream 0 at tasklist_test.go is fetched when its stream reaches the event-wait in the replay of step on stream 0 at tasklist_test.go, and nothing orders the update in the replay of step (attention) on stream 1 at tasklist_test.go before that")
				}
			})
		})
	}
}

// TestStaleIsAboutOrder has the update done before the wait is reached.
func TestStaleIsAboutOrder(t *testing.T) {
	inModes(t, func(b *bed) {
		l := &device.TaskList{Name: "step", Streams: []string{"main", "tiling"}}
		mem := b.alloc(64)
		first := l.NewEvent()
		l.Add(device.Task{Kind: device.EventWaitTask, Stream: 0, Event: first})
		for range cpu.DefaultPrefetch {
			l.Add(device.Task{Kind: device.NopTask, Stream: 0})
		}
		second := l.NewEvent()
		l.Add(device.Task{Kind: device.EventWaitTask, Stream: 0, Event: second})
		sunk(l, 0, 1, 0, mem, false)
		l.Add(device.Task{Kind: device.EventRecordTask, Stream: 1, Event: first})
		l.Add(device.Task{Kind: device.EventRecordTask, Stream: 1, Event: second})
		m, s := b.load(l), b.stream()
		b.ok(m.Replay(s, nil))
		b.sync(s, "")
	})
}

func TestOverlapInAList(t *testing.T) {
	inModes(t, func(b *bed) {
		x := b.alloc(64)
		l := &device.TaskList{Name: "step", Streams: []string{"main"}}
		l.Add(task(0, "k", 1, device.Absolute(x.At(0, 32)), device.Absolute(x.At(16, 32))))
		m, s := b.load(l), b.stream()
		b.ok(m.Replay(s, nil))
		require.Contains(b, b.sync(s, checked.Overlap), "share 16 bytes")
	})
}

func TestListUsesFreedMemory(t *testing.T) {
	inModes(t, func(b *bed) {
		x := b.alloc(64)
		l := &device.TaskList{Name: "step", Streams: []string{"main"}}
		l.Add(task(0, "k", 0, device.Absolute(x)))
		m, s := b.load(l), b.stream()
		b.ok(b.Free(x))
		err := m.Replay(s, nil)
		require.ErrorIs(b, err, status.ErrInvalidTensorAddr)
		require.Contains(b, text(b.T, err, checked.UseAfterFree), "replay of step on stream 1 at tasklist_test.go uses memory of 64 bytes that was freed at tasklist_test.go")
		_, err = b.Load(l)
		require.Contains(b, text(b.T, err, checked.UseAfterFree), "list step")
	})
}

func TestModelLeak(t *testing.T) {
	d, err := cpu.New()
	require.NoError(t, err)
	c := checked.New(d, checked.WithLeaks())
	kept, err := c.Load(&device.TaskList{Name: "kept"})
	require.NoError(t, err)
	gone, err := c.Load(&device.TaskList{Name: "gone"})
	require.NoError(t, err)
	require.NoError(t, gone.Unload())
	err = c.Close()
	require.Contains(t, text(t, err, checked.Leak), "model kept was not unloaded, made at")
	require.NotContains(t, err.Error(), "model gone")
	require.NoError(t, kept.Unload())
}

// plain is a device without task lists.
type plain struct{ device.Device }

func TestInnerDeviceWithoutLists(t *testing.T) {
	d, err := cpu.New()
	require.NoError(t, err)
	c := checked.New(plain{d})
	got, err := c.Capability(device.CapTaskUpdate)
	require.NoError(t, err)
	require.Zero(t, got)
	_, err = c.Capability(device.CapPrefetch)
	require.ErrorIs(t, err, device.FaultNotSupported)
	_, err = c.Load(&device.TaskList{})
	require.ErrorIs(t, err, device.FaultNotSupported)
	require.NoError(t, c.Close())
	_, err = c.Capability(device.CapTaskUpdate)
	require.Error(t, err)
}
