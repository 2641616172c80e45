package llama

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device/cpu"
	"goatb/tensor"
)

// held counts the launches that are enqueued on a held stream before it goes on.
const held = 500

// BenchmarkReplay measures what the host does for a captured decode step, by the
// number of layers: Execute, and Setup, of the same tensors. The stream is held
// meanwhile, so that nothing runs beside the host, and the lengths change. The
// median is that of the last launches: the first ones after the stream was held
// find the processor's caches full of the device's work.
func BenchmarkReplay(b *testing.B) {
	for _, layers := range []int{4, 32} {
		for _, what := range []string{"execute", "setup"} {
			b.Run(fmt.Sprintf("layers=%d/call=%s", layers, what), func(b *testing.B) { benchmarkReplay(b, layers, what == "setup") })
		}
	}
}

func benchmarkReplay(b *testing.B, layers int, setup bool) {
	cfg := Config{Dim: 16, Hidden: 24, Layers: layers, Heads: 4, KVHeads: 2, Vocab: 40, MaxSeq: 40, Epsilon: 1e-5, RopeBase: 10000}
	w, err := Random(cfg, 7)
	require.NoError(b, err)
	dev, err := cpu.New(cpu.WithSpin(0))
	require.NoError(b, err)
	defer func() { require.NoError(b, dev.Close()) }()
	c, err := atb.NewContext(dev, atb.WithPolicy("device-sink"))
	require.NoError(b, err)
	m, err := Upload(c, w, tensor.Float32)
	require.NoError(b, err)
	s, err := NewSession(c, m, Options{Sequences: 1, BlockSize: 4})
	require.NoError(b, err)
	for range 2 {
		_, err = s.Forward(b.Context(), []Row{{Token: 1}}, []int32{0})
		require.NoError(b, err)
	}
	ws, err := c.Workspace(s.stages[single][0].Workspace().Size)
	require.NoError(b, err)
	gate, err := dev.NewEvent()
	require.NoError(b, err)
	opener, err := dev.NewStream()
	require.NoError(b, err)
	took := make([]time.Duration, 4*held)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%held == 0 {
			b.StopTimer()
			require.NoError(b, opener.Record(gate))
			require.NoError(b, c.Synchronize(b.Context()))
			require.NoError(b, opener.Synchronize(b.Context()))
			require.NoError(b, opener.Reset(gate))
			require.NoError(b, s.stream.Wait(gate))
			b.StartTimer()
		}
		s.last.contexts[0] = int32(1 + n%2)
		start := time.Now()
		if setup {
			_, err = s.stages[single][0].Setup(atb.VariantPack{}, c)
		} else {
			err = s.stages[single][0].Execute(atb.VariantPack{}, ws, c)
		}
		if took[n%len(took)] = time.Since(start); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2]), "median-ns")
	require.NoError(b, opener.Record(gate))
	require.NoError(b, c.Synchronize(b.Context()))
}
