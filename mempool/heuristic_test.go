package mempool

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each heuristic alone makes valid plans, whatever the others do.
func TestHeuristicsOneByOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 17))
	instances := map[string][]Item{
		"layer":   layers(1, 16),
		"layers":  layers(8, 16),
		"sparse":  randomItems(rng, 400, 1000, 400, 9),
		"crowded": randomItems(rng, 400, 1000, 40, 30),
		"mixed":   randomItems(rng, 90, 1000, 60, 30),
		"fixed":   randomItems(rng, 200, 1000, 90, 30),
	}
	for i := range instances["mixed"] {
		instances["mixed"][i].Align = 1 << rng.IntN(8)
	}
	for i := range 20 {
		instances["fixed"][i].Fixed, instances["fixed"][i].Offset = true, int64(i)*1000
	}
	for name, items := range instances {
		for hi := range heuristics {
			h := &heuristics[hi]
			var p Planner
			require.NoError(t, p.load(items, Options{Solver: Optimal, Align: 8}))
			p.try, p.best = grow(p.try, p.n()), grow(p.best, p.n())
			arena := int64(0)
			for i := range p.parts {
				pt := &p.parts[i]
				if !h.suits(&p, pt) {
					require.True(t, pt.fixed, "%s refuses %s", h.name, name)
					continue
				}
				p.gaps.begin()
				p.replay.begin()
				top := h.place(&p, pt, noPlan)
				again := h.place(&p, pt, top)
				require.Equal(t, int64(noPlan), again, "%s on %s: a plan as large as the limit is no better", h.name, name)
				again = h.place(&p, pt, top+1)
				require.Equal(t, top, again, "%s on %s: the limit changes nothing below it", h.name, name)
				copy(p.best[pt.first:pt.last], p.try[pt.first:pt.last])
				arena = max(arena, top)
			}
			if arena == 0 {
				continue
			}
			offsets := p.spread(items)
			require.NoError(t, naiveClash(items, offsets), "%s on %s", h.name, name)
			for i, it := range items {
				require.LessOrEqual(t, offsets[i]+it.Size, arena, "%s on %s", h.name, name)
			}
		}
	}
}

// Both skylines against the definition: place the item with the smallest offset
// on top of the placed ones, the first by rank of equal ones.
func TestSkylineIsAsDefined(t *testing.T) {
	rng := rand.New(rand.NewPCG(37, 3))
	for range 50 {
		var p Planner
		require.NoError(t, p.load(randomItems(rng, 40, 50, 30, 12), Options{Solver: Optimal, Align: 4}))
		p.try = grow(p.try, p.n())
		key := func(k int32) (duration, area, load int64) {
			duration = int64(p.hi[k] - p.lo[k])
			return duration, duration * p.size[k], slices.Max(p.total[p.lo[k]:p.hi[k]])
		}
		for i := range p.parts {
			pt := &p.parts[i]
			for load, place := range map[bool]func(*Planner, *part, int64) int64{false: placeSkylineDuration, true: placeSkylineLoad} {
				var rank []int32
				for k := pt.first; k < pt.last; k++ {
					rank = append(rank, int32(k))
				}
				slices.SortStableFunc(rank, func(a, b int32) int {
					d1, a1, l1 := key(a)
					d2, a2, l2 := key(b)
					if load {
						d1, d2, l1, l2 = l1, l2, d1, d2
					}
					return cmp.Or(cmp.Compare(d2, d1), cmp.Compare(a2, a1), cmp.Compare(l2, l1))
				})
				place(&p, pt, noPlan)
				require.Equal(t, skylineByHand(&p.problem, rank), p.try[pt.first:pt.last])
			}
		}
	}
}

// skylineByHand returns the offsets of the items of rank, in the order of their
// numbers.
func skylineByHand(p *problem, rank []int32) []int64 {
	offsets := map[int32]int64{}
	for len(offsets) < len(rank) {
		best, least := int32(-1), int64(noPlan)
		for _, k := range rank {
			if _, done := offsets[k]; done {
				continue
			}
			top := int64(0)
			for j, off := range offsets {
				if p.start[j] < p.end[k] && p.start[k] < p.end[j] {
					top = max(top, off+p.size[j])
				}
			}
			if top < least {
				best, least = k, top
			}
		}
		offsets[best] = least
	}
	var out []int64
	for _, k := range slices.Sorted(maps.Keys(offsets)) {
		out = append(out, offsets[k])
	}
	return out
}
