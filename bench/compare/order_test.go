package compare_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/bench/compare"
	"goatb/device/sim/profile"
	"goatb/model/decoder"
	"goatb/tensor"
)

// The policies come in the order that theory demands.

// compared measures all policies without tiling caches.
func compared(t *testing.T, p *profile.Profile, s decoder.Shape, l decoder.Load, vars ...compare.Variable) *compare.Result {
	t.Helper()
	l.Steps = 3
	return run(t, compare.Config{Profile: p, Shape: s, DType: tensor.Float16, Load: l, Policies: policies(), NoCaches: true, Variables: vars})
}

func TestKernelFollowHidesTiling(t *testing.T) {
	p := profileOf(t, "ascend910b")
	busy := decode(1, 2048)
	busy.Whole = true
	r := compared(t, p, shapeOf(t, "qwen3-8b"), busy)
	follow, overall := find(t, r, "kernel-follow"), find(t, r, "overall")
	assert.Less(t, follow.StepNs, overall.StepNs, "the device is busy while the host tiles")
	assert.Greater(t, overall.Idle.Tiling, follow.Idle.Tiling, "overall lets the device wait for all tilings")
	for _, name := range []string{"qwen2.5-0.5b", "qwen3-0.6b"} {
		for _, whole := range []bool{false, true} {
			l := decode(1, 1024)
			l.Whole = whole
			r := compared(t, p, shapeOf(t, name), l)
			assert.LessOrEqual(t, float64(find(t, r, "kernel-follow").StepNs), 1.03*float64(find(t, r, "overall").StepNs), "%s is bound by the host", name)
		}
	}
}

func TestDeviceSinkTakesTilingOffTheHost(t *testing.T) {
	s, l := shapeOf(t, "qwen3-0.6b"), decode(1, 1024)
	r := compared(t, profileOf(t, "ascend910b"), s, l)
	sink, follow := find(t, r, "device-sink"), find(t, r, "kernel-follow")
	assert.Less(t, sink.StepNs, follow.StepNs)
	assert.Less(t, sink.HostBusyNs, follow.HostBusyNs/20)
	assert.Zero(t, sink.HostTilings)
	assert.EqualValues(t, 3*28, sink.DeviceTilings, "attention of each layer in each of three steps")
	slow := compared(t, profileOf(t, "ascend910b", "aicpu_factor", 12.0), s, l)
	sink, follow = find(t, slow, "device-sink"), find(t, slow, "kernel-follow")
	assert.Greater(t, sink.StepNs, follow.StepNs, "the AI CPU is the bottleneck")
	assert.Greater(t, sink.Idle.Tiling, sink.Idle.Sum()*9/10, "and the comparison says so")
}

// Multi-stream gains over overall while its copies hide behind kernels. It loses
// where the host is the bottleneck, whose calls it multiplies, and gains nothing
// where copies are not hidden.
func TestMultiStreamHidesCopies(t *testing.T) {
	p := profileOf(t, "ascend910b")
	gain := func(p *profile.Profile, name string) float64 {
		r := compared(t, p, shapeOf(t, name), decode(1, 2048))
		return float64(find(t, r, "overall").StepNs) / float64(find(t, r, "multi-stream").StepNs)
	}
	hidden := gain(p, "qwen3-8b")
	assert.Greater(t, hidden, 1.01, "the device is busy")
	assert.Less(t, gain(p, "qwen3-0.6b"), 1.0, "the host is busy")
	assert.Greater(t, gain(profileOf(t, "ascend910b", "copy_latency", 100.0), "qwen3-8b"), hidden, "the longer a copy, the more there is to hide")
	slow := profileOf(t, "ascend910b", "copy_latency", 2000.0)
	r := compared(t, slow, shapeOf(t, "qwen3-8b"), decode(1, 2048))
	m := find(t, r, "multi-stream")
	assert.Greater(t, m.Idle.Copy, m.Idle.Sum()*9/10, "copies that take longer than kernels do not hide")
	assert.Greater(t, m.StepNs, find(t, r, "kernel-follow").StepNs*3)
}

// A host that runs far ahead fills the ring of tiling blocks. A larger ring takes
// the stalls away; kernel-follow has no ring to fill.
func TestLargerRingRemovesStalls(t *testing.T) {
	deep := shapeOf(t, "qwen3-8b")
	deep.Layers = 80
	cached := func(vars ...compare.Variable) *compare.Result {
		l := decode(1, 2048)
		l.Steps = 3
		return run(t, compare.Config{Profile: profileOf(t, "ascend910b"), Shape: deep, DType: tensor.Float16, Load: l, Policies: policies(), Variables: vars})
	}
	r, larger := cached(), cached(compare.Variable{Name: "ATB_DEVICE_TILING_BUFFER_BLOCK_NUM", Value: "128"})
	for _, name := range []string{"overall", "multi-stream"} {
		assert.Positive(t, find(t, r, name).RingStalls, name)
		assert.Zero(t, find(t, larger, name).RingStalls, name)
		assert.LessOrEqual(t, find(t, larger, name).StepNs, find(t, r, name).StepNs, name)
	}
	assert.Zero(t, find(t, r, "kernel-follow").RingStalls)
	require.Zero(t, find(t, r, "device-sink").RingStalls)
}

// Numerics on and off take the same time.
func TestNumericsTakeNoTime(t *testing.T) {
	s := shapeOf(t, "qwen3-0.6b")
	s.Layers, s.Hidden, s.Intermediate, s.Vocab = 2, 64, 96, 100
	var times [2]*compare.Result
	for i, numerics := range []bool{false, true} {
		times[i] = run(t, compare.Config{
			Profile: profileOf(t, "ascend910b"), Shape: s, DType: tensor.Float16, Load: decoder.Load{Batch: 2, Context: 100, Steps: 3},
			Policies: policies(), Numerics: numerics,
		})
	}
	require.Equal(t, times[0].Policies, times[1].Policies)
}
