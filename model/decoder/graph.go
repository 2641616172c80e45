package decoder

import (
	"math"

	"goatb/atb"
	"goatb/operation/activation"
	"goatb/operation/attention"
	"goatb/operation/cache"
	"goatb/operation/elementwise"
	"goatb/operation/linear"
	"goatb/operation/norm"
	"goatb/operation/rope"
	"goatb/operation/shape"
	"goatb/tensor"
)

// weight is a matrix of a layer, [rows, cols], or one for each head.
type weight struct {
	name       string
	rows, cols int64
	heads      int64 // 0 for one matrix
}

// weights lists the matrices of a layer in a step of so many tokens.
func (s *Shape) weights(layer, tokens int) []weight {
	hidden, width := int64(s.Hidden), int64(s.width(layer, tokens))
	q, kv := int64(s.Heads)*int64(s.HeadDim), int64(s.KVHeads)*int64(s.HeadDim)
	list := []weight{{"qkv", q + 2*kv, hidden, 0}, {"out", hidden, q, 0}}
	if l := s.Latent; l.Rank > 0 {
		heads, rank := int64(s.Heads), int64(l.Rank)
		list = []weight{
			{"w_q", heads * (int64(s.HeadDim) + int64(l.Rope)), hidden, 0}, {"w_kv", rank + int64(l.Rope), hidden, 0},
			{"absorb", int64(s.HeadDim), rank, heads}, {"expand", rank, int64(l.Value), heads}, {"out", hidden, heads * int64(l.Value), 0},
		}
	}
	if s.Experts.Count > 0 && layer >= s.Experts.Dense {
		list = append(list, weight{"router", int64(s.Experts.Count), hidden, 0})
	}
	return append(list, weight{"gate_up", 2 * width, hidden, 0}, weight{"down", hidden, width, 0})
}

// caches lists the caches of a layer, [blocks, block size, heads, width].
func (s *Shape) caches() []struct {
	name         string
	heads, width int64
} {
	type c = struct {
		name         string
		heads, width int64
	}
	if s.Latent.Rank > 0 {
		return []c{{"latent_cache", 1, int64(s.Latent.Rank + s.Latent.Rope)}}
	}
	return []c{{"k_cache", int64(s.KVHeads), int64(s.HeadDim)}, {"v_cache", int64(s.KVHeads), int64(s.HeadDim)}}
}

// shared are the inputs that all layers have.
var shared = []string{"cos", "sin", "lengths", "gamma", "head_gamma", "slots", "tables", "contexts", "mask"}

// layerInputs are the inputs of a layer: x, what layers share, weights and caches.
func (s *Shape) layerInputs(layer, tokens int) []string {
	names := append([]string{"x"}, shared...)
	for _, w := range s.weights(layer, tokens) {
		names = append(names, w.name)
	}
	for _, c := range s.caches() {
		names = append(names, c.name)
	}
	return names
}

// layerGraph is one layer in a step of so many tokens. Decoding, prompt is 0 and
// each row is the newest token of a sequence of its own; else a sequence has so
// many rows, which attend to each other.
func (s *Shape) layerGraph(layer, tokens, prompt int) (*atb.Op, error) {
	g := &layerBuilder{Shape: s, prompt: prompt, b: atb.BuildGraph("layer", s.layerInputs(layer, tokens), []string{"y"})}
	g.b.AddSpec(norm.RMS(norm.Plain, float32(s.Epsilon)), []string{"x", "gamma"}, []string{"h"})
	if s.Latent.Rank > 0 {
		g.latent()
	} else {
		g.attend()
	}
	g.product("att", "out", "o")
	g.b.AddSpec(norm.RMS(norm.Pre, float32(s.Epsilon)), []string{"o", "x", "gamma"}, []string{"f", "mid"})
	if s.Experts.Count > 0 && layer >= s.Experts.Dense {
		g.product("f", "router", "scores")
	}
	g.product("f", "gate_up", "gu")
	swiglu := activation.DefaultActivation()
	swiglu.Type = activation.SwiGLUForward
	g.b.AddSpec(swiglu, []string{"gu"}, []string{"act"})
	g.product("act", "down", "ffn")
	g.b.AddSpec(elementwise.Elewise{Type: elementwise.Add}, []string{"mid", "ffn"}, []string{"y"})
	return g.b.Build()
}

