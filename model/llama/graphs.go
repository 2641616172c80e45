package llama

import (
	"math"
	"slices"
	"strconv"

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

// embedGraph looks up embeddings and rotary angles:
//
//	inputs   table [vocab, dim], cosines and sines [max seq, d], ids [n], positions [n]
//	outputs  x [n, dim], cos [n, d], sin [n, d]
func embedGraph() (*atb.Op, error) {
	b := atb.BuildGraph("embed", []string{"table", "cosines", "sines", "ids", "positions"}, []string{"x", "cos", "sin"})
	b.AddSpec(shape.DefaultGather(), []string{"table", "ids"}, []string{"x"})
	b.AddSpec(shape.DefaultGather(), []string{"cosines", "positions"}, []string{"cos"})
	b.AddSpec(shape.DefaultGather(), []string{"sines", "positions"}, []string{"sin"})
	return b.Build()
}

// layerInputs are the inputs of a layer graph, in order.
var layerInputs = [...]string{
	"x", "cos", "sin", "lengths", "slots", "tables", "contexts",
	"attn_norm", "ffn_norm", "k_cache", "v_cache",
	"wq", "wk", "wv", "wo", "gate_up", "down",
}

// Of the inputs of a layer those from firstOwn on are its own, and those from
// firstMatrix on come one by one also in the graph of a whole step.
const firstOwn, firstMatrix = 7, 11

// maxWhole is the number of layers whose inputs fit into one graph.
const maxWhole = 40

// layerGraph is one transformer layer over a paged cache. Each of its n rows is
// a query of its own: row i attends to the first contexts[i] positions of the
// sequence that its row of block tables describes.
//
//	inputs   layerInputs; x [n, dim], k_cache and v_cache [blocks, block size, kv heads, d]
//	         updated in place, slots [n], tables [n, max blocks], contexts [n] on the host
//	outputs  y [n, dim]
func layerGraph(c *Config) (*atb.Op, error) {
	d := int64(c.HeadDim())
	b := atb.BuildGraph("layer", layerInputs[:], []string{"y"})
	heads := func(n int) func(atb.Shape) atb.Shape {
		return func(s atb.Shape) atb.Shape { return tensor.ShapeOf(s.Dim(0), int64(n), d) }
	}
	flat := func(s atb.Shape) atb.Shape { return tensor.ShapeOf(s.Dim(0), s.Dim(1)*s.Dim(2)) }
	rms := norm.RMS(norm.Plain, c.Epsilon)
	b.AddSpec(rms, []string{"x", "attn_norm"}, []string{"h"})
	b.AddSpec(project(), []string{"h", "wq"}, []string{"q"})
	b.AddSpec(project(), []string{"h", "wk"}, []string{"k"})
	b.AddSpec(project(), []string{"h", "wv"}, []string{"v"})
	pairs := rope.DefaultRope()
	pairs.RotaryCoeff = d
	b.AddSpec(pairs, []string{"q", "k", "cos", "sin", "lengths"}, []string{"q_rot", "k_rot"})
	b.Reshape("q_rot", heads(c.Heads), "q_heads")
	b.Reshape("k_rot", heads(c.KVHeads), "k_heads")
	b.Reshape("v", heads(c.KVHeads), "v_heads")
	b.AddSpec(cache.DefaultReshapeAndCache(), []string{"k_heads", "v_heads", "k_cache", "v_cache", "slots"}, []string{"k_cache", "v_cache"})
	paged := attention.DefaultPagedAttention()
	paged.HeadNum, paged.KVHeadNum = c.Heads, c.KVHeads
	paged.QKScale = float32(1 / math.Sqrt(float64(d)))
	b.AddSpec(paged, []string{"q_heads", "k_cache", "v_cache", "tables", "contexts"}, []string{"att_heads"})
	b.Reshape("att_heads", flat, "att")
	b.AddSpec(project(), []string{"att", "wo"}, []string{"o"})
	add := elementwise.Elewise{Type: elementwise.Add}
	b.AddSpec(add, []string{"x", "o"}, []string{"mid"})
	b.AddSpec(rms, []string{"mid", "ffn_norm"}, []string{"f"})
	b.AddSpec(project(), []string{"f", "gate_up"}, []string{"gu"})
	swiglu := activation.DefaultActivation()
	swiglu.Type = activation.SwiGLUForward
	b.AddSpec(swiglu, []string{"gu"}, []string{"act"})
	b.AddSpec(project(), []string{"act", "down"}, []string{"ffn"})
	b.AddSpec(add, []string{"mid", "ffn"}, []string{"y"})
	return b.Build()
}

// headGraph computes the logits of chosen rows:
//
//	inputs   x [n, dim], rows [m], final_norm [dim], classifier [vocab, dim]
//	outputs  logits [m, vocab]
func headGraph(c *Config) (*atb.Op, error) {
	rms := norm.RMS(norm.Plain, c.Epsilon)
	b := atb.BuildGraph("head", []string{"x", "rows", "final_norm", "classifier"}, []string{"logits"})
	b.AddSpec(shape.DefaultGather(), []string{"x", "rows"}, []string{"last"})
	b.AddSpec(rms, []string{"last", "final_norm"}, []string{"h"})
	b.AddSpec(project(), []string{"h", "classifier"}, []string{"logits"})
	return b.Build()
}

// stepGraph is a whole step:
//
//	inputs   those of embed, lengths, slots, tables, contexts, those of head but x,
//	         norms and caches of all layers, then the matrices of each layer
//	outputs  logits [m, vocab]
func stepGraph(c *Config) (*atb.Op, error) {
	embed := []string{"table", "cosines", "sines", "ids", "positions"}
	state := []string{"lengths", "slots", "tables", "contexts"}
	head := []string{"rows", "final_norm", "classifier"}
	shared := layerInputs[firstOwn:firstMatrix]
	in := slices.Concat(embed, state, head, shared)
	own := make([][]string, c.Layers)
	for i := range own {
		for _, name := range layerInputs[firstMatrix:] {
			own[i] = append(own[i], name+strconv.Itoa(i))
		}
		in = append(in, own[i]...)
	}
	b := atb.BuildGraph("step", in, []string{"logits"})
	add := func(name string, op *atb.Op, err error, in, out []string) error {
		if err == nil {
			b.AddNamed(name, op, in, out)
		}
		return err
	}
	op, err := embedGraph()
	err = add("embed", op, err, embed, []string{"x0", "cos", "sin"})
	for i := 0; i < c.Layers && err == nil; i++ {
		op, err = layerGraph(c)
		x, y := "x"+strconv.Itoa(i), "x"+strconv.Itoa(i+1)
		err = add("layer"+strconv.Itoa(i), op, err, slices.Concat([]string{x, "cos", "sin"}, state, shared, own[i]), []string{y})
		for _, name := range shared {
			b.Chunk(name, c.Layers, i)
		}
	}
	if err != nil {
		return nil, err
	}
	if op, err = headGraph(c); err != nil {
		return nil, err
	}
	b.AddNamed("head", op, append([]string{"x" + strconv.Itoa(c.Layers)}, head...), []string{"logits"})
	return b.Build()
}

// project is x times a [out, in] matrix, without bias.
func project() linear.Linear {
	p := linear.DefaultLinear()
	p.HasBias = false
	return p
}
