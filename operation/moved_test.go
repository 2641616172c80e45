package operation_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/mempool"
	"goatb/operation"
	"goatb/operation/elementwise"
	"goatb/operation/shape"
	"goatb/tiling"
)

// TestMovesToWhereBytesAre splits a sum and joins the pieces in the other order.
// The pieces of one row lie in the sum, so the split is left out, under every
// policy; those of two rows do not, and under a solver that lays nothing into
// anything every kernel runs.
func TestMovesToWhereBytesAre(t *testing.T) {
	build := func() *operation.Op {
		g := operation.BuildGraph("apart", []string{"a", "b"}, []string{"y"})
		g.AddSpec(elementwise.Elewise{Type: elementwise.Add}, []string{"a", "b"}, []string{"sum"})
		g.AddSpec(shape.Split{SplitDim: 1, SplitNum: 2}, []string{"sum"}, []string{"left", "right"})
		g.AddSpec(shape.Concat{ConcatDim: 1}, []string{"right", "left"}, []string{"y"})
		o, err := g.Build()
		require.NoError(t, err)
		return o
	}
	for _, p := range tiling.Policies() {
		for _, c := range []struct {
			rows    int64
			solver  mempool.SolverType
			skipped int64
		}{{1, mempool.Optimal, 1}, {2, mempool.Optimal, 0}, {1, 0, 0}} {
			t.Run(fmt.Sprintf("policy=%s/rows=%d/solver=%d", p.Name(), c.rows, c.solver), func(t *testing.T) {
				b := newBed(t, atbctx.WithPolicy(p.Name()), atbctx.WithSolver(c.solver))
				o := build()
				defer func() { require.NoError(t, o.Close()) }()
				const half = 16
				x, one := make([]float32, c.rows*2*half), make([]float32, c.rows*2*half)
				want := make([]float32, len(x))
				for i := range x {
					x[i], one[i] = float32(i), 1
					want[i/(2*half)*2*half+(i+half)%(2*half)] = float32(i + 1)
				}
				pack := b.pack(o, b.f32(x, c.rows, 2*half), b.f32(one, c.rows, 2*half))
				ws := b.setup(o, pack)
				before := b.c.Stats().SkippedCopies
				for n := int64(1); n <= 3; n++ {
					require.NoError(t, o.Execute(pack, ws, b.c))
					b.sync()
					require.Equal(t, want, b.values(pack.Out[0]))
					require.Equal(t, n*c.skipped, b.c.Stats().SkippedCopies-before)
				}
			})
		}
	}
}