type layerBuilder struct {
	*Shape
	prompt int
	b      *atb.GraphBuilder
}

// product adds x times a weight stored [out, in].
func (g *layerBuilder) product(x, w, y string) {
	p := linear.DefaultLinear()
	p.HasBias = false
	g.b.AddSpec(p, []string{x, w}, []string{y})
}

// heads views [n, heads*width] as [n, heads, width].
func (g *layerBuilder) heads(of string, heads, width int, name string) {
	g.b.Reshape(of, func(s atb.Shape) atb.Shape { return tensor.ShapeOf(s.Dim(0), int64(heads), int64(width)) }, name)
}

// flat views [n, heads, width] as [n, heads*width].
func (g *layerBuilder) flat(of, name string) {
	g.b.Reshape(of, func(s atb.Shape) atb.Shape { return tensor.ShapeOf(s.Dim(0), s.Dim(1)*s.Dim(2)) }, name)
}

func (g *layerBuilder) split(of string, axis int, into []string, sizes ...int) {
	p := shape.Split{SplitDim: int64(axis), SplitNum: int64(len(sizes))}
	for _, n := range sizes {
		p.SplitSizes = append(p.SplitSizes, int64(n))
	}
	g.b.AddSpec(p, []string{of}, into)
}

func (g *layerBuilder) join(axis int, a, b, to string) {
	p := shape.DefaultConcat()
	p.ConcatDim = int64(axis)
	g.b.AddSpec(p, []string{a, b}, []string{to})
}

func (g *layerBuilder) rotate(q, k string) {
	p := rope.DefaultRope()
	p.RotaryCoeff = 2
	g.b.AddSpec(p, []string{q, k, "cos", "sin", "lengths"}, []string{"q_rot", "k_rot"})
}

// attend is attention with a cache of keys and values.
func (g *layerBuilder) attend() {
	q, kv := g.Heads*g.HeadDim, g.KVHeads*g.HeadDim
	g.product("h", "qkv", "joint")
	g.split("joint", 1, []string{"q", "k", "v"}, q, kv, kv)
	from := [2]string{"q", "k"}
	if g.QKNorm {
		plain := norm.RMS(norm.Plain, float32(g.Epsilon))
		for i, heads := range [...]int{g.Heads, g.KVHeads} {
			name := from[i]
			g.heads(name, heads, g.HeadDim, name+"_heads")
			g.b.AddSpec(plain, []string{name + "_heads", "head_gamma"}, []string{name + "_norm"})
			g.flat(name+"_norm", name+"_flat")
			from[i] = name + "_flat"
		}
	}
	g.rotate(from[0], from[1])
	g.heads("q_rot", g.Heads, g.HeadDim, "query")
	g.heads("k_rot", g.KVHeads, g.HeadDim, "key")
	g.heads("v", g.KVHeads, g.HeadDim, "value")
	g.b.AddSpec(cache.DefaultReshapeAndCache(), []string{"key", "value", "k_cache", "v_cache", "slots"}, []string{"k_cache", "v_cache"})
	if g.prompt > 0 {
		g.encode("query", "key", "value", g.HeadDim)
		return
	}
	p := attention.DefaultPagedAttention()
	p.HeadNum, p.KVHeadNum, p.QKScale = g.Heads, g.KVHeads, g.scale(g.HeadDim)
	g.b.AddSpec(p, []string{"query", "k_cache", "v_cache", "tables", "contexts"}, []string{"att_heads"})
	g.flat("att_heads", "att")
}

func (g *layerBuilder) scale(width int) float32 { return float32(1 / math.Sqrt(float64(width))) }

// encode is attention of a whole prompt over itself.
func (g *layerBuilder) encode(q, k, v string, width int) {
	p := attention.DefaultSelfAttention()
	p.CalcType, p.MaskType = attention.SelfPAEncoder, attention.SelfMaskCausal
	p.HeadNum, p.KVHeadNum, p.QKScale = g.Heads, g.KVHeads, g.scale(width)
	g.b.AddSpec(p, []string{q, k, v, "contexts"}, []string{"att_heads"})
	g.flat("att_heads", "att")
}

