package llama

import (
	"math"
	"slices"
	"strconv"

	"goatb/atb"
	"goatb/operation/activation"
	"goatb/operation/attention"
	"goatb/operation/cache"
	"goatb/operation/norm"
	"goatb/operation/rope"
	"goatb/operation/shape"
	"goatb/tensor"
)

// embedInputs are the inputs of embedGraph.
func (m *Model) embedInputs() []string {
	return append(m.embedding.names("table"), "cosines", "sines", "ids", "positions")
}

// embedGraph looks up embeddings and rotary angles:
//
//	inputs   table [vocab, dim] with its scales if any, cosines and sines [max seq, d], ids [n], positions [n]
//	outputs  x [n, dim], cos [n, d], sin [n, d]
func embedGraph(m *Model) (*atb.Op, error) {
	b := atb.BuildGraph("embed", m.embedInputs(), []string{"x", "cos", "sin"})
	m.embedding.addRows(b, "table", "ids", "x")
	b.AddSpec(shape.DefaultGather(), []string{"cosines", "positions"}, []string{"cos"})
	b.AddSpec(shape.DefaultGather(), []string{"sines", "positions"}, []string{"sin"})
	return b.Build()
}

// kind tells which rows the graphs of a step take.
type kind int

const (
	// single has one row of every sequence.
	single kind = iota
	// prompt has several rows of a sequence, its last positions, one after the other.
	prompt

	kinds
)

// The names of the graphs of a kind.
var (
	stepNames  = [kinds]string{"step", "prompt"}
	layerNames = [kinds]string{"layer", "prompt_layer"}
)

// streamInputs are the inputs of a layer that the one before it makes, and the rotary
// angles. The first layer lacks "added".
var streamInputs = []string{"x", "added", "cos", "sin"}

// ownInputs are the inputs of a layer that are its own, but for its matrices.
var ownInputs = []string{"attn_norm", "ffn_norm", "k_cache", "v_cache"}

// state are the inputs that all layers share.
func (k kind) state() []string {
	names := []string{"lengths", "slots", "tables", "contexts"}
	if k == prompt {
		names = append(names, "queries")
	}
	return names
}

// The matrices of a layer, in the order of layerMatrices.
const (
	qkv = iota
	wo
	gateUp
	down
)

var matrixNames = [...]string{"qkv", "wo", "gate_up", "down"}

// matrixInputs are the inputs of a layer that hold its matrices, with scales if any.
func (m *Model) matrixInputs() []string {
	var names []string
	for i, from := range layerMatrices(0) {
		names = append(names, m.layout(from...).names(matrixNames[i])...)
	}
	return names
}

// maxInputs is the number of inputs of a graph.
const maxInputs = 256

// fitsWhole reports whether the inputs of a whole step fit into one graph.
func (m *Model) fitsWhole() bool {
	return len(m.stepInputs(prompt))+m.Config.Layers*len(m.matrixInputs()) <= maxInputs
}

// layerBuilder builds a layer graph.
type layerBuilder struct {
	m        *Model
	b        *atb.GraphBuilder
	products products
}

// product adds y = x times a matrix of the layer.
func (l *layerBuilder) product(matrix int, x, y string) {
	l.products.add(l.m.layout(layerMatrices(0)[matrix]...), x, matrixNames[matrix], y)
}

// layerGraph is one transformer layer over a paged cache. Its n rows are those of
// b sequences, whose rows of block tables say where their positions lie. Of kind
// single, row i attends to the first contexts[i] positions of sequence i. Of kind
// prompt, sequence i has queries[i] rows, the last of its contexts[i] positions, and
// each attends to the positions up to its own; the bits are the same.
//
// A layer leaves the sum of its residual stream to the norm behind it, which
// adds in passing: the stream is x + added.
//
//	inputs   streamInputs, state, ownInputs and matrixInputs; x and added [n, dim],
//	         k_cache and v_cache [blocks, block size, kv heads, d] updated in place,
//	         slots [n], tables [b, max blocks], contexts and queries [b] on the host
//	outputs  y and y_added [n, dim]
func layerGraph(m *Model, k kind, first bool) (*atb.Op, error) {
	in := slices.Concat(streamInputs, k.state(), ownInputs, m.matrixInputs())
	if first {
		in = slices.Delete(in, 1, 2)
	}
	l := layerBuilder{m: m, b: atb.BuildGraph(layerNames[k], in, []string{"y", "y_added"})}
	l.products = productsOf(l.b)
	stream, epsilon := "sum", m.Config.Epsilon
	if first {
		stream = "x"
		l.b.AddSpec(norm.RMS(norm.Plain, epsilon), []string{"x", "attn_norm"}, []string{"h"})
	} else {
		l.b.AddSpec(norm.RMS(norm.Pre, epsilon), []string{"added", "x", "attn_norm"}, []string{"h", stream})
	}
	l.attention(k)
	l.b.AddSpec(norm.RMS(norm.Pre, epsilon), []string{"o", stream, "ffn_norm"}, []string{"f", "y"})
	l.product(gateUp, "f", "gu")
	swiglu := activation.DefaultActivation()
	swiglu.Type = activation.SwiGLUForward
	l.b.AddSpec(swiglu, []string{"gu"}, []string{"act"})
	l.product(down, "act", "y_added")
	return l.b.Build()
}

