package bench_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device/cpu"
	"goatb/model/llama"
	"goatb/tensor"
	"goatb/tiling"
)

// models are random models that need no file.
var models = []struct {
	name   string
	config llama.Config
}{
	{"small", llama.Config{Dim: 64, Hidden: 172, Layers: 2, Heads: 8, KVHeads: 4, Vocab: 512, MaxSeq: 512, Epsilon: 1e-5, RopeBase: 10000, SharedClassifier: true}},
	{"medium", llama.Config{Dim: 256, Hidden: 688, Layers: 6, Heads: 8, KVHeads: 4, Vocab: 2048, MaxSeq: 512, Epsilon: 1e-5, RopeBase: 10000, SharedClassifier: true}},
}

// decoding is a session with one row per sequence, warm.
type decoding struct {
	c    *atb.Context
	s    *llama.Session
	rows []llama.Row
	want []int32
}

// newDecoding opens a device and decodes far enough that every ring block and
// cache slot has been used.
func newDecoding(tb testing.TB, policy string, cfg llama.Config, batch int) *decoding {
	tb.Helper()
	dev, err := cpu.New()
	require.NoError(tb, err)
	c, err := atb.NewContext(dev, atb.WithPolicy(policy), atb.WithEnv(func(string) (string, bool) { return "", false }))
	require.NoError(tb, err)
	w, err := llama.Random(cfg, 1)
	require.NoError(tb, err)
	m, err := llama.Upload(c, w, tensor.Float32)
	require.NoError(tb, err)
	s, err := llama.NewSession(c, m, llama.Options{Sequences: batch, BlockSize: 16})
	require.NoError(tb, err)
	tb.Cleanup(func() {
		require.NoError(tb, s.Close())
		require.NoError(tb, m.Close())
		require.NoError(tb, c.Close())
		require.NoError(tb, dev.Close())
	})
	d := &decoding{c: c, s: s}
	for i := range batch {
		d.rows = append(d.rows, llama.Row{Seq: i, Token: int32(i + 2)})
		d.want = append(d.want, int32(i))
	}
	for range 150 {
		d.step(tb)
	}
	return d
}

// step decodes one token of every sequence; full sequences start anew.
func (d *decoding) step(tb testing.TB) {
	if d.s.Length(0) == 400 {
		for i := range d.rows {
			d.s.Reset(i)
		}
	}
	if _, err := d.s.Forward(tb.Context(), d.rows, d.want); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkDecode decodes with every policy, model and batch on the CPU. A step is
// one token of every sequence.
func BenchmarkDecode(b *testing.B) {
	for _, p := range tiling.Policies() {
		for _, m := range models {
			for _, batch := range []int{1, 4} {
				b.Run(fmt.Sprintf("policy=%s/model=%s/batch=%d", p.Name(), m.name, batch), func(b *testing.B) {
					d := newDecoding(b, p.Name(), m.config, batch)
					before := d.c.Stats()
					var setup, host int64
					b.ReportAllocs()
					for b.Loop() {
						d.step(b)
						t := d.s.Timing()
						setup += t.Setup.Nanoseconds()
						host += t.Setup.Nanoseconds() + t.Execute.Nanoseconds()
					}
					report(b, before, d.c.Stats(), setup, host)
				})
			}
		}
	}
}

func report(b *testing.B, before, after atb.Stats, setup, host int64) {
	n := float64(b.N)
	b.ReportMetric(float64(host)/n, "host-ns/step")
	b.ReportMetric(float64(setup)/n, "setup-ns/step")
	b.ReportMetric(float64(after.HostTilings-before.HostTilings)/n, "tilings/step")
	hits := after.LocalHits + after.GlobalHits - before.LocalHits - before.GlobalHits
	if all := hits + after.Misses - before.Misses; all > 0 {
		b.ReportMetric(100*float64(hits)/float64(all), "hit%")
	}
	b.ReportMetric(float64(after.BytesMoved-before.BytesMoved)/n, "moved-B/step")
}

// TestSteadyStepsAllocateNothing holds for every policy: the lengths grow by one
// from step to step.
func TestSteadyStepsAllocateNothing(t *testing.T) {
	for _, p := range tiling.Policies() {
		t.Run("policy="+p.Name(), func(t *testing.T) {
			d := newDecoding(t, p.Name(), models[0].config, 2)
			require.Zero(t, testing.AllocsPerRun(100, func() { d.step(t) }))
		})
	}
}
