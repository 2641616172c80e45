package kernelgraph_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/kernel/move"
	"goatb/kernelgraph"
	"goatb/mempool"
	"goatb/status"
	"goatb/tensor"
)

func lives(g *kernelgraph.Graph) map[string][2]int {
	m := map[string][2]int{}
	for _, l := range g.Lives() {
		m[g.Tensors[l.Ref].Name] = [2]int{l.First, l.Last}
	}
	return m
}

func TestLivesOnOneStream(t *testing.T) {
	b := newBuilder([]int64{8}, []int64{8})
	temp := func(name string) kernelgraph.Ref { return b.Temp(name, bytes(8)) }
	early, late, viewed, unread, updated := temp("early"), temp("late"), temp("viewed"), temp("unread"), temp("updated")
	temp("untouched")
	view, err := b.View(viewed, bytes(4), 4)
	require.NoError(t, err)
	again, err := b.View(view, bytes(2), 1)
	require.NoError(t, err)
	call(t, b, plain, refs{b.In(0)}, refs{early, late})    // 0
	call(t, b, plain, refs{early}, refs{viewed})           // 1
	call(t, b, plain, refs{early}, refs{unread, updated})  // 2
	call(t, b, inPlace, refs{updated}, refs{updated})      // 3
	call(t, b, plain, refs{again}, refs{temp("t")})        // 4
	call(t, b, plain, refs{late, b.In(0)}, refs{b.Out(0)}) // 5
	assert.Equal(t, map[string][2]int{
		"early": {0, 2}, "late": {0, 5}, "viewed": {1, 4}, "unread": {2, 2}, "updated": {2, 3}, "t": {4, 4},
	}, lives(build(t, b)))
}

// shares reports whether two temporaries share bytes in the plan of a graph.
func shares(t *testing.T, g *kernelgraph.Graph, a, b kernelgraph.Ref) bool {
	t.Helper()
	w := plan(t, g, kernelgraph.WorkspaceOptions{Solver: mempool.Optimal})
	x, y := w.Offset[a], w.Offset[b]
	return x < y+g.Tensors[b].Desc.Bytes() && y < x+g.Tensors[a].Desc.Bytes()
}

// An event of stream 0 that stream 1 waits for puts a temporary of stream 0
// before one of stream 1.
func TestSharingOverStreams(t *testing.T) {
	make := func(record, wait bool) bool {
		b := newBuilder([]int64{8}, []int64{8})
		x, y, z := b.Temp("x", bytes(8)), b.Temp("y", bytes(8)), b.Temp("z", bytes(8))
		call(t, b, plain, refs{b.In(0)}, refs{x}) // 0
		call(t, b, plain, refs{x}, refs{y})       // 1: the last use of x
		if record {                               // 2
			b.Record("e")
		} else {
			b.Record("other")
		}
		b.SetStream(1)
		if wait { // 3
			b.Wait("e")
		} else {
			b.Record("other")
		}
		call(t, b, plain, refs{b.In(0)}, refs{z}) // 4
		b.Record("f")                             // 5
		b.SetStream(0)
		b.Wait("f")                                   // 6
		call(t, b, plain, refs{y, z}, refs{b.Out(0)}) // 7
		g := build(t, b)
		assert.Equal(t, map[string][2]int{"x": {0, 1}, "y": {1, 7}, "z": {4, 7}}, lives(g))
		return shares(t, g, x, z)
	}
	assert.True(t, make(true, true))
	for _, rw := range [][2]bool{{false, true}, {true, false}, {false, false}} {
		assert.False(t, make(rw[0], rw[1]), "record %v, wait %v", rw[0], rw[1])
	}
}

// A wait resets its event: a second wait for it waits for a record to come, so
// it orders nothing.
func TestSecondWaitOrdersNothing(t *testing.T) {
	b := newBuilder([]int64{8}, []int64{8})
	x, z := b.Temp("x", bytes(8)), b.Temp("z", bytes(8))
	call(t, b, plain, refs{b.In(0)}, refs{x})
	call(t, b, plain, refs{x}, refs{b.Out(0)})
	b.Record("e")
	b.SetStream(1)
	b.Wait("e")
	b.SetStream(2)
	b.Wait("e")
	call(t, b, plain, refs{b.In(0)}, refs{z})
	assert.False(t, shares(t, build(t, b), x, z), "stream 2 may run before x is read")
}

