package mempool

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

func BenchmarkPlan(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		kind  string
		items []Item
	}{
		{"layers", layers(1, 512)},
		{"layers", layers(32, 512)},
		{"layers", layers(385, 512)},
		{"layers", layers(3850, 512)},
		{"random", randomItems(rng, 1000, 1000, 1000, 300)},
		{"random", randomItems(rng, 10_000, 1_000_000, 10_000, 30)},
	} {
		for st := range SolverType(SolverTypes) {
			b.Run(fmt.Sprintf("kind=%s/n=%d/solver=%s", c.kind, len(c.items), st), func(b *testing.B) {
				var p Planner
				var r Result
				var err error
				b.ReportAllocs()
				for b.Loop() {
					if r, err = p.Plan(c.items, Options{Solver: st}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(r.Arena)/float64(r.LowerBound), "arena/bound")
			})
		}
	}
}

// BenchmarkGraphs plans large problems in the shapes of real graphs.
func BenchmarkGraphs(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		all := graphs(rand.New(rand.NewPCG(1, 31)), n)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			b.Run(fmt.Sprintf("kind=%s/n=%d", name, len(all[name])), func(b *testing.B) {
				var p Planner
				var r Result
				var err error
				for b.Loop() {
					if r, err = p.Plan(all[name], Options{Solver: Optimal}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(r.Arena)/float64(r.LowerBound), "arena/bound")
			})
		}
	}
}
