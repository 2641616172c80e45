package sink

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/status"
	"goatb/tiling/sink/argsformat"
)

var nopCounts = []int{0, 5, 8, 10}

// The list of form update, task by task, between the operation's own tasks.
func TestUpdateForm(t *testing.T) {
	for _, n := range nopCounts {
		s := sequenced(t, reading(7, Outside), n)
		tasks := own(7, AllKernelTask)
		given := slices.Clone(tasks)
		got := must(s.Update(tasks))(t)
		assert.Equal(t, given, tasks, "the given tasks stay as they are")
		want := []Task{
			tasks[0],
			{Kind: PreprocessTask, Stream: 1, Op: 7, Engine: AICPU, Library: "paged/go", Entry: "RunAicpuRpcSrvLaunch", Args: "{tiling_context}{*op_type}{}"},
			{Kind: WaitTask, Stream: 0, Op: 7, Event: 0},
		}
		for range n {
			want = append(want, Task{Kind: NopTask, Stream: 0, Op: 7})
		}
		target := tasks[1]
		target.Args, target.Updated = "{i0}{i1}{o0}{ws0}{tiling_context.tiling_data}", true
		want = append(want, target,
			Task{Kind: UpdateTask, Stream: 1, Op: 7, Args: "{tiling_context.tiling_key}{tiling_context.block_dim}", Target: 3 + n},
			Task{Kind: RecordTask, Stream: 1, Op: 7, Event: 0},
			tasks[2])
		assert.Equal(t, want, got)
		list := List{Streams: []string{"main", "tiling"}, Events: 1, Tasks: got}
		transcript(t, fmt.Sprintf("update_nops%d.txt", n), func(b *strings.Builder) error { return list.WriteText(b) })
	}
}

// Every format of a list is written as it was read.
func TestFormatsRoundTrip(t *testing.T) {
	custom := reading(7, Outside)
	custom.Custom = true
	s := sequenced(t, custom, 1)
	s.Workspaces = make([]Workspace, 3)
	lists := [][]Task{must(s.Update(own(7, VectorAllKernelTask)))(t), must(s.SubNode(only(7, KernelTask)))(t)}
	lists = append(lists, must((&SuperKernel{Op: 9, Name: "super", FFTSAddr: true, DebugWorkspace: true}).Fuse([]Member{{s.Op, s.Mark, lists[1]}}))(t))
	for _, tasks := range lists {
		for _, k := range tasks {
			f := must(argsformat.Parse(k.Args))(t)
			assert.Equal(t, k.Args, f.String())
		}
	}
}

// What each stream sees, and the order in which it runs whichever stream goes
// first: tiling < update < record < wait < nops < kernel.
func TestUpdateFormRuns(t *testing.T) {
	for _, n := range nopCounts {
		s := sequenced(t, reading(7, Outside), n)
		l := &List{Streams: []string{"main", "tiling"}, Events: 1, Tasks: must(s.Update(only(7, AllKernelTask)))(t)}
		assert.Equal(t, []string{"PREPROCESS_KERNEL", "UPDATE", "EVENT_RECORD 0"}, project(l, 1))
		main := []string{"EVENT_WAIT 0"}
		for range n {
			main = append(main, "NOP")
		}
		assert.Equal(t, append(main, "ALL_KERNEL"), project(l, 0))
		for _, first := range []func([]int) int{
			func([]int) int { return 0 },
			func(can []int) int { return len(can) - 1 },
			func(can []int) int { return rand.IntN(len(can)) },
		} {
			order := run(t, l, first)
			kinds := []TaskKind{PreprocessTask, UpdateTask, RecordTask, WaitTask, AllKernelTask}
			if n > 0 {
				kinds = slices.Insert(kinds, 4, NopTask)
			}
			last := -1
			for _, k := range kinds {
				at := position(t, l, order, kindOf(k, 7))
				assert.Greater(t, at, last, "%s", k)
				last = at
			}
		}
	}
}

func TestCustomFunctions(t *testing.T) {
	for _, change := range []func(*Op){func(o *Op) { o.Custom = true }, func(o *Op) { o.Package = "vendor" }} {
		o := reading(7, Outside)
		change(&o)
		s := sequenced(t, o, 2)
		for n, want := range map[int]string{0: "{ws0*}", 1: "{ws0*}", 3: "{ws2*}"} {
			s.Workspaces = make([]Workspace, n)
			got := must(s.Update(only(7, VectorAllKernelTask)))(t)
			assert.Equal(t, CustomAICPU, got[0].Engine)
			assert.Equal(t, "{tiling_context}{*op_type}{}"+want, got[0].Args)
		}
	}
	assert.Equal(t, "AI_CPU CUST_AI_CPU", AICPU.String()+" "+CustomAICPU.String())
}

