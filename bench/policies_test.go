package bench_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/bench/compare"
	"goatb/device/sim/profile"
	"goatb/model/decoder"
	"goatb/tensor"
	"goatb/tiling"
)

// shapes are decoders without a file. The last is too large for a device that
// computes.
func shapes(tb testing.TB) []decoder.Shape {
	tb.Helper()
	small := decoder.Shape{
		Name: "small", Layers: 2, Hidden: 64, Intermediate: 172, Heads: 8, KVHeads: 4, HeadDim: 8, Vocab: 512, Epsilon: 1e-5, RopeBase: 10000, Parallel: 1,
	}
	medium := small
	medium.Name, medium.Layers, medium.Hidden, medium.Intermediate, medium.HeadDim, medium.Vocab = "medium", 6, 256, 688, 32, 2048
	return []decoder.Shape{small, medium, large(tb)}
}

func large(tb testing.TB) decoder.Shape {
	tb.Helper()
	s, err := decoder.ByName("qwen3-8b")
	require.NoError(tb, err)
	return s
}

// BenchmarkPolicies decodes with every policy, model and batch, on the CPU and on
// a simulated accelerator. A step is one token of every sequence. Where the device
// is simulated, step-ns, host-ns and idle% are of its virtual clock and the same in
// every run of as many steps; ns/op is what simulating a step takes.
func BenchmarkPolicies(b *testing.B) {
	all := shapes(b)
	for _, on := range []struct {
		device string
		shapes []decoder.Shape
	}{{"cpu", all[:2]}, {"ascend910b", all}} {
		for _, p := range tiling.Policies() {
			for _, s := range on.shapes {
				for _, batch := range []int{1, 4} {
					b.Run(fmt.Sprintf("device=%s/policy=%s/model=%s/batch=%d", on.device, p.Name(), s.Name, batch), func(b *testing.B) {
						policy(b, on.device, p.Name(), s, batch)
					})
				}
			}
		}
	}
}

// stepsOf is the number of steps after which lengths start again.
const stepsOf = 256

func policy(b *testing.B, device, policy string, shape decoder.Shape, batch int) {
	cfg := compare.Config{Shape: shape, DType: tensor.Float16, Load: decoder.Load{Batch: batch, Context: 128, Steps: stepsOf}, Policies: []string{policy}}
	if device == "cpu" {
		cfg.DType = tensor.Float32
	} else {
		var err error
		cfg.Profile, err = profile.ByName(device)
		require.NoError(b, err)
	}
	s, err := compare.Open(b.Context(), cfg, policy)
	require.NoError(b, err)
	defer func() { require.NoError(b, s.Close()) }()
	before := s.Stats()
	var sum compare.Step
	for b.Loop() {
		x, err := s.Step(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		sum.Ns += x.Ns
		sum.HostBusyNs += x.HostBusyNs
		sum.DeviceBusyNs += x.DeviceBusyNs
	}
	n := float64(b.N)
	b.ReportMetric(float64(sum.Ns)/n, "step-ns")
	b.ReportMetric(float64(sum.HostBusyNs)/n, "host-ns")
	b.ReportMetric(100*(1-float64(sum.DeviceBusyNs)/float64(sum.Ns)), "idle%")
	b.ReportMetric(float64(s.Stats().BytesMoved-before.BytesMoved)/n, "moved-B")
}

// BenchmarkSimulation simulates 100 decode steps of a model of 8 billion
// parameters under every policy. peak-MB is how much the heap grew.
func BenchmarkSimulation(b *testing.B) {
	p, err := profile.ByName("ascend910b")
	require.NoError(b, err)
	cfg := compare.Config{Profile: p, Shape: large(b), DType: tensor.Float16, Load: decoder.Load{Batch: 1, Context: 2048, Steps: 100}}
	for _, x := range tiling.Policies() {
		cfg.Policies = append(cfg.Policies, x.Name())
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		_, err := compare.Run(b.Context(), cfg)
		require.NoError(b, err)
	}
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapSys-before.HeapSys)/1e6, "peak-MB")
}
