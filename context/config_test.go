package context_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/mempool"
	"goatb/status"
)

// env is an environment of the given variables.
func env(pairs ...string) func(string) (string, bool) {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) {
		v, ok := m[name]
		return v, ok
	}
}

// value returns what a configuration has for a variable.
func value(c atbctx.Config, name string) atbctx.Variable {
	for _, v := range c.Variables() {
		if v.Name == name || slices.Contains(v.Aliases, name) {
			return v
		}
	}
	return atbctx.Variable{}
}

const (
	bools = "0 1"
	// notBools, notInts: what users write by mistake.
	notBools = "|true|2|-1| 1|1 |01|on"
	notInts  = "|abc|-1| 1|1 |+1|0x10|1.0|99999999999999999999"
)

// rows are the variables of the specification: default, good values, bad ones.
var rows = []struct{ name, def, good, bad string }{
	{"ATB_TILING_POLICY", "kernel-follow", "overall multi-stream kernel-follow device-sink", "|Overall|sink| overall|0"},
	{"ATB_OPSRUNNER_KERNEL_CACHE_TYPE", "3", "0 1 2 3", notInts + "|4"},
	{"ATB_OPSRUNNER_KERNEL_CACHE_LOCAL_COUNT", "1", "1 2 1024", notInts + "|0|1025"},
	{"ATB_OPSRUNNER_KERNEL_CACHE_GLOBAL_COUNT", "5", "1 2 1024", notInts + "|0|1025"},
	{"ATB_OPSRUNNER_KERNEL_CACHE_GLOABL_COUNT", "5", "1 2 1024", notInts + "|0|1025"},
	{"ATB_OPSRUNNER_KERNEL_CACHE_TILING_SIZE", "10240", "1 10240 1073741824", notInts + "|0|1073741825"},
	{"ATB_OPSRUNNER_SETUP_CACHE_ENABLE", "1", bools, notBools},
	{"ATB_RUNNER_POOL_SIZE", "64", "0 1 1024", notInts + "|1025"},
	{"ATB_HOST_TILING_BUFFER_BLOCK_NUM", "128", "128 129 1024", notInts + "|0|127|1025"},
	{"ATB_DEVICE_TILING_BUFFER_BLOCK_NUM", "32", "32 33 1024", notInts + "|0|31|1025"},
	{"ATB_WORKSPACE_MEM_ALLOC_GLOBAL", "1", bools, notBools},
	{"ATB_WORKSPACE_MEM_ALLOC_ALG_TYPE", "4", "0 1 2 3 4", notInts + "|5|optimal"},
	{"ATB_STREAM_SYNC_EVERY_KERNEL_ENABLE", "0", bools, notBools},
	{"ATB_STREAM_SYNC_EVERY_RUNNER_ENABLE", "0", bools, notBools},
	{"ATB_STREAM_SYNC_EVERY_OPERATION_ENABLE", "0", bools, notBools},
	{"ATB_COMPARE_TILING_EVERY_KERNEL", "0", bools, notBools},
	{"ATB_MATMUL_SHUFFLE_K_ENABLE", "1", bools, notBools},
	{"ASDOPS_QUANT_MIN_NEG_127", "0", bools, notBools},
	{"ATB_SHARE_MEMORY_NAME_SUFFIX", "", "x " + strings.Repeat("y", 12800), strings.Repeat("y", 12801)},
	{"ATB_HOME_PATH", "", "/opt/atb " + strings.Repeat("y", 12800), strings.Repeat("y", 12801)},
	{"LCCL_DETERMINISTIC", "0", bools, notBools},
	{"LCCL_PARALLEL", "0", bools, notBools},
	{"LCAL_COMM_ID", "127.0.0.1:10067", "10.0.0.1:1 255.255.255.255:65535", "|127.0.0.1|:10067|localhost:1|[::1]:1|127.0.0.1:65536|127.0.0.1:-1|1.2.3:4"},
	{"ATB_LAUNCH_KERNEL_WITH_TILING", "1", bools, notBools},
	{"ATB_USE_TILING_COPY_STREAM", "0", bools, notBools},
}

