package sink

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/status"
)

// The tasks of a sunk operation in a super kernel: its last kernel with what it
// reads by itself, and the tiling right before it.
func TestSubNode(t *testing.T) {
	o := reading(7, Outside)
	o.Custom = true
	s := sequenced(t, o, 8)
	s.Events = []int{5}
	s.Workspaces = make([]Workspace, 2)
	tasks := []Task{
		{Kind: AllKernelTask, Op: 7, Args: kernelArgs},
		{Kind: KernelTask, Op: 7, Args: "{i0}{i_instance0}{i_desc1}{o0}{o_instance0}{ws0}{t_ffts.non_tail}", Key: 2},
		{Kind: VectorAllKernelTask, Op: 7, Args: kernelArgs},
	}
	given := slices.Clone(tasks)
	got := must(s.SubNode(tasks))(t)
	assert.Equal(t, given, tasks)
	assert.Equal(t, []Task{
		tasks[0],
		{Kind: PreprocessTask, Stream: 1, Op: 7, Event: 5, Engine: CustomAICPU, Library: "paged/go", Entry: Entry, Args: "{tiling_context}{*op_type}{event_addr5*}"},
		{
			Kind: KernelTask, Op: 7, Key: 2, BlockDim: 1, Updated: true,
			Args: "{i0}{i_instance0}{i_desc1}{o0}{o_instance0}{ws0}{tiling_context.tiling_data}{tiling_context.tiling_key}{tiling_context.block_dim}{event_addr5*}",
		},
		tasks[2],
	}, got)
	_, err := s.SubNode([]Task{{Kind: VectorAllKernelTask, Args: kernelArgs}})
	require.ErrorIs(t, err, status.ErrInvalidParam)
	assert.ErrorContains(t, err, "Paged: gen: layer/paged: want a task of kind KERNEL or ALL_KERNEL in a super kernel, got none in 1 tasks")
	s.Soc.Prefetch = NoPrefetch
	_, err = s.SubNode(only(7, KernelTask))
	assert.NoError(t, err, "nothing is prefetched")
}

// Three operations in one launch, two of them sunk: their tilings are hoisted,
// and both wait for what they read.
func TestSuperKernelForm(t *testing.T) {
	ops := []Op{plain(1), reading(2, 0), plain(3), reading(4, 0), plain(5)}
	for i := 1; i <= 3; i++ {
		ops[i].Fusion.Scope = "fused"
	}
	marks := marked(t, ops)
	c := &Captured{Ops: ops, Marks: marks, Workspaces: make([][]Workspace, 5), Supers: []SuperKernel{{Op: 100, Name: "fused", FFTSAddr: true, DebugWorkspace: true}}}
	for i := range ops {
		c.Tasks = append(c.Tasks, only(ops[i].ID, AllKernelTask))
	}
	l := must(Generate(c, must(Assign(ops, marks, 1, 0))(t), &Profile{Prefetch: 8}, platform))(t)
	transcript(t, "superkernel.txt", func(b *strings.Builder) error { return l.WriteText(b) })
	for _, first := range []func([]int) int{func([]int) int { return 0 }, func(can []int) int { return len(can) - 1 }} {
		order := run(t, l, first)
		super := position(t, l, order, kindOf(SuperKernelTask, 100))
		for _, sub := range []int64{2, 4} {
			tiling := position(t, l, order, func(k *Task) bool { return k.Kind == PreprocessTask && k.Sub == sub })
			assert.Less(t, tiling, super)
			assert.Greater(t, tiling, position(t, l, order, kindOf(AllKernelTask, 1)), "behind the kernel that makes what it reads")
		}
	}
	for i := range l.Tasks {
		if k := l.Tasks[i]; k.Kind == PreprocessTask {
			assert.Equal(t, int64(100), k.Op, "the tiling counts as the super kernel's")
			assert.Equal(t, 1, k.Stream, "and stays on its attached stream")
		}
		assert.NotContains(t, []TaskKind{NopTask, UpdateTask}, l.Tasks[i].Kind)
	}
}

