package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stepsOf are the steps of a comparison by policy.
func stepsOf(r policiesReport) map[string]int64 {
	m := map[string]int64{}
	for _, p := range r.Policies {
		m[p.Policy] = p.StepNs
	}
	return m
}

// A row is what its label says, whatever variable names a policy.
func TestRowsAreThePoliciesTheyName(t *testing.T) {
	file := write(t, "config.json", []byte(small))
	args := []string{"--model", file, "--steps", "1"}
	all := stepsOf(comparison(t, args...))
	require.Len(t, all, len(allPolicies))
	for _, set := range []string{"ATB_TILING_POLICY=overall", "ATB_LAUNCH_KERNEL_WITH_TILING=0", "ATB_USE_TILING_COPY_STREAM=1"} {
		assert.Equal(t, all, stepsOf(comparison(t, append(args, "--set", set)...)), set)
		two := stepsOf(comparison(t, append(args, "--set", set, "--policy", "kernel-follow,device-sink")...))
		assert.Equal(t, map[string]int64{"kernel-follow": all["kernel-follow"], "device-sink": all["device-sink"]}, two, set)
		r := generated(t, "--steps", "2", "--policy", "multi-stream,overall", "--set", set)
		assert.Equal(t, []string{"multi-stream", "overall"}, []string{r.Runs[0].Policy, r.Runs[1].Policy}, set)
	}
	assert.NotEqual(t, all["overall"], all["device-sink"])
}

// generated is the report of a generate.
func generated(t *testing.T, args ...string) report {
	t.Helper()
	var r report
	strictJSON(t, fine(t, append([]string{"generate", "--json"}, args...)...), &r)
	return r
}

// --caches beats the variable, and the variable counts where it is left out.
func TestCachesBeatTheVariable(t *testing.T) {
	cleanEnv(t)
	const none = "ATB_OPSRUNNER_KERNEL_CACHE_TYPE=0"
	file := write(t, "config.json", []byte(small))
	for _, c := range []struct {
		args []string
		on   bool
	}{
		{nil, true},
		{[]string{"--caches", "on"}, true},
		{[]string{"--caches", "off"}, false},
		{[]string{"--set", none}, false},
		{[]string{"--caches", "on", "--set", none}, true},
		{[]string{"--caches", "off", "--set", "ATB_OPSRUNNER_KERNEL_CACHE_TYPE=3"}, false},
	} {
		g := generated(t, append([]string{"--policy", "overall", "--steps", "3"}, c.args...)...).Runs[0].Cache
		assert.Equal(t, c.on, g.LocalHits+g.GlobalHits+g.Misses > 0, "generate %v", c.args)
		r := comparison(t, append([]string{"--model", file, "--steps", "1", "--policy", "overall"}, c.args...)...)
		p := r.Policies[0].Cache
		assert.Equal(t, c.on, p.LocalHits+p.GlobalHits+p.Misses > 0, "policies %v", c.args)
		assert.Equal(t, c.on, r.Caches, "policies %v", c.args)
	}
	local := generated(t, "--policy", "overall", "--steps", "3", "--caches", "on", "--set", "ATB_OPSRUNNER_KERNEL_CACHE_TYPE=1").Runs[0].Cache
	assert.Zero(t, local.GlobalHits, "on keeps the levels that the variable names")
}

// policies reads the environment as the other commands do.
func TestPoliciesReadTheEnvironment(t *testing.T) {
	cleanEnv(t)
	file := write(t, "config.json", []byte(small))
	args := []string{"policies", "--json", "--model", file, "--steps", "1", "--policy", "overall"}
	plain := fine(t, args...)
	t.Setenv("ATB_RUNNER_POOL_SIZE", "x")
	refused(t, badCase{args: args, says: `ATB_RUNNER_POOL_SIZE="x"`})
	t.Setenv("ATB_RUNNER_POOL_SIZE", "8")
	t.Setenv("ATB_OPSRUNNER_KERNEL_CACHE_TYPE", "0")
	assert.NotEqual(t, plain, fine(t, args...))
	assert.NotContains(t, fine(t, args...), `"caches": true`)
	assert.Contains(t, fine(t, append(args, "--caches", "on")...), `"caches": true`)
	t.Setenv("ATB_TILING_POLICY", "multi-stream")
	assert.Contains(t, fine(t, args...), `"policy": "overall"`)
}

// A row that is not what device-sink is for says so.
func TestPoliciesNoteFallbacks(t *testing.T) {
	cleanEnv(t)
	file := write(t, "config.json", []byte(small))
	args := []string{"--model", file, "--steps", "1", "--policy", "overall,device-sink"}
	set := []string{"--set", "ATB_STREAM_SYNC_EVERY_KERNEL_ENABLE=1"}
	const want = "note: device-sink: launched by the host: "
	page := filepath.Join(t.TempDir(), "page.html")
	text := fine(t, append(append([]string{"policies", "--html", page}, args...), set...)...)
	assert.Contains(t, text, want)
	assert.Contains(t, read(t, page), `<p class="note">device-sink: launched by the host: `)
	assert.Contains(t, text, "graph: ATB_STREAM_SYNC_EVERY_KERNEL_ENABLE=1 waits after single kernels")
	assert.NotContains(t, fine(t, append([]string{"policies"}, args...)...), "note:")
	r := comparison(t, append(args, set...)...)
	assert.Empty(t, r.Policies[0].Fallbacks)
	require.Len(t, r.Policies[1].Fallbacks, 1)
	assert.Positive(t, r.Policies[1].Fallbacks[0].Times)
}
