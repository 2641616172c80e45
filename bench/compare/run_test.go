package compare_test

import (
	"bytes"
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/bench/compare"
	"goatb/device/sim/profile"
	"goatb/device/trace"
	"goatb/device/trace/tracetest"
	"goatb/model/decoder"
	"goatb/tensor"
	"goatb/tiling"
)

func policies() (names []string) {
	for _, p := range tiling.Policies() {
		names = append(names, p.Name())
	}
	return names
}

// config compares every policy on a model of the given name.
func config(t *testing.T, prof, model string) compare.Config {
	t.Helper()
	c := compare.Config{DType: tensor.Float16, Load: decoder.Load{Batch: 1, Context: 512, Steps: 3}, Policies: policies()}
	var err error
	if prof != "cpu" {
		c.Profile, err = profile.ByName(prof)
		require.NoError(t, err)
	}
	c.Shape, err = decoder.ByName(model)
	require.NoError(t, err)
	return c
}

func run(t *testing.T, c compare.Config) *compare.Result {
	t.Helper()
	r, err := compare.Run(t.Context(), c)
	require.NoError(t, err)
	for _, p := range r.Policies {
		require.Equal(t, p.StepNs-p.DeviceBusyNs, p.Idle.Sum(), "the causes of %s sum to the step less the device's time", p.Policy)
		for _, n := range []int64{p.Idle.Tiling, p.Idle.Copy, p.Idle.Launch, p.Idle.Event, p.Idle.Ring, p.Idle.Other, p.HostBusyNs} {
			require.GreaterOrEqual(t, n, int64(0))
		}
		require.LessOrEqual(t, p.HostBusyNs, p.StepNs)
	}
	return r
}

func find(t *testing.T, r *compare.Result, name string) *compare.Policy {
	t.Helper()
	for i := range r.Policies {
		if r.Policies[i].Policy == name {
			return &r.Policies[i]
		}
	}
	t.Fatalf("no policy %s", name)
	return nil
}

func TestResult(t *testing.T) {
	r := run(t, config(t, "ascend910b", "qwen3-0.6b"))
	assert.Equal(t, "ascend910b", r.Profile)
	assert.Equal(t, "sim ascend910b", r.Device)
	assert.Equal(t, []any{"qwen3-0.6b", "f16", 1, 512, 1, 3, true, false}, []any{r.Model, r.DType, r.Batch, r.Context, r.Prompt, r.Steps, r.Caches, r.Numerics})
	follow := find(t, r, "kernel-follow")
	assert.EqualValues(t, 3*(3+28*14+3), follow.Kernels)
	assert.EqualValues(t, 3*30, follow.SetupHits, "every Setup of a steady step finds its plan")
	assert.EqualValues(t, 3, follow.HostTilings, "attention of one layer; the others find it in the global cache")
	assert.EqualValues(t, 3*27, follow.Cache.GlobalHits)
	assert.Equal(t, follow.Kernels, follow.Cache.LocalHits+follow.Cache.GlobalHits+follow.Cache.Misses)
	assert.Positive(t, follow.BytesMoved)
	assert.Positive(t, follow.QueueDepthMax)
	assert.NotEmpty(t, r.Memory.Buffers)
	assert.NotEmpty(t, r.Memory.Method)
	assert.GreaterOrEqual(t, r.Memory.Arena, r.Memory.LowerBound)
	assert.Len(t, r.Costs, len(profile.Names()))
	assert.Empty(t, r.Sensitivity)
}

// TestTwoRunsAreEqual to the last byte, timelines too.
func TestTwoRunsAreEqual(t *testing.T) {
	for _, numerics := range []bool{false, true} {
		var texts [2][2][]byte
		for i := range texts {
			c := config(t, "ascend910b", "qwen3-0.6b")
			c.Shape.Layers, c.Shape.Hidden, c.Shape.Intermediate, c.Shape.Vocab = 2, 64, 96, 100
			c.Sensitivity, c.Timeline, c.Numerics = true, true, numerics
			r := run(t, c)
			var err error
			texts[i][0], err = json.Marshal(r)
			require.NoError(t, err)
			var b bytes.Buffer
			require.NoError(t, trace.Write(&b, r.Recorders()...))
			texts[i][1] = b.Bytes()
		}
		require.Equal(t, string(texts[0][0]), string(texts[1][0]))
		require.Equal(t, string(texts[0][1]), string(texts[1][1]))
		require.Contains(t, string(texts[0][1]), "copy engine to device")
		require.Contains(t, string(texts[0][1]), "device ring blocks in use")
		require.Contains(t, string(texts[0][1]), "workspace bytes")
	}
}

