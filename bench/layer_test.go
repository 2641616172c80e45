package bench_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device"
	"goatb/device/cpu"
	"goatb/operation/activation"
	"goatb/operation/attention"
	"goatb/operation/cache"
	"goatb/operation/elementwise"
	"goatb/operation/linear"
	"goatb/operation/norm"
	"goatb/tensor"
	"goatb/tiling"
)

// Sizes of the layer: small, so that the host is what is measured.
const (
	layerRows, layerWidth, layerHeads = 1, 16, 2
	headSize                          = layerWidth / layerHeads
	layerNodes                        = 12
)

// layer is one decoder layer of twelve operations over a paged cache that it
// updates in place.
func layer(tb testing.TB) *atb.Op {
	tb.Helper()
	rms := norm.DefaultRMSNorm()
	rms.LayerType = norm.Plain
	project, sum := linear.Linear{TransposeB: true}, elementwise.Of(elementwise.Add)
	heads := func(s atb.Shape) atb.Shape { return tensor.ShapeOf(s.Dim(0), layerHeads, headSize) }
	flat := func(s atb.Shape) atb.Shape { return tensor.ShapeOf(s.Dim(0), s.Dim(1)*s.Dim(2)) }
	g := atb.BuildGraph("layer", []string{
		"x", "norm1", "wq", "wk", "wv", "wo", "norm2", "gate", "down", "kCache", "vCache", "slots", "tables", "lengths",
	}, []string{"y"})
	g.AddSpec(rms, []string{"x", "norm1"}, []string{"h"})
	g.AddSpec(project, []string{"h", "wq"}, []string{"q"})
	g.AddSpec(project, []string{"h", "wk"}, []string{"k"})
	g.AddSpec(project, []string{"h", "wv"}, []string{"v"})
	g.Reshape("q", heads, "qh").Reshape("k", heads, "kh").Reshape("v", heads, "vh")
	g.AddSpec(cache.DefaultReshapeAndCache(), []string{"kh", "vh", "kCache", "vCache", "slots"}, []string{"kCache", "vCache"})
	g.AddSpec(attention.PagedAttention{HeadNum: layerHeads, KVHeadNum: layerHeads, QKScale: 1}, []string{"qh", "kCache", "vCache", "tables", "lengths"}, []string{"ah"})
	g.Reshape("ah", flat, "a")
	g.AddSpec(project, []string{"a", "wo"}, []string{"o"})
	g.AddSpec(sum, []string{"x", "o"}, []string{"mid"})
	g.AddSpec(rms, []string{"mid", "norm2"}, []string{"n"})
	g.AddSpec(project, []string{"n", "gate"}, []string{"gu"})
	g.AddSpec(activation.Of(activation.SwiGLUForward), []string{"gu"}, []string{"act"})
	g.AddSpec(project, []string{"act", "down"}, []string{"y"})
	op, err := g.Build()
	require.NoError(tb, err)
	return op
}

// prepareLayer sets the layer up.
func prepareLayer(tb testing.TB, policy string) *prepared {
	tb.Helper()
	dev, err := cpu.New()
	require.NoError(tb, err)
	c, err := atb.NewContext(dev, atb.WithPolicy(policy), atb.WithEnv(func(string) (string, bool) { return "", false }))
	require.NoError(tb, err)
	p := &prepared{c: c, op: layer(tb)}
	tb.Cleanup(func() {
		require.NoError(tb, p.op.Close())
		require.NoError(tb, c.Close())
		require.NoError(tb, dev.Close())
	})
	add := func(t tensor.DType, dims ...int64) {
		x, err := atb.NewTensor(c, tensor.Of(t, dims...))
		require.NoError(tb, err)
		p.pack.In = append(p.pack.In, x)
	}
	const w = layerWidth
	add(tensor.Float32, layerRows, w)
	add(tensor.Float32, w)
	for range 4 {
		add(tensor.Float32, w, w)
	}
	add(tensor.Float32, w)
	add(tensor.Float32, 2*w, w)
	add(tensor.Float32, w, w)
	for range 2 {
		add(tensor.Float32, 4, 16, layerHeads, headSize)
	}
	add(tensor.Int32, layerRows)
	add(tensor.Int32, layerRows, 4)
	p.pack.In = append(p.pack.In, atb.Host([]int32{3}))
	y, err := atb.NewTensor(c, tensor.Of(tensor.Float32, layerRows, w))
	require.NoError(tb, err)
	p.pack.Out = []atb.Tensor{y}
	size, err := p.op.Setup(p.pack, c)
	require.NoError(tb, err)
	p.ws, err = c.Workspace(size)
	require.NoError(tb, err)
	for range 300 { // every ring block has been used
		require.NoError(tb, p.op.Execute(p.pack, p.ws, c))
	}
	require.NoError(tb, c.Synchronize(tb.Context()))
	return p
}

// BenchmarkLayerCost reports what the host spends on a layer of twelve
// operations: Setup of the unchanged graph, Setup and Execute per kernel, and
// empty kernels of the same operands and tiling bytes launched straight on the
// device, which Setup and Execute together may cost twice.
// setup-limit is what Setup may take: 300 ns and 5 ns for each input.
func BenchmarkLayerCost(b *testing.B) {
	b.Run("call=setup", func(b *testing.B) {
		p := prepareLayer(b, "kernel-follow")
		b.ReportAllocs()
		for b.Loop() {
			if _, err := p.op.Setup(p.pack, p.c); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(300+5*len(p.pack.In)), "setup-limit-ns")
	})
	for _, policy := range tiling.Policies() {
		b.Run("call=setup+execute/policy="+policy.Name(), func(b *testing.B) {
			p := prepareLayer(b, policy.Name())
			executeAll(b, p, len(p.op.Graph().Nodes))
		})
	}
	b.Run("call=launch/kernel=empty", func(b *testing.B) {
		p := prepareLayer(b, "kernel-follow")
		launchAll(b, emptyLike(b, p))
	})
}

// emptyLike makes a launch of an empty kernel for each kernel of an operation,
// with as many operands and as many bytes of tiling.
func emptyLike(tb testing.TB, p *prepared) []device.Launch {
	tb.Helper()
	empty := &device.Program{Name: "empty", Run: func(*device.Args, int) error { return nil }}
	mem, err := p.c.Alloc(1024)
	require.NoError(tb, err)
	nodes := p.op.Graph().Nodes
	ls := make([]device.Launch, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		l := &ls[i]
		l.Program, l.Blocks, l.Inputs = empty, 1, len(n.In)
		l.Label = &device.Label{Op: "layer", Node: n.Path, Kernel: empty.Name}
		l.Inline = make([]byte, n.TilingSize)
		for j := range len(n.In) + len(n.Out) {
			l.Buffers = append(l.Buffers, mem.At(int64(j)*64, 64))
		}
	}
	return ls
}

// TestLayerIsOneOfTwelve keeps the benchmark what it says it is.
func TestLayerIsOneOfTwelve(t *testing.T) {
	p := prepareLayer(t, "kernel-follow")
	before := p.c.Stats()
	require.Len(t, p.op.Graph().Scopes, 1+layerNodes)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := p.op.Setup(p.pack, p.c); err != nil {
			t.Error(err)
		}
		if err := p.op.Execute(p.pack, p.ws, p.c); err != nil {
			t.Error(err)
		}
		if err := p.c.Synchronize(t.Context()); err != nil {
			t.Error(err)
		}
	}))
	after := p.c.Stats()
	require.Equal(t, after.Setups-before.Setups, after.SetupHits-before.SetupHits)
	require.Equal(t, before.HostTilings, after.HostTilings)
}