// attention adds what makes "o" of "h". The queries, keys and values of one row lie
// in the product that makes them.
func (l *layerBuilder) attention(k kind) {
	b, c := l.b, &l.m.Config
	d := int64(c.HeadDim())
	heads := func(n int) func(atb.Shape) atb.Shape {
		return func(s atb.Shape) atb.Shape { return tensor.ShapeOf(s.Dim(0), int64(n), d) }
	}
	flat := func(s atb.Shape) atb.Shape { return tensor.ShapeOf(s.Dim(0), s.Dim(1)*s.Dim(2)) }
	l.product(qkv, "h", "together")
	apart := shape.Split{SplitDim: 1, SplitNum: 3, SplitSizes: []int64{int64(c.Dim), int64(c.KVDim()), int64(c.KVDim())}}
	b.AddSpec(apart, []string{"together"}, []string{"q", "k", "v"})
	pairs := rope.DefaultRope()
	pairs.RotaryCoeff = d
	b.AddSpec(pairs, []string{"q", "k", "cos", "sin", "lengths"}, []string{"q_rot", "k_rot"})
	b.Reshape("q_rot", heads(c.Heads), "q_heads")
	b.Reshape("k_rot", heads(c.KVHeads), "k_heads")
	b.Reshape("v", heads(c.KVHeads), "v_heads")
	b.AddSpec(cache.DefaultReshapeAndCache(), []string{"k_heads", "v_heads", "k_cache", "v_cache", "slots"}, []string{"k_cache", "v_cache"})
	l.attend(k)
	b.Reshape("att_heads", flat, "att")
	l.product(wo, "att", "o")
}

// attend adds what makes "att_heads" of "q_heads" and the caches.
func (l *layerBuilder) attend(k kind) {
	c, out := &l.m.Config, []string{"att_heads"}
	scale := float32(1 / math.Sqrt(float64(c.HeadDim())))
	if k == prompt {
		p := attention.DefaultSelfAttention()
		p.CalcType, p.MaskType, p.IsTriuMask = attention.SelfPrefixEncoder, attention.SelfMaskCausal, 1
		p.KernelType = attention.KernelHighPrecision
		p.HeadNum, p.KVHeadNum, p.QKScale = c.Heads, c.KVHeads, scale
		l.b.AddSpec(p, []string{"q_heads", "k_cache", "v_cache", "tables", "queries", "contexts"}, out)
		return
	}
	p := attention.DefaultPagedAttention()
	p.HeadNum, p.KVHeadNum, p.QKScale = c.Heads, c.KVHeads, scale
	l.b.AddSpec(p, []string{"q_heads", "k_cache", "v_cache", "tables", "contexts"}, out)
}

// headInputs are the inputs of headGraph but for x and added.
func (m *Model) headInputs() []string {
	return append([]string{"rows", "final_norm"}, m.classifier.names("classifier")...)
}

// headGraph computes the logits of chosen rows:
//
//	inputs   x and added [n, dim], rows [m], final_norm [dim], classifier [vocab, dim] with its scales if any
//	outputs  logits [m, vocab]
func headGraph(m *Model) (*atb.Op, error) {
	b := atb.BuildGraph("head", append([]string{"x", "added"}, m.headInputs()...), []string{"logits"})
	b.AddSpec(shape.DefaultGather(), []string{"x", "rows"}, []string{"last"})
	b.AddSpec(shape.DefaultGather(), []string{"added", "rows"}, []string{"last_added"})
	b.AddSpec(norm.RMS(norm.Pre, m.Config.Epsilon), []string{"last_added", "last", "final_norm"}, []string{"h", "sum"})
	productsOf(b).add(m.classifier.layout, "h", "classifier", "logits")
	return b.Build()
}

// stepInputs are the inputs of a whole step but for the matrices of its layers.
func (m *Model) stepInputs(k kind) []string {
	return slices.Concat(m.embedInputs(), k.state(), m.headInputs(), ownInputs)
}

// stepGraph is a whole step:
//
//	inputs   those of embed, the kind's state, those of head but x and added, norms
//	         and caches of all layers, then the matrices of each layer
//	outputs  logits [m, vocab]
func stepGraph(m *Model, k kind) (*atb.Op, error) {
	layers, in := m.Config.Layers, m.stepInputs(k)
	own := make([][]string, layers)
	for i := range own {
		for _, name := range m.matrixInputs() {
			own[i] = append(own[i], name+strconv.Itoa(i))
		}
		in = append(in, own[i]...)
	}
	stream := func(i int) []string { return []string{"x" + strconv.Itoa(i), "added" + strconv.Itoa(i)} }
	b := atb.BuildGraph(stepNames[k], in, []string{"logits"})
	add := func(name string, op *atb.Op, err error, in, out []string) error {
		if err == nil {
			b.AddNamed(name, op, in, out)
		}
		return err
	}
	op, err := embedGraph(m)
	err = add("embed", op, err, m.embedInputs(), []string{"x0", "cos", "sin"})
	for i := 0; i < layers && err == nil; i++ {
		op, err = layerGraph(m, k, i == 0)
		x, y := stream(i), stream(i+1)
		if i == 0 {
			x = x[:1]
		}
		err = add("layer"+strconv.Itoa(i), op, err, slices.Concat(x, []string{"cos", "sin"}, k.state(), ownInputs, own[i]), y)
		for _, name := range ownInputs {
			b.Chunk(name, layers, i)
		}
	}
	if err != nil {
		return nil, err
	}
	if op, err = headGraph(m); err != nil {
		return nil, err
	}
	b.AddNamed("head", op, append(stream(layers), m.headInputs()...), []string{"logits"})
	return b.Build()
}
