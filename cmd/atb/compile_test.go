package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/tensor"
)

// attentionInputs are inputs of testdata/attention.json.
func attentionInputs(t *testing.T) string {
	t.Helper()
	floats := func(name string, dims ...int64) tensor.Entry {
		d := tensor.Of(tensor.Float32, dims...)
		f := make([]float32, d.Numel())
		for i := range f {
			f[i] = float32(i%11)/8 - 0.5
		}
		return entry(name, tensor.Float32, f, dims...)
	}
	return tensors(t, floats("x", 3, 16), floats("wq", 16, 16), floats("wk", 8, 16), floats("wv", 8, 16), floats("k_cache", 4, 2, 2, 4), floats("v_cache", 4, 2, 2, 4),
		entry("slots", tensor.Int32, []int32{0, 1, 4}, 3), entry("tables", tensor.Int32, []int32{0, 1, 0, 1, 2, 3}, 3, 2), entry("contexts", tensor.Int32, []int32{1, 4, 2}, 3))
}

// compileTo compiles and returns the file.
func compileTo(t *testing.T, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "compiled")
	fine(t, append([]string{"compile", "-o", file}, args...)...)
	return file
}

// A compiled graph gives the outputs of the graph file, bit for bit, without
// tilings on the host: with the graph file or without, whatever the lengths.
func TestRunOfACompiledGraph(t *testing.T) {
	cleanEnv(t)
	const graph = "testdata/attention.json"
	in := attentionInputs(t)
	run := func(args ...string) (runResult, []float32) {
		out := filepath.Join(t.TempDir(), "out.safetensors")
		var r runResult
		strictJSON(t, fine(t, append([]string{"run", "--inputs", in, "--outputs", out, "--json", "--workers", "2"}, args...)...), &r)
		return r, floatsOf(t, out, "y")
	}
	_, want := run(graph, "--policy", "kernel-follow")
	for _, form := range []string{"update", "ffts", "superkernel", "v2"} {
		file := compileTo(t, graph, "--form", form, "--workers", "2")
		for _, args := range [][]string{{"--compiled", file}, {graph, "--compiled", file, "--repeat", "3"}, {"--compiled", file, "--form", form, "--policy", "device-sink", "--soc", "910B"}} {
			r, got := run(args...)
			assert.Equal(t, want, got, "%v", args)
			assert.Equal(t, "device-sink", r.Policy)
			tilings := [2]int64{0, int64(r.Repeat)}
			if form == "v2" {
				tilings = [2]int64{1, 0}
			}
			assert.Equal(t, tilings, [2]int64{r.HostTilings, r.DeviceTilings}, "%v", args)
		}
	}
	off := compileTo(t, graph, "--tiling_schedule_optimize", "0", "--workers", "2")
	r, got := run("--compiled", off)
	assert.Equal(t, want, got)
	assert.Equal(t, [2]int64{1, 0}, [2]int64{r.HostTilings, r.DeviceTilings}, "what reads values stays on the host")
}

func TestCompileReports(t *testing.T) {
	cleanEnv(t)
	file := filepath.Join(t.TempDir(), "out")
	args := []string{"compile", "testdata/attention.json", "-o", file, "--soc", "310P3", "--workers", "2"}
	var r compileReport
	strictJSON(t, fine(t, append(args, "--json", "--tasks", "--online")...), &r)
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, int64(r.Bytes), info.Size())
	assert.Equal(t, [4]any{"compile", file, "310P3", "update"}, [4]any{r.Command, r.File, r.Soc, r.Form})
	assert.False(t, r.Offline)
	require.Len(t, r.Graphs, 1)
	g := &r.Graphs[0]
	assert.Equal(t, [4]int{g.Kernels, 1, 0, 1}, [4]int{len(g.Gates), g.Sunk, g.Host, g.Segments})
	nops := 0
	for _, task := range g.Tasks {
		if task.Kind == "NOP" {
			nops++
		}
	}
	assert.Equal(t, 10, nops)

	text := fine(t, append(args, "--offline", "--tasks")...)
	assert.Contains(t, text, "offline for SoC 310P3 in form update")
	assert.Contains(t, text, "UPDATE op")
	text = fine(t, append(args, "--tiling_schedule_optimize", "0")...)
	assert.Contains(t, text, "attend")
	assert.Contains(t, text, "option: ge.tiling_schedule_optimize is off (compile)")
	assert.NotContains(t, text, "UPDATE op")
}

