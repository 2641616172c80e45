package mempool

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// repeated makes layers of random items, with some before, behind and beside
// them.
func repeated(rng *rand.Rand, layers int) []Item {
	nodes := 4 + rng.Int64N(8)
	template := randomItems(rng, 4+rng.IntN(10), 20, nodes, 2*nodes)
	template[0].First = 0
	var items []Item
	for k := range int64(layers) {
		for _, it := range template {
			it.First, it.Last = it.First+k*nodes, it.Last+k*nodes
			items = append(items, it)
		}
	}
	end := int64(layers) * nodes
	for range rng.IntN(4) {
		items = append(items, Item{Size: 1 + rng.Int64N(9), First: -1 - rng.Int64N(5), Last: rng.Int64N(3) - 1})
	}
	for range rng.IntN(3) {
		items = append(items, Item{Size: 1 + rng.Int64N(9), First: -2, Last: end + nodes*3})
	}
	for range rng.IntN(4) {
		first := end + rng.Int64N(2*nodes)
		items = append(items, Item{Size: 1 + rng.Int64N(9), First: first, Last: first + rng.Int64N(9)})
	}
	rng.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	return items
}

func TestFindLayers(t *testing.T) {
	items := layers(32, 512)
	r, ok := findLayers(items, byStart(items))
	require.True(t, ok)
	assert.Equal(t, 26, r.items)
	assert.GreaterOrEqual(t, r.count, 30)
	assert.Equal(t, int64(20), r.shift)
	assert.Equal(t, 1, r.reach)

	rng := rand.New(rand.NewPCG(77, 7))
	for name, items := range map[string][]Item{"random": randomItems(rng, 500, 1000, 300, 60), "too few layers": layers(3, 512), "none": nil} {
		_, ok = findLayers(items, byStart(items))
		assert.False(t, ok, name)
	}
}

// byStart lists the items that take room by their start.
func byStart(items []Item) []int32 {
	var order []int32
	for i := range items {
		if items[i].occupies() {
			order = append(order, int32(i))
		}
	}
	slices.SortStableFunc(order, func(i, j int32) int { return cmp.Compare(items[i].First, items[j].First) })
	return order
}

// A plan by layers is valid, and as large as that of the shorter problem.
func TestPlanLayers(t *testing.T) {
	rng := rand.New(rand.NewPCG(78, 8))
	found, better := 0, 0
	for range 200 {
		items := repeated(rng, 8+rng.IntN(12))
		o := Options{Solver: Optimal, Align: 1 << rng.IntN(3), Nodes: 200}
		var p Planner
		whole := mustPlan(t, &p, items, o)
		offsets, arena, _, ok := planLayers(items, byStart(items), o, noPlan, &p)
		if !ok {
			continue
		}
		found++
		require.NoError(t, Validate(items, offsets))
		require.NoError(t, naiveClash(items, offsets))
		require.GreaterOrEqual(t, arena, whole.LowerBound)
		for i := range items {
			require.LessOrEqual(t, offsets[i]+items[i].Size, arena)
			require.Zero(t, offsets[i]%o.Align)
		}
		if arena < whole.Arena {
			better++
		}
		again, _, _, _ := planLayers(slices.Clone(items), byStart(items), o, noPlan, new(Planner))
		require.Equal(t, offsets, again)
	}
	t.Logf("%d of 200 planned by layers, %d of them smaller than by all items", found, better)
	assert.Greater(t, found, 60)
}

// withoutLayers plans items as if they did not repeat and returns the arena.
func withoutLayers(t *testing.T, items []Item, o Options) int64 {
	t.Helper()
	var p Planner
	require.NoError(t, p.load(items, o))
	p.try, p.best = grow(p.try, p.n()), grow(p.best, p.n())
	for i := range p.parts {
		p.solve(&p.parts[i], p.bound)
	}
	require.NoError(t, p.search(o, p.bound, &Result{}))
	return p.top()
}

// Of many dense layers a plan by layers is often smaller than a search of all
// items finds with the same bound, and never larger.
func TestLayersPay(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	better, cases := 0, 8
	if testing.Short() {
		cases = 2
	}
	for range cases {
		nodes := 10 + rng.Int64N(20)
		template := randomItems(rng, 20+rng.IntN(30), 40, nodes, nodes)
		template[0].First = 0
		var items []Item
		for k := range int64(40) {
			for _, it := range template {
				it.First, it.Last = it.First+k*nodes, it.Last+k*nodes
				items = append(items, it)
			}
		}
		o := Options{Solver: Optimal, Align: 1}
		r := mustPlan(t, new(Planner), items, o)
		whole := withoutLayers(t, items, o)
		require.LessOrEqual(t, r.Arena, whole)
		if r.Arena < whole {
			better++
			assert.Equal(t, "layers", r.Method)
		}
	}
	assert.Greater(t, better, cases/4)
}
