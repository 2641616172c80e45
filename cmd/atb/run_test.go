package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// result is what a command line left behind.
type result struct {
	code           int
	stdout, stderr string
}

func atbRun(t testing.TB, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, output{&stdout, &stderr})
	return result{code, stdout.String(), stderr.String()}
}

// strictJSON decodes one object and refuses keys that are not documented.
func strictJSON(t testing.TB, text string, to any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(to))
	require.False(t, d.More())
}

func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const mlp = `{"name": "mlp",
 "inputs": [{"name": "x", "dtype": "f32", "shape": [2, 4]}, {"name": "w", "dtype": "f32", "shape": [6, 4]}, {"name": "v", "dtype": "f32", "shape": [4, 3]}],
 "outputs": ["y"],
 "nodes": [
  {"name": "down", "op": "LinearOperation", "param": {"hasBias": false}, "in": ["a", "v"], "out": ["y"]},
  {"name": "up", "op": "LinearOperation", "param": {"hasBias": false}, "in": ["x", "w"], "out": ["h"]},
  {"name": "act", "op": "ActivationOperation", "param": {"activationType": 6}, "in": ["h"], "out": ["a"]}]}`

const buffers = "id,lower,upper,size\na,0,2,100\nb,1,3,50\nc,2,4,100\n"

// TestExitStatus lists what ends with which status, and what standard error
// says.
func TestExitStatus(t *testing.T) {
	graph := write(t, "mlp.json", mlp)
	plan := write(t, "plan.csv", buffers)
	cyclic := write(t, "cycle.json", `{"name":"c","inputs":[{"name":"x","dtype":"f32","shape":[2,2]}],"outputs":["y"],"nodes":[
		{"name":"p","op":"ElewiseOperation","param":{"elewiseType":8},"in":["x","b"],"out":["a"]},
		{"name":"q","op":"ElewiseOperation","param":{"elewiseType":8},"in":["x","a"],"out":["b"]},
		{"name":"r","op":"ElewiseOperation","param":{"elewiseType":8},"in":["a","b"],"out":["y"]}]}`)
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"help", []string{"--help"}, exitOK, ""},
		{"no command", nil, exitUsage, "expected one of"},
		{"unknown command", []string{"fly"}, exitUsage, "unexpected argument fly"},
		{"unknown flag", []string{"env", "--fast"}, exitUsage, "unknown flag --fast"},
		{"plan", []string{"plan", plan}, exitOK, ""},
		{"capacity met", []string{"plan", plan, "--capacity", "200"}, exitOK, ""},
		{"capacity missed", []string{"plan", plan, "--capacity", "100"}, exitFailed, "1 of 1 plans exceed the capacity of 100 bytes"},
		{"no such plan", []string{"plan", "nowhere.csv"}, exitUsage, "nowhere.csv"},
		{"malformed plan", []string{"plan", write(t, "bad.csv", "id,lower,upper,size\na,0,x,4\n")}, exitUsage, "line 2"},
		{"solver out of range", []string{"plan", plan, "--solver", "5"}, exitUsage, "want 0 to 4, got 5"},
		{"graph", []string{"graph", graph, "--set", "ATB_RUNNER_POOL_SIZE=0"}, exitOK, ""},
		{"graph without a source", []string{"graph"}, exitUsage, "want a file or --model"},
		{"cycle", []string{"graph", cyclic}, exitUsage, "cycle: p -> q -> p"},
		{"unknown operation", []string{"graph", write(t, "u.json", `{"name":"g","inputs":["x"],"outputs":["y"],"nodes":[{"op":"NoOperation","in":["x"],"out":["y"]}]}`)}, exitUsage, `unknown operation "NoOperation"`},
		{"bad parameter", []string{"graph", write(t, "p.json", strings.Replace(mlp, `"hasBias": false`, `"hasBias": 7`, 1))}, exitUsage, "down"},
		{"unknown key", []string{"graph", write(t, "k.json", `{"name":"g","input":[]}`)}, exitUsage, "unknown field"},
		{"not JSON", []string{"graph", write(t, "n.json", `{"name":`)}, exitUsage, "graph file"},
		{"shapes that do not fit", []string{"graph", write(t, "s.json", strings.Replace(mlp, "[6, 4]", "[6, 5]", 1))}, exitUsage, "up"},
		{"inputs that are no file of tensors", []string{"run", graph, "--inputs", plan, "--outputs", "out.safetensors"}, exitUsage, "header"},
		{"bad variable", []string{"env", "--set", "ATB_RUNNER_POOL_SIZE=-1", "--set", "ATB_TILING_POLICY=x"}, exitUsage, `ATB_RUNNER_POOL_SIZE="-1"`},
		{"variable without a value", []string{"env", "--set", "ATB_RUNNER_POOL_SIZE"}, exitUsage, "want NAME=VALUE"},
		{"no steps", []string{"generate", "--steps", "0"}, exitUsage, "want at least 1, got 0"},
		{"too many steps", []string{"generate", "--steps", "600"}, exitUsage, "need 600 positions, the model has 512"},
		{"unknown policy", []string{"generate", "--policy", "fast"}, exitUsage, `unknown tiling policy "fast"`},
		{"unknown device", []string{"generate", "--device", "npu"}, exitUsage, "--device"},
		{"no model there", []string{"generate", "--model", t.TempDir()}, exitUsage, "want a *.bin model"},
		{"prompt text without a tokenizer", []string{"generate", "--prompt", "hi"}, exitUsage, "--prompt-ids"},
		{"token outside the vocabulary", []string{"generate", "--prompt-ids", "1,99999", "--steps", "2"}, exitUsage, "want a token below 2048, got 99999"},
		{"trace into nowhere", []string{"generate", "--steps", "1", "--policy", "overall", "--trace", "/nowhere/t.json"}, exitUsage, "/nowhere/t.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := atbRun(t, c.args...)
			assert.Equal(t, c.code, r.code, r.stderr)
			assert.Contains(t, r.stderr, c.says)
			assert.NotContains(t, r.stderr, "goroutine")
			if c.code == exitUsage && c.name != "bad variable" {
				assert.NotContains(t, r.stdout, "{")
			}
		})
	}
}

