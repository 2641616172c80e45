package kernelgraph_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/kernel"
	"goatb/kernel/move"
	"goatb/kernelgraph"
	"goatb/mempool"
)

// stack makes a graph of layers that look like those of a transformer: products
// that need memory of their own, chains in place, a residual stream, a split and
// a concatenation.
func stack(tb testing.TB, layers int) *kernelgraph.Graph {
	tb.Helper()
	const width = 4096
	b := newBuilder([]int64{width}, []int64{width})
	call := func(table kernel.Table, in refs, out kernelgraph.Ref) {
		require.NoError(tb, b.Kernel(kernelgraph.Call{Name: "k", Table: table, Params: none{}, In: in, Out: refs{out}}))
	}
	temp := func(name string, n int64) kernelgraph.Ref { return b.Temp(name, bytes(n)) }
	x := temp("x", width)
	call(plain, refs{b.In(0)}, x)
	for range layers {
		norm, qkv := temp("norm", width), temp("qkv", 3*width)
		call(plain, refs{x}, norm)
		call(plain, refs{norm}, qkv)
		q, k, v := temp("q", width), temp("k", width), temp("v", width)
		require.NoError(tb, b.Kernel(kernelgraph.Call{Table: move.Split, Params: move.Axis{}, In: refs{qkv}, Out: refs{q, k, v}}))
		q2, k2 := temp("q2", width), temp("k2", width)
		call(inPlace, refs{q}, q2)
		call(inPlace, refs{k}, k2)
		scores, probs, attn, proj, sum := temp("scores", 8*width), temp("probs", 8*width), temp("attn", width), temp("proj", width), temp("sum", width)
		call(plain, refs{q2, k2}, scores)
		call(inPlace, refs{scores}, probs)
		call(plain, refs{probs, v}, attn)
		call(plain, refs{attn}, proj)
		call(inPlace, refs{x, proj}, sum)
		norm2, gate, up, both, act, prod, down, next := temp("norm2", width), temp("gate", 3*width), temp("up", 3*width), temp("both", 6*width), temp("act", 6*width), temp("prod", 3*width), temp("down", width), temp("next", width)
		call(plain, refs{sum}, norm2)
		call(plain, refs{norm2}, gate)
		call(plain, refs{norm2}, up)
		require.NoError(tb, b.Kernel(kernelgraph.Call{Table: move.Join, Params: move.Axis{}, In: refs{gate, up}, Out: refs{both}}))
		call(inPlace, refs{both}, act)
		call(plain, refs{act}, prod)
		call(plain, refs{prod}, down)
		call(inPlace, refs{sum, down}, next)
		x = next
	}
	call(plain, refs{x}, b.Out(0))
	g, err := b.Build()
	require.NoError(tb, err)
	return g
}

// Layers that repeat need no more than one of them.
func TestPlanStack(t *testing.T) {
	one := plan(t, stack(t, 1), kernelgraph.WorkspaceOptions{Solver: mempool.Optimal})
	many := plan(t, stack(t, 32), kernelgraph.WorkspaceOptions{Solver: mempool.Optimal})
	require.Equal(t, one.Arena, many.Arena)
	require.True(t, many.Optimal)
	again := plan(t, stack(t, 32), kernelgraph.WorkspaceOptions{Solver: mempool.Optimal})
	require.Equal(t, many, again, "two runs plan alike")
}

func BenchmarkPlanWorkspace(b *testing.B) {
	for _, layers := range []int{1, 32} {
		g := stack(b, layers)
		for _, solver := range []mempool.SolverType{mempool.Intervals, mempool.Optimal} {
			b.Run(fmt.Sprintf("layers=%d/solver=%s", layers, solver), func(b *testing.B) {
				var p mempool.Planner
				var w *kernelgraph.Workspace
				b.ReportAllocs()
				for b.Loop() {
					var err error
					if w, err = g.PlanWorkspace(&p, kernelgraph.WorkspaceOptions{Solver: solver}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(w.Arena), "arena-bytes")
				b.ReportMetric(float64(len(w.Within)), "shared")
			})
		}
	}
}
