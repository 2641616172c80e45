package llama

import (
	"fmt"

	"goatb/status"
)

// Tensor names a tensor of a model.
type Tensor uint8

// Tensors of a model; those from AttnNorm on are there for each layer.
const (
	// Embedding and Classifier are [vocab, dim]; a classifier that is the embedding
	// is not asked for.
	Embedding Tensor = iota
	Classifier
	// FinalNorm, AttnNorm and FFNNorm are [1, dim].
	FinalNorm
	AttnNorm
	// WQ and WO are [dim, dim], WK and WV [kv dim, dim].
	WQ
	WK
	WV
	WO
	FFNNorm
	// W1 and W3 are [hidden, dim], W2 is [dim, hidden].
	W1
	W2
	W3
	tensors
)

// Source gives the weights of a model as float32, some rows of a tensor at a time,
// so that a model need not lie in memory as float32 before it is uploaded.
type Source interface {
	// Model returns the shape.
	Model() Config
	// Rows stores rows of a tensor from row from on in dst, whose length is a
	// multiple of the tensor's columns. layer is 0 for tensors of the whole model.
	// Several goroutines may call it at once.
	Rows(dst []float32, t Tensor, layer, from int) error
}

// Size returns the rows and columns of a tensor, 0 for one that there is not.
func (c *Config) Size(t Tensor) (rows, cols int) {
	if c == nil {
		return 0, 0
	}
	switch t {
	case Embedding, Classifier:
		return c.Vocab, c.Dim
	case FinalNorm, AttnNorm, FFNNorm:
		return 1, c.Dim
	case WQ, WO:
		return c.Dim, c.Dim
	case WK, WV:
		return c.KVDim(), c.Dim
	case W1, W3:
		return c.Hidden, c.Dim
	case W2:
		return c.Dim, c.Hidden
	}
	return 0, 0
}

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

// readAll reads all weights of a source, each tensor at once.
func readAll(src Source) (*Weights, error) {
	c := src.Model()
	w := &Weights{Config: c, Layers: make([]LayerWeights, c.Layers)}
	err := c.each(func(t Tensor, layer int) error {
		rows, cols := c.Size(t)
		x := w.at(t, layer)
		*x = make([]float32, rows*cols)
		return src.Rows(*x, t, layer, 0)
	})
	if err != nil {
		return nil, err
	}
	if c.SharedClassifier {
		w.Classifier = w.Embedding
	}
	return w, nil
}

// at returns where a tensor is kept; layers are those of the configuration.
func (w *Weights) at(t Tensor, layer int) *[]float32 {
	switch t {
	case Embedding:
		return &w.Embedding
	case Classifier:
		return &w.Classifier
	case FinalNorm:
		return &w.FinalNorm
	}
	l := &w.Layers[layer]
	return [...]*[]float32{
		AttnNorm: &l.AttnNorm, WQ: &l.WQ, WK: &l.WK, WV: &l.WV, WO: &l.WO, FFNNorm: &l.FFNNorm, W1: &l.W1, W2: &l.W2, W3: &l.W3,
	}[t]
}

// Model returns the shape of the model.
func (w *Weights) Model() Config {
	if w == nil {
		return Config{}
	}
	return w.Config
}

// Rows copies rows of a tensor. Errors: a tensor or rows that there are not, and a
// tensor that is not as long as the configuration says.
func (w *Weights) Rows(dst []float32, t Tensor, layer, from int) error {
	if err := status.Given("rows", "weights", w); err != nil {
		return err
	}
	if len(w.Layers) != w.Config.Layers {
		return fmt.Errorf("rows: want the weights of %d layers, got %d", w.Config.Layers, len(w.Layers))
	}
	if err := w.Config.wantRows(t, layer, from, len(dst)); err != nil {
		return err
	}
	rows, cols := w.Config.Size(t)
	f := *w.at(t, layer)
	if int64(len(f)) != int64(rows)*int64(cols) {
		return fmt.Errorf("rows: want %d x %d elements in tensor %d of layer %d, got %d", rows, cols, t, layer, len(f))
	}
	copy(dst, f[from*cols:])
	return nil
}

// layersOf returns how often a tensor is there: once or for each layer.
func (c *Config) layersOf(t Tensor) int {
	if t < AttnNorm {
		return 1
	}
	return c.Layers
}

// wantRows refuses rows that a tensor does not have, n elements from row from on.
func (c *Config) wantRows(t Tensor, layer, from, n int) error {
	rows, cols := c.Size(t)
	if rows <= 0 || cols <= 0 || layer < 0 || layer >= c.layersOf(t) || from < 0 || n%cols != 0 || n/cols > rows-from {
		return fmt.Errorf("rows: tensor %d of layer %d has no %d elements from row %d on", t, layer, n, from)
	}
	return nil
}

// each visits the tensors of a model in the order of this package's files: those
// of all layers by tensor, then by layer.
func (c *Config) each(visit func(t Tensor, layer int) error) error {
	order := []Tensor{Embedding, AttnNorm, WQ, WK, WV, WO, FFNNorm, W1, W2, W3, FinalNorm}
	if !c.SharedClassifier {
		order = append(order, Classifier)
	}
	for _, t := range order {
		for l := range c.layersOf(t) {
			if err := visit(t, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// Bytes returns the size of the weights as float32.
func (w *Weights) Bytes() int64 {
	if w == nil || len(w.Layers) != w.Config.Layers {
		return 0
	}
	n := int64(0)
	_ = w.Config.each(func(t Tensor, layer int) error {
		n += int64(len(*w.at(t, layer)))
		return nil
	})
	return 4 * n
}