func TestFusingErrors(t *testing.T) {
	fused := func(change func(*Captured)) error {
		ops := []Op{plain(1), reading(2, 0), reading(3, Outside)}
		ops[1].Fusion.Scope, ops[2].Fusion.Scope = "fused", "fused"
		marks := marked(t, ops)
		c := &Captured{Ops: ops, Marks: marks, Workspaces: make([][]Workspace, 3), Supers: []SuperKernel{{Op: 100, Name: "fused"}}}
		for i := range ops {
			c.Tasks = append(c.Tasks, only(ops[i].ID, AllKernelTask))
		}
		change(c)
		a, err := Assign(ops, marks, 2, 0)
		require.NoError(t, err)
		l, err := Generate(c, a, &Profile{Prefetch: 8}, platform)
		assert.Equal(t, err == nil, l != nil)
		return err
	}
	require.NoError(t, fused(func(*Captured) {}))
	for _, tt := range []struct {
		name   string
		change func(*Captured)
		code   status.Code
		want   string
	}{
		{"binary reused, not sunk", func(c *Captured) { c.Ops[2].Fusion.ReuseBinary, c.Marks[2].Sunk = true, false }, status.ErrInvalidParam,
			"fused: gen: layer/paged (Paged): a super kernel that reuses its binary needs its tiling on the device"},
		{"kept out", func(c *Captured) { c.Ops[1].Fusion.Supported = false }, status.ErrInvalidParam,
			"fused: gen: layer/paged (Paged): it cannot be part of a super kernel: its kernel does not support super kernels"},
		{"own binary, not sunk", func(c *Captured) { c.Ops[2].Fusion.EnsureReuse, c.Marks[2].Sunk = true, false }, status.ErrInvalidParam, "its binary must be reused"},
		{"a task besides", func(c *Captured) { c.Tasks[1] = own(2, AllKernelTask)[:2] }, status.ErrInvalidGraph,
			"fused: gen: layer/paged (Paged): want one kernel and its tiling in a super kernel, got a task of kind KERNEL besides"},
		{"no kernel", func(c *Captured) { c.Tasks[2] = nil }, status.ErrInvalidParam, "layer/paged: want a task of kind KERNEL or ALL_KERNEL"},
		{"bad format of one that is not sunk", func(c *Captured) { c.Marks[2].Sunk = false; c.Tasks[2][0].Args = "{" }, status.ErrInvalidParam, `position 0: item "{"`},
		{"reads what the super kernel makes", func(c *Captured) { c.Ops[0].Fusion.Scope = "fused" }, status.ErrInvalidGraph,
			"Paged: gen: layer/paged: its tiling reads what layer/add makes in the same super kernel fused"},
		{"two main streams", func(c *Captured) { c.Ops[2].Stream = 1 }, status.ErrInvalidGraph, "want the main stream 0 of super kernel fused, got 1"},
		{"no such scope", func(c *Captured) { c.Supers[0].Name = "other" }, status.ErrInvalidGraph, `want a super kernel for scope "fused", got none`},
	} {
		err := fused(tt.change)
		require.ErrorIs(t, err, tt.code, tt.name)
		assert.ErrorContains(t, err, tt.want, tt.name)
	}
	_, err := (&SuperKernel{Name: "empty"}).Fuse(nil)
	require.ErrorIs(t, err, status.ErrInvalidGraph)
	assert.ErrorContains(t, err, "empty: gen: want operations to fuse")
}

// A kernel that was tiled once runs in a super kernel as it is.
func TestFusedWithoutTiling(t *testing.T) {
	o := plain(3)
	got := must((&SuperKernel{Op: 9, Name: "super"}).Fuse([]Member{{&o, &Mark{}, only(3, KernelTask)}}))(t)
	assert.Equal(t, []Task{{
		Kind: SuperKernelTask, Op: 9, Args: "{skn3i0}{skn3i1}{skn3o0}{skn3ws0}{skn3t}",
		Subs: []SubKernel{{Op: 3, Args: kernelArgs, Flag: None, BlockDim: 4, Key: 3}},
	}}, got)
}
