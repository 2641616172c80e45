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

// layerInputs are the inputs of a layer graph but for its matrices, in order. The
// first layer lacks "added".
var layerInputs = [...]string{
	"x", "added", "cos", "sin", "lengths", "slots", "tables", "contexts",
	"attn_norm", "ffn_norm", "k_cache", "v_cache",
}

// firstOwn is the first of the inputs of a layer that are its own.
const firstOwn = 8

// state are the inputs that all layers share.
var state = []string{"lengths", "slots", "tables", "contexts"}

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
	return len(m.stepInputs())+m.Config.Layers*len(m.matrixInputs()) <= maxInputs
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

// layerGraph is one transformer layer over a paged cache. Each of its n rows is
// a query of its own: row i attends to the first contexts[i] positions of the
// sequence that its row of block tables describes.
//
// A layer leaves the sum of its residual stream to the norm behind it, which
// adds in passing: the stream is x + added.
//
//	inputs   layerInputs and matrixInputs; x and added [n, dim], k_cache and v_cache
//	         [blocks, block size, kv heads, d] updated in place, slots [n],
//	         tables [n, max blocks], contexts [n] on the host
//	outputs  y and y_added [n, dim]
func layerGraph(m *Model, first bool) (*atb.Op, error) {
	in := slices.Concat(layerInputs[:], m.matrixInputs())
	if first {
		in = slices.Delete(in, 1, 2)
	}
	l := layerBuilder{m: m, b: atb.BuildGraph("layer", in, []string{"y", "y_added"})}
	l.products = productsOf(l.b)
	stream, epsilon := "sum", m.Config.Epsilon
	if first {
		stream = "x"
		l.b.AddSpec(norm.RMS(norm.Plain, epsilon), []string{"x", "attn_norm"}, []string{"h"})
	} else {
		l.b.AddSpec(norm.RMS(norm.Pre, epsilon), []string{"added", "x", "attn_norm"}, []string{"h", stream})
	}
	l.attention()
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
func (l *layerBuilder) attention() {
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
	paged := attention.DefaultPagedAttention()
	paged.HeadNum, paged.KVHeadNum = c.Heads, c.KVHeads
	paged.QKScale = float32(1 / math.Sqrt(float64(d)))
	b.AddSpec(paged, []string{"q_heads", "k_cache", "v_cache", "tables", "contexts"}, []string{"att_heads"})
	b.Reshape("att_heads", flat, "att")
	l.product(wo, "att", "o")
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
func (m *Model) stepInputs() []string {
	return slices.Concat(m.embedInputs(), state, m.headInputs(), layerInputs[firstOwn:])
}

// stepGraph is a whole step:
//
//	inputs   those of embed, lengths, slots, tables, contexts, those of head but x
//	         and added, norms and caches of all layers, then the matrices of each layer
//	outputs  logits [m, vocab]
func stepGraph(m *Model) (*atb.Op, error) {
	layers, shared, in := m.Config.Layers, layerInputs[firstOwn:], m.stepInputs()
	own := make([][]string, layers)
	for i := range own {
		for _, name := range m.matrixInputs() {
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
	op, err := embedGraph(m)
	err = add("embed", op, err, m.embedInputs(), []string{"x0", "cos", "sin"})
	for i := 0; i < layers && err == nil; i++ {
		op, err = layerGraph(m, i == 0)
		x, y := stream(i), stream(i+1)
		if i == 0 {
			x = x[:1]
		}
		err = add("layer"+strconv.Itoa(i), op, err, slices.Concat(x, []string{"cos", "sin"}, state, shared, own[i]), y)
		for _, name := range shared {
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
