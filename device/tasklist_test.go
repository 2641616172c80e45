package device_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/status"
)

func program(name string) *device.Program {
	return &device.Program{Name: name, Run: func(*device.Args, int) error { return nil }}
}

func function(name string) *device.Function {
	return &device.Function{Name: name, Run: func(*device.CPUArgs) error { return nil }}
}

func memory(size int) device.Buffer { return device.Wrap(make([]byte, size)) }

// limits are those of a device that can do everything.
func limits() device.Limits { return device.Limits{TaskUpdate: true, MaxBlocks: 100} }

// sunk builds the sequence of one operation that is tiled on the device.
func sunk(nops int) *device.TaskList {
	l := &device.TaskList{Name: "sunk"}
	main, tiling := l.Bind("main"), l.Bind("tiling")
	e := l.NewEvent()
	label := &device.Label{Op: "attention", Node: "node 1"}
	patch := device.Patch{
		Key: device.Absolute(memory(8)), Blocks: device.Absolute(memory(4)),
		Binary: &device.Binary{Name: "attention", Variants: []device.Variant{{Key: 1, Program: program("a/1")}, {Key: 2, Program: program("a/2")}}},
	}
	l.Add(device.Task{Kind: device.PreprocessTask, Stream: tiling, Label: label, Format: "{tiling_context}{*op_type}{}", Preprocess: &device.Preprocess{
		Function: function("tile"), Engine: device.AICPU,
		Inputs:  []device.Address{{Type: device.InputMemory, Index: 1, Off: 4, Size: 8}},
		Outputs: []device.Address{patch.Key, patch.Blocks},
	}})
	l.Add(device.Task{Kind: device.EventWaitTask, Stream: main, Event: e})
	for range nops {
		l.Add(device.Task{Kind: device.NopTask, Stream: main})
	}
	id := l.Add(device.Task{Kind: device.AllKernelTask, Stream: main, Label: label, Kernel: &device.Kernel{
		Program: program("a/1"), Blocks: 3, Key: 1, Inputs: 1,
		Operands: []device.Address{{Type: device.InputMemory, Size: 16}, {Type: device.OutputMemory, Size: 32}},
		Scratch:  device.Address{Type: device.WorkspaceMemory, Off: 64, Size: 8},
		Tiling:   device.Absolute(memory(64)),
	}})
	l.Add(device.Task{Kind: device.UpdateTask, Stream: tiling, Label: label, Update: &device.Update{Target: main, Task: id, Patch: patch}})
	l.Add(device.Task{Kind: device.EventRecordTask, Stream: tiling, Event: e})
	return l
}

func TestTaskIDsCountQueueEntries(t *testing.T) {
	l := sunk(2)
	require.NoError(t, l.Check(limits()))
	var got [][2]int
	for i := range l.Tasks {
		got = append(got, [2]int{int(l.Tasks[i].Stream), int(l.Tasks[i].ID)})
	}
	assert.Equal(t, [][2]int{{1, 0}, {0, 0}, {0, 2}, {0, 3}, {0, 4}, {1, 1}, {1, 2}}, got, "a wait takes two entries")
}

func TestExtents(t *testing.T) {
	e := sunk(0).Extents()
	assert.Equal(t, []int64{16, 12}, e.Of(device.InputMemory))
	assert.Equal(t, []int64{32}, e.Of(device.OutputMemory))
	assert.Equal(t, []int64{72}, e.Of(device.WorkspaceMemory))
	assert.Empty(t, e.Of(device.AbsoluteMemory))
	l := &device.TaskList{Streams: []string{"main"}}
	l.Add(device.Task{Kind: device.CopyTask, Copy: &device.CopyAddresses{Dst: device.Address{Type: device.OutputMemory, Index: 2}, Src: device.Absolute(memory(0))}})
	require.NoError(t, l.Check(limits()))
	extents := l.Extents()
	assert.Equal(t, []int64{-1, -1, 0}, extents.Of(device.OutputMemory))
}

// edit changes one thing in a sound list.
type edit func(l *device.TaskList)

// Tasks of sunk(0).
const (
	tileAt = iota
	waitAt
	kernelAt
	updateAt
	recordAt
)