// latent is attention with a cache of compressed keys and values, whose expansion
// is absorbed into the queries and applied to the results.
func (g *layerBuilder) latent() {
	l := g.Latent
	each := linear.DefaultLinear()
	each.HasBias, each.TransposeB, each.MatmulType = false, false, linear.MatmulEinSum
	g.product("h", "w_q", "q")
	g.heads("q", g.Heads, g.HeadDim+l.Rope, "q_heads")
	g.split("q_heads", 2, []string{"q_plain", "q_pos"}, g.HeadDim, l.Rope)
	g.product("h", "w_kv", "kv_joint")
	g.split("kv_joint", 1, []string{"c", "k_pos"}, l.Rank, l.Rope)
	g.b.AddSpec(norm.RMS(norm.Plain, float32(g.Epsilon)), []string{"c", "head_gamma"}, []string{"c_norm"})
	g.flat("q_pos", "q_pos_flat")
	g.rotate("q_pos_flat", "k_pos")
	g.heads("q_rot", g.Heads, l.Rope, "q_rot_heads")
	g.b.AddSpec(each, []string{"q_plain", "absorb"}, []string{"q_abs"})
	g.join(2, "q_abs", "q_rot_heads", "query")
	g.join(1, "c_norm", "k_rot", "key_flat")
	g.heads("key_flat", 1, l.Rank+l.Rope, "key")
	write := cache.DefaultReshapeAndCache()
	write.KVCacheCfg = cache.KeyOnly
	g.b.AddSpec(write, []string{"key", "latent_cache", "slots"}, []string{"latent_cache"})
	if g.prompt > 0 {
		p := attention.DefaultSelfAttention()
		p.CalcType, p.MLAVHeadSize = attention.SelfPAEncoder, l.Rank
		// Causal, as a window that is longer than any sequence.
		p.MaskType, p.WindowSize = attention.SelfMaskSlidingWindowCompress, g.prompt
		p.HeadNum, p.KVHeadNum, p.QKScale = g.Heads, 1, g.scale(g.HeadDim+l.Rope)
		g.b.AddSpec(p, []string{"query", "key", "mask", "contexts"}, []string{"att_latent"})
	} else {
		p := attention.DefaultPagedAttention()
		p.HeadNum, p.KVHeadNum, p.QKScale, p.MLAVHeadSize = g.Heads, 1, g.scale(g.HeadDim+l.Rope), l.Rank
		g.b.AddSpec(p, []string{"query", "latent_cache", "tables", "contexts"}, []string{"att_latent"})
	}
	g.b.AddSpec(each, []string{"att_latent", "expand"}, []string{"att_heads"})
	g.flat("att_heads", "att")
}

// embedInputs and headInputs are the inputs of the two ends of a step.
var (
	embedInputs = []string{"table", "cosines", "sines", "ids", "positions"}
	headInputs  = []string{"last", "gamma", "classifier"}
)

// addEmbed looks up embeddings and rotary angles.
func addEmbed(b *atb.GraphBuilder, x string) {
	b.AddSpec(shape.DefaultGather(), []string{"table", "ids"}, []string{x})
	b.AddSpec(shape.DefaultGather(), []string{"cosines", "positions"}, []string{"cos"})
	b.AddSpec(shape.DefaultGather(), []string{"sines", "positions"}, []string{"sin"})
}

// addHead computes the logits of chosen rows.
func (s *Shape) addHead(b *atb.GraphBuilder, x string) {
	b.AddSpec(shape.DefaultGather(), []string{x, "last"}, []string{"rows"})
	b.AddSpec(norm.RMS(norm.Plain, float32(s.Epsilon)), []string{"rows", "gamma"}, []string{"h"})
	p := linear.DefaultLinear()
	p.HasBias = false
	b.AddSpec(p, []string{"h", "classifier"}, []string{"logits"})
}

func embedGraph() (*atb.Op, error) {
	b := atb.BuildGraph("embed", embedInputs, []string{"x", "cos", "sin"})
	addEmbed(b, "x")
	return b.Build()
}

func (s *Shape) headGraph() (*atb.Op, error) {
	b := atb.BuildGraph("head", append([]string{"x"}, headInputs...), []string{"logits"})
	s.addHead(b, "x")
	return b.Build()
}
