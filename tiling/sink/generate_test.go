package sink

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/status"
)

// segment is a graph of a plain operation, two sunk ones that read what the one
// before makes, and one on another main stream.
func segment(t testing.TB) (*Captured, *Assignment) {
	ops := []Op{plain(1), reading(2, 0), reading(3, 1), reading(4, Outside)}
	ops[3].Stream = 1
	c := &Captured{Ops: ops, Marks: marked(t, ops), Workspaces: make([][]Workspace, len(ops))}
	for i := range ops {
		tasks := own(ops[i].ID, AllKernelTask)
		for j := range tasks {
			tasks[j].Stream = ops[i].Stream
		}
		c.Tasks = append(c.Tasks, tasks)
	}
	return c, must(Assign(ops, c.Marks, 2, 0))(t)
}

func TestGenerate(t *testing.T) {
	c, a := segment(t)
	l := must(Generate(c, a, &Profile{Prefetch: 2}, platform))(t)
	transcript(t, "segment.txt", func(b *strings.Builder) error { return l.WriteText(b) })
	for i := range l.Tasks {
		if k := &l.Tasks[i]; k.Kind == UpdateTask {
			target := l.Tasks[k.Target]
			assert.Equal(t, AllKernelTask, target.Kind)
			assert.Equal(t, k.Op, target.Op)
			assert.True(t, target.Updated)
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		order := run(t, l, func(can []int) int { return r.IntN(len(can)) })
		at := func(k TaskKind, op int64) int { return position(t, l, order, kindOf(k, op)) }
		assert.Less(t, at(AllKernelTask, 1), at(PreprocessTask, 2))
		assert.Less(t, at(AllKernelTask, 2), at(PreprocessTask, 3), "the value comes from the kernel, not from its tiling")
		last := l.Tasks[order[len(order)-1]]
		assert.Equal(t, 0, last.Stream, "the main stream ends last: %s", last.Kind)
	}
}

// Nothing but the producers of values holds a tiling up.
func TestTilingRunsAhead(t *testing.T) {
	c, a := segment(t)
	l := must(Generate(c, a, &Profile{Prefetch: 2}, platform))(t)
	order := run(t, l, func(can []int) int { return len(can) - 1 })
	assert.Less(t, position(t, l, order, kindOf(PreprocessTask, 4)), position(t, l, order, kindOf(KernelTask, 1)))
}

func TestGenerateErrors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Captured, *Assignment)
		code   status.Code
		want   string
	}{
		{"tiled on the host", func(c *Captured, _ *Assignment) {
			c.Marks[1] = Mark{Depends: true, Unknown: true, Gate: ChipGate, Reason: "no"}
		}, status.ErrInvalidGraph,
			"Paged: gen: layer/paged: an operation that is tiled on the host cannot be captured: _dynamic_tiling_depend_op _force_unknown_shape (chip: no)"},
		{"unknown shape", func(c *Captured, _ *Assignment) { c.Ops[0].Unknown = true }, status.ErrInvalidGraph, "Add: gen: layer/add: an operation that is tiled on the host"},
		{"resources forbidden", func(c *Captured, a *Assignment) { a.Attached[1], a.Event[1] = None, None }, status.ErrInvalidParam, "Paged: gen: layer/paged: want 1 attached stream, got 0"},
		{"event forbidden", func(c *Captured, a *Assignment) { a.Event[1] = None }, status.ErrInvalidParam, "want 1 event, got 0"},
		{"compile information gone", func(c *Captured, _ *Assignment) { c.Ops[1].CompileInfo = "" }, status.ErrInternal, "no compile information"},
		{"no kernel", func(c *Captured, _ *Assignment) { c.Tasks[1] = nil }, status.ErrInvalidParam, "want a task of kind"},
	} {
		c, a := segment(t)
		tt.change(c, a)
		l, err := Generate(c, a, &Profile{Prefetch: 2}, platform)
		require.ErrorIs(t, err, tt.code, tt.name)
		assert.ErrorContains(t, err, tt.want, tt.name)
		assert.Nil(t, l)
	}
	ops := []Op{reading(1, Outside)}
	ops[0].NoAttached = true
	marks := marked(t, ops)
	a := must(Assign(ops, marks, 1, 0))(t)
	assert.Equal(t, []int{None}, a.Attached)
	_, err := Generate(&Captured{Ops: ops, Marks: marks, Tasks: [][]Task{only(1, AllKernelTask)}, Workspaces: make([][]Workspace, 1)}, a, &Profile{}, platform)
	assert.ErrorContains(t, err, "want 1 attached stream, got 0")
}

// Form v2: constants where the tiling reads no values, a tiling on the host with
// edges to the launch where it does.
func TestPrepared(t *testing.T) {
	ops := []Op{plain(1), reading(2, 0), reading(3, Outside)}
	ops[2].Stream = 1
	before := []*Before{{Key: 5, BlockDim: 2}, {Key: 6, BlockDim: 3}, {}}
	p := must(Prepare(ops, marked(t, ops), before))(t)
	transcript(t, "prepared.txt", func(b *strings.Builder) error { return p.WriteText(b) })
	for _, e := range p.Wires {
		assert.Less(t, e.From, e.To, "nodes are in an order in which they can run")
	}
	_, err := Prepare(ops, marked(t, ops), []*Before{nil, {}, {}})
	require.ErrorIs(t, err, status.ErrInternal)
	assert.ErrorContains(t, err, "Add: gen: layer/add: want the tiling that was computed on the host")
	_, err = Prepare(ops, marked(t, ops), []*Before{{}, nil, nil})
	require.NoError(t, err, "values that are not known yet")
	ops[1].Inputs[1].Producer = 1
	_, err = Prepare(ops, marked(t, ops), before)
	require.ErrorIs(t, err, status.ErrInvalidGraph)
	assert.ErrorContains(t, err, "input 1: want a producer before operation 1, got 1")
}
