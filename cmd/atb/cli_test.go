package main

import (
	"bytes"
	"encoding/json"
	"errors"
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

// atbRun runs a command line in this process.
func atbRun(t testing.TB, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, output{&stdout, &stderr})
	return result{code, stdout.String(), stderr.String()}
}

// fine runs a command line that must succeed, with nothing but progress on
// standard error, and returns its standard output.
func fine(t testing.TB, args ...string) string {
	t.Helper()
	r := atbRun(t, args...)
	require.Equal(t, exitOK, r.code, "%v: %s", args, r.stderr)
	require.NotContains(t, r.stderr, "atb:")
	return r.stdout
}

// strictJSON decodes one object and refuses keys that `to` has not.
func strictJSON(t testing.TB, text string, to any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(to))
	require.False(t, d.More())
}

// write makes a file and returns its path.
func write(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

// cleanEnv takes the variables that contexts read out of the environment.
func cleanEnv(t *testing.T) {
	t.Helper()
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "ATB_") || strings.HasPrefix(name, "LCCL_") || strings.HasPrefix(name, "LCAL_") || strings.HasPrefix(name, "ASDOPS_") {
			t.Setenv(name, "")
			require.NoError(t, os.Unsetenv(name))
		}
	}
}

// mlp is a graph in an order that is not that of its execution.
const mlp = `{"name": "mlp",
 "inputs": [{"name": "x", "dtype": "f32", "shape": [2, 4]}, {"name": "w", "dtype": "f32", "shape": [4, 6]}, {"name": "v", "dtype": "f32", "shape": [6, 4]}],
 "outputs": ["y"],
 "nodes": [
  {"name": "sum", "op": "ElewiseOperation", "param": {"elewiseType": 8}, "in": ["x", "d"], "out": ["y"]},
  {"name": "down", "op": "LinearOperation", "param": {"transposeB": false, "hasBias": false}, "in": ["a", "v"], "out": ["d"]},
  {"name": "up", "op": "LinearOperation", "param": {"transposeB": false, "hasBias": false}, "in": ["x", "w"], "out": ["h"]},
  {"name": "act", "op": "ActivationOperation", "param": {"activationType": 1}, "in": ["h"], "out": ["a"]}]}`

const buffers = "id,lower,upper,size\na,0,2,100\nb,1,3,50\nc,2,4,100\n"

func TestHelp(t *testing.T) {
	help := fine(t, "--help")
	require.Equal(t, help, fine(t), "no command at all asks for help")
	for _, name := range []string{"generate", "check", "plan", "graph", "run", "compile", "env"} {
		require.Contains(t, help, name)
		require.Contains(t, fine(t, name, "--help"), "Usage: atb "+name)
	}
}

// full takes n bytes and fails from then on.
type full struct{ n int }

func (f *full) Write(b []byte) (int, error) {
	if f.n -= len(b); f.n < 0 {
		return 0, errors.New("no space left")
	}
	return len(b), nil
}

// TestLostResultsAreErrors runs every command on a standard output that fails at
// once or later.
func TestLostResultsAreErrors(t *testing.T) {
	cleanEnv(t)
	in, _ := mlpInputs(t)
	for _, args := range [][]string{
		{"--help"}, {"env"}, {"env", "--json"},
		{"plan", "--offsets", "testdata/buffers.csv"}, {"plan", "--json", "testdata/buffers.csv"},
		{"graph", "testdata/attention.json"}, {"graph", "--format", "dot", "testdata/attention.json"},
		{"graph", "--format", "svg", "testdata/attention.json"}, {"graph", "--json", "testdata/attention.json"},
		{"run", write(t, "mlp.json", []byte(mlp)), "--inputs", in, "--outputs", filepath.Join(t.TempDir(), "o")},
		{"compile", "testdata/attention.json", "-o", filepath.Join(t.TempDir(), "c"), "--tasks"}, {"compile", "testdata/attention.json", "-o", filepath.Join(t.TempDir(), "c"), "--json"},
		{"generate", "--steps", "2", "--policy", "overall"}, {"generate", "--steps", "2", "--ids"},
	} {
		size := len(fine(t, args...))
		for _, n := range []int{0, size / 2} {
			var stderr bytes.Buffer
			code := run(t.Context(), args, output{&full{n}, &stderr})
			assert.Equal(t, exitUsage, code, "%v, room for %d", args, n)
			assert.Equal(t, "atb: standard output: no space left\n", stderr.String(), "%v", args)
		}
	}
}

// panics is an output whose writer breaks down.
type panics struct{}

func (panics) Write([]byte) (int, error) { panic("broken pipe organ") }

func TestPanicsEndInALine(t *testing.T) {
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"env", "--json"}, output{panics{}, &stderr})
	require.Equal(t, exitUsage, code)
	require.Equal(t, "atb: internal error: broken pipe organ\n", stderr.String())
}
