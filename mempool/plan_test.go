package mempool

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/status"
)

// mustPlan plans, checks the plan by itself and returns a copy.
func mustPlan(t testing.TB, p *Planner, items []Item, o Options) Result {
	t.Helper()
	r, err := p.Plan(items, o)
	require.NoError(t, err)
	require.NoError(t, naiveClash(items, r.Offsets))
	align := o.Align
	if align == 0 {
		align = DefaultAlign
	}
	for i, it := range items {
		a := align
		if it.Align > 0 {
			a = it.Align
		}
		if it.Size > 0 && it.First <= it.Last {
			require.Zero(t, r.Offsets[i]%a, "item %d at %d", i, r.Offsets[i])
			require.LessOrEqual(t, r.Offsets[i]+it.Size, r.Arena, "item %d", i)
		}
		if it.Fixed {
			require.Equal(t, it.Offset, r.Offsets[i], "item %d", i)
		}
	}
	require.GreaterOrEqual(t, r.Arena, r.LowerBound)
	if !r.Optimal {
		require.Greater(t, r.Arena, r.LowerBound)
	}
	r.Offsets = slices.Clone(r.Offsets)
	return r
}

// planAll plans with every type and checks that none beats Optimal.
func planAll(t testing.TB, p *Planner, items []Item, align int64) (results [SolverTypes]Result) {
	t.Helper()
	return planWith(t, p, items, Options{Align: align})
}

// planWith is planAll with more options.
func planWith(t testing.TB, p *Planner, items []Item, o Options) (results [SolverTypes]Result) {
	t.Helper()
	for o.Solver = range SolverType(SolverTypes) {
		results[o.Solver] = mustPlan(t, p, items, o)
	}
	best := results[Optimal]
	for st := BruteForce; st < Optimal; st++ {
		require.LessOrEqual(t, best.Arena, results[st].Arena, "%s beats %s (%s)", st, Optimal, best.Method)
		require.Equal(t, best.LowerBound, results[st].LowerBound)
		require.Equal(t, best.PeakAt, results[st].PeakAt)
		require.Equal(t, st.String(), results[st].Method)
	}
	return results
}

// A node first allocates what it writes, then frees what it read last.
func TestPlanReplaysInNodeOrder(t *testing.T) {
	items := []Item{
		{Size: 100, First: 0, Last: 1}, // a: read last by node 1
		{Size: 80, First: 1, Last: 2},  // b: written by node 1, must not lie on a
		{Size: 60, First: 2, Last: 3},  // c: may lie on a
		{Size: 10, First: 2, Last: 2},  // d: read by nobody, still needs its own node
		{Size: 90, First: 3, Last: 4},  // e
	}
	want := map[SolverType][]int64{
		BruteForce: {0, 100, 180, 240, 250},
		FirstFit:   {0, 100, 0, 180, 100}, // e: b's block of 80 is at the top and was dropped
		BestFit:    {0, 100, 0, 180, 100},
		Intervals:  {0, 100, 0, 60, 60},
	}
	var p Planner
	for st, offsets := range want {
		r := mustPlan(t, &p, items, Options{Solver: st, Align: 1})
		assert.Equal(t, offsets, r.Offsets, st)
		assert.Equal(t, int64(180), r.LowerBound)
		assert.Equal(t, int64(0), r.Offsets[0])
	}
	r := mustPlan(t, &p, items, Options{Solver: Optimal, Align: 1})
	assert.True(t, r.Optimal)
	assert.Equal(t, int64(1), r.PeakAt)
	assert.Equal(t, []int{0, 1}, Live(items, r.PeakAt))
}

func TestPlanOutputsNeverLieOnInputs(t *testing.T) {
	var items []Item
	for node := range int64(40) { // a chain: node k reads item k-1 and writes item k
		items = append(items, Item{Size: 512 * (1 + node%5), First: node, Last: node + 1})
	}
	var p Planner
	for st, r := range planAll(t, &p, items, 0) {
		for k := 1; k < len(items); k++ {
			in, out := r.Offsets[k-1], r.Offsets[k]
			assert.True(t, out >= in+items[k-1].Size || in >= out+items[k].Size, "solver %d, node %d", st, k)
		}
	}
}

func TestPlanTransformerLayers(t *testing.T) {
	for _, c := range []struct{ layers, tokens int }{{1, 512}, {1, 1}, {32, 512}, {32, 1}, {2, 2048}, {400, 16}} {
		t.Run(fmt.Sprintf("layers=%d/tokens=%d", c.layers, c.tokens), func(t *testing.T) {
			items := layers(c.layers, c.tokens)
			var p Planner
			results := planAll(t, &p, items, 0)
			assert.True(t, results[Optimal].Optimal, "%d of %d by %s", results[Optimal].Arena, results[Optimal].LowerBound, results[Optimal].Method)
			for _, st := range onlineTypes {
				assert.False(t, results[st].Optimal, "%s needs no better solver here", st)
			}
		})
	}
}