func TestVariables(t *testing.T) {
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			c, err := atbctx.ConfigFromEnv(env())
			require.NoError(t, err)
			v := value(c, r.name)
			assert.Equal(t, r.def, v.Value)
			assert.Equal(t, r.def, v.Default)
			assert.Equal(t, "default", v.Source)
			assert.NotEmpty(t, v.Range)
			assert.NotEmpty(t, v.Meaning)
			for _, good := range strings.Fields(r.good) {
				c, err := atbctx.ConfigFromEnv(env(r.name, good))
				require.NoError(t, err, good)
				v := value(c, r.name)
				assert.Equal(t, good, v.Value)
				assert.Contains(t, v.Source, r.name)
				require.NoError(t, c.Validate())
				onlyChanged(t, c, r.name)
			}
			for _, bad := range strings.Split(r.bad, "|") {
				c, err := atbctx.ConfigFromEnv(env(r.name, bad))
				require.ErrorIs(t, err, status.ErrInvalidParam, "%q", bad)
				assert.ErrorContains(t, err, r.name)
				assert.ErrorContains(t, err, fmt.Sprintf("%q", bad))
				assert.Equal(t, atbctx.DefaultConfig(), c, "nothing half applied")
			}
		})
	}
}

// onlyChanged checks that no variable but one, and those that name the policy
// with it, has another value than its default.
func onlyChanged(t *testing.T, c atbctx.Config, name string) {
	t.Helper()
	policy := []string{"ATB_TILING_POLICY", "ATB_LAUNCH_KERNEL_WITH_TILING", "ATB_USE_TILING_COPY_STREAM"}
	for _, v := range c.Variables() {
		related := v.Name == name || slices.Contains(v.Aliases, name) || slices.Contains(policy, name) && slices.Contains(policy, v.Name)
		assert.True(t, related || v.Value == v.Default, "%s changed with %s", v.Name, name)
	}
}

