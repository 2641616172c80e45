package attention

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"goatb/internal/asm/gemm"
	"goatb/internal/cpu"
	"goatb/kernel"
	"goatb/tensor"
)

// peak measures the multiply-adds of one core with float32, in GFLOP/s: the best
// of several runs, since others use the machine too.
func peak() float64 {
	best := 0.0
	for _, p := range gemm.Peaks(cpu.Active()) {
		for range 10 {
			const turns = 3000
			begin := time.Now()
			p.Run(turns)
			if rate := float64(p.Ops*turns) / float64(time.Since(begin).Nanoseconds()); strings.HasPrefix(p.Name, "f32") {
				best = max(best, rate)
			}
		}
	}
	return best
}

// BenchmarkAttend times one core: a causal prefill of 512 tokens and a decode
// over 2048 keys, heads of size 64. best-peak is the fastest run's share of the
// peak, which is measured in the same run.
func BenchmarkAttend(b *testing.B) {
	for _, dtype := range floatTypes {
		for _, x := range []struct {
			name            string
			heads, keyHeads int64
			rows, keys      int64
		}{
			{"prefill", 8, 8, 512, 512},
			{"prefill-gqa", 8, 2, 512, 512},
			{"prefill-long", 8, 2, 2048, 2048},
			{"decode", 8, 8, 1, 2048},
			{"decode-gqa", 8, 2, 1, 2048},
			{"decode-short", 8, 8, 1, 16},
		} {
			b.Run(fmt.Sprintf("case=%s/dtype=%s", x.name, dtype), func(b *testing.B) {
				c := newCall(1, dtype, x.heads, x.keyHeads, 64, 64, []int64{x.rows}, []int64{x.keys})
				c.a.Causal = true
				c.build(sources[2].layout)
				p := c.problem
				p.Machine = kernel.Machine{Cores: 1, L1: 32 << 10}
				args, g := arguments(b, c, &p)
				run := attend.Program().Run
				cost := attend.Program().Cost(args.Tiling, g.Key, g.Blocks)
				b.ReportAllocs()
				best, limit := time.Hour, peak()
				for b.Loop() {
					begin := time.Now()
					for i := range g.Blocks {
						if err := run(args, i); err != nil {
							b.Fatal(err)
						}
					}
					best = min(best, time.Since(begin))
				}
				if limit > 0 {
					b.ReportMetric(float64(cost.Flops)/float64(best.Nanoseconds())/limit, "best-peak")
				}
				ns := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
				b.ReportMetric(float64(cost.Flops)/ns, "GFLOP/s")
				b.ReportMetric(float64(cost.Bytes)/ns, "GB/s")
			})
		}
	}
}

// BenchmarkTile times the tiling of a decode step of 32 sequences.
func BenchmarkTile(b *testing.B) {
	rows, keys := make([]int64, 32), make([]int64, 32)
	for i := range rows {
		rows[i], keys[i] = 1, int64(100+i)
	}
	c := newCall(1, tensor.Float16, 8, 8, 64, 64, rows, keys).build(sources[2].layout)
	p := c.problem
	p.Machine = kernelMachine
	dst := make([]byte, attend.TilingSize(&p))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := attend.Tile(&p, dst); err != nil {
			b.Fatal(err)
		}
	}
}
