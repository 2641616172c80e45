package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/tensor"
)

// entry is a tensor of a file.
func entry[T device.Element](name string, t tensor.DType, data []T, dims ...int64) tensor.Entry {
	return tensor.Entry{Name: name, Desc: tensor.Of(t, dims...), Data: device.BytesOf(data)}
}

func tensors(t *testing.T, entries ...tensor.Entry) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, tensor.WriteSafetensors(&b, entries, nil))
	return write(t, "in.safetensors", b.Bytes())
}

func floatsOf(t *testing.T, file, name string) []float32 {
	t.Helper()
	f, err := tensor.OpenSafetensors(file)
	require.NoError(t, err)
	defer f.Close()
	e := f.Entry(name)
	require.NotNil(t, e, name)
	return append([]float32(nil), device.View[float32](e.AlignedData())...)
}

// mlpInputs are small whole numbers, whose products and sums are exact.
func mlpInputs(t *testing.T) (file string, want []float32) {
	t.Helper()
	x, w, v := make([]float32, 8), make([]float32, 24), make([]float32, 24)
	for i := range x {
		x[i] = float32(i%5) - 2
	}
	for i := range w {
		w[i], v[i] = float32(i%7)-3, float32(i%3)-1
	}
	product := func(a, b []float32, n, k, m int) []float32 {
		c := make([]float32, n*m)
		for i := range n {
			for j := range m {
				for l := range k {
					c[i*m+j] += a[i*k+l] * b[l*m+j]
				}
			}
		}
		return c
	}
	h := product(x, w, 2, 4, 6)
	for i := range h {
		h[i] = max(h[i], 0)
	}
	want = product(h, v, 2, 6, 4)
	for i := range want {
		want[i] += x[i]
	}
	return tensors(t, entry("x", tensor.Float32, x, 2, 4), entry("w", tensor.Float32, w, 4, 6), entry("v", tensor.Float32, v, 6, 4),
		entry("more", tensor.Float32, x, 8)), want
}

func TestRun(t *testing.T) {
	cleanEnv(t)
	in, want := mlpInputs(t)
	graph := write(t, "mlp.json", []byte(mlp))
	for _, more := range [][]string{nil, {"--policy", "overall"}, {"--policy", "multi-stream", "--repeat", "40"}, {"--inline"}, {"--set", "ATB_TILING_POLICY=overall"}} {
		out := filepath.Join(t.TempDir(), "out.safetensors")
		var r runResult
		strictJSON(t, fine(t, append([]string{"run", graph, "--inputs", in, "--outputs", out, "--json"}, more...)...), &r)
		require.Equal(t, 1, r.Schema)
		require.Equal(t, "run", r.Command)
		require.Equal(t, []string{"y"}, r.Outputs)
		require.Positive(t, r.RunNs)
		require.Positive(t, r.WorkspaceBytes)
		if len(more) > 1 {
			require.Contains(t, strings.Join(more, " "), r.Policy)
		}
		require.Equal(t, want, floatsOf(t, out, "y"), "%v", more)
	}
	out := filepath.Join(t.TempDir(), "out.safetensors")
	require.Contains(t, fine(t, "run", graph, "--inputs", in, "--outputs", out), "ran 1 times under kernel-follow")
}

// TestRunWaitsForEveryStream has two chains of additions on streams of their
// own; the outputs are read when both are done.
func TestRunWaitsForEveryStream(t *testing.T) {
	cleanEnv(t)
	const length, links = 1 << 16, 60
	var nodes []string
	for stream := range 2 {
		from := "x"
		for i := range links {
			to := fmt.Sprintf("t%d_%d", stream, i)
			if i == links-1 {
				to = fmt.Sprintf("y%d", stream)
			}
			nodes = append(nodes, fmt.Sprintf(`{"op":"ElewiseOperation","param":{"elewiseType":8},"in":[%q,"one"],"out":[%q],"stream":%d}`, from, to, 1+stream))
			from = to
		}
	}
	graph := write(t, "g.json", []byte(`{"name":"chains","inputs":["x","one"],"outputs":["y0","y1"],"nodes":[`+strings.Join(nodes, ",")+`]}`))
	x, one, want := make([]float32, length), make([]float32, length), make([]float32, length)
	for i := range x {
		x[i], one[i], want[i] = float32(i), 1, float32(i+links)
	}
	in := tensors(t, entry("x", tensor.Float32, x, length), entry("one", tensor.Float32, one, length))
	out := filepath.Join(t.TempDir(), "out.safetensors")
	fine(t, "run", graph, "--inputs", in, "--outputs", out, "--repeat", "3")
	require.Equal(t, want, floatsOf(t, out, "y0"))
	require.Equal(t, want, floatsOf(t, out, "y1"))
}

// TestRunOrdersStreams has one chain that changes its stream at every link.
func TestRunOrdersStreams(t *testing.T) {
	cleanEnv(t)
	const length, links = 1 << 16, 31
	var nodes []string
	from := "x"
	for i := range links {
		to := fmt.Sprintf("t%d", i)
		if i == links-1 {
			to = "y"
		}
		nodes = append(nodes, fmt.Sprintf(`{"op":"ElewiseOperation","param":{"elewiseType":8},"in":[%q,"one"],"out":[%q],"stream":%d}`, from, to, i%graphStreams))
		from = to
	}
	slices.Reverse(nodes)
	graph := write(t, "g.json", []byte(`{"name":"zigzag","inputs":["x","one"],"outputs":["y"],"nodes":[`+strings.Join(nodes, ",")+`]}`))
	x, one, want := make([]float32, length), make([]float32, length), make([]float32, length)
	for i := range x {
		x[i], one[i], want[i] = float32(i), 1, float32(i+links)
	}
	in := tensors(t, entry("x", tensor.Float32, x, length), entry("one", tensor.Float32, one, length))
	for _, policy := range allPolicies {
		out := filepath.Join(t.TempDir(), "out.safetensors")
		fine(t, "run", graph, "--inputs", in, "--outputs", out, "--repeat", "3", "--policy", policy)
		require.Equal(t, want, floatsOf(t, out, "y"))
	}
}