// happensBefore is the order of a graph's nodes by its definition: the closure
// of stream order and of each wait behind the record that it takes.
func happensBefore(g *kernelgraph.Graph) [][]bool {
	n := len(g.Nodes)
	before := make([][]bool, n)
	for i := range before {
		before[i] = make([]bool, n)
	}
	for i := range n {
		for j := i + 1; j < n; j++ {
			if g.Nodes[i].Stream == g.Nodes[j].Stream {
				before[i][j] = true
			}
		}
	}
	// Whatever waits and records of earlier launches have left of an event, a
	// wait is behind the record that it takes in both cases: none left, one left.
	for _, left := range []bool{false, true} {
		for i, r := range takes(g, left) {
			other := takes(g, !left)
			if r >= 0 && other[i] == r {
				before[r][i] = true
			}
		}
	}
	for k := range n {
		for i := range n {
			for j := range n {
				before[i][j] = before[i][j] || before[i][k] && before[k][j]
			}
		}
	}
	return before
}

// takes returns for each wait the record of the graph that it takes, -1 for
// none, when each event had a record left, or none, at the start.
func takes(g *kernelgraph.Graph, left bool) map[int]int {
	type state struct {
		record int   // the latest that is not taken, -1 for none
		there  bool  // there is one, maybe of before
		ahead  []int // waits that take records to come
	}
	events := map[any]*state{}
	out := map[int]int{}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Kind != kernelgraph.RecordNode && n.Kind != kernelgraph.WaitNode {
			continue
		}
		s := events[n.Event]
		if s == nil {
			s = &state{record: -1, there: left}
			events[n.Event] = s
		}
		switch {
		case n.Kind == kernelgraph.RecordNode && len(s.ahead) > 0:
			s.ahead = s.ahead[1:] // the wait is earlier in the list: not of interest here
		case n.Kind == kernelgraph.RecordNode:
			s.record, s.there = i, true
		case s.there:
			out[i] = s.record
			s.record, s.there = -1, false
		default:
			out[i] = -1
			s.ahead = append(s.ahead, i)
		}
	}
	return out
}

func size(b *kernelgraph.Builder, r kernelgraph.Ref) int64 {
	d := b.Desc(r)
	return d.Bytes()
}

// randomGraph makes a graph over three streams with events, views, in-place
// nodes and scopes.
func randomGraph(t *testing.T, rng *rand.Rand) *kernelgraph.Graph {
	b := newBuilder([]int64{512}, []int64{512})
	written := refs{b.In(0)}
	any := func() kernelgraph.Ref { return written[rng.IntN(len(written))] }
	builders := []*kernelgraph.Builder{b}
	for i := range 30 {
		s := builders[rng.IntN(len(builders))]
		switch rng.IntN(12) {
		case 0:
			s.Record(rng.IntN(2))
		case 1:
			s.Wait(rng.IntN(2))
		case 2:
			builders = append(builders, s.Scope(fmt.Sprint("s", i), "Op", nil, nil, rng.IntN(3)))
		case 3:
			r := any()
			call(t, s, inPlace, refs{r}, refs{r})
		case 4:
			from := any()
			r := s.Temp(fmt.Sprint("t", i), s.Desc(from))
			require.NoError(t, s.Copy(from, r))
			written = append(written, r)
		case 5:
			x, y := any(), any()
			r := s.Temp(fmt.Sprint("t", i), bytes(size(s, x)+size(s, y)))
			require.NoError(t, s.Kernel(kernelgraph.Call{Table: move.Join, Params: move.Axis{}, In: refs{x, y}, Out: refs{r}}))
			written = append(written, r)
		case 6:
			x := any()
			n := size(s, x)
			r, q := s.Temp(fmt.Sprint("t", i), bytes(n/2)), s.Temp(fmt.Sprint("u", i), bytes(n-n/2))
			require.NoError(t, s.Kernel(kernelgraph.Call{Table: move.Split, Params: move.Axis{}, In: refs{x}, Out: refs{r, q}}))
			written = append(written, r, q)
		case 7:
			x := any()
			r := s.Temp(fmt.Sprint("t", i), s.Desc(x))
			call(t, s, inPlace, refs{x}, refs{r})
			written = append(written, r)
		default:
			r := s.Temp(fmt.Sprint("t", i), bytes(512*(1+rng.Int64N(8))))
			call(t, s, kernelOf("test/scratch", true, rng.Int64N(3000)), refs{any(), any()}, refs{r})
			written = append(written, r)
			if v, err := s.View(r, bytes(100), rng.Int64N(412)); err == nil {
				written = append(written, v)
			}
		}
	}
	call(t, b, plain, refs{any()}, refs{b.Out(0)})
	return build(t, b)
}