// Steps of a model: the ids of a generate that captures by itself, for prompts of
// compiled lengths, batches and forms.
func TestGenerateOfACompiledModel(t *testing.T) {
	cleanEnv(t)
	model, tok := tinyModel()
	dir := folder(t, model, tok)
	for _, more := range [][]string{nil, {"--form", "superkernel"}, {"--batch", "2", "--block-size", "4"}, {"--dtype", "f16", "--soc", "310P3"}} {
		flags := append([]string{"--model", dir, "--workers", "2", "--prefill", "2"}, more...)
		file := compileTo(t, append(flags, "--prompt-tokens", "1,3")...)
		for _, prompt := range []string{"1", "1,3,4"} {
			args := append(append([]string{"generate"}, flags...), "--steps", "4", "--prompt-ids", prompt, "--json")
			var want, got report
			strictJSON(t, fine(t, append(args, "--policy", "device-sink")...), &want)
			strictJSON(t, fine(t, append(args, "--compiled", file)...), &got)
			require.Len(t, got.Runs, 1)
			w, r := &want.Runs[0], &got.Runs[0]
			assert.Equal(t, w.IDs, r.IDs, "%v", more)
			assert.Positive(t, w.HostTilings)
			assert.Zero(t, r.HostTilings, "%v", more)
			assert.Positive(t, r.DeviceTilings)
			assert.Equal(t, w.DeviceTilings, r.DeviceTilings)
			assert.Equal(t, w.Captures, r.Captures)
		}
	}
}

// The greedy ids of stories260K, from a compiled file in every form.
func TestCompiledStoriesAreGolden(t *testing.T) {
	g := stories(t)
	cleanEnv(t)
	steps := 64
	for _, form := range []string{"update", "ffts", "superkernel", "v2"} {
		file := compileTo(t, "--model", g.dir, "--form", form)
		ids := fine(t, "generate", "--model", g.dir, "--compiled", file, "--steps", fmt.Sprint(steps), "--ids")
		assert.Equal(t, strings.Join(g.ids[:steps], " ")+"\n", ids, form)
	}
}