// TestRunReadsLengths runs a graph whose attention reads lengths on the host
// and slots on the device.
func TestRunReadsLengths(t *testing.T) {
	cleanEnv(t)
	b, err := os.ReadFile("testdata/attention.json")
	require.NoError(t, err)
	in := func(slots, contexts []int32) string {
		ones := func(name string, dims ...int64) tensor.Entry {
			d := tensor.Of(tensor.Float32, dims...)
			f := make([]float32, d.Numel())
			for i := range f {
				f[i] = 1
			}
			return entry(name, tensor.Float32, f, dims...)
		}
		return tensors(t, ones("x", 3, 16), ones("wq", 16, 16), ones("wk", 8, 16), ones("wv", 8, 16), ones("k_cache", 4, 2, 2, 4), ones("v_cache", 4, 2, 2, 4),
			entry("slots", tensor.Int32, slots, 3), entry("tables", tensor.Int32, []int32{0, 1, 0, 1, 2, 3}, 3, 2), entry("contexts", tensor.Int32, contexts, 3))
	}
	graph, out := write(t, "g.json", b), filepath.Join(t.TempDir(), "out.safetensors")
	fine(t, "run", graph, "--inputs", in([]int32{0, 1, 4}, []int32{1, 2, 1}), "--outputs", out)
	// Every key that is seen was written with 16, so every weighted mean is 16.
	for i, v := range floatsOf(t, out, "y") {
		require.Equal(t, float32(16), v, "element %d", i)
	}
	for name, c := range map[string]struct {
		in   string
		says string
	}{
		"a slot outside":      {in([]int32{0, 1, 99}, []int32{1, 2, 1}), "99"},
		"a length below":      {in([]int32{0, 1, 4}, []int32{1, -2, 1}), "-2"},
		"more than its table": {in([]int32{0, 1, 4}, []int32{1, 2, 5}), "5"},
	} {
		r := atbRun(t, "run", graph, "--inputs", c.in, "--outputs", out)
		require.Equal(t, exitUsage, r.code, name)
		require.Contains(t, r.stderr, c.says, name)
	}
}

func TestRunRefusesInputs(t *testing.T) {
	cleanEnv(t)
	graph := write(t, "mlp.json", []byte(mlp))
	x, w := entry("x", tensor.Float32, make([]float32, 8), 2, 4), entry("w", tensor.Float32, make([]float32, 24), 4, 6)
	v := entry("v", tensor.Float32, make([]float32, 24), 6, 4)
	good, err := os.ReadFile(tensors(t, x, w, v))
	require.NoError(t, err)
	for name, c := range map[string]struct{ in, says string }{
		"a missing tensor": {tensors(t, x, w), `no tensor "v"`},
		"another shape":    {tensors(t, x, w, entry("v", tensor.Float32, make([]float32, 24), 4, 6)), `tensor "v": the graph wants f32[6,4], got f32[4,6]`},
		"another type":     {tensors(t, x, w, entry("v", tensor.Float16, make([]tensor.F16, 24), 6, 4)), `tensor "v": the graph wants f32[6,4], got f16[6,4]`},
		"a cut file":       {write(t, "in.safetensors", good[:len(good)-1]), "in.safetensors"},
		"a cut header":     {write(t, "in.safetensors", good[:20]), "in.safetensors"},
		"an empty file":    {write(t, "in.safetensors", nil), "in.safetensors"},
		"a huge header":    {write(t, "in.safetensors", []byte("\xff\xff\xff\xff\xff\xff\xff\x7f{}")), "in.safetensors"},
	} {
		out := filepath.Join(t.TempDir(), "out.safetensors")
		r := atbRun(t, "run", graph, "--inputs", c.in, "--outputs", out)
		require.Equal(t, exitUsage, r.code, name)
		require.Contains(t, r.stderr, c.says, name)
		require.NoFileExists(t, out, name)
	}
	r := atbRun(t, "run", graph, "--inputs", tensors(t, x, w, v), "--outputs", "/nowhere/out.safetensors")
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.stderr, "/nowhere/out.safetensors")
	r = atbRun(t, "run", graph, "--inputs", tensors(t, x, w, v), "--outputs", "o", "--policy", "fast")
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.stderr, `"fast"`)
}

// --policy of run beats every variable that names a policy.
func TestRunPolicyBeatsTheVariables(t *testing.T) {
	cleanEnv(t)
	in, _ := mlpInputs(t)
	for _, set := range []string{"ATB_TILING_POLICY=device-sink", "ATB_USE_TILING_COPY_STREAM=1", "ATB_LAUNCH_KERNEL_WITH_TILING=1"} {
		args := []string{"run", mlpFile(t), "--inputs", in, "--outputs", filepath.Join(t.TempDir(), "o"), "--json", "--policy", "overall", "--set", set}
		var r runResult
		strictJSON(t, fine(t, args...), &r)
		require.Equal(t, "overall", r.Policy, set)
	}
}
