package mempool

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/status"
)

func mustProgram(t testing.TB, g *Program, o Options) ProgramPlan {
	t.Helper()
	var p Planner
	r, err := p.PlanProgram(g, o)
	require.NoError(t, err)
	require.Len(t, r.Offsets, len(g.Items))
	require.Len(t, r.Taken, len(g.Maybe))
	require.GreaterOrEqual(t, r.Arena, r.LowerBound)
	owner := make([]int, len(g.Items))
	seen := 0
	for k, s := range r.Storage {
		for _, i := range s.Members {
			owner[i] = k
			seen++
			require.GreaterOrEqual(t, r.Offsets[i], s.Offset)
			require.LessOrEqual(t, r.Offsets[i]+g.Items[i].Size, s.Offset+s.Item.Size)
		}
	}
	require.Equal(t, len(g.Items), seen, "every item lies in one storage")
	for i := range g.Items {
		for j := range i {
			require.True(t, owner[i] == owner[j] || !sharesBytes(g, r.Offsets, i, j) || apartInTime(g, i, j), "items %d and %d", j, i)
		}
	}
	return r
}

func sharesBytes(g *Program, offsets []int64, i, j int) bool {
	a, b := g.Items[i], g.Items[j]
	return a.Size > 0 && b.Size > 0 && offsets[i] < offsets[j]+b.Size && offsets[j] < offsets[i]+a.Size
}

// apartInTime reports whether no two items are needed at once, by definition.
func apartInTime(g *Program, i, j int) bool {
	if g.Order == nil {
		a, b := g.Items[i], g.Items[j]
		return a.First > a.Last || b.First > b.Last || a.Last < b.First || b.Last < a.First
	}
	after := func(x, y []int) bool {
		for _, u := range x {
			for _, v := range y {
				if !g.Order.Before(u, v) {
					return false
				}
			}
		}
		return true
	}
	return after(g.Uses[i], g.Uses[j]) || after(g.Uses[j], g.Uses[i])
}

// A view joins what it is a view of: one piece of memory that lives while
// either does.
func TestProgramViews(t *testing.T) {
	g := &Program{
		Items: []Item{
			{Size: 100, First: 0, Last: 2},
			{Size: 40, First: 1, Last: 6}, // bytes 60 to 99 of item 0, read late
			{Size: 100, First: 3, Last: 5},
			{Size: 20, First: 6, Last: 7}, // bytes 10 to 29 of item 1
		},
		Always: []Alias{{Item: 1, In: 0, At: 60}, {Item: 3, In: 1, At: 10}},
	}
	for st := range SolverType(SolverTypes) {
		r := mustProgram(t, g, Options{Solver: st, Align: 1})
		require.Len(t, r.Storage, 2)
		assert.Equal(t, Item{Size: 100, First: 0, Last: 7, Align: 1}, r.Storage[0].Item)
		assert.Equal(t, []int{0, 1, 3}, r.Storage[0].Members)
		assert.Equal(t, []int64{r.Offsets[0] + 60, r.Offsets[0] + 70}, []int64{r.Offsets[1], r.Offsets[3]})
		assert.Equal(t, int64(200), r.Arena, "%s: item 2 may not lie on the view that outlives its base", st)
	}
}

