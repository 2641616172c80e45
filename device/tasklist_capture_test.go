package device_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/status"
)

// mark is an event that only a capture sees.
type mark struct {
	device.Event
	_ int
}

// shape gives kind, stream and event of each task.
func shape(l *device.TaskList) []string {
	var out []string
	for i := range l.Tasks {
		t := &l.Tasks[i]
		text := l.Streams[t.Stream] + " " + t.Kind.String()
		if t.Kind == device.EventRecordTask || t.Kind == device.EventWaitTask {
			text += " " + string(rune('0'+t.Event))
		}
		out = append(out, text)
	}
	return out
}

func TestCaptureMakesWordsOfDeclaredMemory(t *testing.T) {
	x, y, ws, weights := memory(64), memory(64), memory(128), memory(16)
	c := device.NewCapture("step", limits())
	c.Declare(device.InputMemory, 1, x)
	c.Declare(device.OutputMemory, 0, y)
	c.Declare(device.OutputMemory, 3, x)
	c.Declare(device.WorkspaceMemory, 0, ws)
	s := c.Stream("main")
	tiling := []byte{1, 2, 3}
	operands := []device.Buffer{x.At(8, 16), weights, {}, y, x.At(8, 16)}
	label := &device.Label{Op: "op"}
	require.NoError(t, s.Launch(&device.Launch{Program: program("p"), Blocks: 2, Key: 5, Buffers: operands, Inputs: 3, Scratch: ws.At(100, 28), Inline: tiling, Label: label}))
	operands[0], tiling[0] = device.Buffer{}, 9
	require.NoError(t, s.Launch(&device.Launch{Program: program("q"), Blocks: 1, Tiling: ws.At(0, 8)}))
	require.NoError(t, s.Copy(ws.At(0, 16), weights))
	err := s.Copy(device.Whole(device.NewAllocation(device.DeviceSpace, 1, nil)), weights)
	require.ErrorIs(t, err, status.ErrInvalidParam)
	wide := device.Wrap(x.Bytes()[56:64:64])
	require.NoError(t, s.Copy(y.At(0, 8), wide), "the same memory wrapped again")
	l, err := c.Finish()
	require.NoError(t, err)
	k := l.Tasks[0].Kernel
	assert.Equal(t, []device.Address{
		{Type: device.InputMemory, Index: 1, Off: 8, Size: 16}, device.Absolute(weights), {},
		{Type: device.OutputMemory, Size: 64}, {Type: device.OutputMemory, Index: 3, Off: 8, Size: 16},
	}, k.Operands, "what is written is an output first")
	assert.Equal(t, device.Address{Type: device.WorkspaceMemory, Off: 100, Size: 28}, k.Scratch)
	assert.Equal(t, []byte{1, 2, 3}, k.Inline)
	assert.Equal(t, []any{2, uint64(5), 3, label}, []any{k.Blocks, k.Key, k.Inputs, l.Tasks[0].Label})
	assert.Equal(t, device.Address{Type: device.WorkspaceMemory, Size: 8}, l.Tasks[1].Kernel.Tiling)
	assert.Equal(t, device.CopyAddresses{Dst: device.Address{Type: device.WorkspaceMemory, Size: 16}, Src: device.Absolute(weights)}, *l.Tasks[2].Copy)
	assert.Equal(t, device.Address{Type: device.InputMemory, Index: 1, Off: 56, Size: 8}, l.Tasks[3].Copy.Src)
	assert.Equal(t, device.StreamStats{Launches: 2, Copies: 2, CopiedBytes: 24}, s.Stats())
}

func TestCaptureRefusesWindowsAcrossTheEnd(t *testing.T) {
	mem := memory(64)
	c := device.NewCapture("step", limits())
	c.Declare(device.InputMemory, 0, mem.At(0, 32))
	s := c.Stream("main")
	err := s.Launch(&device.Launch{Program: program("p"), Blocks: 1, Buffers: []device.Buffer{mem.At(24, 16)}, Label: &device.Label{Op: "op"}})
	require.ErrorIs(t, err, status.ErrInvalidParam)
	require.ErrorContains(t, err, "op: execute")
	require.ErrorContains(t, err, "input 0")
}

