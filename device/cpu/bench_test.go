package cpu_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/cpu"
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

// unitsPerMicro measures how many units of burn one microsecond takes.
func unitsPerMicro() float64 {
	best := 0.0
	for range 20 {
		const n = 20000
		start := time.Now()
		if burn(n) == 0 {
			panic("unreachable: a xorshift state is never zero")
		}
		best = max(best, n/(float64(time.Since(start).Nanoseconds())/1000))
	}
	return best
}

// BenchmarkLaunchEmpty times the launch of an empty kernel, host side, while
// the stream keeps up as well as it can.
func BenchmarkLaunchEmpty(b *testing.B) {
	for _, m := range modes {
		b.Run("mode="+m.name, func(b *testing.B) {
			s := newStream(b, open(b, m.opts...))
			l := emptyLaunch()
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Launch(l); err != nil {
					b.Fatal(err)
				}
			}
			require.NoError(b, s.Synchronize(b.Context()))
			b.ReportMetric(float64(s.Stats().QueueStalls)/float64(b.N), "stalls/op")
		})
	}
}

// BenchmarkLaunchSynchronize times one empty kernel from launch to the host's
// return from Synchronize.
func BenchmarkLaunchSynchronize(b *testing.B) {
	for _, m := range modes {
		b.Run("mode="+m.name, func(b *testing.B) {
			s := newStream(b, open(b, m.opts...))
			l := emptyLaunch()
			for b.Loop() {
				if err := s.Launch(l); err != nil {
					b.Fatal(err)
				}
				if err := s.Synchronize(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkEvents times a record on one stream and a wait on another, the
// pattern of a copy stream that runs ahead of a compute stream.
func BenchmarkEvents(b *testing.B) {
	d := open(b)
	ahead, compute := newStream(b, d), newStream(b, d)
	e, err := d.NewEvent()
	require.NoError(b, err)
	l := emptyLaunch()
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, ahead.Launch(l))
		require.NoError(b, ahead.Record(e))
		require.NoError(b, compute.Wait(e))
		require.NoError(b, compute.Launch(l))
	}
	require.NoError(b, compute.Synchronize(b.Context()))
}

// BenchmarkParallelFor times kernels of a known serial duration that are cut
// into as many blocks as there are workers and launched back to back.
func BenchmarkParallelFor(b *testing.B) {
	perMicro := unitsPerMicro()
	for _, us := range []int{1, 5, 50} {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("us=%d/workers=%d", us, workers), func(b *testing.B) {
				s := newStream(b, open(b, cpu.WithWorkers(workers)))
				units := int(perMicro * float64(us) / float64(workers))
				var out [2][16]uint64
				l := &device.Launch{Blocks: workers, Program: &device.Program{Name: "burn", Run: func(_ *device.Args, block int) error {
					out[block][8] = burn(units)
					return nil
				}}}
				for b.Loop() {
					if err := s.Launch(l); err != nil {
						b.Fatal(err)
					}
				}
				require.NoError(b, s.Synchronize(b.Context()))
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "us/launch")
			})
		}
	}
}