// Two names for one piece of memory are planned once; names that contradict
// each other are refused.
func TestProgramContradictions(t *testing.T) {
	items := []Item{{Size: 64, Last: 1}, {Size: 64, Last: 1}, {Size: 64, Last: 1}}
	same := &Program{Items: items, Always: []Alias{{Item: 1, In: 0}, {Item: 0, In: 1}, {Item: 2, In: 0, At: 64}, {Item: 1, In: 2, At: -64}}}
	r := mustProgram(t, same, DefaultOptions())
	assert.Equal(t, []int64{0, 0, 64}, r.Offsets)
	var p Planner
	for _, c := range []struct {
		name   string
		change func(g *Program)
		code   status.Code
		want   string
	}{
		{"two places", func(g *Program) { g.Always = []Alias{{Item: 1, In: 0}, {Item: 1, In: 0, At: 8}} }, status.ErrInvalidParam, "item 1 lies at byte 0 of item 0, and at byte 8 of it"},
		{"round trip", func(g *Program) { g.Always = []Alias{{Item: 1, In: 0, At: 4}, {Item: 0, In: 1, At: 4}} }, status.ErrInvalidParam, "lies at byte"},
		{"no such item", func(g *Program) { g.Always = []Alias{{Item: 3, In: 0}} }, status.ErrInvalidParam, "want items below 3"},
		{"no such base", func(g *Program) { g.Maybe = []Alias{{Item: 0, In: -1}} }, status.ErrInvalidParam, "alias of item 0 in item -1"},
		{"too far", func(g *Program) { g.Always = []Alias{{Item: 1, In: 0, At: 1 << 61}} }, status.ErrInvalidParam, "want a distance"},
		{"far, step by step", func(g *Program) {
			g.Always = []Alias{{Item: 1, In: 0, At: 1 << 60}, {Item: 2, In: 1, At: 1 << 60}}
		}, status.ErrOutOfDeviceMemory, "want at most 2^60 bytes"},
		{"misaligned", func(g *Program) {
			g.Items[1].Align = 32
			g.Always = []Alias{{Item: 1, In: 0, At: 48}}
		}, status.ErrInvalidParam, "item 1: want a multiple of 32, got byte 48"},
		{"two fixed places", func(g *Program) {
			g.Items[0].Fixed, g.Items[1].Fixed = true, true
			g.Always = []Alias{{Item: 1, In: 0, At: 8}}
		}, status.ErrInvalidParam, "contradicts"},
		{"fixed before the start", func(g *Program) {
			g.Items[1].Fixed = true
			g.Always = []Alias{{Item: 1, In: 0, At: 8}}
		}, status.ErrInvalidParam, "contradicts"},
		{"bad item", func(g *Program) { g.Items[2].Size = -1 }, status.ErrInvalidParam, "item 2: want a size"},
		{"bad lifetime", func(g *Program) { g.Items[2].Last = 1 << 62 }, status.ErrInvalidParam, "item 2: want a lifetime"},
		{"uses missing", func(g *Program) { g.Order = NewOrder(1) }, status.ErrInvalidParam, "want the uses of each of 3 items, got 0"},
		{"no such node", func(g *Program) { g.Order, g.Uses = NewOrder(1), [][]int{{0}, {}, {}} }, status.ErrInvalidParam, "item 0: want uses in ascending order below node 0, got node 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := &Program{Items: append([]Item(nil), items...)}
			c.change(g)
			_, err := p.PlanProgram(g, DefaultOptions())
			require.ErrorIs(t, err, c.code)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

// The result of an operation in place takes the memory of its input where the
// input ends.
func TestProgramInPlace(t *testing.T) {
	chain := &Program{}
	for i := range 20 {
		chain.Items = append(chain.Items, Item{Size: 1000, First: int64(i), Last: int64(i + 1)})
		if i > 0 {
			chain.Maybe = append(chain.Maybe, Alias{Item: i, In: i - 1})
		}
	}
	r := mustProgram(t, chain, Options{Solver: Optimal, Align: 1})
	assert.Equal(t, int64(1000), r.Arena, "one piece of memory for the whole chain")
	assert.Len(t, r.Storage, 1)
	assert.True(t, r.Optimal)
	for st := BruteForce; st < Optimal; st++ {
		r := mustProgram(t, chain, Options{Solver: st, Align: 1})
		assert.NotContains(t, r.Taken, true, "%s takes no choice", st)
	}

	// The input is read once more: the planner copies instead.
	late := &Program{
		Items: []Item{{Size: 8, First: 0, Last: 2}, {Size: 8, First: 1, Last: 3}},
		Maybe: []Alias{{Item: 1, In: 0}},
	}
	assert.Equal(t, []bool{false}, mustProgram(t, late, Options{Solver: Optimal, Align: 1}).Taken)

	// One input cannot hold two results that live together.
	twins := &Program{
		Items: []Item{{Size: 8, First: 0, Last: 1}, {Size: 8, First: 1, Last: 3}, {Size: 8, First: 1, Last: 3}},
		Maybe: []Alias{{Item: 1, In: 0}, {Item: 2, In: 0}},
	}
	assert.Equal(t, []bool{true, false}, mustProgram(t, twins, Options{Solver: Optimal, Align: 1}).Taken)
}

// Parts are written into the windows of the concatenation, unless that costs.
func TestProgramWindows(t *testing.T) {
	g := &Program{
		Items: []Item{{Size: 64, First: 0, Last: 2}, {Size: 64, First: 1, Last: 2}, {Size: 128, First: 2, Last: 4}},
		Maybe: []Alias{{Item: 0, In: 2}, {Item: 1, In: 2, At: 64}},
	}
	r := mustProgram(t, g, Options{Solver: Optimal, Align: 64})
	assert.Equal(t, []bool{true, true}, r.Taken)
	assert.Equal(t, int64(128), r.Arena)
	assert.Equal(t, []int64{0, 64, 0}, r.Offsets)

	// A small part of a huge tensor that lives long before it: the huge one
	// would have to live as long beside another huge one.
	g = &Program{
		Items: []Item{{Size: 64, First: 0, Last: 9}, {Size: 6400, First: 1, Last: 3}, {Size: 6400, First: 9, Last: 12}},
		Maybe: []Alias{{Item: 0, In: 2}},
	}
	r = mustProgram(t, g, Options{Solver: Optimal, Align: 64})
	assert.Equal(t, []bool{false}, r.Taken)
	assert.Equal(t, int64(6464), r.Arena)
}

func randomProgram(t *testing.T, rng *rand.Rand) *Program {
	t.Helper()
	n := 2 + rng.IntN(25)
	g := &Program{Items: randomItems(rng, n, 5, 12, 4)}
	for i := range g.Items {
		g.Items[i].Size *= 16
	}
	if rng.IntN(2) == 0 {
		nodes := 5 + rng.IntN(20)
		g.Order, _ = randomOrder(t, rng, 1+rng.IntN(3), nodes)
		for range n {
			g.Uses = append(g.Uses, randomUses(rng, nodes))
		}
	}
	for range rng.IntN(4) {
		i, j := rng.IntN(n), rng.IntN(n)
		if i > j {
			g.Always = append(g.Always, Alias{Item: i, In: j, At: 16 * rng.Int64N(3)})
		}
	}
	for range rng.IntN(3 * n) {
		i, j := rng.IntN(n), rng.IntN(n)
		if i != j {
			g.Maybe = append(g.Maybe, Alias{Item: i, In: j, At: 16 * (rng.Int64N(4) - 1)})
		}
	}
	return g
}

// joined returns, for each item, the set of items that lie in one memory with
// it whatever the plan.
func joined(g *Program) func(i, j int) bool {
	set := make([]int, len(g.Items))
	for i := range set {
		set[i] = i
	}
	for _, a := range g.Always {
		from, to := set[a.Item], set[a.In]
		for i := range set {
			if set[i] == from {
				set[i] = to
			}
		}
	}
	return func(i, j int) bool { return set[i] == set[j] }
}

// Whatever the program, only aliases share bytes at one time, the plan with
// choices is no worse than that without, and used planners plan as fresh ones.
func TestProgramRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 55))
	taken, contradictions := 0, 0
	var used Planner
	for range 600 {
		g := randomProgram(t, rng)
		o := Options{Solver: Optimal, Align: 16}
		if _, err := used.PlanProgram(g, o); err != nil {
			require.ErrorIs(t, err, status.ErrInvalidParam)
			contradictions++
			continue
		}
		r := mustProgram(t, g, o)
		same := joined(g)
		direct := map[[2]int]bool{}
		for k, a := range g.Maybe {
			if r.Taken[k] {
				taken++
				direct[[2]int{a.Item, a.In}], direct[[2]int{a.In, a.Item}] = true, true
				require.Equal(t, r.Offsets[a.In]+a.At, r.Offsets[a.Item])
			}
		}
		for _, a := range g.Always {
			require.Equal(t, r.Offsets[a.In]+a.At, r.Offsets[a.Item])
		}
		for i := range g.Items {
			for j := range i {
				if sharesBytes(g, r.Offsets, i, j) && !apartInTime(g, i, j) {
					require.True(t, same(i, j) || direct[[2]int{i, j}], "items %d and %d of %+v", j, i, g)
				}
			}
		}
		plain := *g
		plain.Maybe = nil
		require.LessOrEqual(t, r.Arena, mustProgram(t, &plain, o).Arena)
		again, err := used.PlanProgram(g, o)
		require.NoError(t, err)
		require.Equal(t, r, again)
	}
	assert.Greater(t, taken, 300)
	assert.Less(t, contradictions, 200)
}

