package bench_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/tiling"
)

// held measures the host alone: the stream waits for a gate while the host
// enqueues, so that neither the device's pace nor its use of caches counts.
type held struct {
	b      *testing.B
	stream device.Stream
	opener device.Stream
	gate   device.Event
}

func newHeld(b *testing.B, p *prepared) *held {
	b.Helper()
	s, err := p.c.Stream(0)
	require.NoError(b, err)
	opener, err := p.c.Device().NewStream()
	require.NoError(b, err)
	gate, err := p.c.Device().NewEvent()
	require.NoError(b, err)
	return &held{b, s, opener, gate}
}

// time returns how long enqueue takes; then the device does the work.
func (h *held) time(enqueue func() error) time.Duration {
	require.NoError(h.b, h.stream.Wait(h.gate))
	require.NoError(h.b, h.stream.Reset(h.gate))
	start := time.Now()
	err := enqueue()
	spent := time.Since(start)
	require.NoError(h.b, err)
	require.NoError(h.b, h.opener.Record(h.gate))
	require.NoError(h.b, h.stream.Synchronize(h.b.Context()))
	return spent
}

// BenchmarkLayerRatio compares, in turns, Setup and Execute of the layer with
// launching empty kernels of the same operands and tiling bytes. Both enqueue
// into a stream that stands still. A round is short enough for the rings.
func BenchmarkLayerRatio(b *testing.B) {
	const calls = 20
	for _, policy := range tiling.Policies() {
		b.Run("policy="+policy.Name(), func(b *testing.B) {
			p := prepareLayer(b, policy.Name())
			h, empty := newHeld(b, p), emptyLike(b, p)
			s := h.stream
			var layer, launch time.Duration
			b.ReportAllocs()
			for b.Loop() {
				layer += h.time(func() error {
					for range calls {
						if _, err := p.op.Setup(p.pack, p.c); err != nil {
							return err
						}
						if err := p.op.Execute(p.pack, p.ws, p.c); err != nil {
							return err
						}
					}
					return nil
				})
				launch += h.time(func() error {
					for range calls {
						for i := range empty {
							if err := s.Launch(&empty[i]); err != nil {
								return err
							}
						}
					}
					return nil
				})
			}
			n := float64(b.N * calls * len(empty))
			b.ReportMetric(float64(layer.Nanoseconds())/n, "host-ns/kernel")
			b.ReportMetric(float64(launch.Nanoseconds())/n, "empty-ns/kernel")
			b.ReportMetric(float64(layer)/float64(launch), "ratio")
		})
	}
}