func TestPatchKernelArgs(t *testing.T) {
	for args, want := range map[string]string{
		"{i0}{o0}{ws0}{t}":            "{i0}{o0}{ws0}{tiling_context.tiling_data}",
		"{i0}{ws0}{t_ffts.non_tail}":  "{i0}{ws0}{tiling_context.tiling_data}",
		"{i0}{ws0}{t_ffts.tail}{o0}":  "{i0}{ws0}{tiling_context.tiling_data}{o0}",
		"{i0}{ws0}":                   "{i0}{ws0}{tiling_context.tiling_data}",
		"{i0}{ws0}{o0}":               "{i0}{ws0}{tiling_context.tiling_data}{o0}",
		"{ws0}{t}{ws1}{o0}":           "{ws0}{t}{ws1}{tiling_context.tiling_data}{o0}",
		"{ws*}{t}":                    "{ws*}{tiling_context.tiling_data}",
		"{ffts_addr}{i0*}{ws0*}{}{t}": "{ffts_addr}{i0*}{ws0*}{tiling_context.tiling_data}{}{t}",
		"{t}{ws0}":                    "{t}{ws0}{tiling_context.tiling_data}",
		KernelArgs(2, 1):              "{i0}{i1}{o0}{ws0}{tiling_context.tiling_data}",
		"{i0}{i_desc1}{o_desc0}{ws0}{#.32b7}{.32b}": "{i0}{i_desc1}{o_desc0}{ws0}{tiling_context.tiling_data}{#.32b7}{.32b}",
	} {
		got, replaced, err := patchKernelArgs(args)
		require.NoError(t, err)
		assert.Equal(t, want, got, args)
		assert.Equal(t, strings.Count(args, "{") == strings.Count(want, "{"), replaced, args)
	}
}

// The mixed form patches the first part that does not clear memory; a new slot
// gets an address that the device completes.
func TestFFTSPlusForm(t *testing.T) {
	task := Task{Kind: FFTSPlusTask, Op: 7, BlockDim: 4, Contexts: []Context{
		{OpType: Atomic, Args: "{o0}", Addresses: []uint64{1}, AddressSize: 1},
		{OpType: "MIX_AIC", Args: "{ffts_addr}{i0}{o0}{ws0}", Addresses: []uint64{1, 2, 3, 4}, AddressSize: 4},
		{OpType: "MIX_AIV", Args: "{i0}{ws0}{t}", Addresses: []uint64{1, 2, 3}, AddressSize: 3},
	}}
	s := sequenced(t, reading(7, Outside), 2)
	got := must(s.Update([]Task{task}))(t)
	l := List{Streams: []string{"main", "tiling"}, Events: 1, Tasks: got}
	transcript(t, "ffts.txt", func(b *strings.Builder) error { return l.WriteText(b) })
	mixed := got[4]
	require.Equal(t, FFTSPlusTask, mixed.Kind)
	assert.Equal(t, task.Contexts[0], mixed.Contexts[0])
	assert.Equal(t, Context{"MIX_AIC", "{ffts_addr}{i0}{o0}{ws0}{tiling_context.tiling_data}", []uint64{1, 2, 3, 4, 0}, 5}, mixed.Contexts[1])
	assert.Equal(t, task.Contexts[2], mixed.Contexts[2])
	assert.Equal(t, "{ffts_addr}{i0}{o0}{ws0}", task.Contexts[1].Args, "the given task stays as it is")
	assert.Len(t, task.Contexts[1].Addresses, 4)

	task.Contexts = task.Contexts[2:]
	got = must(s.Update([]Task{task}))(t)
	assert.Equal(t, Context{"MIX_AIV", "{i0}{ws0}{tiling_context.tiling_data}", []uint64{1, 2, 3}, 3}, got[4].Contexts[0], "a slot that is replaced adds no address")
}

