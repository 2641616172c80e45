package mempool

import (
	"fmt"
	"maps"
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