// Whatever the streams do, two temporaries that share a byte are used one after
// the other, in both planning modes and under every solver; so is scratch.
func TestWorkspaceIsSound(t *testing.T) {
	for seed := range uint64(60) {
		g := randomGraph(t, rand.New(rand.NewPCG(1, seed)))
		before := happensBefore(g)
		uses := map[kernelgraph.Ref][]int{}
		for i := range g.Nodes {
			for _, rs := range []refs{g.Nodes[i].In, g.Nodes[i].Out} {
				for _, r := range rs {
					base, _ := g.Base(r)
					uses[base] = append(uses[base], i)
				}
			}
		}
		after := func(x, y kernelgraph.Ref) bool {
			for _, i := range uses[x] {
				for _, j := range uses[y] {
					if !before[i][j] {
						return false
					}
				}
			}
			return true
		}
		for solver := range mempool.SolverType(mempool.SolverTypes) {
			for _, perOp := range []bool{false, true} {
				w := plan(t, g, kernelgraph.WorkspaceOptions{Solver: solver, PerOperation: perOp})
				lives := g.Lives()
				for i, x := range lives {
					for _, y := range lives[:i] {
						ox, oy := w.Offset[x.Ref], w.Offset[y.Ref]
						shared := ox < oy+g.Tensors[y.Ref].Desc.Bytes() && oy < ox+g.Tensors[x.Ref].Desc.Bytes()
						require.True(t, !shared || oneMemory(w, x.Ref, y.Ref) || after(x.Ref, y.Ref) || after(y.Ref, x.Ref),
							"seed %d, solver %s, per operation %v: %s and %s share bytes", seed, solver, perOp, g.Tensors[x.Ref].Name, g.Tensors[y.Ref].Name)
					}
				}
				checkScratch(t, g, w)
			}
		}
	}
}

// oneMemory reports whether two temporaries lie in one piece of memory.
func oneMemory(w *kernelgraph.Workspace, a, b kernelgraph.Ref) bool {
	in := map[kernelgraph.Ref]kernelgraph.Ref{a: a, b: b}
	for _, x := range w.Within {
		in[x.Ref] = x.In
	}
	return in[a] == in[b]
}

func checkScratch(t *testing.T, g *kernelgraph.Graph, w *kernelgraph.Workspace) {
	t.Helper()
	end := int64(0)
	for s := range g.Streams {
		require.GreaterOrEqual(t, w.ScratchAt[s], end, "scratch of stream %d overlaps that before it", s)
		require.Zero(t, w.ScratchAt[s]%kernelgraph.SectionAlign)
		most := int64(0)
		for i := range g.Nodes {
			if g.Nodes[i].Stream == s {
				most = max(most, g.Nodes[i].Scratch)
			}
		}
		require.GreaterOrEqual(t, w.ScratchOf[s], most)
		require.Less(t, w.ScratchOf[s], most+kernelgraph.ScratchAlign)
		end = w.ScratchAt[s] + w.ScratchOf[s]
	}
	require.LessOrEqual(t, end, w.Scratch)
}

// One plan for all is at most as large as one for each operation, and the
// default solver at most as large as any other.
func TestPlansCompare(t *testing.T) {
	for seed := range uint64(20) {
		g := randomGraph(t, rand.New(rand.NewPCG(2, seed)))
		best := plan(t, g, kernelgraph.WorkspaceOptions{Solver: mempool.Optimal})
		for solver := range mempool.Optimal {
			assert.LessOrEqual(t, best.Arena, plan(t, g, kernelgraph.WorkspaceOptions{Solver: solver}).Arena, "seed %d %s", seed, solver)
		}
		perOp := plan(t, g, kernelgraph.WorkspaceOptions{Solver: mempool.Optimal, PerOperation: true})
		assert.LessOrEqual(t, best.LowerBound, perOp.Arena)
		assert.LessOrEqual(t, perOp.LowerBound, perOp.Arena)
	}
}

