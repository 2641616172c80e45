package llama

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"goatb/device"
)

// Weights are a model's float32 weights. Matrices are [out, in], row-major.
type Weights struct {
	Config Config
	// Embedding is [vocab, dim], FinalNorm [dim], Classifier [vocab, dim].
	Embedding, FinalNorm, Classifier []float32
	Layers                           []LayerWeights
}

// LayerWeights are the weights of one layer.
type LayerWeights struct {
	// AttnNorm and FFNNorm are [dim].
	AttnNorm, FFNNorm []float32
	// WQ is [dim, dim], WK and WV [kv dim, dim], WO [dim, dim].
	WQ, WK, WV, WO []float32
	// W1 and W3 are [hidden, dim], W2 is [dim, hidden].
	W1, W2, W3 []float32
}

// headerInts is the number of int32 at the start of a llama2.c file.
const headerInts = 7

// LoadDir reads the model of a folder: the one *.bin file that is not a
// tokenizer (tok*.bin), in the format of llama2.c, and the tokenizer.
func LoadDir(dir string) (*Weights, *Tokenizer, error) {
	models, err := filepath.Glob(filepath.Join(dir, "*.bin"))
	if err != nil {
		return nil, nil, err
	}
	var model, tok string
	for _, f := range models {
		isTok, _ := filepath.Match("tok*.bin", filepath.Base(f))
		switch {
		case isTok && tok == "":
			tok = f
		case !isTok && model == "":
			model = f
		default:
			return nil, nil, fmt.Errorf("model folder %s: want one model and one tokenizer, found another file %s", dir, filepath.Base(f))
		}
	}
	if model == "" || tok == "" {
		return nil, nil, fmt.Errorf("model folder %s: want a *.bin model and a tok*.bin tokenizer", dir)
	}
	w, err := LoadFile(model)
	if err != nil {
		return nil, nil, err
	}
	t, err := LoadTokenizer(tok, w.Config.Vocab)
	return w, t, err
}

// LoadFile reads a model in the format of llama2.c: seven int32 (dim, hidden,
// layers, heads, kv heads, vocab, max seq; a negative vocab means a classifier
// of its own), then float32 tensors, each for all layers in turn.
func LoadFile(path string) (*Weights, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	w, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return w, nil
}

func parse(b []byte) (*Weights, error) {
	if len(b) < headerInts*4 {
		return nil, fmt.Errorf("model file: want a header of %d bytes, got %d", headerInts*4, len(b))
	}
	var h [headerInts]int
	for i := range h {
		h[i] = int(int32(binary.LittleEndian.Uint32(b[4*i:])))
	}
	c := Config{Dim: h[0], Hidden: h[1], Layers: h[2], Heads: h[3], KVHeads: h[4], Vocab: h[5], MaxSeq: h[6],
		Epsilon: 1e-5, RopeBase: 10000, SharedClassifier: h[5] > 0}
	c.Vocab = max(c.Vocab, -c.Vocab)
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return cut(c, b[headerInts*4:])
}

// cut cuts the tensors out of the file's data.
func cut(c Config, b []byte) (*Weights, error) {
	var err error
	take := func(name string, sizes ...int) []float32 {
		if err != nil {
			return nil
		}
		n := 1
		for _, s := range sizes {
			if n > math.MaxInt/4/s {
				err = fmt.Errorf("model file: %s is too large", name)
				return nil
			}
			n *= s
		}
		if len(b)/4 < n {
			err = fmt.Errorf("model file: truncated: %s wants %d floats, %d are left", name, n, len(b)/4)
			return nil
		}
		f := device.View[float32](b[:4*n])
		b = b[4*n:]
		return f
	}
	w := &Weights{Config: c, Layers: make([]LayerWeights, c.Layers)}
	w.Embedding = take("embedding", c.Vocab, c.Dim)
	for _, t := range layerTensors(&c) {
		all := take(t.name, c.Layers, t.rows, t.cols)
		if err != nil {
			return nil, err
		}
		n := t.rows * t.cols
		for l := range w.Layers {
			*t.at(&w.Layers[l]) = all[l*n : (l+1)*n : (l+1)*n]
		}
	}
	w.FinalNorm = take("final norm", c.Dim)
	take("cosine table", c.MaxSeq, c.HeadDim()/2)
	take("sine table", c.MaxSeq, c.HeadDim()/2)
	w.Classifier = w.Embedding
	if !c.SharedClassifier {
		w.Classifier = take("classifier", c.Vocab, c.Dim)
	}
	if err == nil && len(b) != 0 {
		err = fmt.Errorf("model file: %d bytes after the last tensor", len(b))
	}
	return w, err
}

// layerTensor is one kind of tensor that every layer has.
type layerTensor struct {
	name       string
	rows, cols int
	at         func(*LayerWeights) *[]float32
}

// layerTensors lists them in file order.
func layerTensors(c *Config) []layerTensor {
	return []layerTensor{
		{"attention norm", 1, c.Dim, func(l *LayerWeights) *[]float32 { return &l.AttnNorm }},
		{"wq", c.Dim, c.Dim, func(l *LayerWeights) *[]float32 { return &l.WQ }},
		{"wk", c.KVDim(), c.Dim, func(l *LayerWeights) *[]float32 { return &l.WK }},
		{"wv", c.KVDim(), c.Dim, func(l *LayerWeights) *[]float32 { return &l.WV }},
		{"wo", c.Dim, c.Dim, func(l *LayerWeights) *[]float32 { return &l.WO }},
		{"ffn norm", 1, c.Dim, func(l *LayerWeights) *[]float32 { return &l.FFNNorm }},
		{"w1", c.Hidden, c.Dim, func(l *LayerWeights) *[]float32 { return &l.W1 }},
		{"w2", c.Dim, c.Hidden, func(l *LayerWeights) *[]float32 { return &l.W2 }},
		{"w3", c.Hidden, c.Dim, func(l *LayerWeights) *[]float32 { return &l.W3 }},
	}
}

// Random makes a model of the given shape with seeded random weights.
func Random(c Config, seed uint64) (*Weights, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, 0x60a7b))
	fill := func(n int, scale float64) []float32 {
		f := make([]float32, n)
		for i := range f {
			f[i] = float32(rng.NormFloat64() * scale)
		}
		return f
	}
	norm := func() []float32 {
		f := fill(c.Dim, 0.1)
		for i := range f {
			f[i]++
		}
		return f
	}
	w := &Weights{Config: c, Embedding: fill(c.Vocab*c.Dim, 0.5), FinalNorm: norm(), Layers: make([]LayerWeights, c.Layers)}
	for l := range w.Layers {
		for _, t := range layerTensors(&c) {
			f := norm
			if t.rows > 1 {
				f = func() []float32 { return fill(t.rows*t.cols, 1/math.Sqrt(float64(t.cols))) }
			}
			*t.at(&w.Layers[l]) = f()
		}
	}
	w.Classifier = w.Embedding
	if !c.SharedClassifier {
		w.Classifier = fill(c.Vocab*c.Dim, 1/math.Sqrt(float64(c.Dim)))
	}
	return w, nil
}

// Bytes returns the size of the weights as float32.
func (w *Weights) Bytes() int64 {
	n := len(w.Embedding) + len(w.FinalNorm)
	if !w.Config.SharedClassifier {
		n += len(w.Classifier)
	}
	for l := range w.Layers {
		for _, t := range layerTensors(&w.Config) {
			n += len(*t.at(&w.Layers[l]))
		}
	}
	return 4 * int64(n)
}
