package profile_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device/sim/profile"
	"goatb/status"
)

func TestBuiltinProfilesAreComplete(t *testing.T) {
	names := profile.Names()
	for _, name := range profile.Builtin() {
		p, err := profile.ByName(name)
		require.NoError(t, err)
		assert.Equal(t, name, p.Name)
		assert.NotEmpty(t, p.Chip)
		assert.NotEmpty(t, p.Soc)
		assert.Contains(t, p.About, "not a measurement of your device")
		params := p.Params()
		require.Len(t, params, len(names))
		for i, x := range params {
			assert.Equal(t, names[i].Name, x.Name)
			assert.Equal(t, names[i].Unit, x.Unit)
			assert.NotEmpty(t, x.Source, x.Name)
			assert.NotEmpty(t, names[i].Text, x.Name)
		}
	}
}

// TestSourcedValues holds the parameters to the recommended figures.
func TestSourcedValues(t *testing.T) {
	for name, want := range map[string]map[string]float64{
		"ascend910b": {
			"launch_host": 5.2, "op_wrapper_host": 2.5, "launch_args_per_kib": 0.2, "launch_to_start": 6, "task_gap": 0.2, "copy_host": 6.5, "copy_latency": 9,
			"copy_bw_pageable": 7.6, "copy_bw_pinned": 25, "event_record_host": 7.1, "event_wait_host": 4.8, "event_record_dev": 0.5, "event_wait_dev": 0.8,
			"stream_sync": 9, "graph_replay_host": 20, "tiling_host_vector": 4, "tiling_host_norm": 8, "tiling_host_matmul": 12,
			"tiling_host_attention": 30, "kernel_cache_hit_host": 0.3, "aicpu_count": 6, "aicpu_dispatch": 8, "aicpu_factor": 2.5, "task_patch": 1,
			"kernel_fixed_vector": 1.2, "kernel_fixed_matmul": 2.5, "kernel_fixed_attention": 8, "cube_peak": 354, "cube_eff": 0.72, "mem_bw": 1600, "mem_eff": 0.82,
			"l2_size": 192, "l2_read_bw": 4880, "l2_write_bw": 3820, "cores": 24, "prefetch": 8,
		},
		"ascend910b4": {"launch_host": 5.2, "cube_peak": 246, "mem_bw": 800, "cores": 20, "l2_size": 96},
		"ascend310p": {
			"launch_host": 7.5, "op_wrapper_host": 3.5, "launch_to_start": 8, "task_gap": 0.5, "copy_host": 9, "copy_latency": 12, "copy_bw_pinned": 12,
			"event_record_host": 9, "event_wait_host": 6, "stream_sync": 12, "graph_replay_host": 30, "tiling_host_attention": 36,
			"aicpu_count": 7, "aicpu_dispatch": 12, "aicpu_factor": 4, "task_patch": 1.5, "kernel_fixed_vector": 3, "kernel_fixed_matmul": 5, "kernel_fixed_attention": 15,
			"cube_peak": 70.8, "cube_eff": 0.6, "mem_bw": 204, "mem_eff": 0.8, "l2_size": 16, "cores": 8, "prefetch": 10,
		},
		"gpu": {
			"launch_host": 2.6, "op_wrapper_host": 1, "launch_to_start": 3, "task_gap": 0.6, "copy_host": 2.5, "copy_latency": 6, "event_record_host": 1, "event_wait_host": 1,
			"stream_sync": 5, "graph_replay_host": 5, "tiling_host_vector": 2.8, "tiling_host_attention": 21, "aicpu_count": 1, "aicpu_dispatch": 3, "aicpu_factor": 1,
			"kernel_fixed_vector": 1.5, "kernel_fixed_matmul": 2.5, "kernel_fixed_attention": 4, "cube_peak": 989, "cube_eff": 0.65, "mem_bw": 3350, "mem_eff": 0.85, "cores": 132,
		},
	} {
		p, err := profile.ByName(name)
		require.NoError(t, err)
		for param, v := range want {
			x, err := p.Param(param)
			require.NoError(t, err)
			assert.Equal(t, v, x.Value, "%s of %s", param, name)
		}
	}
}

func TestCosts(t *testing.T) {
	p, err := profile.ByName("ascend910b")
	require.NoError(t, err)
	c := p.Costs()
	assert.Equal(t, 5200.0, c.LaunchHost)
	assert.Equal(t, 354e3, c.Peak)
	assert.Equal(t, 1600.0, c.Memory, "1 GB/s is 1 byte per nanosecond")
	assert.Equal(t, 192.0*(1<<20), c.L2Size)
	assert.Equal(t, 64.0*(1<<30), c.Capacity)
	assert.Equal(t, [profile.Groups]float64{4000, 8000, 12000, 30000}, c.Tiling)
	assert.Equal(t, [profile.Groups]float64{1200, 1200, 2500, 8000}, c.Fixed)
}

