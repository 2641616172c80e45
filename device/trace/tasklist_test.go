package trace_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/cpu"
	"goatb/device/trace"
	"goatb/device/trace/tracetest"
)

// sunk is a list of one kernel that is tiled on the device, with nops before it.
func sunk(nops int) *device.TaskList {
	l := &device.TaskList{Name: "step"}
	main, tiling := l.Bind("main"), l.Bind("tiling")
	e, at := l.NewEvent(), &device.Label{Op: "attention", Node: "node 1", Kernel: "attend"}
	prog := &device.Program{Name: "attend", Run: func(*device.Args, int) error { return nil }}
	mem := device.Wrap(make([]byte, 16))
	patch := device.Patch{
		Key: device.Absolute(mem.At(0, 8)), Blocks: device.Absolute(mem.At(8, 4)),
		Binary: &device.Binary{Name: "attend", Variants: []device.Variant{{Key: 7, Program: prog}}},
	}
	l.Add(device.Task{Kind: device.PreprocessTask, Stream: tiling, Label: at, Preprocess: &device.Preprocess{
		Engine: device.AICPU, Outputs: []device.Address{patch.Key, patch.Blocks},
		Function: &device.Function{Name: "tile", Run: func(a *device.CPUArgs) error {
			a.Outputs[0][0], a.Outputs[1][0] = 7, 5
			return nil
		}},
	}})
	l.Add(device.Task{Kind: device.EventWaitTask, Stream: main, Label: at, Event: e})
	for range nops {
		l.Add(device.Task{Kind: device.NopTask, Stream: main})
	}
	id := l.Add(device.Task{Kind: device.KernelTask, Stream: main, Label: at, Kernel: &device.Kernel{Program: prog, Blocks: 1}})
	l.Add(device.Task{Kind: device.CopyTask, Stream: main, Copy: &device.CopyAddresses{Dst: patch.Key, Src: patch.Key}})
	l.Add(device.Task{Kind: device.UpdateTask, Stream: tiling, Label: at, Update: &device.Update{Target: main, Task: id, Patch: patch}})
	l.Add(device.Task{Kind: device.EventRecordTask, Stream: tiling, Event: e})
	return l
}

// TestModel records executions of a task list: its tasks lie on the row of the
// stream that it was enqueued on and on rows of its own, and a kernel that ran
// before its tiling had reached it shows the placeholder of its block dim.
func TestModel(t *testing.T) {
	for _, tt := range []struct {
		name string
		nops int
		want []any // block dims of two executions
		opts []cpu.Option
	}{
		{"enough nops", 4, []any{5.0, 5.0}, nil},
		{"inline", 4, []any{5.0, 5.0}, []cpu.Option{cpu.WithInline()}},
		{"too few nops", 3, []any{"0xFFFFFFFF", 5.0}, []cpu.Option{cpu.WithInline()}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := trace.New("model", 0)
			dev, err := cpu.New(append(tt.opts, cpu.WithObserver(r.Task), cpu.WithPrefetch(4))...)
			require.NoError(t, err)
			defer dev.Close()
			s, err := dev.NewStream()
			require.NoError(t, err)
			m, err := dev.Load(sunk(tt.nops))
			require.NoError(t, err)
			for range 2 {
				require.NoError(t, m.Replay(s, nil))
			}
			require.NoError(t, s.Synchronize(t.Context()))
			require.NoError(t, dev.Close())
			var buf bytes.Buffer
			require.NoError(t, trace.Write(&buf, r))
			tl := tracetest.Read(t, buf.Bytes())
			var blocks []any
			rows := map[string]bool{}
			for i := range tl.TraceEvents {
				if e := &tl.TraceEvents[i]; e.Ph == "X" && e.Name == "attend" {
					blocks = append(blocks, e.Args["blocks"])
					assert.Equal(t, "attention", e.Args["operation"])
					rows[e.Row()] = true
				}
			}
			assert.Equal(t, tt.want, blocks)
			assert.Equal(t, map[string]bool{"1/1": true}, rows)
			for what, n := range map[string]int{
				"replay": 2, "preprocess attend": 2, "update attend": 2, "wait attend": 2, "record": 2, "nop": 2 * tt.nops, "copy": 2,
			} {
				assert.Equal(t, n, tl.Count(func(e *tracetest.Event) bool { return e.Ph == "X" && e.Name == what }), what)
			}
		})
	}
}