func TestCheck(t *testing.T) {
	kernel := func(f func(*device.Kernel)) edit { return func(l *device.TaskList) { f(l.Tasks[kernelAt].Kernel) } }
	update := func(f func(*device.Update)) edit { return func(l *device.TaskList) { f(l.Tasks[updateAt].Update) } }
	tile := func(f func(*device.Preprocess)) edit {
		return func(l *device.TaskList) { f(l.Tasks[tileAt].Preprocess) }
	}
	null := []error{device.FaultNull, status.ErrInvalidParam}
	param := []error{status.ErrInvalidParam}
	for _, tt := range []struct {
		name string
		edit edit
		want []error
		text string
	}{
		{"kernel missing", func(l *device.TaskList) { l.Tasks[kernelAt].Kernel = nil }, null, "attention: load: task 2 (all-kernel) node 1: "},
		{"program missing", kernel(func(k *device.Kernel) { k.Program = nil }), null, "program"},
		{"program without code", kernel(func(k *device.Kernel) { k.Program = &device.Program{} }), null, "run function"},
		{"no blocks", kernel(func(k *device.Kernel) { k.Blocks = 0 }), param, "want 1 to 100 blocks, got 0"},
		{"too many blocks", kernel(func(k *device.Kernel) { k.Blocks = 101 }), param, "got 101"},
		{"inputs", kernel(func(k *device.Kernel) { k.Inputs = 3 }), param, "want 0 to 2 inputs, got 3"},
		{"ratio without a vector part", kernel(func(k *device.Kernel) { k.Ratio = 2 }), param, "vector parts"},
		{"vector part without a ratio", kernel(func(k *device.Kernel) { k.Vector = program("v") }), param, "vector parts"},
		{"vector part of a plain kernel", func(l *device.TaskList) {
			l.Tasks[kernelAt].Kind = device.KernelTask
			l.Tasks[kernelAt].Kernel.Vector, l.Tasks[kernelAt].Kernel.Ratio = program("v"), 1
		}, param, "only in an all-kernel task"},
		{"operand type", kernel(func(k *device.Kernel) { k.Operands[0].Type = 9 }), param, "operand 0: "},
		{"operand index", kernel(func(k *device.Kernel) { k.Operands[0].Index = -1 }), param, "want an index of 0"},
		{"window overflow", kernel(func(k *device.Kernel) { k.Operands[1].Off = 1<<63 - 1 }), param, "operand 1: "},
		{"window of absolute memory", kernel(func(k *device.Kernel) { k.Tiling.Size = 8 }), param, "tiling: "},
		{"buffer in a word", kernel(func(k *device.Kernel) { k.Scratch.Buffer = memory(8) }), param, "scratch: "},
		{"stream", func(l *device.TaskList) { l.Tasks[kernelAt].Stream = 2 }, []error{device.FaultStreamModel, status.ErrInvalidStream}, "want stream 0 to 1, got 2"},
		{"negative stream", func(l *device.TaskList) { l.Tasks[tileAt].Stream = -1 }, []error{device.FaultStreamModel, status.ErrInvalidStream}, ""},
		{"same id", func(l *device.TaskList) { l.Tasks[kernelAt].ID = 0 }, param, "unique"},
		{"no kind", func(l *device.TaskList) { l.Tasks[waitAt].Kind = 0 }, param, "got 0"},
		{"unknown kind", func(l *device.TaskList) { l.Tasks[waitAt].Kind = 77 }, param, "got 77"},
		{"function missing", tile(func(p *device.Preprocess) { p.Function = nil }), null, "function"},
		{"preprocess missing", func(l *device.TaskList) { l.Tasks[tileAt].Preprocess = nil }, null, "preprocess"},
		{"engine", tile(func(p *device.Preprocess) { p.Engine = 0 }), []error{device.FaultEngine, status.ErrInvalidParam}, "want AI_CPU or CUST_AI_CPU, got 0"},
		{"deadline", tile(func(p *device.Preprocess) { p.Deadline = -time.Second }), param, "-1s"},
		{"no output memory", tile(func(p *device.Preprocess) { p.Outputs[1] = device.Address{} }), null, "output 1"},
		{"flag out of range", tile(func(p *device.Preprocess) { p.Notify, p.Flag = true, 3 }), []error{device.FaultEvent, status.ErrInternal}, "got 3"},
		{"flag and event", tile(func(p *device.Preprocess) { p.Notify, p.Flag = true, 0 }), param, "got both"},
		{"event out of range", func(l *device.TaskList) { l.Tasks[waitAt].Event = 1 }, []error{device.FaultEvent, status.ErrInternal}, "want event 0 to 0, got 1"},
		{"negative event", func(l *device.TaskList) { l.Tasks[recordAt].Event = -1 }, []error{device.FaultEvent, status.ErrInternal}, ""},
		{"second record", func(l *device.TaskList) { l.Add(l.Tasks[recordAt]) }, param, "got a second"},
		{"no record", func(l *device.TaskList) { l.Tasks = l.Tasks[:recordAt] }, []error{device.FaultNoEnd, status.ErrInvalidGraph}, "task 1 (event-wait) on stream main waits for event 0, which nothing records"},
		{"circle", func(l *device.TaskList) {
			second := l.NewEvent()
			l.Tasks[tileAt] = device.Task{Kind: device.EventWaitTask, Stream: 1, ID: 9, Event: second}
			l.Add(device.Task{Kind: device.EventRecordTask, Stream: 0, Event: second})
		}, []error{device.FaultNoEnd}, "task 1 (event-wait) on stream main waits for event 0; task 0 (event-wait) on stream tiling waits for event 1"},
		{"negative events", func(l *device.TaskList) { l.Events = -1 }, param, "events"},
		{"update missing", func(l *device.TaskList) { l.Tasks[updateAt].Update = nil }, null, "update"},
		{"key address missing", update(func(u *device.Update) { u.Key = device.Address{} }), null, "tiling key"},
		{"block dim address missing", update(func(u *device.Update) { u.Blocks = device.Address{} }), null, "block dim"},
		{"table missing", update(func(u *device.Update) { u.Binary = nil }), null, "kernel table"},
		{"target stream unbound", update(func(u *device.Update) { u.Target = 7 }), []error{device.FaultStreamModel, status.ErrInvalidStream}, "got 7"},
		{"own stream unbound", func(l *device.TaskList) { l.Tasks[updateAt].Stream = 5 }, []error{device.FaultStreamModel}, "got 5"},
		{"empty table", update(func(u *device.Update) { u.Binary = &device.Binary{Name: "hollow"} }), []error{device.FaultProgramSize}, "hollow"},
		{"variant without code", update(func(u *device.Update) { u.Binary.Variants[1].Program = nil }), null, "variant 1 of attention"},
		{"key twice", update(func(u *device.Update) { u.Binary.Variants[1].Key = 1 }), param, "got two for 1"},
		{"key size", update(func(u *device.Update) { u.Key = device.Absolute(memory(4)) }), param, "got 4 and 4"},
		{"target not launched", update(func(u *device.Update) { u.Task = 40 }), []error{device.FaultNotLaunched, status.ErrInvalidGraph}, "attention: load: task 3 (update) node 1: "},
		{"target behind", func(l *device.TaskList) { l.Tasks[kernelAt], l.Tasks[updateAt] = l.Tasks[updateAt], l.Tasks[kernelAt] }, []error{device.FaultNotLaunched}, ""},
		{"target is no kernel", update(func(u *device.Update) { u.Task = 0 }), []error{status.ErrInvalidGraph}, "got event-wait"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := sunk(0)
			tt.edit(l)
			err := l.Check(limits())
			require.Error(t, err)
			for _, want := range tt.want {
				assert.ErrorIs(t, err, want)
			}
			assert.ErrorContains(t, err, tt.text)
		})
	}
	require.ErrorIs(t, (*device.TaskList)(nil).Check(limits()), device.FaultNull)
}