func TestPlanJSON(t *testing.T) {
	r := atbRun(t, "plan", "--json", "--offsets", write(t, "plan.csv", buffers), write(t, "two.csv", buffers))
	require.Equal(t, exitOK, r.code, r.stderr)
	var p planReport
	strictJSON(t, r.stdout, &p)
	require.Equal(t, 1, p.Schema)
	require.Equal(t, "plan", p.Command)
	require.Len(t, p.Plans, 2)
	x := p.Plans[0]
	require.Equal(t, 3, x.N)
	require.Equal(t, int64(150), x.LowerBound)
	require.Equal(t, int64(150), x.Arena, "a and c share, b lies beside them")
	require.True(t, x.Optimal)
	require.True(t, x.Valid)
	require.Len(t, x.Offsets, 3)
	require.Equal(t, []string{"a", "b"}, x.Peak.IDs)
}

func TestGraphJSON(t *testing.T) {
	r := atbRun(t, "graph", "--json", write(t, "mlp.json", strings.Replace(mlp, "[4, 3]", "[4, 5]", 1)))
	require.Equal(t, exitUsage, r.code, "v has rows of 5, a has 3 columns: %s", r.stdout)
	require.Contains(t, r.stderr, "down")
	r = atbRun(t, "graph", "--json", write(t, "mlp.json", mlp))
	require.Equal(t, exitOK, r.code, r.stderr)
	var g graphReport
	strictJSON(t, r.stdout, &g)
	require.Equal(t, "graph", g.Command)
	require.Len(t, g.Operations, 3)
	require.Equal(t, "LinearOperation", g.Operations[0].Op, "up runs first")
	require.Equal(t, []string{"x", "w"}, g.Operations[0].In)
	require.GreaterOrEqual(t, len(g.Kernels), 3)
	for _, k := range g.Kernels {
		require.NotEmpty(t, k.Kernel)
		require.Positive(t, k.BlockDim)
		require.NotEmpty(t, k.Writes)
	}
	require.GreaterOrEqual(t, g.Plan.Arena, g.Plan.LowerBound)
	require.Len(t, g.Plan.Buffers, 2)
	for _, format := range []string{"text", "dot", "svg"} {
		r = atbRun(t, "graph", "--format", format, write(t, "mlp.json", mlp))
		require.Equal(t, exitOK, r.code, r.stderr)
		require.NotEmpty(t, r.stdout)
	}
}