func TestCapturedEvents(t *testing.T) {
	e, f := &mark{}, &mark{}
	for _, tt := range []struct {
		name string
		do   func(a, b *device.CaptureStream) error
		want []string
	}{
		{"record and wait", func(a, b *device.CaptureStream) error { return first(a.Record(e), b.Wait(e)) },
			[]string{"a event-record 0", "b event-wait 0"}},
		{"two waits of one record", func(a, b *device.CaptureStream) error {
			return first(a.Record(e), nop(a), b.Wait(e), a.Wait(e), nop(b))
		}, []string{"a event-record 1", "a event-record 0", "a nop", "b event-wait 0", "a event-wait 1", "b nop"}},
		{"two records", func(a, b *device.CaptureStream) error {
			return first(a.Record(e), a.Record(e), b.Wait(e))
		}, []string{"a event-record 0", "a event-record 1", "b event-wait 1"}},
		{"waits first", func(a, b *device.CaptureStream) error {
			return first(b.Wait(e), nop(b), b.Wait(e), a.Record(e), a.Wait(f), b.Record(f))
		}, []string{"b event-wait 0", "b nop", "b event-wait 1", "a event-record 0", "a event-record 1", "a event-wait 2", "b event-record 2"}},
		{"resets take one record each", func(a, b *device.CaptureStream) error {
			return first(b.Wait(e), b.Reset(e), b.Wait(e), b.Reset(e), a.Record(e), a.Record(e), b.Wait(e), a.Record(e))
		}, []string{"b event-wait 0", "b event-wait 1", "a event-record 0", "a event-record 1", "b event-wait 2", "a event-record 2"}},
		{"reset before the wait", func(a, b *device.CaptureStream) error {
			return first(a.Record(e), b.Reset(e), b.Wait(e), a.Record(e))
		}, []string{"a event-record 0", "b event-wait 1", "a event-record 1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := device.NewCapture("events", limits())
			require.NoError(t, tt.do(c.Stream("a"), c.Stream("b")))
			l, err := c.Finish()
			require.NoError(t, err)
			assert.Equal(t, tt.want, shape(l))
		})
	}
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func nop(s *device.CaptureStream) error {
	_, err := s.Add(device.Task{Kind: device.NopTask})
	return err
}

func TestCaptureErrors(t *testing.T) {
	e := &mark{}
	c := device.NewCapture("step", limits())
	s, o := c.Stream("main"), c.Stream("side")
	require.ErrorIs(t, s.Synchronize(t.Context()), status.ErrInvalidStream)
	require.False(t, s.Query())
	require.ErrorIs(t, s.Record(nil), status.ErrInvalidParam)
	require.ErrorIs(t, s.Launch(nil), device.FaultNull)
	require.NoError(t, s.Wait(e))
	_, err := c.Finish()
	require.ErrorIs(t, err, device.FaultNoEnd)
	_, err = c.Finish()
	require.ErrorIs(t, err, status.ErrInvalidStream)
	for _, err := range []error{s.Wait(e), s.Record(e), s.Reset(e), nop(o), s.Copy(memory(1), memory(1)), s.Launch(&device.Launch{Program: program("p"), Blocks: 1}),
		device.TaskUpdate(s, o, 0, sunk(0).Tasks[updateAt].Update.Patch, nil)} {
		require.ErrorIs(t, err, status.ErrInvalidStream, "the capture is over")
	}
	require.NoError(t, s.Close())
}

func TestTaskUpdate(t *testing.T) {
	patch := sunk(0).Tasks[updateAt].Update.Patch
	c := device.NewCapture("step", limits())
	main, tiling := c.Stream("main"), c.Stream("tiling")
	foreign := device.NewCapture("other", limits()).Stream("main")
	unable := device.NewCapture("old chip", device.Limits{MaxBlocks: 1}).Stream("main")
	outside := struct{ device.Stream }{}
	id, err := main.Add(device.Task{Kind: device.AllKernelTask, Kernel: &device.Kernel{Program: program("p"), Blocks: 1}})
	require.NoError(t, err)
	without := func(f func(*device.Patch)) device.Patch {
		p := patch
		f(&p)
		return p
	}
	for _, tt := range []struct {
		name       string
		on, target device.Stream
		task       device.TaskID
		patch      device.Patch
		want       error
	}{
		{"no target", tiling, nil, id, patch, device.FaultNull},
		{"no stream", nil, main, id, patch, device.FaultNull},
		{"no key", tiling, main, id, without(func(p *device.Patch) { p.Key = device.Address{} }), device.FaultNull},
		{"no table", tiling, main, id, without(func(p *device.Patch) { p.Binary = nil }), device.FaultNull},
		{"no support", unable, foreign, id, patch, device.FaultNotSupported},
		{"own stream unbound", outside, main, id, patch, device.FaultStreamModel},
		{"target unbound", tiling, outside, id, patch, device.FaultStreamModel},
		{"target of another model", tiling, foreign, id, patch, device.FaultStreamModel},
		{"empty table", tiling, main, id, without(func(p *device.Patch) { p.Binary = &device.Binary{} }), device.FaultProgramSize},
		{"not launched", tiling, main, id + 1, patch, device.FaultNotLaunched},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.ErrorIs(t, device.TaskUpdate(tt.on, tt.target, tt.task, tt.patch, nil), tt.want)
		})
	}
	require.NoError(t, device.TaskUpdate(tiling, main, id, patch, nil))
	l, err := c.Finish()
	require.NoError(t, err)
	assert.Equal(t, []string{"main all-kernel", "tiling update"}, shape(l))
}

func TestModelsNeedsAModelDevice(t *testing.T) {
	_, err := device.Models(plain{})
	require.ErrorIs(t, err, device.FaultNotSupported)
	require.ErrorContains(t, err, "plain device")
}

// plain is a device without task lists.
type plain struct{ device.Device }

func (plain) Props() *device.Props { return &device.Props{Name: "plain device"} }
