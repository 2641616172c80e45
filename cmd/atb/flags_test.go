package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBadFlags runs every command with flags that have no value, or one below,
// above or beside what they take.
func TestBadFlags(t *testing.T) {
	cleanEnv(t)
	graph, plan, dir := mlpFile(t), planFile(t), t.TempDir()
	in, _ := mlpInputs(t)
	run := func(more ...string) []string { return append([]string{"run", graph, "--inputs", in}, more...) }
	for _, c := range []badCase{
		{"", []string{"generate", "--steps", "-1"}, "--steps: want at least 1, got -1\n"},
		{"", []string{"generate", "--logits", "-1", "--steps", "2"}, "--logits: want positions of 0 to 1, got -1"},
		{"", []string{"generate", "--model", ""}, "--model: want a value, got none"},
		{"", []string{"generate", "--prompt="}, "--prompt: want a value, got none"},
		{"", []string{"generate", "--prompt-ids="}, "--prompt-ids: want a value, got none"},
		{"", []string{"generate", "--trace="}, "--trace: want a value, got none"},
		{"", []string{"generate", "--set", ""}, "--set: want a value, got none"},
		{"", []string{"generate", "--policy", "overall,,all"}, "--policy: want a value, got none"},
		{"", []string{"generate", "--trace", dir}, "--trace: " + dir + " is a folder"},
		{"", []string{"generate", "--device", "sim", "--profile", "nonsense"}, `--profile: profile "nonsense": want one of ascend910b`},
		{"", []string{"generate", "--policy", "overall", "--set", "ATB_TILING_POLICY=foo"}, `--set: configuration: ATB_TILING_POLICY="foo": want overall`},
		{"", []string{"generate", "--set", "ATB_TILING_POLICI=overall"}, "--set ATB_TILING_POLICI: there is no such variable; the nearest is ATB_TILING_POLICY"},
		{"", []string{"generate", "--set", "ATB_TILING_POLICY=overall,ATB_TILING_POLICY=overall"}, "--set ATB_TILING_POLICY: it is set twice"},
		{"", []string{"check", "--list=", dir}, "--list: want a value, got none"},
		{"", []string{"check", "--max-bytes", "-1", dir}, "--max-bytes: want at least 1, got -1"},
		{"", []string{"check", in}, "no metadata of a golden case"},
		{"", []string{"check", write(t, "x.safetensors", []byte("\xff\xff\xff\xff\xff\xff\xff\x7f{}"))}, "want a header of at most 2 bytes"},
		{"", []string{"plan", plan, "--csv", dir}, "--csv: " + dir + " is a folder"},
		{"", []string{"plan", plan, "--csv", plan}, "is read by the same command"},
		{"", []string{"plan", plan, "--csv", "x", "--svg", "./x"}, "--csv and --svg want two files, got x"},
		{"", []string{"plan", plan, "--deadline", "-1s"}, "--deadline: want at least 0s, got -1s"},
		{"", run("--outputs", dir), "--outputs: " + dir + " is a folder"},
		{"", run("--outputs", in), "is read by the same command"},
		{"", run("--outputs", graph), "is read by the same command"},
		{"", run("--outputs", filepath.Join(dir, "no", "o")), "--outputs: create " + filepath.Join(dir, "no", "o") + ": "},
		{"", run("--outputs", "o", "--policy", "nope"), `--policy: unknown tiling policy "nope"`},
		{"", run("--outputs", "o", "--repeat", "-1"), "--repeat: want at least 1, got -1"},
		{"", []string{"run", graph, "--inputs", dir, "--outputs", "o"}, "--inputs: safetensors: " + dir + ": not a regular file"},
		{"", []string{"generate", "--profile", "gpu"}, "--profile: it is for --device sim"},
		{"", []string{"generate", "--device", "sim", "--workers", "2"}, "--workers: it is for --device cpu"},
		{"", []string{"generate", "--device", "sim", "--inline"}, "--inline: it is for --device cpu"},
		{"", []string{"policies", "--workers", "2"}, "--workers: it is for --profile cpu"},
		{"", []string{"policies", "--profile", "cpu", "--numerics", "off"}, "--numerics: the CPU device always computes values"},
		{"", run("--outputs", "o", "--profile", "gpu"), "--profile: it is for --device sim"},
		{"", []string{"compile", graph, "-o", filepath.Join(dir, "o"), "--dtype", "f16"}, "--dtype: it is for --model"},
		{"", []string{"compile", graph, "-o", filepath.Join(dir, "o"), "--batch", "1"}, "--batch: it is for --model"},
		{"", []string{"compile", graph, "-o", filepath.Join(dir, "o"), "--prompt-tokens", "1"}, "--prompt-tokens: it is for --model"},
		{"", []string{"compile", graph, "-o", filepath.Join(dir, "o"), "--prefill", "8"}, "--prefill: it is for --model"},
		{"", []string{"compile", graph, "-o", filepath.Join(dir, "o"), "--block-size", "8"}, "--block-size: it is for --model"},
		{"", []string{"compile", graph, "-o", filepath.Join(dir, "o"), "--profile", "gpu"}, "--profile: it is for --device sim"},
		{"", []string{"roofline", "--weights", "int8"}, "--weights: it is for --model"},
		{"", []string{"roofline", "--model", "llama-3.2-1b", "--case", "cast"}, "--case: it is for the operations"},
		{"", []string{"generate", "--shape", "llama-3.2-1b", "--model", dir}, "--shape and --model exclude each other"},
		{"", []string{"generate", "--shape", "qwen3-0.6b"}, "--shape: model qwen3-0.6b: want a Llama"},
		{"", []string{"generate", "--compiled", graph, "--weights", "int8"}, "--weights: what was compiled"},
		{"", []string{"policies", "--list-costs", "--json"}, "--json: --list-costs prints the costs"},
		{"", []string{"policies", "--list-costs", "--html", filepath.Join(dir, "o")}, "--html: --list-costs prints the costs"},
		{"", []string{"policies", "--policies", "nope"}, `--policy: unknown tiling policy "nope"`},
		{"", []string{"policies", "--steps", "-1"}, "--steps: want at least 1, got -1"},
		{"", []string{"policies", "--batch", "0"}, "--batch: want at least 1, got 0"},
		{"", []string{"policies", "--context", "-1"}, "--context: want at least 0, got -1"},
		{"", []string{"policies", "--prompt", "0"}, "--prompt: want at least 1, got 0"},
		{"", []string{"policies", "--tp", "0"}, "--tp: want at least 1, got 0"},
		{"", []string{"roofline", "--threads="}, "--threads: want a value, got none"},
		{"", []string{"roofline", "--time", "-1s"}, "--time: want more than 0, got -1s"},
		{"", []string{"graph", "/dev/zero"}, "/dev/zero: want at most 67108864 bytes, got more"},
		{"", []string{"policies", "--profile", "/dev/zero"}, "/dev/zero: want at most"},
		{"", []string{"check", "--stale", "/dev/zero", dir}, "/dev/zero: want at most"},
		{"", []string{"env", "--set", "ATB_RUNNER_POOL_SIZ=1"}, "the nearest is ATB_RUNNER_POOL_SIZE"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) { refused(t, c) })
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left, "a refused command leaves no file")
}

