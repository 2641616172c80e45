package kernelgraph_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/kernel/move"
	"goatb/kernelgraph"
	"goatb/mempool"
	"goatb/status"
)

// shared plans a graph and returns the offsets of temporaries from the start of
// the intermediates, and the bytes of all.
func shared(t *testing.T, b *kernelgraph.Builder, temps ...kernelgraph.Ref) (offsets []int64, arena int64) {
	t.Helper()
	w := plan(t, build(t, b), kernelgraph.WorkspaceOptions{Solver: mempool.Optimal})
	for _, r := range temps {
		offsets = append(offsets, w.Offset[r]-w.Scratch)
	}
	return offsets, w.Arena
}

// Kernels that work in place hand one piece of memory on.
func TestChainInPlace(t *testing.T) {
	b := newBuilder([]int64{1024}, []int64{1024})
	x := b.Temp("x", bytes(1024))
	y, z := b.Temp("y", bytes(1024)), b.Temp("z", bytes(1024))
	call(t, b, plain, refs{b.In(0)}, refs{x})
	call(t, b, inPlace, refs{x}, refs{y})
	call(t, b, inPlace, refs{y}, refs{z})
	call(t, b, plain, refs{z}, refs{b.Out(0)})
	offsets, arena := shared(t, b, x, y, z)
	assert.Equal(t, []int64{0, 0, 0}, offsets)
	assert.Equal(t, int64(1024), arena)
	w := plan(t, build(t, b), kernelgraph.WorkspaceOptions{Solver: mempool.Optimal})
	assert.Equal(t, []kernelgraph.Life{{Ref: x, First: 0, Last: 3}}, w.Lives)
	assert.Equal(t, []kernelgraph.Within{{Ref: y, In: x}, {Ref: z, In: x}}, w.Within)
	for solver := range mempool.Optimal {
		assert.Empty(t, plan(t, build(t, b), kernelgraph.WorkspaceOptions{Solver: solver}).Within, "%s gives each temporary its own", solver)
	}
}

// What is read later, by another name, by the same node elsewhere, or on a
// stream that may still run, keeps its memory.
func TestNotInPlace(t *testing.T) {
	for _, c := range []struct {
		name string
		use  func(t *testing.T, b *kernelgraph.Builder, x, y kernelgraph.Ref)
	}{
		{"read later", func(t *testing.T, b *kernelgraph.Builder, x, y kernelgraph.Ref) {
			call(t, b, inPlace, refs{x}, refs{y})
			call(t, b, plain, refs{x, y}, refs{b.Out(0)})
		}},
		{"a view read later", func(t *testing.T, b *kernelgraph.Builder, x, y kernelgraph.Ref) {
			v, err := b.View(x, bytes(8), 100)
			require.NoError(t, err)
			call(t, b, inPlace, refs{x}, refs{y})
			call(t, b, plain, refs{v, y}, refs{b.Out(0)})
		}},
		{"another part read by the node", func(t *testing.T, b *kernelgraph.Builder, x, y kernelgraph.Ref) {
			v, err := b.View(x, bytes(8), 100)
			require.NoError(t, err)
			call(t, b, firstOnly, refs{x, v}, refs{y})
			call(t, b, plain, refs{y}, refs{b.Out(0)})
		}},
		{"another pair", func(t *testing.T, b *kernelgraph.Builder, x, y kernelgraph.Ref) {
			call(t, b, firstOnly, refs{b.In(0), x}, refs{y})
			call(t, b, plain, refs{y}, refs{b.Out(0)})
		}},
		{"not in place", func(t *testing.T, b *kernelgraph.Builder, x, y kernelgraph.Ref) {
			call(t, b, plain, refs{x}, refs{y})
			call(t, b, plain, refs{y}, refs{b.Out(0)})
		}},
		{"copied, then changed, with the old one read later", func(t *testing.T, b *kernelgraph.Builder, x, y kernelgraph.Ref) {
			require.NoError(t, b.Copy(x, y))
			call(t, b, inPlace, refs{y}, refs{y})
			call(t, b, plain, refs{x, y}, refs{b.Out(0)})
		}},
		{"read on a stream that may still run", func(t *testing.T, b *kernelgraph.Builder, x, y kernelgraph.Ref) {
			b.Record("e")
			b.SetStream(1)
			b.Wait("e")
			call(t, b, plain, refs{x}, refs{b.Temp("t", bytes(8))})
			b.SetStream(0)
			call(t, b, inPlace, refs{x}, refs{y})
			call(t, b, plain, refs{y}, refs{b.Out(0)})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBuilder([]int64{1024}, []int64{1024})
			x, y := b.Temp("x", bytes(1024)), b.Temp("y", bytes(1024))
			call(t, b, plain, refs{b.In(0)}, refs{x})
			c.use(t, b, x, y)
			offsets, _ := shared(t, b, x, y)
			assert.NotEqual(t, offsets[0], offsets[1])
		})
	}
}

