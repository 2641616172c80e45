package llama

import (
	"errors"
	"math"

	"goatb/atb"
	"goatb/status"
	"goatb/tensor"
)

// Model is a model's weights on a device. Sessions of any context of that device
// may share it. It is immutable.
type Model struct {
	Config Config
	Format
	// checks are those of the context that uploaded it.
	checks string
	// ropeType is the type of the cosine and sine tables.
	ropeType atb.DType
	// embedding is the classifier where that shares its values and is packed.
	embedding, classifier matrix
	finalNorm, cos, sin   atb.Tensor
	// attnNorms and ffnNorms hold the norms of all layers, one behind the other.
	attnNorms, ffnNorms atb.Tensor
	layers              []layerOnDevice
	memory              memory
	closed              bool
}

// matrix is a matrix on the device: one tensor, or two with scales.
type matrix struct {
	layout
	tensors []atb.Tensor
}

// layerOnDevice are a layer's weights on the device. matrices are those of
// matrixNames.
type layerOnDevice struct {
	attnNorm, ffnNorm atb.Tensor
	matrices          []matrix
}

// layerMatrices are the matrices of a layer. Tensors that one product multiplies
// the same rows with are stacked.
func layerMatrices(layer int) [][]source {
	var list [][]source
	for _, of := range [...][]Tensor{{WQ, WK, WV}, {WO}, {W1, W3}, {W2}} {
		var from []source
		for _, t := range of {
			from = append(from, source{t, layer})
		}
		list = append(list, from)
	}
	return list
}

// Upload copies weights to the context's device, rounded once to the type t:
// f32, f16 or bf16. It is UploadAs with all weights of type t.
func Upload(c *atb.Context, src Source, t atb.DType) (*Model, error) {
	return UploadAs(c, src, Format{DType: t})
}

// UploadAs copies weights to the context's device in a format. Under native checks
// matrices are packed for products, see linear.PackWeight, and a classifier that
// shares its values with the embedding is there once. Weights pass in pieces of a
// few megabytes: no other copy is made. Errors: nil arguments, a configuration that
// makes no model, a format that there is not, those of the source and of the
// device, and under Int8 and Int4 an infinity or NaN in a matrix.
func UploadAs(c *atb.Context, src Source, f Format) (*Model, error) {
	if err := status.Given("upload", "context", c, "weights", src); err != nil {
		return nil, err
	}
	cfg := src.Model()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := f.validate(c.Checks()); err != nil {
		return nil, err
	}
	m := &Model{Config: cfg, Format: f, checks: c.Checks(), ropeType: f.DType, memory: memory{c: c, dev: c.Device()}}
	if f.DType == tensor.Float16 {
		m.ropeType = tensor.Float32
	}
	l, err := newLoader(m, src)
	if err != nil {
		return nil, err
	}
	l.model()
	if err := l.close(); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// model loads everything.
func (l *loader) model() {
	m := l.m
	cfg := &m.Config
	classifier := Classifier
	if cfg.SharedClassifier {
		classifier = Embedding
	}
	m.classifier = l.matrix(source{t: classifier})
	m.embedding = m.classifier
	if !cfg.SharedClassifier {
		m.embedding = l.matrix(source{t: Embedding})
	}
	m.finalNorm = l.vector(FinalNorm, 1)
	m.attnNorms, m.ffnNorms = l.vector(AttnNorm, cfg.Layers), l.vector(FFNNorm, cfg.Layers)
	for i := range cfg.Layers {
		w := layerOnDevice{attnNorm: part(m.attnNorms, cfg.Layers, i), ffnNorm: part(m.ffnNorms, cfg.Layers, i)}
		for _, from := range layerMatrices(i) {
			w.matrices = append(w.matrices, l.matrix(from...))
		}
		m.layers = append(m.layers, w)
	}
	cos, sin := ropeTables(cfg)
	m.cos = l.floatsOf(m.ropeType, cos, int64(cfg.MaxSeq), int64(cfg.HeadDim()))
	m.sin = l.floatsOf(m.ropeType, sin, int64(cfg.MaxSeq), int64(cfg.HeadDim()))
}

// Bytes returns the size of the weights on the device, tables of the rotary
// embedding included.
func (m *Model) Bytes() int64 {
	if m == nil {
		return 0
	}
	return m.memory.bytes()
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