func TestPoliciesIsAnotherNameOfPolicy(t *testing.T) {
	cleanEnv(t)
	same := fine(t, "generate", "--policies", "overall", "--steps", "2", "--ids")
	require.Equal(t, same, fine(t, "generate", "--policy", "overall", "--steps", "2", "--ids"))
}

func TestJoinNegatives(t *testing.T) {
	assert.Equal(t, []string{"a", "--steps=-1", "--t=-.5", "--x=1", "-2", "-h", "--", "-3"},
		joinNegatives([]string{"a", "--steps", "-1", "--t", "-.5", "--x=1", "-2", "-h", "--", "-3"}))
	assert.Empty(t, joinNegatives(nil))
}

// A file is there when it is complete, and what was there before until then.
func TestOutFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	files := func() (names []string) {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	o, err := createOut("--out", path)
	require.NoError(t, err)
	_, err = o.Write([]byte("half"))
	require.NoError(t, err)
	require.NoFileExists(t, path)
	require.ErrorIs(t, o.end(errFailed), errFailed)
	require.ErrorIs(t, o.end(errFailed), errFailed, "ended once")
	require.Empty(t, files())

	require.NoError(t, os.WriteFile(path, []byte("old"), 0o640))
	if o, err = createOut("--out", path); assert.NoError(t, err) {
		_, err = o.Write([]byte("new"))
		require.NoError(t, err)
		require.NoError(t, o.end(nil))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "new", string(got))
	require.Equal(t, []string{"out"}, files())
	if runtime.GOOS != "windows" {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o640), info.Mode().Perm(), "the mode stays")
	}

	_, err = createOut("--out", path, path)
	require.ErrorContains(t, err, "--out: ")
	o, err = createOut("--out", "")
	require.NoError(t, err)
	require.Nil(t, o)
	require.NoError(t, o.end(nil))
}

// A run that fails while it runs leaves no outputs.
func TestFailedRunLeavesNoFile(t *testing.T) {
	cleanEnv(t)
	dir := t.TempDir()
	in, _ := mlpInputs(t)
	bad := write(t, "g.json", []byte(strings.Replace(mlp, `"elewiseType": 8`, `"elewiseType": 3`, 1)))
	refused(t, badCase{args: []string{"run", bad, "--inputs", in, "--outputs", filepath.Join(dir, "o")}, says: "sum"})
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// An input that no node uses is told, and the graph runs.
func TestUnusedInputsAreTold(t *testing.T) {
	cleanEnv(t)
	file := write(t, "g.json", []byte(strings.Replace(mlp, `"inputs": [`, `"inputs": [{"name": "more", "dtype": "f32", "shape": [8]}, `, 1)))
	in, _ := mlpInputs(t)
	for _, args := range [][]string{{"graph", file}, {"run", file, "--inputs", in, "--outputs", filepath.Join(t.TempDir(), "o")}} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, exitOK, run(t.Context(), args, output{&stdout, &stderr}))
		assert.Equal(t, "atb: warning: "+file+": no node uses input \"more\"\n", stderr.String())
		assert.NotEmpty(t, stdout.String())
	}
}