// The search proves the smallest arena of every small problem: trying all orders
// finds nothing smaller than its plan.
func TestPlanSmallAgainstAllOrders(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	var p Planner
	above, problems := 0, 2000
	if testing.Short() {
		problems = 200
	}
	for c := range problems {
		items := randomItems(rng, 1+rng.IntN(8), 9, 6, 4)
		align := int64(1)
		if c%4 == 1 {
			align = 4
		}
		if c%4 >= 2 {
			for i := range items {
				items[i].Align = 1 << rng.IntN(3)
			}
		}
		fixed := c%4 == 3
		if fixed {
			items[0].Fixed, items[0].Align, items[0].Offset = true, 1, rng.Int64N(8)
		}
		r := mustPlan(t, &p, items, Options{Solver: Optimal, Align: align})
		require.True(t, r.Optimal, "%+v %+v %d", r, items, align)
		smaller := r.Arena - granuleOf(items, align) + 1
		require.Equal(t, smaller, smallestArena(items, align, smaller), "%+v %+v %d", r, items, align)
		if r.Arena > r.LowerBound {
			above++
		}
		if !fixed && c%8 < 4 {
			planAll(t, &p, items, align)
		}
	}
	assert.Greater(t, above, problems/10, "problems whose smallest arena is above the bound")
}

// granuleOf returns the smallest alignment in use.
func granuleOf(items []Item, align int64) int64 {
	least := int64(math.MaxInt64)
	for _, it := range items {
		if it.Align > 0 {
			least = min(least, it.Align)
		} else {
			least = min(least, align)
		}
	}
	return least
}

func TestPlanRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 13))
	var p Planner
	for _, c := range []struct {
		n                       int
		maxSize, length, maxLen int64
	}{
		{2, 10, 3, 2}, {30, 100, 20, 8}, {65, 100, 60, 20}, {100, 5, 1000, 300}, {200, 1 << 30, 100, 100},
		{500, 1000, 400, 12}, {700, 1000, 100, 90}, {300, 7, 1, 1}, {300, 1000, 1 << 40, 1 << 38}, {900, 4096, 800, 50},
	} {
		for round := range 6 {
			items := randomItems(rng, c.n, c.maxSize, c.length, c.maxLen)
			align := int64(1) << (2 * (round % 3))
			if round >= 3 {
				for i := range items {
					items[i].Align = 1 << rng.IntN(7)
				}
			}
			o := Options{Align: align, Nodes: 400}
			results := planWith(t, &p, items, o)
			peak, at := naivePeak(items, granuleOf(items, align))
			require.Equal(t, peak, results[Optimal].LowerBound)
			require.Equal(t, at, results[Optimal].PeakAt)

			var fresh Planner
			o.Solver = Optimal
			require.Equal(t, results[Optimal], mustPlan(t, &fresh, items, o), "a used planner plans as a fresh one")
		}
	}
}

func TestPlanIgnoresWhereTimeStarts(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 2))
	items := randomItems(rng, 150, 1000, 90, 40)
	var p Planner
	want := mustPlan(t, &p, items, DefaultOptions())
	for _, c := range []struct{ factor, shift int64 }{{1, -1000}, {1, MaxNode - 200}, {1, -MaxNode}, {1 << 40, 0}, {3000, -77777}} {
		moved := slices.Clone(items)
		for i := range moved {
			moved[i].First = moved[i].First*c.factor + c.shift
			moved[i].Last = (moved[i].Last+1)*c.factor - 1 + c.shift
		}
		got := mustPlan(t, &p, moved, DefaultOptions())
		assert.Equal(t, want.Offsets, got.Offsets, "%+v", c)
		assert.Equal(t, Live(items, want.PeakAt), Live(moved, got.PeakAt), "%+v", c)
	}
}

func TestPlanItemsWithoutRoom(t *testing.T) {
	var p Planner
	r := mustPlan(t, &p, nil, DefaultOptions())
	assert.Equal(t, Result{Optimal: true, Method: "largest-first"}, r)

	items := []Item{
		{Size: 0, First: 0, Last: 5},
		{Size: 100, First: 3, Last: 2},
		{Size: 0, First: 3, Last: 2, Fixed: true, Offset: 1024},
		{Size: 0, First: 0, Last: 5},
	}
	for st := range SolverType(SolverTypes) {
		o := Options{Solver: st}
		if st != Optimal {
			_, err := p.Plan(items, o)
			require.ErrorIs(t, err, status.ErrInvalidParam, "fixed item with %s", st)
			continue
		}
		r = mustPlan(t, &p, items, o)
		assert.Equal(t, []int64{0, 0, 1024, 0}, r.Offsets)
		assert.Zero(t, r.Arena)
	}
	items = append(items[:2], Item{Size: 700, First: 1, Last: 1})
	for _, r := range planAll(t, &p, items, 0) {
		assert.Equal(t, int64(1024), r.Arena, "one item, rounded up to 512")
		assert.Equal(t, int64(1), r.PeakAt)
	}
	assert.Equal(t, []int{2}, Live(items, 1))
	assert.Empty(t, Live(items, 3))
}