// TestUpdateChecksInOrder removes one fault after the other.
func TestUpdateChecksInOrder(t *testing.T) {
	l := sunk(0)
	u := l.Tasks[updateAt].Update
	binary, none := u.Binary, device.Limits{MaxBlocks: 100}
	u.Binary, u.Target, u.Task = nil, 9, 44
	require.ErrorIs(t, l.Check(none), device.FaultNull)
	u.Binary = &device.Binary{}
	require.ErrorIs(t, l.Check(none), device.FaultNotSupported)
	require.ErrorIs(t, l.Check(limits()), device.FaultStreamModel)
	u.Target = 0
	require.ErrorIs(t, l.Check(limits()), device.FaultProgramSize)
	u.Binary = binary
	require.ErrorIs(t, l.Check(limits()), device.FaultNotLaunched)
	u.Task = 2
	require.NoError(t, l.Check(limits()))
}

// fused builds a super kernel of two kernels, the second of them tiled on the
// device.
func fused() *device.TaskList {
	l := &device.TaskList{Name: "fused"}
	main, tiling := l.Bind("main"), l.Bind("tiling")
	flag := l.NewEvent()
	l.Add(device.Task{Kind: device.PreprocessTask, Stream: tiling, Preprocess: &device.Preprocess{
		Function: function("tile"), Engine: device.CustomAICPU, Notify: true, Flag: flag,
	}})
	l.Add(device.Task{Kind: device.SuperKernelTask, Stream: main, Super: []device.SubKernel{
		{Kernel: device.Kernel{Program: program("first"), Blocks: 7}},
		{Kernel: device.Kernel{Program: program("second"), Blocks: 2, Key: 3}, Sunk: &device.Sunk{Flag: flag, Patch: device.Patch{
			Key: device.Absolute(memory(8)), Blocks: device.Absolute(memory(4)),
			Binary: &device.Binary{Name: "second", Variants: []device.Variant{{Key: 3, Program: program("second")}}},
		}}},
	}})
	return l
}