// Two streams that fork and join: what runs at the same time stays apart, what
// an event puts in order may share.
func TestProgramStreams(t *testing.T) {
	build := func(ordered bool) *Program {
		o := NewOrder(2)
		add := func(stream int, after ...int) int {
			i, err := o.Add(stream, after...)
			require.NoError(t, err)
			return i
		}
		add(0)    // 0: fork
		add(0)    // 1: writes a
		add(0)    // 2: reads a
		add(1, 0) // 3: stream 1 starts
		if ordered {
			add(1, 2) // 4: waits for node 2, writes b
		} else {
			add(1) // 4: writes b
		}
		add(1)    // 5: reads b
		add(0, 5) // 6: join
		return &Program{Items: []Item{{Size: 512}, {Size: 512}}, Order: o, Uses: [][]int{{1, 2}, {4, 5}}}
	}
	for st := range SolverType(SolverTypes) {
		assert.Equal(t, int64(1024), mustProgram(t, build(false), Options{Solver: st}).Arena, st)
		want := int64(512)
		if st == BruteForce {
			want = 1024
		}
		assert.Equal(t, want, mustProgram(t, build(true), Options{Solver: st}).Arena, st)
	}
}

// Chains on streams that are independent: by the list alone every item of one
// stream would live until the join, by the conflicts each chain needs two.
func TestProgramConflictsBeatTheLine(t *testing.T) {
	const streams, length = 3, 12
	o := NewOrder(streams)
	g := &Program{Order: o}
	fork, err := o.Add(0)
	require.NoError(t, err)
	last := make([]int, streams)
	for s := range streams {
		last[s], err = o.Add(s, fork)
		require.NoError(t, err)
	}
	for range length {
		for s := range streams {
			next, err := o.Add(s)
			require.NoError(t, err)
			g.Items = append(g.Items, Item{Size: 512})
			g.Uses = append(g.Uses, []int{last[s], next})
			last[s] = next
		}
	}
	r := mustProgram(t, g, DefaultOptions())
	assert.Equal(t, int64(2*streams*512), r.Arena, fmt.Sprint(r.Method))
	assert.Equal(t, "conflicts", r.Method)
	assert.True(t, r.Optimal, "lower bound %d", r.LowerBound)
}
