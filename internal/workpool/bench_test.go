package workpool_test

import (
	"fmt"
	"testing"
	"time"

	"goatb/internal/workpool"
)

// burn does n units of work that the compiler cannot leave out.
func burn(n int) (x uint64) {
	x = 88172645463325252
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

// unitsPer measures how many units of burn one microsecond takes.
func unitsPer() float64 {
	best := 0.0
	for range 20 {
		const n = 20000
		start := time.Now()
		sink.Store(burn(n))
		best = max(best, n/(float64(time.Since(start).Nanoseconds())/1000))
	}
	return best
}

// BenchmarkParallelFor times one parallel loop of a known serial duration, back
// to back and after a pause of the submitter. The ideal is us/workers.
func BenchmarkParallelFor(b *testing.B) {
	perMicro := unitsPer()
	for _, us := range []int{1, 5, 50} {
		for _, workers := range []int{1, 2} {
			for _, gap := range []time.Duration{0, 50 * time.Microsecond} {
				b.Run(fmt.Sprintf("us=%d/workers=%d/gap=%v", us, workers, gap), func(b *testing.B) {
					p := workpool.New(workers, workpool.NewSpin(workpool.DefaultSpin))
					defer p.Close()
					units := int(perMicro * float64(us) / 2)
					var out [2][16]uint64
					j := p.NewJob(func(lo, hi int) {
						for i := lo; i < hi; i++ {
							out[i][8] = burn(units)
						}
					}, nil)
					defer j.Close()
					var spent time.Duration
					for b.Loop() {
						for start := time.Now(); time.Since(start) < gap; {
						}
						start := time.Now()
						j.Run(2)
						spent += time.Since(start)
					}
					b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N)/1000, "us/run")
				})
			}
		}
	}
}