// badCompiles are files that do not fit, and ways to make none.
func badCompiles(t *testing.T) []badCase {
	t.Helper()
	model, tok := tinyModel()
	dir, graph, in := folder(t, model, tok), mlpFile(t), attentionInputs(t)
	file := compileTo(t, "testdata/attention.json", "--workers", "2")
	steps := compileTo(t, "--model", dir, "--workers", "2", "--prompt-tokens", "1,2")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	damaged := func(change func(b []byte) []byte) string {
		return write(t, "damaged", change(append([]byte(nil), data...)))
	}
	run := func(compiled string, more ...string) []string {
		return append([]string{"run", "--workers", "2", "--inputs", in, "--outputs", filepath.Join(t.TempDir(), "o"), "--compiled", compiled}, more...)
	}
	generate := func(compiled string, more ...string) []string {
		return append([]string{"generate", "--workers", "2", "--steps", "2", "--model", dir, "--compiled", compiled}, more...)
	}
	out := filepath.Join(t.TempDir(), "c")
	make := func(args ...string) []string { return append([]string{"compile", "-o", out}, args...) }
	larger := strings.ReplaceAll(string(must(os.ReadFile("testdata/attention.json"))(t)), "[3, 16]", "[4, 16]")
	larger = strings.ReplaceAll(strings.ReplaceAll(larger, `"shape": [3]`, `"shape": [4]`), "[3, 2]", "[4, 2]")
	larger = strings.ReplaceAll(larger, "[1, 3, 4]", "[1, 3, 4, 1]")
	fourRows := compileTo(t, write(t, "larger.json", []byte(larger)), "--workers", "2")
	return []badCase{
		{"nothing to compile", make(), "want either a graph file or --model"},
		{"two things to compile", make(graph, "--model", dir), "want either a graph file or --model"},
		{"no output", []string{"compile", graph}, "--output"},
		{"bad option", make(graph, "--tiling_schedule_optimize", "yes"), `option ge.tiling_schedule_optimize: want "", "0" or "1", got "yes"`},
		{"bad SoC", make(graph, "--soc", "Z80"), `unknown SoC "Z80"`},
		{"bad form", make(graph, "--form", "fast"), "want form update, ffts, superkernel or v2"},
		{"offline and online", make(graph, "--offline", "--online"), "can't be used together"},
		{"no nops", make("testdata/attention.json", "--soc", "910B4-1"), "want a prefetch number"},
		{"nowhere", []string{"compile", graph, "-o", "/nowhere/c"}, "/nowhere/c"},
		{"prompt", make("--model", dir, "--prompt-tokens", "0"), "--prompt-tokens: want at least 1, got 0"},
		{"long prompt", make("--model", dir, "--prompt-tokens", "7"), "want at most the model's 6 positions, got 7"},
		{"other SoC", run(file, "--soc", "310P3"), "it is for SoC 910B (prefetch 8), the context has 310P3 (prefetch 10); compile it again for that one"},
		{"other form", run(file, "--form", "ffts"), "it is of form update, the context has ffts"},
		{"other policy", run(file, "--policy", "overall"), "compiled graphs want policy device-sink, got overall"},
		{"waits of run", run(file, "--set", "ATB_STREAM_SYNC_EVERY_KERNEL_ENABLE=1"), "and ATB_STREAM_SYNC_EVERY_KERNEL_ENABLE=1 waits after single kernels: take one of both away"},
		{"waits of generate", generate(steps, "--set", "ATB_STREAM_SYNC_EVERY_KERNEL_ENABLE=1"), "and ATB_STREAM_SYNC_EVERY_KERNEL_ENABLE=1 waits"},
		{"other workers", run(file, "--workers", "1"), "the device has 1 cores"},
		{"an option too late", run(file, "--tiling_schedule_optimize", "1"), "give it to atb compile"},
		{"other graph", run(file, graph), `it was compiled from graph "attention", ` + graph + ` has "mlp"`},
		{"other shapes", run(fourRows, "testdata/attention.json"), "none of 1 compiled for it fits; the closest differs: inputs: want \"f32[4,16] "},
		{"steps to run", run(steps), "want a compiled graph, got the steps of a model: use atb generate --compiled"},
		{"no graph", []string{"run", "--inputs", in, "--outputs", out}, "want a graph file or --compiled"},
		{"no file", run("/nowhere/c"), "/nowhere/c"},
		{"no compiled file", run(graph), "not a compiled graph"},
		{"a flipped bit", run(damaged(func(b []byte) []byte { b[len(b)/2] ^= 4; return b })), "damaged: want the checksum"},
		{"a cut file", run(damaged(func(b []byte) []byte { return b[:len(b)/2] })), "bytes behind the header, got"},
		{"a longer file", run(damaged(func(b []byte) []byte { return append(b, '\n') })), "bytes behind the header, got"},
		{"a newer file", run(damaged(func(b []byte) []byte { b[8]++; return b })), "compiled by another version: want format 1, got 2; compile it again"},
		{"a graph to generate", generate(file), "want the compiled steps of a model, got a graph: use atb run --compiled"},
		{"no model", []string{"generate", "--compiled", steps}, "--compiled wants --model"},
		{"policies", generate(steps, "--policy", "overall,kernel-follow"), "what was compiled runs under device-sink, got overall,kernel-follow"},
		{"a policy dropped", generate(steps, "--policy", "device-sink,overall"), "what was compiled runs under device-sink, got device-sink,overall"},
		{"dtype", generate(steps, "--dtype", "f16"), "it was compiled for --dtype f32, got f16: run with that, or compile again with --dtype f16"},
		{"batch", generate(steps, "--batch", "2"), "it was compiled for --batch 1, got 2"},
		{"block size", generate(steps, "--block-size", "8"), "it was compiled for --block-size 16, got 8"},
		{"checks", generate(steps, "--checks", "910b"), "it was compiled for --checks native, got 910b"},
		{"prompt of 3", generate(steps, "--prompt-ids", "1,3,4"), "it has no step of 3 rows: compile it again with --prompt-tokens 3 --prefill 64"},
		{"logits", generate(steps, "--prompt-ids", "1,3", "--logits", "0"), "it has no step of 2 rows with 2 logits: leave positions of the prompt out of --logits"},
		{"other model", []string{"generate", "--workers", "2", "--steps", "2", "--model", folder(t, seventh(model), tok), "--compiled", steps}, "compile it again with --model"},
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// seventh is the tiny model with one more position.
func seventh(model []byte) []byte {
	return append(with(model, 4*6, 7), make([]byte, 8)...)
}