func TestWithAndScaled(t *testing.T) {
	p, err := profile.ByName("gpu")
	require.NoError(t, err)
	q, err := p.With("aicpu_factor", 5)
	require.NoError(t, err)
	x, err := q.Param("aicpu_factor")
	require.NoError(t, err)
	assert.Equal(t, 5.0, x.Value)
	assert.Equal(t, profile.Given, x.Basis)
	x, err = p.Param("aicpu_factor")
	require.NoError(t, err)
	assert.Equal(t, 1.0, x.Value, "the profile itself is unchanged")
	half, err := p.Scaled("launch_args_per_kib", 0.5)
	require.NoError(t, err)
	assert.Equal(t, 25.0, half.Costs().LaunchPerKiB)
	one, err := p.Scaled("aicpu_count", 0.5)
	require.NoError(t, err)
	assert.Equal(t, 1.0, one.Costs().AICPUs, "a count stays a count of at least 1")
	most, err := p.Scaled("mem_eff", 2)
	require.NoError(t, err)
	assert.Equal(t, 1.0, most.Costs().MemoryShare, "a share stays a share")
	for name, v := range map[string]float64{"launch_host": -1, "mem_eff": 1.5, "cores": 2.5, "aicpu_count": 0, "no_such": 1} {
		_, err := p.With(name, v)
		require.ErrorIs(t, err, status.ErrInvalidParam, name)
		require.ErrorContains(t, err, name)
	}
	_, err = p.With("tiling_matmul", 1)
	require.ErrorContains(t, err, "tiling_host_matmul")
	_, err = p.Param("launch")
	require.ErrorContains(t, err, "launch_host")
	_, err = p.Scaled("nothing", 2)
	require.Error(t, err)
}

func TestEstimates(t *testing.T) {
	p, err := profile.ByName("ascend910b")
	require.NoError(t, err)
	names := p.Estimates()
	assert.Contains(t, names, "aicpu_factor")
	assert.NotContains(t, names, "launch_host", "it is measured")
	assert.NotContains(t, names, "framework_host", "it is 0")
}

func TestUsersFile(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "mine.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	path := write(`{"schema":1,"name":"mine","base":"ascend910b","chip":"my board","about":"measured at home","params":[
		{"name":"launch_host","unit":"us","value":4.5,"basis":"measured","source":"my profiler"}]}`)
	p, err := profile.ByName(path)
	require.NoError(t, err)
	assert.Equal(t, "mine", p.Name)
	assert.Equal(t, 4500.0, p.Costs().LaunchHost)
	assert.Equal(t, 1600.0, p.Costs().Memory)

	param := func(s string) string {
		return `{"schema":1,"name":"mine","base":"gpu","chip":"c","about":"a","params":[` + s + `]}`
	}
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"no JSON":       {"x", []string{"invalid character"}},
		"two objects":   {param("") + "{}", []string{"more than one value"}},
		"unknown field": {`{"schema":1,"colour":2}`, []string{"colour"}},
		"schema":        {`{"schema":2,"name":"a","base":"gpu","chip":"c"}`, []string{"schema 1"}},
		"incomplete":    {`{"schema":1,"name":"a","chip":"c","params":[]}`, []string{"launch_host is missing", "cores is missing"}},
		"no name":       {`{"schema":1,"base":"gpu"}`, []string{"a name and a chip"}},
		"base":          {`{"schema":1,"name":"a","chip":"c","base":"abacus"}`, []string{"abacus", "ascend910b"}},
		"all of one parameter": {param(`{"name":"mem_eff","unit":"us","value":7,"basis":"guess"}`),
			[]string{`mem_eff: want unit ""`, "mem_eff: want a basis", "mem_eff: want a source", "mem_eff: want 0.01 to 1"}},
		"everything is listed": {param(`{"name":"launch","unit":"us","value":1,"basis":"measured","source":"s"},
			{"name":"cores","unit":"us","value":1,"basis":"measured","source":"s"},
			{"name":"mem_eff","unit":"","value":7,"basis":"measured","source":"s"},
			{"name":"mem_bw","unit":"GB/s","value":7,"basis":"guess","source":"s"},
			{"name":"copy_host","unit":"us","value":7,"basis":"measured"},
			{"name":"task_gap","unit":"us","value":7,"range":[8,9],"basis":"estimate","source":"s"},
			{"name":"task_patch","unit":"us","value":7,"basis":"estimate","source":"s"},
			{"name":"task_patch","unit":"us","value":7,"basis":"estimate","source":"s"}`),
			[]string{"launch", "cores: want unit", "mem_eff: want 0.01 to 1", "guess", "copy_host: want a source", "outside its range", "task_patch is there twice"}},
	} {
		_, err := profile.ByName(write(tt.text))
		require.ErrorIs(t, err, status.ErrInvalidParam, name)
		for _, w := range tt.want {
			require.ErrorContains(t, err, w, name)
		}
	}
	_, err = profile.ByName("no/such/profile")
	require.ErrorIs(t, err, status.ErrInvalidParam)
	require.ErrorContains(t, err, "ascend310p")
	_, err = profile.ByName(t.TempDir())
	require.Error(t, err)
}

// TestBuiltinFilesRoundTrip keeps the files as users are told to write them.
func TestBuiltinFilesRoundTrip(t *testing.T) {
	for _, name := range profile.Builtin() {
		b, err := os.ReadFile(filepath.Join("data", name+".json"))
		require.NoError(t, err)
		var f struct {
			Schema                       int
			Name, Base, Chip, Soc, About string
			Params                       []map[string]any
		}
		require.NoError(t, json.Unmarshal(b, &f))
		seen := []string{}
		for _, x := range f.Params {
			seen = append(seen, fmt.Sprint(x["name"]))
		}
		slices.Sort(seen)
		assert.Len(t, slices.Compact(seen), len(f.Params), name)
		assert.False(t, strings.Contains(string(b), "\t"), name)
	}
}