func TestPlanAlignment(t *testing.T) {
	var p Planner
	items := []Item{
		{Size: 100, First: 0, Last: 1},
		{Size: 100, First: 0, Last: 1, Align: 64},
		{Size: 100, First: 0, Last: 1, Align: 32},
	}
	r := mustPlan(t, &p, items, DefaultOptions())
	assert.Equal(t, int64(3*128), r.LowerBound, "sizes count in steps of 32")
	assert.Equal(t, int64(3*128), r.Arena, "the item aligned to 512 at the bottom")
	assert.Equal(t, int64(0), r.Offsets[0])

	for i := range items {
		items[i].Align = 0
	}
	r = mustPlan(t, &p, items, DefaultOptions())
	assert.Equal(t, int64(3*512), r.Arena)
	assert.True(t, r.Optimal)
	r = mustPlan(t, &p, items, Options{Solver: FirstFit, Align: 1})
	assert.Equal(t, []int64{0, 100, 200}, r.Offsets)
}

func TestPlanFixedItems(t *testing.T) {
	var p Planner
	items := []Item{
		{Size: 512, First: 0, Last: 9, Fixed: true, Offset: 1024},
		{Size: 1024, First: 0, Last: 4},
		{Size: 1024, First: 5, Last: 9},
		{Size: 512, First: 2, Last: 7},
	}
	r := mustPlan(t, &p, items, DefaultOptions())
	assert.Equal(t, []int64{1024, 0, 0, 1536}, r.Offsets)
	assert.True(t, r.Optimal)

	far := []Item{{Size: 512, First: 0, Last: 9, Fixed: true, Offset: 1 << 40}, {Size: 512, First: 20, Last: 20}}
	r = mustPlan(t, &p, far, DefaultOptions())
	assert.Equal(t, int64(1<<40+512), r.LowerBound, "the end of a fixed item bounds the arena")
	assert.True(t, r.Optimal)

	rng := rand.New(rand.NewPCG(23, 5))
	for _, n := range []int{10, 60, 150, 2500} {
		items := randomItems(rng, n, 1000, int64(n), 30)
		for i := range n / 8 {
			items[i].Fixed, items[i].Offset = true, int64(i)*1000
		}
		mustPlan(t, &p, items, Options{Solver: Optimal, Align: 8})
	}
}

func TestPlanErrors(t *testing.T) {
	ok := Item{Size: 512, First: 0, Last: 3}
	for _, c := range []struct {
		name  string
		items []Item
		o     Options
		code  status.Code
		want  string
	}{
		{"unknown solver", nil, Options{Solver: 5}, status.ErrInvalidParam, "solver(5)"},
		{"negative alignment", []Item{ok}, Options{Align: -1}, status.ErrInvalidParam, "got -1"},
		{"odd alignment", []Item{ok}, Options{Align: 24}, status.ErrInvalidParam, "got 24"},
		{"huge alignment", []Item{ok}, Options{Align: 1 << 40}, status.ErrInvalidParam, "at most 1073741824"},
		{"odd item alignment", []Item{ok, {Size: 1, Align: 3}}, DefaultOptions(), status.ErrInvalidParam, "item 1: want an alignment"},
		{"negative item alignment", []Item{{Size: 1, Align: -512}}, DefaultOptions(), status.ErrInvalidParam, "got -512"},
		{"negative size", []Item{ok, ok, {Size: -5}}, DefaultOptions(), status.ErrInvalidParam, "item 2: want a size of at least 0, got -5"},
		{"backwards", []Item{{Size: 1, First: 5, Last: 3}}, DefaultOptions(), status.ErrInvalidParam, "nodes 5 to 3"},
		{"too early", []Item{{Size: 1, First: math.MinInt64, Last: 3}}, DefaultOptions(), status.ErrInvalidParam, "item 0: want a lifetime"},
		{"too late", []Item{{Size: 1, First: 0, Last: math.MaxInt64}}, DefaultOptions(), status.ErrInvalidParam, "item 0: want a lifetime"},
		{"too much", []Item{{Size: 1 << 60}, {Size: 1 << 60}}, DefaultOptions(), status.ErrOutOfDeviceMemory, "item 1"},
		{"largest size", []Item{{Size: math.MaxInt64}}, DefaultOptions(), status.ErrOutOfDeviceMemory, "item 0"},
		{"fixed, misaligned", []Item{{Size: 1, Fixed: true, Offset: 100}}, DefaultOptions(), status.ErrInvalidParam, "multiple of 512"},
		{"fixed, negative", []Item{{Size: 1, Fixed: true, Offset: -512}}, DefaultOptions(), status.ErrInvalidParam, "offset -512"},
		{"fixed, too far", []Item{{Size: 1, Fixed: true, Offset: 1 << 62}}, DefaultOptions(), status.ErrInvalidParam, "item 0"},
		{"fixed, online", []Item{{Size: 1, Fixed: true}}, Options{Solver: FirstFit}, status.ErrInvalidParam, "first-fit cannot keep"},
		{"fixed on fixed", []Item{ok, {Size: 600, First: 1, Last: 2, Fixed: true}, {Size: 1, First: 2, Last: 2, Fixed: true, Offset: 512}}, DefaultOptions(), status.ErrInvalidParam, "items 2 and 1 overlap"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p Planner
			_, err := p.Plan(c.items, c.o)
			require.ErrorIs(t, err, c.code)
			assert.ErrorContains(t, err, c.want)
			mustPlan(t, &p, []Item{ok}, DefaultOptions())
		})
	}
}

