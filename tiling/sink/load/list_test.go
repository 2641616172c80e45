package load

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/status"
	"goatb/tiling/sink"
)

var rewrite = flag.Bool("rewrite", false, "write the transcripts in testdata anew")

func wrapped(n int64) (device.Buffer, error) { return device.Wrap(make([]byte, n)), nil }

// The lists that devices get pass their check, and look as in testdata.
func TestLists(t *testing.T) {
	for name, build := range forms() {
		l := build(t).list(t, 2, wrapped)
		require.NoError(t, l.List.Check(device.Limits{TaskUpdate: true, MaxBlocks: 1 << 16}), name)
		var b strings.Builder
		require.NoError(t, l.List.Dump(&b, nil))
		path := filepath.Join("testdata", strings.ReplaceAll(name, " ", "")+".txt")
		if *rewrite {
			require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, string(want), b.String(), name)
	}
}

// Every tiling has its own part of the memory.
func TestMemoryIsNotShared(t *testing.T) {
	for name, build := range forms() {
		l := build(t).list(t, 2, wrapped)
		var contexts, args []device.Buffer
		for i := range l.List.Tasks {
			if p := l.List.Tasks[i].Preprocess; p != nil {
				contexts = append(contexts, p.Outputs[0].Buffer)
				args = append(args, p.Inputs[0].Buffer)
			}
		}
		all := append(contexts, args...)
		require.Len(t, all, 4)
		for i := range all {
			for j := range i {
				assert.False(t, all[i].Overlaps(all[j]), "%s: %d and %d", name, i, j)
			}
		}
		require.Len(t, l.Writes, 1)
		assert.Equal(t, l.Memory.Size(), int64(len(l.Writes[0].Data)))
	}
}

func TestListWithoutTilings(t *testing.T) {
	g := newGraph(t, sink.AllKernelTask)
	g.captured.Ops, g.captured.Marks, g.captured.Tasks = g.captured.Ops[:1], g.captured.Marks[:1], g.captured.Tasks[:1]
	var err error
	g.assigned, err = sink.Assign(g.captured.Ops, g.captured.Marks, 1, 0)
	require.NoError(t, err)
	l := g.list(t, 2, nil)
	assert.True(t, l.Memory.IsNil())
	assert.Empty(t, l.Writes)
}

func TestListErrors(t *testing.T) {
	noMemory := errors.New("no memory")
	for _, tt := range []struct {
		name   string
		change func(*graph)
		code   status.Code
		want   string
	}{
		{"no operation", func(g *graph) { delete(g.ops, 3) }, status.ErrInternal, "load: want operation 3 with what its tiling needs, got none"},
		{"nothing for its tiling", func(g *graph) { g.ops[3].Sunk = nil }, status.ErrInternal, "graph: load: third: want operation 3 with what its tiling needs"},
		{"plain operation missing", func(g *graph) { delete(g.ops, 1) }, status.ErrInternal, "want kernel 0 of operation 1, got none"},
		{"too few kernels", func(g *graph) { g.ops[2].Kernels = nil }, status.ErrInternal, "graph: load: second: want kernel 0 of operation 2, got none"},
		{"too many kernels", func(g *graph) { g.ops[1].Kernels = append(g.ops[1].Kernels, g.ops[1].Kernels[0]) }, status.ErrInternal, "graph: load: copy: want tasks for 2 kernels of operation 1, got 1"},
		{"no function", func(g *graph) { g.ops[2].Sunk.Spec.Type = "other" }, status.ErrInvalidParam, `graph: load: second: no tiling function is registered for operation type "other"`},
		{"no values", func(g *graph) { g.ops[2].Sunk.Values = nil }, status.ErrInternal, "want the addresses of 1 values, got 0"},
		{"tiling data beyond the room", func(g *graph) { g.ops[2].Sunk.DataBytes = 9 }, status.ErrInternal, "want at most 8 bytes of tiling data, got 9"},
		{"too many workspaces", func(g *graph) { g.ops[2].Sunk.Spec.Workspaces = make([]int64, 17) }, status.ErrInvalidParam, "graph: load: second: tiling context: want at most 16 workspaces, got 17"},
	} {
		g := newGraph(t, sink.AllKernelTask)
		tt.change(g)
		l, err := g.load(t, 2, wrapped)
		require.ErrorIs(t, err, tt.code, tt.name)
		assert.ErrorContains(t, err, tt.want, tt.name)
		assert.Nil(t, l)
	}
	_, err := newGraph(t, sink.AllKernelTask).load(t, 2, func(int64) (device.Buffer, error) { return device.Buffer{}, noMemory })
	assert.ErrorIs(t, err, noMemory)
}
