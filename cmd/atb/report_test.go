package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPlanJSON(t *testing.T) {
	file := write(t, "plan.csv", []byte(buffers))
	svg, csv := filepath.Join(t.TempDir(), "plan.svg"), filepath.Join(t.TempDir(), "plan.csv")
	var r planReport
	strictJSON(t, fine(t, "plan", "--json", "--csv", csv, "--svg", svg, file), &r)
	require.Equal(t, 1, r.Schema)
	require.Equal(t, "plan", r.Command)
	require.Len(t, r.Plans, 1)
	x := r.Plans[0]
	require.Positive(t, x.TimeNs)
	x.TimeNs = 0
	require.Equal(t, onePlan{File: file, N: 3, Arena: 150, LowerBound: 150, Ratio: 1, Optimal: true, Method: x.Method, Valid: true,
		Peak: peakReport{At: 1, IDs: []string{"a", "b"}}, Offsets: []offsetItem{{"a", 0}, {"b", 100}, {"c", 0}}}, x)
	require.NotEmpty(t, x.Method)
	isXML(t, svg)

	var brute planReport
	strictJSON(t, fine(t, "plan", "--json", file, "--solver", "0"), &brute)
	require.Equal(t, int64(250), brute.Plans[0].Arena)
	require.InDelta(t, 250./150, brute.Plans[0].Ratio, 1e-9)
	require.False(t, brute.Plans[0].Optimal)
	text, err := os.ReadFile(csv)
	require.NoError(t, err)
	require.Equal(t, "id,lower,upper,size,offset\na,0,2,100,0\nb,1,3,50,100\nc,2,4,100,0\n", string(text))
}

// Buffers with an alignment or a place of their own, and what does not fit.
func TestPlanPlaces(t *testing.T) {
	file := write(t, "plan.csv", []byte("id,lower,upper,size,align,offset,fixed\na,0,2,100,,256,1\nb,0,2,50,64,,\nc,0,2,10,,7,0\n"))
	var r planReport
	strictJSON(t, fine(t, "plan", "--json", file), &r)
	require.True(t, r.Plans[0].Valid)
	require.Equal(t, offsetItem{"a", 256}, r.Plans[0].Offsets[0])
	require.Zero(t, r.Plans[0].Offsets[1].Offset%64)
	require.Equal(t, int64(356), r.Plans[0].Arena)
	require.Equal(t, exitUsage, atbRun(t, "plan", file, "--solver", "1").code, "online solvers keep no places")
}

// Two runs with bounds in nodes print the same plan.
func TestPlanTwice(t *testing.T) {
	var text strings.Builder
	text.WriteString("id,lower,upper,size\n")
	for i := range 60 {
		fmt.Fprintf(&text, "%d,%d,%d,%d\n", i, i*7%23, i*7%23+1+i%9, 1+i*i%17)
	}
	file := write(t, "plan.csv", []byte(text.String()))
	var a, b planReport
	strictJSON(t, fine(t, "plan", "--json", "--nodes", "2000", file), &a)
	strictJSON(t, fine(t, "plan", "--json", "--nodes", "2000", file), &b)
	a.Plans[0].TimeNs, b.Plans[0].TimeNs = 0, 0
	require.Equal(t, a, b)
}

func isXML(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	d := xml.NewDecoder(strings.NewReader(string(b)))
	for {
		_, err := d.Token()
		if err == io.EOF {
			return
		}
		require.NoError(t, err)
	}
}

func TestPlanCapacity(t *testing.T) {
	file := write(t, "plan.csv", []byte(buffers))
	fine(t, "plan", file, "--capacity", "150")
	r := atbRun(t, "plan", file, "testdata/nothing.csv", "--capacity", "149", "--json")
	require.Equal(t, exitFailed, r.code)
	require.Equal(t, "atb: 1 of 2 plans exceed the capacity of 149 bytes: failed\n", r.stderr)
	var p planReport
	strictJSON(t, r.stdout, &p)
	require.Len(t, p.Plans, 2)
	r = atbRun(t, "plan", file, "--nodes", "10", "--deadline", "1s", "--threads", "2")
	require.Equal(t, exitOK, r.code)
	require.Empty(t, r.stderr)
}

