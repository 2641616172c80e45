package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/bench/compare"
	"goatb/tiling"
)

// small is a model that every profile and the CPU run in no time.
const small = `{"hidden_size":64,"intermediate_size":96,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"vocab_size":100}`

func comparison(t *testing.T, args ...string) policiesReport {
	t.Helper()
	cleanEnv(t)
	r := policiesReport{Result: &compare.Result{}}
	strictJSON(t, fine(t, append([]string{"policies", "--json"}, args...)...), &r)
	require.Equal(t, 1, r.Schema)
	require.Equal(t, "policies", r.Command)
	for _, p := range r.Policies {
		require.Equal(t, p.StepNs-p.DeviceBusyNs, p.Idle.Sum(), p.Policy)
	}
	return r
}

func TestPolicies(t *testing.T) {
	for _, prof := range []string{"ascend910b", "ascend910b4", "ascend310p", "gpu"} {
		r := comparison(t, "--profile", prof, "--model", "qwen3-0.6b", "--batch", "4", "--context", "300", "--steps", "2")
		assert.Equal(t, []any{prof, "qwen3-0.6b", 4, 300, 2}, []any{r.Profile, r.Model, r.Batch, r.Context, r.Steps})
		var names []string
		for _, p := range r.Policies {
			names = append(names, p.Policy)
			assert.Positive(t, p.StepNs)
			if p.Policy == "device-sink" {
				assert.Positive(t, p.DeviceTilings, "nothing falls back to the host")
				assert.Zero(t, p.HostTilings)
			}
		}
		var want []string
		for _, p := range tiling.Policies() {
			want = append(want, p.Name())
		}
		assert.Equal(t, want, names, "multi-stream runs on every profile")
	}
}

func TestPoliciesOnCPU(t *testing.T) {
	file := write(t, "config.json", []byte(small))
	r := comparison(t, "--profile", "cpu", "--model", file, "--steps", "2", "--workers", "2", "--context", "40")
	assert.Equal(t, "cpu", r.Profile)
	assert.True(t, r.Numerics)
	for _, p := range r.Policies {
		assert.Positive(t, p.DeviceBusyNs)
	}
}

func TestPoliciesFlags(t *testing.T) {
	file := write(t, "config.json", []byte(small))
	base := comparison(t, "--model", file, "--policies", "kernel-follow", "--steps", "1")
	slow := comparison(t, "--model", file, "--policies", "kernel-follow", "--steps", "1", "--set-cost", "launch_host=50,framework_host=20")
	assert.Greater(t, slow.Policies[0].StepNs, base.Policies[0].StepNs+2*15*50_000)
	assert.NotEqual(t, base.ID, slow.ID)
	off := comparison(t, "--model", file, "--policies", "kernel,kernel-follow", "--steps", "1", "--caches", "off")
	require.Len(t, off.Policies, 1)
	assert.Equal(t, off.Policies[0].Kernels, off.Policies[0].HostTilings)
	on := comparison(t, "--model", file, "--numerics", "on", "--policies", "kernel-follow", "--steps", "1")
	assert.Equal(t, base.Policies[0].StepNs, on.Policies[0].StepNs, "values take no time")
	prompt := comparison(t, "--model", file, "--prompt", "40", "--steps", "1", "--policies", "overall")
	assert.Equal(t, []int{40, 0}, []int{prompt.Prompt, prompt.Context})
	tp := comparison(t, "--model", "llama-3-8b", "--tp", "8", "--steps", "1", "--policies", "overall", "--dtype", "bf16")
	assert.Equal(t, 8, tp.Parallel)
	whole := comparison(t, "--model", file, "--whole", "--steps", "1", "--policies", "overall")
	assert.EqualValues(t, 1, whole.Policies[0].SetupHits)
	vars := comparison(t, "--model", file, "--steps", "1", "--policies", "overall", "--set", "ATB_OPSRUNNER_KERNEL_CACHE_TYPE=0")
	assert.Zero(t, vars.Policies[0].Cache)
	sens := comparison(t, "--model", file, "--steps", "1", "--policies", "overall,kernel-follow", "--sensitivity")
	assert.NotEmpty(t, sens.Sensitivity)
	assert.Len(t, sens.Conclusions, 1)
}

