package kernelgraph_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/kernel"
	"goatb/kernel/move"
	"goatb/kernelgraph"
	"goatb/mempool"
	"goatb/tensor"
)

// The tests' kernels do nothing; graphs are looked at, not run.
type none struct{}

func kernelOf(name string, inPlace bool, scratch int64) kernel.Table {
	return kernel.Table{kernel.Define(kernel.Def[none, none]{
		Name: name, InPlace: inPlace,
		Scratch: func(*kernel.Problem, none) int64 { return scratch },
		Tile:    func(*kernel.Problem, none, *none, []int64) (kernel.Grid, error) { return kernel.Grid{Blocks: 1}, nil },
		Run:     func(*kernel.Args, int, *none, []int64) error { return nil },
	})}
}

var (
	plain   = kernelOf("test/plain", false, 0)
	inPlace = kernelOf("test/in-place", true, 0)
)

// bytes describes a tensor of n bytes.
func bytes(n int64) tensor.Desc { return tensor.Of(tensor.Int8, n) }

var env = &kernelgraph.Env{Copy: move.Copy}

// newBuilder makes a builder for operands of the given sizes.
func newBuilder(in, out []int64) *kernelgraph.Builder {
	descs := func(sizes []int64) []tensor.Desc {
		d := make([]tensor.Desc, len(sizes))
		for i, n := range sizes {
			d[i] = bytes(n)
		}
		return d
	}
	return kernelgraph.New(env, "Test", descs(in), descs(out))
}

type refs = []kernelgraph.Ref

func call(t *testing.T, b *kernelgraph.Builder, table kernel.Table, in, out refs) {
	t.Helper()
	require.NoError(t, b.Kernel(kernelgraph.Call{Name: "k", Table: table, Params: none{}, In: in, Out: out}))
}

func build(t *testing.T, b *kernelgraph.Builder) *kernelgraph.Graph {
	t.Helper()
	g, err := b.Build()
	require.NoError(t, err)
	return g
}

// text lists the nodes: "kernel(in, in) -> out @stream".
func text(g *kernelgraph.Graph) []string {
	var lines []string
	for i := range g.Nodes {
		n := &g.Nodes[i]
		s := fmt.Sprintf("%s%v->%v", n.What(), g.Names(n.In), g.Names(n.Out))
		if n.Stream != 0 {
			s += fmt.Sprintf("@%d", n.Stream)
		}
		lines = append(lines, s)
	}
	return lines
}

// plan plans the workspace and checks the plan with an independent validator.
func plan(t *testing.T, g *kernelgraph.Graph, o kernelgraph.WorkspaceOptions) *kernelgraph.Workspace {
	t.Helper()
	w, err := g.PlanWorkspace(new(mempool.Planner), o)
	require.NoError(t, err)
	var items []mempool.Item
	var offsets []int64
	for _, l := range w.Lives {
		n := g.Tensors[l.Ref].Desc.Bytes()
		items = append(items, mempool.Item{Size: n, First: int64(l.First), Last: int64(l.Last), Align: kernelgraph.SectionAlign})
		offsets = append(offsets, w.Offset[l.Ref])
		require.GreaterOrEqual(t, w.Offset[l.Ref], w.Scratch, "intermediates lie behind the scratch")
		require.LessOrEqual(t, w.Offset[l.Ref]+n, w.Size)
	}
	require.NoError(t, mempool.Validate(items, offsets))
	require.NoError(t, w.Validate(g))
	require.Equal(t, w.Size, w.Scratch+w.Arena)
	return w
}