// The table of variables is that of the specification.
func TestVariablesAreThoseOfTheSpecification(t *testing.T) {
	text := readShared(t, "spec", "runtime.md")
	_, text, ok := strings.Cut(text, "### 5.1")
	require.True(t, ok)
	text, _, _ = strings.Cut(text, "Resolution of the policy")
	want := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| ((?:ATB|LCCL|LCAL|ASDOPS)_[A-Z0-9_]+)`).FindAllStringSubmatch(text, -1) {
		want[m[1]] = true
	}
	got := map[string]bool{}
	for _, r := range rows {
		got[r.name] = true
	}
	delete(got, "ATB_OPSRUNNER_KERNEL_CACHE_GLOBAL_COUNT") // the specification writes it in short
	assert.Equal(t, want, got)
	c := atbctx.DefaultConfig()
	for name := range maps.Keys(want) {
		assert.NotEmpty(t, value(c, name).Name, name)
	}
}

// readShared reads a file of the specifications beside the module.
func readShared(t *testing.T, parts ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{"..", "..", "shared"}, parts...)...)
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		t.Skipf("no specifications at %s", path)
	}
	require.NoError(t, err)
	return string(b)
}

func TestBothSpellings(t *testing.T) {
	const good, misspelt = "ATB_OPSRUNNER_KERNEL_CACHE_GLOBAL_COUNT", "ATB_OPSRUNNER_KERNEL_CACHE_GLOABL_COUNT"
	c, err := atbctx.ConfigFromEnv(env(good, "7", misspelt, "7"))
	require.NoError(t, err)
	assert.Equal(t, 7, c.GlobalSlots)
	_, err = atbctx.ConfigFromEnv(env(good, "7", misspelt, "8"))
	require.ErrorIs(t, err, status.ErrInvalidParam)
	assert.ErrorContains(t, err, good)
	assert.ErrorContains(t, err, misspelt)
}

// Every row of the specification's table of policies.
func TestPolicies(t *testing.T) {
	const p, w, s = "ATB_TILING_POLICY", "ATB_LAUNCH_KERNEL_WITH_TILING", "ATB_USE_TILING_COPY_STREAM"
	for _, tt := range []struct {
		env  []string
		want string // "" is an error
	}{
		{nil, "kernel-follow"},
		{[]string{w, "1"}, "kernel-follow"},
		{[]string{s, "0"}, "kernel-follow"},
		{[]string{w, "1", s, "0"}, "kernel-follow"},
		{[]string{w, "0"}, "overall"},
		{[]string{w, "0", s, "0"}, "overall"},
		{[]string{s, "1"}, "multi-stream"},
		{[]string{w, "0", s, "1"}, "multi-stream"},
		{[]string{w, "1", s, "1"}, ""},
		{[]string{p, "kernel"}, "kernel-follow"},
		{[]string{p, "overall"}, "overall"},
		{[]string{p, "multi-stream"}, "multi-stream"},
		{[]string{p, "overall", w, "0"}, "overall"},
		{[]string{p, "overall", w, "0", s, "0"}, "overall"},
		{[]string{p, "multi-stream", s, "1"}, "multi-stream"},
		{[]string{p, "kernel", w, "1", s, "0"}, "kernel-follow"},
		{[]string{p, "overall", w, "1"}, ""},
		{[]string{p, "overall", s, "1"}, ""},
		{[]string{p, "overall", s, "0"}, ""},
		{[]string{p, "multi-stream", w, "1"}, ""},
		{[]string{p, "multi-stream", w, "0"}, ""},
		{[]string{p, "kernel-follow", w, "0"}, ""},
		{[]string{p, "kernel-follow", w, "1", s, "1"}, ""},
	} {
		c, err := atbctx.ConfigFromEnv(env(tt.env...))
		if tt.want != "" {
			require.NoError(t, err, "%v", tt.env)
			assert.Equal(t, tt.want, c.Policy, "%v", tt.env)
			continue
		}
		require.ErrorIs(t, err, status.ErrInvalidParam, "%v", tt.env)
		for i := 0; i < len(tt.env); i += 2 {
			assert.ErrorContains(t, err, tt.env[i], "%v", tt.env)
		}
	}
}

// All bad values are listed in one error.
func TestAllBadValuesAtOnce(t *testing.T) {
	var pairs []string
	for _, r := range rows {
		if r.name != "ATB_OPSRUNNER_KERNEL_CACHE_GLOABL_COUNT" {
			pairs = append(pairs, r.name, strings.Split(r.bad, "|")[0])
		}
	}
	_, err := atbctx.ConfigFromEnv(env(pairs...))
	require.ErrorIs(t, err, status.ErrInvalidParam)
	for i := 0; i < len(pairs); i += 2 {
		assert.ErrorContains(t, err, pairs[i])
	}
	_, err = atbctx.ConfigFromEnv(nil)
	assert.ErrorIs(t, err, status.ErrInvalidParam)
}

func TestValidate(t *testing.T) {
	var zero atbctx.Config
	err := zero.Validate()
	require.ErrorIs(t, err, status.ErrInvalidParam)
	for _, name := range []string{"ATB_TILING_POLICY", "LOCAL_COUNT", "GLOBAL_COUNT", "TILING_SIZE", "HOST_TILING", "DEVICE_TILING", "LCAL_COMM_ID"} {
		assert.ErrorContains(t, err, name)
	}
	c := atbctx.DefaultConfig()
	require.NoError(t, c.Validate())
	c.Solver = mempool.SolverType(9)
	assert.ErrorContains(t, c.Validate(), "ATB_WORKSPACE_MEM_ALLOC_ALG_TYPE")
}
