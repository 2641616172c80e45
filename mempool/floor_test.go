package mempool

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// overFloors puts heaps of items one after the other on a time line, and items
// that live through all of them.
func overFloors(rng *rand.Rand, floors int, maxSize int64, heaps ...[]Item) []Item {
	var items []Item
	at := int64(0)
	for _, heap := range heaps {
		end := at
		for _, it := range heap {
			it.First, it.Last = it.First+at, it.Last+at
			items, end = append(items, it), max(end, it.Last+2)
		}
		at = end
	}
	for range floors {
		items = append(items, Item{Size: 1 + rng.Int64N(maxSize), First: -rng.Int64N(3), Last: at + rng.Int64N(3)})
	}
	rng.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	return items
}

// Plans with a floor are as small as any, and proven to be; items that are fixed
// or aligned in several ways make no floor.
func TestFloorAgainstAllOrders(t *testing.T) {
	rng := rand.New(rand.NewPCG(61, 1))
	var p Planner
	above := 0
	for c := range 300 {
		items := overFloors(rng, 1, 9, randomItems(rng, 4, 9, 4, 3), randomItems(rng, 2, 9, 3, 2))
		align := int64(1) << (c % 3)
		switch c % 6 {
		case 4:
			for i := range items {
				items[i].Align = 1 << rng.IntN(3)
			}
		case 5:
			items[0].Fixed, items[0].Offset = true, rng.Int64N(4)*align
		}
		r := mustPlan(t, &p, items, Options{Solver: Optimal, Align: align})
		require.True(t, r.Optimal, "%+v %+v", r, items)
		smaller := r.Arena - granuleOf(items, align) + 1
		require.Equal(t, smaller, smallestArena(items, align, smaller), "%+v %+v %d", r, items, align)
		if r.Arena > r.LowerBound {
			above++
		}
	}
	assert.Greater(t, above, 10, "problems whose smallest arena is above the bound")
}

// What is above a floor falls into two parts: a search of each needs fewer nodes
// than one of the whole, and plans are no larger.
func TestFloorsPay(t *testing.T) {
	rng := rand.New(rand.NewPCG(62, 2))
	var nodes, without, arena, arenaWithout int64
	for range 12 {
		items := overFloors(rng, 3, 300, packing(rng, 60, 1<<20, 1<<20), packing(rng, 60, 1<<20, 1<<20-1))
		o := Options{Solver: Optimal, Align: 1, Nodes: 20_000}
		r := mustPlan(t, new(Planner), items, o)
		require.Equal(t, r, mustPlan(t, new(Planner), items, o), "two runs plan alike")
		whole := Planner{floors: floorsMax}
		w := mustPlan(t, &whole, items, o)
		nodes, without = nodes+r.Nodes, without+w.Nodes
		arena, arenaWithout = arena+r.Arena, arenaWithout+w.Arena
	}
	t.Logf("with floors %d nodes, arenas %d in all; without %d and %d", nodes, arena, without, arenaWithout)
	assert.Less(t, nodes, without*3/4)
	assert.LessOrEqual(t, arena, arenaWithout)
}

// Floors on floors, more than are looked for, each beside some items that are
// hard to plan.
func TestFloorsOnFloors(t *testing.T) {
	rng := rand.New(rand.NewPCG(63, 3))
	var items []Item
	const levels = floorsMax + 4
	for k := range int64(levels) {
		for _, it := range packing(rng, 40, 1000, 1000) {
			it.First, it.Last = it.First+2000*k, it.Last+2000*k
			items = append(items, it)
		}
		items = append(items, Item{Size: 1 + rng.Int64N(20), First: 2000*k - 5, Last: 2000 * (levels + 1)})
	}
	o := Options{Solver: Optimal, Align: 1, Nodes: 3000}
	var p Planner
	r := mustPlan(t, &p, items, o)
	require.Equal(t, r, mustPlan(t, &p, slices.Clone(items), o))
	depth := 0
	for above := p.above; above != nil; above = above.above {
		depth++
	}
	assert.Positive(t, depth)
	assert.LessOrEqual(t, depth, floorsMax)
	assert.Zero(t, testing.AllocsPerRun(2, func() {
		if _, err := p.Plan(items, o); err != nil {
			t.Fatal(err)
		}
	}))
}