func TestGraphJSON(t *testing.T) {
	cleanEnv(t)
	text := fine(t, "graph", "--format", "json", "testdata/attention.json")
	require.Equal(t, text, fine(t, "graph", "--json", "--plan", "testdata/attention.json"))
	var r graphReport
	strictJSON(t, text, &r)
	require.Equal(t, 1, r.Schema)
	require.Equal(t, "graph", r.Command)
	var ops, names []string
	for i, o := range r.Operations {
		require.Equal(t, i, o.ID)
		require.NotEmpty(t, o.Param)
		ops = append(ops, o.Op)
	}
	require.Equal(t, []string{"LinearOperation", "LinearOperation", "ReshapeAndCacheOperation", "LinearOperation", "PagedAttentionOperation"}, ops)
	require.Equal(t, []string{"x", "wv"}, r.Operations[0].In)
	require.Equal(t, []string{"v"}, r.Operations[0].Out)
	for i, k := range r.Kernels {
		require.Equal(t, i, k.ID)
		require.Contains(t, k.Kernel, "/")
		require.Positive(t, k.BlockDim, k.Kernel)
		require.GreaterOrEqual(t, r.Plan.Scratch, k.Scratch)
		require.NotContains(t, k.Reads, "-")
		names = append(names, k.Operation)
	}
	require.Equal(t, []string{"v", "k", "write", "q", "attend"}, names)
	require.Equal(t, []string{"q'", "k_cache", "v_cache", "tables"}, r.Kernels[4].Reads)
	require.Equal(t, []string{"y"}, r.Kernels[4].Writes)
	require.Equal(t, int64(1024), r.Plan.Arena)
	require.Equal(t, int64(1024), r.Plan.LowerBound)
	base := r.Plan.Scratch
	require.Equal(t, []bufferEntry{{"v", 96, 0, 2, base}, {"k", 96, 1, 2, base + 512}, {"q", 192, 3, 4, base}}, r.Plan.Buffers)
}

// TestGraphWhy shows what a shape turns off, as text and as JSON.
func TestGraphWhy(t *testing.T) {
	cleanEnv(t)
	file := write(t, "g.json", []byte(`{"name": "g", "inputs": [{"name": "x", "dtype": "f32", "shape": [4, 6]}], "outputs": ["y"],
		"nodes": [{"name": "soft", "op": "SoftmaxOperation", "param": {"axes": [0]}, "in": ["x"], "out": ["y"]}]}`))
	plain := fine(t, "graph", file)
	require.NotContains(t, plain, "instead of")
	text := fine(t, "graph", "--why", file)
	require.True(t, strings.HasPrefix(text, plain))
	require.Contains(t, text, "0 soft: softmax/columns instead of softmax/rows: slices have a stride of 6")
	require.Contains(t, fine(t, "graph", "--why", "--plan", "testdata/attention.json"), "attend: paged/go: keys are gathered: want blocks of 8 positions or more, got 2")
	var r graphReport
	strictJSON(t, fine(t, "graph", "--json", file), &r)
	require.Equal(t, "softmax/rows", r.Kernels[0].Refused[0].Kernel)
	require.Contains(t, r.Kernels[0].Refused[0].Reason, "slices have a stride of 6")
	strictJSON(t, fine(t, "graph", "--json", "testdata/attention.json"), &r)
	require.Len(t, r.Kernels[4].Slower, 2)
	for _, other := range [][]string{{"--tasks"}, {"--format", "dot"}, {"--format", "svg"}} {
		bad := atbRun(t, append([]string{"graph", "--why", file}, other...)...)
		assert.Equal(t, exitUsage, bad.code, other)
		assert.Contains(t, bad.stderr, "--why")
	}
}

// TestGraphWantsHostValues asks for the tilings of a graph whose lengths are
// not there.
func TestGraphWantsHostValues(t *testing.T) {
	b, err := os.ReadFile("testdata/attention.json")
	require.NoError(t, err)
	for name, c := range map[string]struct{ values, says string }{
		"none":       {"", "contexts"},
		"a negative": {`, "values": [1, -3, 4]`, "-3"},
		"too long":   {`, "values": [1, 3, 5]`, "5"},
		"too few":    {`, "values": [1, 3]`, "want 3 values"},
	} {
		file := write(t, "g.json", []byte(strings.Replace(string(b), `, "values": [1, 3, 4]`, c.values, 1)))
		r := atbRun(t, "graph", "--json", file)
		assert.Equal(t, exitUsage, r.code, name)
		assert.Contains(t, r.stderr, c.says, name)
		assert.Empty(t, r.stdout, name)
	}
}

func TestGraphSVG(t *testing.T) {
	svg := fine(t, "graph", "--format", "svg", "testdata/attention.json")
	require.True(t, strings.HasPrefix(svg, "<svg"))
	isXML(t, write(t, "g.svg", []byte(svg)))
}