func TestPoliciesText(t *testing.T) {
	cleanEnv(t)
	file := write(t, "config.json", []byte(small))
	text := fine(t, "policies", "--model", file, "--steps", "1", "--sensitivity")
	for _, want := range []string{"kernel-follow", "device-sink", "idle: tiling", "deepest queue", "op_wrapper_host", "is faster than"} {
		assert.Contains(t, text, want)
	}
	assert.Contains(t, fine(t, "policies", "--model", file, "--steps", "1"), "not a measurement of your device")
	assert.NotContains(t, fine(t, "policies", "--model", file, "--steps", "1", "--profile", "cpu"), "estimates")
	costs := fine(t, "policies", "--list-costs", "--profile", "gpu", "--set-cost", "cores=7")
	assert.Contains(t, costs, "not a measurement of your device")
	assert.Regexp(t, `cores +7 +given`, strings.ReplaceAll(costs, "  ", " "))
}

// TestPoliciesTwice gives the same bytes, timelines too.
func TestPoliciesTwice(t *testing.T) {
	cleanEnv(t)
	var texts, traces, pages [2]string
	for i := range texts {
		file, page := filepath.Join(t.TempDir(), "trace.json"), filepath.Join(t.TempDir(), "page.html")
		texts[i] = fine(t, "policies", "--json", "--sensitivity", "--model", "qwen2.5-0.5b", "--steps", "2", "--trace", file, "--html", page)
		traces[i], pages[i] = read(t, file), read(t, page)
	}
	require.Equal(t, texts[0], texts[1])
	require.True(t, pages[0] == pages[1], "the pages differ")
	require.True(t, traces[0] == traces[1], "the timelines differ")
	for _, want := range []string{`"name":"host"`, `"name":"stream 0"`, `"name":"AICPU"`, `"name":"copy engine to device"`, `"ph":"s"`, `"ph":"C"`, "lookup matmul"} {
		require.True(t, strings.Contains(traces[0], want), want)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(b)
}

// TestPoliciesPage: the page alone needs no --trace, and shows what was printed.
func TestPoliciesPage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	r := comparison(t, "--model", write(t, "config.json", []byte(small)), "--steps", "2", "--html", page)
	text := read(t, page)
	for _, want := range []string{"<!DOCTYPE html>", r.ID, `id="timeline"`, "All 2 steps", fmt.Sprintf(`<td data-field="kernels">%d</td>`, r.Policies[0].Kernels)} {
		assert.Contains(t, text, want)
	}
}

func TestPoliciesRefused(t *testing.T) {
	cleanEnv(t)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--profile", "tpu"}, "want one of ascend910b"},
		{[]string{"--model", "gpt-17"}, "want one of"},
		{[]string{"--tp", "7"}, "does not divide"},
		{[]string{"--policies", "best"}, "unknown tiling policy"},
		{[]string{"--set-cost", "launch_host"}, "NAME=NUMBER"},
		{[]string{"--set-cost", "launch_host=x"}, "NAME=NUMBER"},
		{[]string{"--set-cost", "launch=1"}, "launch_host"},
		{[]string{"--set-cost", "bogus=1"}, `there is no cost parameter "bogus", perhaps one of cores, `},
		{[]string{"--set-cost", "mem_eff=3"}, "0.01 to 1"},
		{[]string{"--profile", "cpu", "--set-cost", "cores=1"}, "no costs"},
		{[]string{"--profile", "cpu", "--sensitivity"}, "cost profiles"},
		{[]string{"--steps", "0"}, "steps"},
		{[]string{"--batch", "-1"}, "batch"},
		{[]string{"--workers", "-1"}, "--workers"},
		{[]string{"--prompt", "8", "--context", "16"}, "--context: a step of --prompt tokens has no context"},
		{[]string{"--set", "X"}, "NAME=VALUE"},
		{[]string{"--model", "llama-2-7b", "--batch", "64", "--context", "4000"}, "want"},
		{[]string{"--trace", "/no/such/folder/x"}, "--trace: create /no/such/folder/x: no such file"},
		{[]string{"--html", "/no/such/folder/x"}, "--html: create /no/such/folder/x: no such file"},
		{[]string{"--html", "x", "--trace", "x"}, "want two files"},
	} {
		r := atbRun(t, append([]string{"policies"}, tt.args...)...)
		assert.Equal(t, exitUsage, r.code, "%v", tt.args)
		assert.Contains(t, r.stderr, tt.want, "%v", tt.args)
	}
}