func TestCheckSuperKernel(t *testing.T) {
	l := fused()
	require.NoError(t, l.Check(device.Limits{MaxBlocks: 7}), "a super kernel needs no task update")
	l.Tasks[0].Preprocess.Notify = false
	err := l.Check(limits())
	require.ErrorIs(t, err, device.FaultNoEnd)
	require.ErrorContains(t, err, "task 1 (super-kernel) on stream main waits for event 0, which nothing records")
	l = fused()
	l.Tasks[1].Super[1].Sunk.Binary = &device.Binary{}
	require.ErrorIs(t, l.Check(limits()), device.FaultProgramSize)
	l.Tasks[1].Super[1].Sunk.Binary = nil
	require.ErrorIs(t, l.Check(limits()), device.FaultNull)
	l.Tasks[1].Super = nil
	require.ErrorIs(t, l.Check(limits()), device.FaultNull)
	l = fused()
	l.Tasks[0].Stream, l.Tasks[0].ID = 0, 5
	require.NoError(t, l.Check(limits()))
	l.Tasks[0], l.Tasks[1] = l.Tasks[1], l.Tasks[0]
	require.ErrorIs(t, l.Check(limits()), device.FaultNoEnd, "the flag would be set behind the kernel that polls it")
}

func TestDump(t *testing.T) {
	var b strings.Builder
	l := sunk(1)
	require.NoError(t, l.Dump(&b, nil))
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	assert.Equal(t, []string{
		"model sunk: 6 tasks, 1 events, streams 0=main 1=tiling",
		"#  stream  id  kind          about                                blocks      key  format",
		"0  1       0   preprocess    tile attention node 1                                 {tiling_context}{*op_type}{}",
		"1  0       0   event-wait    event 0",
		"2  0       2   nop",
		"3  0       3   all-kernel    a/1 attention node 1                 0xFFFFFFFF  1",
		"4  1       1   update        task 3 of stream 0 attention node 1",
		"5  1       2   event-record  event 0",
	}, lines)
	states := l.Initial()
	assert.Equal(t, device.TaskState{Blocks: device.BlocksPending, Key: 1}, states[3])
	states[3].Blocks, states[3].Key = 12, 2
	b.Reset()
	require.NoError(t, l.Dump(&b, states))
	assert.Contains(t, b.String(), "a/1 attention node 1                 12      2")
	assert.NotContains(t, b.String(), "0xFFFFFFFF")
	b.Reset()
	require.NoError(t, fused().Dump(&b, nil))
	assert.Contains(t, b.String(), "first+second")
	assert.Contains(t, b.String(), "tile flag 0")
}