func TestEnvJSON(t *testing.T) {
	t.Setenv("ATB_RUNNER_POOL_SIZE", "7")
	r := atbRun(t, "env", "--json", "--set", "ATB_TILING_POLICY=overall")
	require.Equal(t, exitOK, r.code, r.stderr)
	var e envReport
	strictJSON(t, r.stdout, &e)
	require.Empty(t, e.Errors)
	seen := map[string]envVar{}
	for _, v := range e.Vars {
		seen[v.Name] = v
		require.NotEmpty(t, v.Meaning)
		require.NotEmpty(t, v.Range)
	}
	require.Equal(t, "7", seen["ATB_RUNNER_POOL_SIZE"].Effective)
	require.Equal(t, "ATB_RUNNER_POOL_SIZE", seen["ATB_RUNNER_POOL_SIZE"].Source)
	require.Equal(t, "overall", seen["ATB_TILING_POLICY"].Effective)
	require.Equal(t, "default", seen["ATB_HOST_TILING_BUFFER_BLOCK_NUM"].Source)
	r = atbRun(t, "env", "--json", "--set", "ATB_RUNNER_POOL_SIZE=x", "--set", "ATB_TILING_POLICY=y")
	require.Equal(t, exitUsage, r.code)
	strictJSON(t, r.stdout, &e)
	require.Len(t, e.Errors, 2)
}

func TestGenerateRandomModel(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace.json")
	r := atbRun(t, "generate", "--json", "--steps", "6", "--batch", "2", "--prompt-ids", "1,5,9", "--prefill", "2", "--logits", "2,4", "--trace", trace)
	require.Equal(t, exitOK, r.code, r.stderr)
	var g report
	strictJSON(t, r.stdout, &g)
	require.True(t, g.IDsAgree)
	require.Len(t, g.Runs, 3)
	for _, x := range g.Runs {
		require.Len(t, x.IDs, 6)
		require.Equal(t, g.Runs[0].Logits, x.Logits)
		require.Len(t, x.Logits, 2)
		require.Len(t, x.Logits["2"], 2048)
		require.Positive(t, x.SetupNs)
		require.Positive(t, x.ExecuteNs)
		require.Positive(t, x.KernelsPerStep)
		require.Positive(t, x.HostTilings)
		require.Positive(t, x.WorkspaceBytes)
	}
	b, err := os.ReadFile(trace)
	require.NoError(t, err)
	require.Contains(t, string(b), `"name":"host"`)
	require.Contains(t, string(b), "matmul/")
	r = atbRun(t, "generate", "--ids", "--steps", "3", "--policy", "overall")
	require.Equal(t, exitOK, r.code)
	require.Len(t, strings.Fields(r.stdout), 3)
	require.Equal(t, 1, strings.Count(r.stdout, "\n"))
	a := atbRun(t, "generate", "--ids", "--steps", "8", "--policy", "overall", "--temperature", "0.8", "--top-p", "0.9", "--seed", "3")
	again := atbRun(t, "generate", "--ids", "--steps", "8", "--policy", "kernel", "--temperature", "0.8", "--top-p", "0.9", "--seed", "3")
	require.Equal(t, a.stdout, again.stdout, "the same seed draws the same tokens")
}