// A copy that is only read shares the memory of what it is a copy of, also
// while that is read.
func TestCopyShares(t *testing.T) {
	b := newBuilder([]int64{1024}, []int64{1024})
	x, y := b.Temp("x", bytes(1024)), b.Temp("y", bytes(1024))
	call(t, b, plain, refs{b.In(0)}, refs{x})
	require.NoError(t, b.Copy(x, y))
	call(t, b, plain, refs{x}, refs{b.Temp("t", bytes(8))})
	call(t, b, plain, refs{y}, refs{b.Temp("t", bytes(8))})
	call(t, b, plain, refs{x, y}, refs{b.Out(0)})
	offsets, _ := shared(t, b, x, y)
	assert.Equal(t, offsets[0], offsets[1])
}

// Parts are made in the windows of their concatenation, and pieces of a split
// lie where they are cut from.
func TestWindowsOfJoinAndSplit(t *testing.T) {
	b := newBuilder([]int64{8}, []int64{8})
	x, y, all := b.Temp("x", bytes(128)), b.Temp("y", bytes(384)), b.Temp("all", bytes(512))
	call(t, b, plain, refs{b.In(0)}, refs{x})
	call(t, b, plain, refs{b.In(0)}, refs{y})
	require.NoError(t, b.Kernel(kernelgraph.Call{Table: move.Join, Params: move.Axis{}, In: refs{x, y}, Out: refs{all}}))
	p, q := b.Temp("p", bytes(256)), b.Temp("q", bytes(256))
	require.NoError(t, b.Kernel(kernelgraph.Call{Table: move.Split, Params: move.Axis{}, In: refs{all}, Out: refs{p, q}}))
	call(t, b, plain, refs{p, q}, refs{b.Out(0)})
	offsets, arena := shared(t, b, x, y, all, p, q)
	assert.Equal(t, []int64{0, 128, 0, 0, 256}, offsets)
	assert.Equal(t, int64(512), arena)

	// Windows at odd places, and a part that is joined twice, are copied.
	b = newBuilder([]int64{8}, []int64{8})
	x, y, all = b.Temp("x", bytes(100)), b.Temp("y", bytes(100)), b.Temp("all", bytes(300))
	call(t, b, plain, refs{b.In(0)}, refs{x, y})
	require.NoError(t, b.Kernel(kernelgraph.Call{Table: move.Join, Params: move.Axis{}, In: refs{x, y, x}, Out: refs{all}}))
	call(t, b, plain, refs{all}, refs{b.Out(0)})
	offsets, _ = shared(t, b, x, y, all)
	assert.NotEqual(t, offsets[2], offsets[0])
	assert.NotEqual(t, offsets[2]+100, offsets[1])
}

// A plan in which a tensor moves onto another one that is in use is found.
func TestValidateFindsWrongPlans(t *testing.T) {
	found := 0
	for seed := range uint64(40) {
		g := randomGraph(t, rand.New(rand.NewPCG(3, seed)))
		w := plan(t, g, kernelgraph.WorkspaceOptions{Solver: mempool.Optimal})
		for i, l := range w.Lives {
			for _, other := range w.Lives[:i] {
				if l.First > other.Last || other.First >= l.First || l.First == other.Last {
					continue // not in use together
				}
				bad := *w
				bad.Offset = slices.Clone(w.Offset)
				bad.Offset[l.Ref] = w.Offset[other.Ref]
				bad.Size += g.Tensors[l.Ref].Desc.Bytes()
				if err := bad.Validate(g); err != nil {
					require.ErrorIs(t, err, status.ErrInternal)
					found++
				}
			}
		}
	}
	assert.Greater(t, found, 200)

	b := newBuilder([]int64{8}, []int64{8})
	x, y := b.Temp("x", bytes(512)), b.Temp("y", bytes(512))
	call(t, b, plain, refs{b.In(0)}, refs{x})
	call(t, b, plain, refs{b.In(0)}, refs{y})
	call(t, b, plain, refs{x, y}, refs{b.Out(0)})
	g := build(t, b)
	w := plan(t, g, kernelgraph.WorkspaceOptions{Solver: mempool.Optimal})
	for _, c := range []struct {
		at   int64
		want string
	}{
		{w.Offset[x], "node 2 (k): x was overwritten: bytes 0 to 511"},
		{w.Offset[x] + 100, "node 2 (k): x was overwritten: bytes 100 to 511"},
		{-1, "node 1 (k): y leaves the intermediates"},
		{513, "node 1 (k): y leaves the intermediates"},
	} {
		bad := *w
		bad.Offset = slices.Clone(w.Offset)
		bad.Offset[y] = c.at
		assert.ErrorContains(t, bad.Validate(g), c.want)
	}
}

// Whatever the graph, the plan holds what is read, and is planned alike twice.
func FuzzWorkspace(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		g := randomGraph(t, rand.New(rand.NewPCG(4, seed)))
		for _, perOp := range []bool{false, true} {
			o := kernelgraph.WorkspaceOptions{Solver: mempool.Optimal, PerOperation: perOp}
			require.Equal(t, plan(t, g, o), plan(t, g, o))
		}
	})
}