// TestIDsNameConfigurations: another configuration has another name.
func TestIDsNameConfigurations(t *testing.T) {
	ids := map[string]bool{}
	for _, change := range []func(*compare.Config){
		func(*compare.Config) {}, func(c *compare.Config) { c.Load.Batch = 2 }, func(c *compare.Config) { c.NoCaches = true },
		func(c *compare.Config) { c.Profile, _ = c.Profile.With("launch_host", 1) }, func(c *compare.Config) { c.Shape.Layers = 1 },
	} {
		c := config(t, "ascend910b", "qwen3-0.6b")
		c.Shape.Layers, c.Policies, c.Load.Steps = 2, c.Policies[:1], 1
		change(&c)
		ids[run(t, c).ID] = true
	}
	require.Len(t, ids, 5)
}

func TestSensitivity(t *testing.T) {
	c := config(t, "gpu", "qwen2.5-0.5b")
	c.Shape.Layers, c.Sensitivity = 2, true
	r := run(t, c)
	names := c.Profile.Estimates()
	require.Len(t, r.Sensitivity, 2*len(names))
	base := find(t, r, "kernel-follow").StepNs
	step := func(param string, factor float64) int64 {
		for _, s := range r.Sensitivity {
			if s.Param == param && s.Factor == factor {
				require.Len(t, s.StepNs, len(c.Policies))
				return s.StepNs["kernel-follow"]
			}
		}
		t.Fatalf("no %s x %g", param, factor)
		return 0
	}
	assert.Less(t, step("op_wrapper_host", 0.5), base)
	assert.Greater(t, step("op_wrapper_host", 2), base)
	assert.Equal(t, base, step("copy_bw_pageable", 2), "nothing is copied from there")
	assert.Equal(t, base, step("queue_depth", 2), "the queue is never full; this change needs a new device")
	require.Len(t, r.Conclusions, len(c.Policies)*(len(c.Policies)-1)/2)
	for _, x := range r.Conclusions {
		assert.GreaterOrEqual(t, x.Ratio, 1.0)
		assert.Equal(t, x.Solid, len(x.Fails) == 0)
	}
}

// TestTimelines hold the steps measured and nothing else, also when sensitivities
// are measured after them.
func TestTimelines(t *testing.T) {
	c := config(t, "ascend910b", "qwen3-0.6b")
	c.Shape.Layers, c.Timeline, c.Sensitivity = 2, true, true
	r := run(t, c)
	checkFile(t, r)
	require.Len(t, r.Timelines, len(c.Policies))
	for i, tl := range r.Timelines {
		require.Len(t, tl.Steps, c.Load.Steps)
		var took []int64
		launches := int64(0)
		for _, s := range tl.Recorder.Spans() {
			if s.Category == "step" {
				assert.Equal(t, strconv.Itoa(len(took)), s.Name)
				took = append(took, s.End.Sub(s.Start).Nanoseconds())
			}
		}
		for _, task := range tl.Recorder.Tasks() {
			if task.Kind == "launch" && task.Engine == "" {
				launches++
			}
		}
		slices.Sort(took)
		assert.Equal(t, r.Policies[i].StepNs, took[len(took)/2], r.Policies[i].Policy)
		assert.Equal(t, r.Policies[i].Kernels, launches, r.Policies[i].Policy)
		assert.Equal(t, tl.Steps[len(tl.Steps)-1], tl.Recorder.Mark())
	}
	whole, n := r.FirstSteps(1 << 30)
	assert.Equal(t, c.Load.Steps, n)
	assert.Equal(t, r.Timelines[0].Recorder.Spans(), whole[0].Spans())
	one, n := r.FirstSteps(0)
	assert.Equal(t, 1, n, "at least one")
	assert.Equal(t, r.Timelines[1].Steps[0], one[1].Mark())
	two := r.Timelines[0].Steps[1].Entries()
	for _, tl := range r.Timelines[1:] {
		two += tl.Steps[1].Entries()
	}
	_, n = r.FirstSteps(two)
	assert.Equal(t, 2, n)
	_, n = r.FirstSteps(two - 1)
	assert.Equal(t, 1, n)
}

