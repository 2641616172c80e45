package llama

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"goatb/atb"
	"goatb/tensor"
)

// Model is a model's weights on a device, in one float type. Sessions of any
// context of that device may share it. It is immutable.
type Model struct {
	Config Config
	DType  atb.DType
	// ropeType is the type of the cosine and sine tables.
	ropeType                         atb.DType
	embedding, finalNorm, classifier atb.Tensor
	cos, sin                         atb.Tensor
	// attnNorms and ffnNorms hold the norms of all layers, one behind the other.
	attnNorms, ffnNorms atb.Tensor
	layers              []layerOnDevice
	memory              memory
	closed              bool
}

// layerOnDevice are a layer's weights on the device.
type layerOnDevice struct {
	attnNorm, ffnNorm     atb.Tensor
	qkv, wo, gateUp, down atb.Tensor
}

// Upload copies weights to the context's device, rounded once to the type t:
// f32, f16 or bf16. Matrices are packed for products, see linear.PackWeight; a
// classifier that shares its values with the embedding has a copy of its own.
func Upload(c *atb.Context, w *Weights, t atb.DType) (*Model, error) {
	if c == nil || w == nil {
		return nil, fmt.Errorf("upload: want a context and weights, got nil")
	}
	if err := w.Config.Validate(); err != nil {
		return nil, err
	}
	if len(w.Layers) != w.Config.Layers {
		return nil, fmt.Errorf("upload: want weights of %d layers, got %d", w.Config.Layers, len(w.Layers))
	}
	m := &Model{Config: w.Config, DType: t, ropeType: t, memory: memory{c: c, dev: c.Device()}}
	if t == tensor.Float16 {
		m.ropeType = tensor.Float32
	}
	u := uploader{m: m}
	cfg := &w.Config
	dim, vocab := int64(cfg.Dim), int64(cfg.Vocab)
	m.embedding = u.put(t, w.Embedding, vocab, dim)
	m.finalNorm = u.put(t, w.FinalNorm, dim)
	m.classifier = u.weight(t, w.Classifier, vocab, dim)
	var attn, ffn []float32
	for i := range w.Layers {
		attn, ffn = append(attn, w.Layers[i].AttnNorm...), append(ffn, w.Layers[i].FFNNorm...)
	}
	m.attnNorms, m.ffnNorms = u.put(t, attn, int64(len(attn))), u.put(t, ffn, int64(len(ffn)))
	for i := range w.Layers {
		l := u.layer(t, cfg, &w.Layers[i])
		l.attnNorm, l.ffnNorm = part(m.attnNorms, cfg.Layers, i), part(m.ffnNorms, cfg.Layers, i)
		m.layers = append(m.layers, l)
	}
	cos, sin := ropeTables(cfg)
	m.cos = u.put(m.ropeType, cos, int64(cfg.MaxSeq), int64(cfg.HeadDim()))
	m.sin = u.put(m.ropeType, sin, int64(cfg.MaxSeq), int64(cfg.HeadDim()))
	if u.err != nil {
		return nil, errors.Join(u.err, m.Close())
	}
	return m, nil
}

// uploader keeps the first error.
type uploader struct {
	m   *Model
	err error
}

func (u *uploader) put(t atb.DType, data []float32, dims ...int64) atb.Tensor {
	if u.err != nil {
		return atb.Tensor{}
	}
	x, err := u.m.memory.floats(t, data, dims...)
	u.err = err
	return x
}

// weight uploads a matrix that rows are multiplied with: packed, where the
// context's checks know packed weights.
func (u *uploader) weight(t atb.DType, data []float32, dims ...int64) atb.Tensor {
	x := u.put(t, data, dims...)
	if u.err == nil && u.m.memory.c.Checks() == "native" {
		x, u.err = u.m.memory.packed(x)
	}
	return x
}

// part is one of n equal parts of dimension 0 of a tensor.
func part(x atb.Tensor, n, i int) atb.Tensor {
	if x.Data.IsNil() {
		return x
	}
	x.Desc.Shape = x.Desc.Shape.With(0, x.Desc.Shape.Dim(0)/int64(n))
	size := x.Desc.Bytes()
	x.Data = x.Data.At(int64(i)*size, size)
	return x
}

// layer uploads the matrices of a layer. Those that one product multiplies the
// same rows with are stacked: wq, wk and wv, and w1 and w3.
func (u *uploader) layer(t atb.DType, c *Config, l *LayerWeights) layerOnDevice {
	dim, kv, hidden := int64(c.Dim), int64(c.KVDim()), int64(c.Hidden)
	return layerOnDevice{
		qkv: u.weight(t, slices.Concat(l.WQ, l.WK, l.WV), dim+2*kv, dim), wo: u.weight(t, l.WO, dim, dim),
		gateUp: u.weight(t, slices.Concat(l.W1, l.W3), 2*hidden, dim), down: u.weight(t, l.W2, dim, hidden),
	}
}

// ropeTables computes cos and sin of pos * base^(-2i/d), in float64, each twice
// for the pair (2i, 2i+1).
func ropeTables(c *Config) (cos, sin []float32) {
	d := c.HeadDim()
	cos, sin = make([]float32, c.MaxSeq*d), make([]float32, c.MaxSeq*d)
	for pos := range c.MaxSeq {
		for i := 0; i < d; i += 2 {
			s, k := math.Sincos(float64(pos) * math.Pow(c.RopeBase, -float64(i)/float64(d)))
			at := pos*d + i
			cos[at], cos[at+1] = float32(k), float32(k)
			sin[at], sin[at+1] = float32(s), float32(s)
		}
	}
	return cos, sin
}

// Close frees the weights; work that is enqueued may still use them. Sessions
// of the model refuse to go on. Closing twice is legal, also after the device.
func (m *Model) Close() error {
	if m == nil {
		return nil
	}
	m.closed = true
	return m.memory.free()
}