// In the mode per operation the temporaries of a node lie in one block of the
// operation around it.
func TestPerOperation(t *testing.T) {
	b := newBuilder([]int64{512}, []int64{512})
	outer := b.Temp("outer", bytes(1024))
	call(t, b, plain, refs{b.In(0)}, refs{outer})
	inner := func(name string, in, out kernelgraph.Ref) {
		s := b.Scope(name, "Inner", refs{in}, refs{out}, 0)
		x, y := s.Temp("x", bytes(512)), s.Temp("y", bytes(1536))
		call(t, s, plain, refs{in}, refs{x})
		call(t, s, plain, refs{x}, refs{y})
		call(t, s, plain, refs{y}, refs{out})
	}
	mid := b.Temp("mid", bytes(1024))
	inner("a", outer, mid)
	inner("b", mid, b.Out(0))
	g := build(t, b)
	w := plan(t, g, kernelgraph.WorkspaceOptions{Solver: mempool.Optimal, PerOperation: true})
	at := map[string]int64{}
	for _, l := range w.Lives {
		at[g.Tensors[l.Ref].Name] = w.Offset[l.Ref]
	}
	for _, s := range []string{"a", "b"} {
		lo, hi := min(at[s+"/x"], at[s+"/y"]), max(at[s+"/x"]+512, at[s+"/y"]+1536)
		assert.Equal(t, int64(2048), hi-lo, "the block of node %s", s)
		assert.True(t, at["mid"]+1024 <= lo || at["mid"] >= hi)
	}
	whole := plan(t, g, kernelgraph.WorkspaceOptions{Solver: mempool.Optimal})
	assert.Equal(t, whole.LowerBound, whole.Arena)
	assert.GreaterOrEqual(t, w.Arena, whole.Arena)
}

func TestScratchIsTheMostOfAStream(t *testing.T) {
	b := newBuilder([]int64{8}, []int64{8})
	for i, n := range []int64{100, 700, 64} {
		b.SetStream(i % 2 * 2)
		call(t, b, kernelOf(fmt.Sprint("test/s", i), false, n), refs{b.In(0)}, refs{b.Temp("t", bytes(8))})
	}
	require.NoError(t, b.Foreign("op", refs{b.In(0)}, refs{b.Out(0)}, 513))
	w := plan(t, build(t, b), kernelgraph.WorkspaceOptions{})
	assert.Equal(t, []int64{576, 0, 704}, w.ScratchOf)
	assert.Equal(t, []int64{0, 1024, 1024}, w.ScratchAt)
	assert.Equal(t, int64(2048), w.Scratch)
}

func TestWorkspaceTooLarge(t *testing.T) {
	huge := tensor.Of(tensor.Int8, 1<<62)
	b := kernelgraph.New(env, "Test", []tensor.Desc{bytes(8)}, []tensor.Desc{bytes(8)})
	x, y := b.Temp("x", huge), b.Temp("y", huge)
	call(t, b, plain, refs{b.In(0)}, refs{x, y})
	call(t, b, plain, refs{x, y}, refs{b.Out(0)})
	_, err := build(t, b).PlanWorkspace(new(mempool.Planner), kernelgraph.WorkspaceOptions{Solver: mempool.Optimal})
	require.ErrorIs(t, err, status.ErrOutOfDeviceMemory)

	for _, scratch := range []int64{-1, 1<<63 - 1, 1<<63 - 1025} {
		b := newBuilder([]int64{8}, []int64{8})
		t2 := b.Temp("t", bytes(1<<40))
		call(t, b, kernelOf("test/s", false, scratch), refs{b.In(0)}, refs{t2})
		call(t, b, plain, refs{t2}, refs{b.Out(0)})
		_, err := build(t, b).PlanWorkspace(new(mempool.Planner), kernelgraph.WorkspaceOptions{Solver: mempool.Optimal})
		require.ErrorIs(t, err, status.ErrOutOfDeviceMemory, "scratch %d", scratch)
	}
}

func TestNoTemporaries(t *testing.T) {
	b := newBuilder([]int64{8}, []int64{8})
	call(t, b, plain, refs{b.In(0)}, refs{b.Out(0)})
	for _, perOp := range []bool{false, true} {
		assert.Zero(t, plan(t, build(t, b), kernelgraph.WorkspaceOptions{PerOperation: perOp}).Size)
	}
}