// checkFile reads the file of a comparison's timelines strictly and looks for the
// rows and counters of each policy.
func checkFile(t *testing.T, r *compare.Result) {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, trace.Write(&out, r.Recorders()...))
	f := tracetest.Read(t, out.Bytes())
	for i, p := range r.Policies {
		rows, counters, arrows := map[string]bool{}, map[string]bool{}, 0
		for _, e := range f.TraceEvents {
			switch {
			case e.PID != i+1:
			case e.Name == "process_name":
				assert.Equal(t, p.Policy, e.Args["name"])
			case e.Name == "thread_name":
				rows[e.Args["name"].(string)] = true
			case e.Ph == "C":
				counters[e.Name] = true
			case e.Ph == "s":
				arrows++
			}
		}
		assert.Contains(t, rows, "host", p.Policy)
		assert.Contains(t, rows, "stream 0", p.Policy)
		if r.Profile != "cpu" {
			assert.Contains(t, rows, "copy engine to device", p.Policy)
			assert.Equal(t, p.DeviceTilings > 0, rows["AICPU"], p.Policy)
		}
		assert.Len(t, counters, 3, p.Policy)
		assert.Positive(t, arrows, p.Policy)
	}
}

// TestCPU has the same output from real time.
func TestCPU(t *testing.T) {
	c := config(t, "cpu", "qwen3-0.6b")
	c.Shape.Layers, c.Shape.Hidden, c.Shape.Intermediate, c.Shape.Vocab, c.Shape.Heads, c.Shape.KVHeads, c.Shape.HeadDim = 2, 64, 96, 100, 4, 2, 16
	c.Timeline = true
	r := run(t, c)
	assert.Equal(t, "cpu", r.Profile)
	assert.True(t, r.Numerics)
	assert.Empty(t, r.Costs)
	for _, p := range r.Policies {
		assert.Positive(t, p.StepNs)
		assert.Positive(t, p.DeviceBusyNs)
		assert.Positive(t, p.Kernels)
	}
	require.Len(t, r.Recorders(), len(c.Policies))
	checkFile(t, r)
}

func TestRefused(t *testing.T) {
	for want, change := range map[string]func(*compare.Config){
		"at least one policy": func(c *compare.Config) { c.Policies = nil },
		"unknown tiling":      func(c *compare.Config) { c.Policies = []string{"fastest"} },
		"steps":               func(c *compare.Config) { c.Load.Steps = 0 },
		"num_hidden_layers":   func(c *compare.Config) { c.Shape.Layers = 0 },
		"batch":               func(c *compare.Config) { c.Load.Batch = 0 },
		"not for the CPU":     func(c *compare.Config) { c.Profile, c.Sensitivity = nil, true },
		"ATB_NO_SUCH":         func(c *compare.Config) { c.Variables = []compare.Variable{{Name: "ATB_NO_SUCH", Value: "1"}} },
		"free of":             func(c *compare.Config) { c.Profile, _ = c.Profile.With("memory", 1) },
	} {
		c := config(t, "ascend910b", "qwen3-0.6b")
		change(&c)
		_, err := compare.Run(t.Context(), c)
		require.ErrorContains(t, err, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := config(t, "ascend910b", "qwen3-0.6b")
	_, err := compare.Run(ctx, c)
	require.ErrorIs(t, err, context.Canceled)
}

// A session's steps are those of a comparison, and their lengths start again.
func TestSession(t *testing.T) {
	c := config(t, "ascend910b", "qwen3-0.6b")
	want := run(t, c)
	for i, policy := range c.Policies {
		s, err := compare.Open(t.Context(), c, policy)
		require.NoError(t, err)
		var took []int64
		for range 2 * c.Load.Steps {
			x, err := s.Step(t.Context())
			require.NoError(t, err)
			require.Equal(t, x.Ns-x.DeviceBusyNs, x.Idle.Sum())
			took = append(took, x.Ns)
		}
		require.Equal(t, took[:3], took[3:], policy)
		require.Contains(t, took, want.Policies[i].StepNs)
		require.Positive(t, s.Stats().Kernels)
		require.NoError(t, s.Close())
	}
	c.Load.Steps = 0
	_, err := compare.Open(t.Context(), c, "overall")
	require.ErrorContains(t, err, "want 1 to")
}

// Weights and caches of 18 GB are sizes and nothing else.
func TestNoModelInMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run(t, config(t, "ascend910b", "qwen3-8b"))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(200e6))
}