// Whatever is wrong, nothing is made, and the error names the operation.
func TestGenerationErrors(t *testing.T) {
	args := func(a string) func(*Sequence, []Task) {
		return func(_ *Sequence, tasks []Task) { tasks[1].Args = a }
	}
	for _, tt := range []struct {
		name   string
		change func(*Sequence, []Task)
		code   status.Code
		want   string
	}{
		{"no tiling function", func(s *Sequence, _ []Task) { s.Op.Registration.Function = "" }, status.ErrInvalidParam, "want a tiling function on the device, got none"},
		{"no registration", func(s *Sequence, _ []Task) { s.Op.Registration = nil }, status.ErrInvalidParam, "want a tiling function on the device, got none"},
		{"no workspace", args("{i0}{o0}{t}"), status.ErrInvalidParam, `args format "{i0}{o0}{t}": want a workspace`},
		{"workspace of a sub node alone", args("{skn1ws0}{t}"), status.ErrInvalidParam, "want a workspace"},
		{"empty format", args(""), status.ErrInvalidParam, "want an args format, got an empty one"},
		{"bad format", args("{i0}{ws0"), status.ErrInvalidParam, `args format: position 4: item "{ws0": want } at its end`},
		{"no attached stream", func(s *Sequence, _ []Task) { s.Streams = nil }, status.ErrInvalidParam, "want 1 attached stream, got 0"},
		{"two attached streams", func(s *Sequence, _ []Task) { s.Streams = []int{1, 2} }, status.ErrInvalidParam, "want 1 attached stream, got 2"},
		{"no event", func(s *Sequence, _ []Task) { s.Events = nil }, status.ErrInvalidParam, "want 1 event, got 0"},
		{"two events", func(s *Sequence, _ []Task) { s.Events = []int{1, 2} }, status.ErrInvalidParam, "want 1 event, got 2"},
		{"no platform", func(s *Sequence, _ []Task) { s.Platform = nil }, status.ErrInvalidParam, "want platform information for the tiling, got none"},
		{"never times out", func(s *Sequence, _ []Task) { s.Op.NeverTimeout = true }, status.ErrInvalidParam, "its kernel never times out"},
		{"no compile information", func(s *Sequence, _ []Task) { s.Op.CompileInfo = "" }, status.ErrInternal, "no compile information"},
		{"not sunk", func(s *Sequence, _ []Task) { s.Mark.Sunk = false }, status.ErrInternal, "want an operation that is sunk"},
	} {
		for _, form := range []string{"update", "super kernel"} {
			s, tasks := sequenced(t, reading(7, Outside), 1), own(7, AllKernelTask)
			tasks = tasks[:2]
			tt.change(s, tasks)
			generate := s.Update
			if form == "super kernel" {
				generate = s.SubNode
			}
			got, err := generate(tasks)
			require.ErrorIs(t, err, tt.code, "%s: %s", form, tt.name)
			assert.ErrorContains(t, err, tt.want, "%s: %s", form, tt.name)
			assert.Regexp(t, "^Paged: g(en|ate): layer/paged: ", err.Error(), form)
			assert.Nil(t, got)
		}
	}
}

func TestErrorsOfFormUpdate(t *testing.T) {
	s := sequenced(t, reading(7, Outside), 1)
	_, err := s.Update(only(7, KernelTask))
	require.ErrorIs(t, err, status.ErrInvalidParam)
	assert.ErrorContains(t, err, "Paged: gen: layer/paged: want a task of kind FFTS_PLUS, ALL_KERNEL or VECTOR_ALL_KERNEL to update, got none in 1 tasks")
	_, err = s.Update(nil)
	assert.ErrorContains(t, err, "got none in 0 tasks")
	_, err = s.Update([]Task{{Kind: FFTSPlusTask, Contexts: []Context{{OpType: Atomic, Args: kernelArgs}}}})
	assert.ErrorContains(t, err, "want a part of the mixed kernel that is not ATOMIC, got none in 1")
	_, err = s.Update([]Task{{Kind: FFTSPlusTask, Contexts: []Context{{OpType: "MIX_AIC", Args: "{i0}"}}}})
	assert.ErrorContains(t, err, "want a workspace")
	s.Soc.Prefetch = NoPrefetch
	_, err = s.Update(only(7, AllKernelTask))
	require.ErrorIs(t, err, status.ErrInvalidParam)
	assert.ErrorContains(t, err, "Paged: gen: layer/paged: SoC profile test: want a prefetch number from 0 to 1024 to sink tilings, got none")
}

func TestKindOfLaunch(t *testing.T) {
	for _, sunk := range []bool{false, true} {
		for _, ffts := range []bool{false, true} {
			assert.Equal(t, VectorAllKernelTask, KindOf(device.Vector, sunk, ffts))
			assert.Equal(t, VectorAllKernelTask, KindOf(device.Move, sunk, ffts))
			assert.Equal(t, AllKernelTask, KindOf(device.Cube, sunk, ffts))
			assert.Equal(t, sunk && ffts, KindOf(device.Mix, sunk, ffts) == FFTSPlusTask)
		}
	}
	assert.Equal(t, AllKernelTask, KindOf(device.Mix, false, true))
}

func TestTaskNames(t *testing.T) {
	assert.Equal(t, "KERNEL ALL_KERNEL VECTOR_ALL_KERNEL FFTS_PLUS SUPER_KERNEL PREPROCESS_KERNEL EVENT_WAIT EVENT_RECORD NOP UPDATE",
		strings.Join([]string{
			KernelTask.String(), AllKernelTask.String(), VectorAllKernelTask.String(), FFTSPlusTask.String(), SuperKernelTask.String(),
			PreprocessTask.String(), WaitTask.String(), RecordTask.String(), NopTask.String(), UpdateTask.String(),
		}, " "))
}
