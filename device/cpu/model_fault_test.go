//go:build linux || darwin

package cpu_test

import (
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/cpu"
	"goatb/status"
)

// gone returns memory that its owner took away.
func gone(t *testing.T, size int) device.Buffer {
	mem, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	b := device.Wrap(mem)
	require.NoError(t, syscall.Mprotect(mem, syscall.PROT_NONE))
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(mem)) })
	return b
}

// TestModelMemoryThatIsGone has every kind of task touch memory that is gone:
// the fault becomes the execution's error.
func TestModelMemoryThatIsGone(t *testing.T) {
	whole := gone(t, 1<<16)
	lost := device.Absolute(whole.At(0, 8))
	fine := func(n int) device.Address { return device.Absolute(device.Wrap(make([]byte, n))) }
	one := device.Absolute(device.Wrap([]byte{1, 0, 0, 0}))
	touch := &device.Program{Name: "touch", Run: func(a *device.Args, _ int) error {
		a.Mem(0)[0]++
		return nil
	}}
	table := &device.Binary{Name: "touch", Variants: []device.Variant{{Program: touch}}}
	read := func(a *device.CPUArgs) error {
		if len(a.Inputs) > 0 && a.Inputs[0][0] == 0 {
			return nil
		}
		return nil
	}
	kernel := device.Kernel{Program: touch, Blocks: 1, Operands: []device.Address{lost}}
	sound := kernel
	sound.Operands = []device.Address{fine(1)}
	for _, tt := range []struct {
		name, text string
		tasks      []device.Task
	}{
		{"kernel", "kernel touch panicked", []device.Task{{Kind: device.KernelTask, Kernel: &kernel}}},
		{"copy", "copy of 8 bytes", []device.Task{{Kind: device.CopyTask, Copy: &device.CopyAddresses{Dst: lost, Src: fine(8)}}}},
		{"function reads", "f panicked", []device.Task{{Kind: device.PreprocessTask, Preprocess: &device.Preprocess{
			Engine: device.AICPU, Function: &device.Function{Name: "f", Run: read}, Inputs: []device.Address{lost},
		}}}},
		{"outputs", "read the memory of f", []device.Task{{Kind: device.PreprocessTask, Preprocess: &device.Preprocess{
			Engine: device.AICPU, Function: &device.Function{Name: "f", Run: read}, Outputs: []device.Address{lost},
		}}}},
		{"update", "read tiling key", []device.Task{
			{Kind: device.KernelTask, Kernel: &sound},
			{Kind: device.UpdateTask, Update: &device.Update{Patch: device.Patch{Key: lost, Blocks: one, Binary: table}}},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, m := range modes {
				s := newStep(t, 1, m.opts...)
				l := &device.TaskList{Name: "gone", Streams: []string{"main"}}
				for _, task := range tt.tasks {
					task.Label = &device.Label{Op: "op"}
					l.Add(task)
				}
				model, err := s.dev.Load(l)
				require.NoError(t, err)
				for range 2 {
					require.NoError(t, model.Replay(s.s, nil))
					err = s.s.Synchronize(t.Context())
					require.ErrorIs(t, err, status.ErrRuntimeFail)
					require.ErrorContains(t, err, tt.text)
					require.ErrorContains(t, err, "op: execute")
				}
			}
		})
	}
	s := newStep(t, 1)
	require.NoError(t, s.model.Replay(s.s, &device.Refresh{Writes: []device.Write{{To: lost, Data: make([]byte, 8)}}}))
	require.ErrorContains(t, s.s.Synchronize(t.Context()), "write values")
	require.NoError(t, s.model.Replay(s.s, nil))
	require.NoError(t, s.s.Synchronize(t.Context()))
}

// TestModelKernelEndsItsGoroutine calls runtime.Goexit in kernels of the first
// stream, which the stream of the replay walks, and of the second.
func TestModelKernelEndsItsGoroutine(t *testing.T) {
	for _, m := range modes {
		for on := range device.StreamID(2) {
			t.Run(m.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := open(t, append([]cpu.Option{cpu.WithWorkers(3), cpu.WithSpin(0)}, m.opts...)...)
					s := newStream(t, d)
					l := &device.TaskList{Name: "list", Streams: []string{"a", "b", "c"}}
					bad := true
					ran := 0
					e := l.NewEvent()
					l.Add(device.Task{Kind: device.KernelTask, Stream: on, Label: &device.Label{Op: "op"}, Kernel: &device.Kernel{Blocks: 1, Program: call(func() {
						if bad {
							runtime.Goexit()
						}
					}).Program}})
					l.Add(device.Task{Kind: device.EventRecordTask, Stream: on, Event: e})
					l.Add(device.Task{Kind: device.EventWaitTask, Stream: 2, Event: e})
					l.Add(device.Task{Kind: device.KernelTask, Stream: 2, Kernel: &device.Kernel{Blocks: 1, Program: call(func() { ran++ }).Program}})
					model, err := d.Load(l)
					require.NoError(t, err)
					for range 3 {
						ended := make(chan struct{})
						go func() {
							defer close(ended)
							_ = model.Replay(s, nil)
						}()
						<-ended
						err := s.Synchronize(t.Context())
						require.ErrorIs(t, err, status.ErrRuntimeFail)
						require.ErrorContains(t, err, "ended its goroutine")
						require.ErrorContains(t, err, "op: execute")
					}
					require.Zero(t, ran)
					bad = false
					require.NoError(t, model.Replay(s, nil))
					require.NoError(t, s.Synchronize(t.Context()))
					require.Equal(t, 1, ran)
				})
			})
		}
	}
}
