package llama

import (
	"math"
	"math/rand/v2"
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

// layerTensor is one kind of tensor that every layer has.
type layerTensor struct {
	rows, cols int
	at         func(*LayerWeights) *[]float32
}

// layerTensors lists them in file order.
func layerTensors(c *Config) []layerTensor {
	return []layerTensor{
		{1, c.Dim, func(l *LayerWeights) *[]float32 { return &l.AttnNorm }},
		{c.Dim, c.Dim, func(l *LayerWeights) *[]float32 { return &l.WQ }},
		{c.KVDim(), c.Dim, func(l *LayerWeights) *[]float32 { return &l.WK }},
		{c.KVDim(), c.Dim, func(l *LayerWeights) *[]float32 { return &l.WV }},
		{c.Dim, c.Dim, func(l *LayerWeights) *[]float32 { return &l.WO }},
		{1, c.Dim, func(l *LayerWeights) *[]float32 { return &l.FFNNorm }},
		{c.Hidden, c.Dim, func(l *LayerWeights) *[]float32 { return &l.W1 }},
		{c.Dim, c.Hidden, func(l *LayerWeights) *[]float32 { return &l.W2 }},
		{c.Hidden, c.Dim, func(l *LayerWeights) *[]float32 { return &l.W3 }},
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
	if w == nil {
		return 0
	}
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
