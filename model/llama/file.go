package llama

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"goatb/device"
)

// headerInts is the number of int32 at the start of a llama2.c file.
const headerInts = 7

// LoadDir reads the model of a folder: the one *.bin file that is not a
// tokenizer (tok*.bin), in the format of llama2.c, and the tokenizer.
func LoadDir(dir string) (*Weights, *Tokenizer, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("model folder: %w", err)
	}
	var model, tok string
	for _, f := range files {
		name := f.Name()
		if f.IsDir() || filepath.Ext(name) != ".bin" {
			continue
		}
		isTok, _ := filepath.Match("tok*.bin", name)
		switch {
		case isTok && tok == "":
			tok = filepath.Join(dir, name)
		case !isTok && model == "":
			model = filepath.Join(dir, name)
		default:
			return nil, nil, fmt.Errorf("model folder %s: want one model and one tokenizer, found another file %s", dir, name)
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
	if err != nil {
		return nil, nil, err
	}
	return w, t, nil
}

// LoadFile reads a model in the format of llama2.c: seven int32 (dim, hidden,
// layers, heads, kv heads, vocab, max seq; a negative vocab means a classifier
// of its own), then float32 tensors, each for all layers in turn. A file that
// is not exactly as long as its header says is an error.
func LoadFile(path string) (*Weights, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	w, err := parseModel(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return w, nil
}

// parseModel reads a file that lies in memory, 4-byte aligned, which the
// weights share.
func parseModel(b []byte) (*Weights, error) {
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
	n, err := c.floats()
	if err != nil {
		return nil, err
	}
	if want := 4 * (headerInts + n); int64(len(b)) != want {
		return nil, fmt.Errorf("model file: a header of dim %d, hidden %d, %d layers, vocab %d and max_seq %d wants %d bytes, got %d",
			c.Dim, c.Hidden, c.Layers, c.Vocab, c.MaxSeq, want, len(b))
	}
	return cut(c, device.View[float32](b[4*headerInts:])), nil
}

// cut cuts the tensors out of a file's data, whose length was checked.
func cut(c Config, data []float32) *Weights {
	take := func(n int) []float32 {
		f := data[:n:n]
		data = data[n:]
		return f
	}
	w := &Weights{Config: c, Layers: make([]LayerWeights, c.Layers)}
	_ = c.each(func(t Tensor, layer int) error {
		if t == Classifier {
			take(c.MaxSeq * c.HeadDim()) // frequencies of the rotary embedding, which ropeTables computes
		}
		rows, cols := c.Size(t)
		*w.at(t, layer) = take(rows * cols)
		return nil
	})
	if c.SharedClassifier {
		w.Classifier = w.Embedding
	}
	return w
}
