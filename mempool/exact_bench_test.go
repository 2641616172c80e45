package mempool

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"goatb/internal/refdata"
)

// BenchmarkHard plans the eleven hard instances: to the capacity that counts as
// solved, and to the smallest arena in one minute.
func BenchmarkHard(b *testing.B) {
	dir := refdata.Path(b, "memplan")
	for _, goal := range []struct {
		name    string
		options Options
	}{
		{"capacity", Options{Capacity: 1048576, Nodes: -1}},
		{"bound", Options{Deadline: time.Minute}},
	} {
		for _, threads := range []int{1, 2} {
			for _, name := range slices.Sorted(maps.Keys(hardInstances)) {
				table := readTable(b, filepath.Join(dir, name+".1048576.csv"))
				o := goal.options
				o.Solver, o.Align, o.Threads = Optimal, 1, threads
				b.Run(fmt.Sprintf("goal=%s/threads=%d/instance=%s", goal.name, threads, name), func(b *testing.B) {
					var p Planner
					var r Result
					var err error
					for b.Loop() {
						if r, err = p.Plan(table.Items, o); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(r.Arena), "arena")
					b.ReportMetric(float64(r.LowerBound), "bound")
					b.ReportMetric(float64(r.Nodes), "nodes")
				})
			}
		}
	}
}

// BenchmarkPackings plans perfect packings, with at most 10 seconds for each:
// metrics are the share that is planned without a hole, the mean and the largest
// gap to the bound in percent, and the longest time.
func BenchmarkPackings(b *testing.B) {
	for _, c := range []struct {
		n, cases int
		side     int64 // of the rectangle, in nodes and in bytes
	}{{50, 200, 1 << 20}, {50, 200, 100}, {200, 20, 1 << 20}, {200, 20, 1000}, {1000, 4, 1 << 20}, {1000, 4, 5000}} {
		b.Run(fmt.Sprintf("n=%d/side=%d", c.n, c.side), func(b *testing.B) {
			var p Planner
			for b.Loop() {
				solved, sum, worst, longest := 0, 0.0, 0.0, time.Duration(0)
				for seed := range uint64(c.cases) {
					items := packing(rand.New(rand.NewPCG(seed, 4)), c.n, c.side, c.side)
					start := time.Now()
					r, err := p.Plan(items, Options{Solver: Optimal, Align: 1, Deadline: 10 * time.Second})
					if err != nil {
						b.Fatal(err)
					}
					longest = max(longest, time.Since(start))
					gap := 100 * float64(r.Arena-c.side) / float64(c.side)
					if sum, worst = sum+gap, max(worst, gap); gap == 0 {
						solved++
					}
				}
				b.ReportMetric(float64(solved)/float64(c.cases), "solved")
				b.ReportMetric(sum/float64(c.cases), "mean-gap-%")
				b.ReportMetric(worst, "gap-%")
				b.ReportMetric(longest.Seconds(), "longest-s")
			}
		})
	}
}