func TestGraphOfAModel(t *testing.T) {
	cleanEnv(t)
	g := stories(t)
	var r graphReport
	strictJSON(t, fine(t, "graph", "--json", "--model", g.dir), &r)
	require.Len(t, r.Operations, 11)
	require.GreaterOrEqual(t, len(r.Kernels), 11)
	require.Contains(t, fine(t, "graph", "--model", g.dir), "PagedAttention")
}

func TestEnvJSON(t *testing.T) {
	cleanEnv(t)
	t.Setenv("ATB_RUNNER_POOL_SIZE", "7")
	t.Setenv("ATB_OPSRUNNER_KERNEL_CACHE_GLOABL_COUNT", "9")
	var r envReport
	strictJSON(t, fine(t, "env", "--json", "--set", "ATB_TILING_POLICY=overall"), &r)
	require.Equal(t, 1, r.Schema)
	require.Equal(t, "env", r.Command)
	require.Equal(t, []string{}, r.Errors)
	seen := map[string]envVar{}
	for _, v := range r.Vars {
		seen[v.Name] = v
		require.NotEmpty(t, v.Meaning)
		require.NotEmpty(t, v.Range)
	}
	require.Len(t, seen, len(r.Vars))
	seven, nine, overall := "7", "9", "overall"
	for _, want := range []envVar{
		{Name: "ATB_RUNNER_POOL_SIZE", Value: &seven, Source: "ATB_RUNNER_POOL_SIZE", Default: "64", Effective: "7"},
		{Name: "ATB_OPSRUNNER_KERNEL_CACHE_GLOBAL_COUNT", Value: &nine, Source: "ATB_OPSRUNNER_KERNEL_CACHE_GLOABL_COUNT", Default: "5", Effective: "9"},
		{Name: "ATB_TILING_POLICY", Value: &overall, Source: "ATB_TILING_POLICY", Default: "kernel-follow", Effective: "overall"},
		{Name: "ATB_HOST_TILING_BUFFER_BLOCK_NUM", Source: "default", Default: "128", Effective: "128"},
	} {
		got := seen[want.Name]
		want.Range, want.Meaning = got.Range, got.Meaning
		require.Equal(t, want, got)
	}
}

// TestEnvListsEveryBadValue: status 2, all errors, and the good values as they
// are.
func TestEnvListsEveryBadValue(t *testing.T) {
	cleanEnv(t)
	for name, value := range map[string]string{"ATB_RUNNER_POOL_SIZE": "1025", "ATB_TILING_POLICY": "quick", "LCAL_COMM_ID": "here", "ATB_STREAM_SYNC_EVERY_KERNEL_ENABLE": "true", "ATB_HOST_TILING_BUFFER_BLOCK_NUM": "200"} {
		t.Setenv(name, value)
	}
	r := atbRun(t, "env", "--json")
	require.Equal(t, exitUsage, r.code)
	var e envReport
	strictJSON(t, r.stdout, &e)
	require.Len(t, e.Errors, 4)
	for _, bad := range []string{`ATB_RUNNER_POOL_SIZE="1025"`, `ATB_TILING_POLICY="quick"`, `LCAL_COMM_ID="here"`, `ATB_STREAM_SYNC_EVERY_KERNEL_ENABLE="true"`} {
		require.True(t, slices.ContainsFunc(e.Errors, func(s string) bool { return strings.Contains(s, bad) }), bad)
		require.Contains(t, r.stderr, bad)
	}
	for _, v := range e.Vars {
		switch v.Name {
		case "ATB_HOST_TILING_BUFFER_BLOCK_NUM":
			require.Equal(t, "200", v.Effective)
		case "ATB_RUNNER_POOL_SIZE":
			require.Equal(t, "64", v.Effective)
			require.Equal(t, "1025", *v.Value)
		}
	}
	require.Equal(t, exitUsage, atbRun(t, "env").code)
}

// TestEnvFlagsShadow: a flag beats the environment's other spellings and the
// older names of the policy.
func TestEnvFlagsShadow(t *testing.T) {
	cleanEnv(t)
	t.Setenv("ATB_OPSRUNNER_KERNEL_CACHE_GLOABL_COUNT", "9")
	t.Setenv("ATB_USE_TILING_COPY_STREAM", "1")
	out := fine(t, "env", "--set", "ATB_OPSRUNNER_KERNEL_CACHE_GLOBAL_COUNT=3", "--set", "ATB_TILING_POLICY=overall")
	require.Regexp(t, `GLOBAL_COUNT +3 `, out)
	require.Regexp(t, `ATB_TILING_POLICY +overall `, out)
}
