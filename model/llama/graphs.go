package llama

import (
	"math"
	"slices"
	"strconv"

	"goatb/atb"
	"goatb/operation/activation"
	"goatb/operation/attention"
	"goatb/operation/cache"
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

// layerInputs are the inputs of a layer graph, in order. The first layer lacks
// "added".
var layerInputs = [...]string{
	"x", "added", "cos", "sin", "lengths", "slots", "tables", "contexts",
	"attn_norm", "ffn_norm", "k_cache", "v_cache",
	"qkv", "wo", "gate_up", "down",
}

// Of the inputs of a layer those from firstOwn on are its own, and those from
// firstMatrix on come one by one also in the graph of a whole step.
const firstOwn, firstMatrix = 8, 12

// maxWhole is the number of layers whose inputs fit into one graph.
const maxWhole = 60

// layerGraph is one transformer layer over a paged cache. Each of its n rows is
// a query of its own: row i attends to the first contexts[i] positions of the
// sequence that its row of block tables describes.
//
// A layer leaves the sum of its residual stream to the norm behind it, which
// adds in passing: the stream is x + added.
//
//	inputs   layerInputs; x and added [n, dim], k_cache and v_cache [blocks, block size, kv heads, d]
//	         updated in place, slots [n], tables [n, max blocks], contexts [n] on the host
//	outputs  y and y_added [n, dim]
func layerGraph(c *Config, first bool) (*atb.Op, error) {
	in := layerInputs[:]
	if first {
		in = slices.Delete(slices.Clone(in), 1, 2)
	}
	b := atb.BuildGraph("layer", in, []string{"y", "y_added"})
	stream := "sum"
	if first {
		stream = "x"
		b.AddSpec(norm.RMS(norm.Plain, c.Epsilon), []string{"x", "attn_norm"}, []string{"h"})
	} else {
		b.AddSpec(norm.RMS(norm.Pre, c.Epsilon), []string{"added", "x", "attn_norm"}, []string{"h", stream})
	}
	addAttention(b, c)
	b.AddSpec(norm.RMS(norm.Pre, c.Epsilon), []string{"o", stream, "ffn_norm"}, []string{"f", "y"})
	b.AddSpec(project(), []string{"f", "gate_up"}, []string{"gu"})
	swiglu := activation.DefaultActivation()
	swiglu.Type = activation.SwiGLUForward
	b.AddSpec(swiglu, []string{"gu"}, []string{"act"})
	b.AddSpec(project(), []string{"act", "down"}, []string{"y_added"})
	return b.Build()
}

// addAttention adds what makes "o" of "h" to a layer graph. The queries, keys and
// values of one row lie in the product that makes them.
func addAttention(b *atb.GraphBuilder, c *Config) {
	d := int64(c.HeadDim())
	heads := func(n int) func(atb.Shape) atb.Shape {
		return func(s atb.Shape) atb.Shape { return tensor.ShapeOf(s.Dim(0), int64(n), d) }
	}
	flat := func(s atb.Shape) atb.Shape { return tensor.ShapeOf(s.Dim(0), s.Dim(1)*s.Dim(2)) }
	b.AddSpec(project(), []string{"h", "qkv"}, []string{"together"})
	apart := shape.Split{SplitDim: 1, SplitNum: 3, SplitSizes: []int64{int64(c.Dim), int64(c.KVDim()), int64(c.KVDim())}}
	b.AddSpec(apart, []string{"together"}, []string{"q", "k", "v"})
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
}

// headGraph computes the logits of chosen rows:
//
//	inputs   x and added [n, dim], rows [m], final_norm [dim], classifier [vocab, dim]
//	outputs  logits [m, vocab]
func headGraph(c *Config) (*atb.Op, error) {
	b := atb.BuildGraph("head", []string{"x", "added", "rows", "final_norm", "classifier"}, []string{"logits"})
	b.AddSpec(shape.DefaultGather(), []string{"x", "rows"}, []string{"last"})
	b.AddSpec(shape.DefaultGather(), []string{"added", "rows"}, []string{"last_added"})
	b.AddSpec(norm.RMS(norm.Pre, c.Epsilon), []string{"last_added", "last", "final_norm"}, []string{"h", "sum"})
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
	stream := func(i int) []string { return []string{"x" + strconv.Itoa(i), "added" + strconv.Itoa(i)} }
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
		op, err = layerGraph(c, i == 0)
		x, y := stream(i), stream(i+1)
		if i == 0 {
			x = x[:1]
		}
		err = add("layer"+strconv.Itoa(i), op, err, slices.Concat(x, []string{"cos", "sin"}, state, shared, own[i]), y)
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
	b.AddNamed("head", op, append(stream(c.Layers), head...), []string{"logits"})
	return b.Build()
}

// project is x times a [out, in] matrix, without bias.
func project() linear.Linear {
	p := linear.DefaultLinear()
	p.HasBias = false
	return p
}