func TestPlanManyItems(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 29))
	var p Planner
	for name, items := range map[string][]Item{
		"crowded":   randomItems(rng, 30_000, 1_000_000, 30_000, 9000),
		"sparse":    randomItems(rng, 100_000, 1_000_000, 100_000, 100),
		"one node":  randomItems(rng, 50_000, 1_000_000, 1, 1),
		"one size":  randomItems(rng, 50_000, 1, 50_000, 900),
		"one start": randomItems(rng, 50_000, 1000, 1, 50_000),
	} {
		r, err := p.Plan(items, Options{Solver: Optimal, Align: 1})
		require.NoError(t, err, name)
		assert.Less(t, float64(r.Arena), 1.04*float64(r.LowerBound), "%s by %s", name, r.Method)
		assert.NoError(t, Validate(items, r.Offsets), name)
	}
}

// Large problems in the shapes of real graphs are planned within 1 % of the lower
// bound.
func TestPlanLargeGraphs(t *testing.T) {
	var p Planner
	for _, n := range []int{10_000, 100_000} {
		for name, items := range graphs(rand.New(rand.NewPCG(1, 31)), n) {
			if n > 10_000 && name != "varied" && name != "training" {
				continue
			}
			r, err := p.Plan(items, Options{Solver: Optimal})
			require.NoError(t, err, name)
			require.NoError(t, Validate(items, r.Offsets), name)
			t.Logf("%s, %d items: %.5f of the bound by %s", name, len(items), float64(r.Arena)/float64(r.LowerBound), r.Method)
			assert.LessOrEqual(t, float64(r.Arena), 1.01*float64(r.LowerBound), "%s, %d items by %s", name, len(items), r.Method)
		}
	}
}

func TestPlanAllocatesNothingOnceWarm(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 1))
	fixed := randomItems(rng, 100, 1000, 50, 20)
	fixed[0].Fixed = true
	for name, items := range map[string][]Item{
		"layer":    layers(1, 512),
		"layers":   layers(32, 512),
		"n=30":     randomItems(rng, 30, 1000, 20, 10),
		"n=1000":   randomItems(rng, 1000, 1000, 700, 300),
		"far time": randomItems(rng, 100, 1000, 1<<40, 1<<38),
		"fixed":    fixed,
		"searched": packing(rng, 60, 1000, 1000),
	} {
		for st := range SolverType(SolverTypes) {
			if items[0].Fixed && st != Optimal {
				continue
			}
			var p Planner
			assert.Zero(t, testing.AllocsPerRun(3, func() {
				if _, err := p.Plan(items, Options{Solver: st}); err != nil {
					t.Fatal(err)
				}
			}), "%s, %s", name, st)
		}
	}
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte{3, 0, 2, 0, 2, 1, 3, 1, 5, 0, 4, 0}, uint8(0))
	f.Add([]byte{9, 1, 9, 2, 0, 0, 0, 0, 200, 250, 9, 3, 1, 1, 1, 4}, uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, align uint8) {
		var items []Item
		for ; len(data) >= 4 && len(items) < 200; data = data[4:] {
			it := Item{Size: int64(data[0]), First: int64(data[1]), Align: int64(1) << (data[3] & 7)}
			it.Last = it.First + int64(data[2]) - 1
			items = append(items, it)
		}
		var p Planner
		planAll(t, &p, items, int64(1)<<(align%10))
	})
}
