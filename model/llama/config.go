package llama

import (
	"fmt"
	"math"

	"goatb/status"
)

// Config is the shape of a Llama model.
type Config struct {
	// Dim is the width of the residual stream, Hidden that of the feed-forward.
	Dim, Hidden int
	Layers      int
	// Heads query heads share KVHeads key and value heads.
	Heads, KVHeads int
	Vocab, MaxSeq  int
	// Epsilon belongs to RMSNorm and RopeBase to the rotary embedding, which
	// turns neighbouring pairs (2i, 2i+1).
	Epsilon  float32
	RopeBase float64
	// SharedClassifier says that the head uses the embedding.
	SharedClassifier bool
}

// HeadDim is the width of one head, 0 without heads.
func (c *Config) HeadDim() int {
	if c == nil || c.Heads == 0 {
		return 0
	}
	return c.Dim / c.Heads
}

// KVDim is the width of all key heads together.
func (c *Config) KVDim() int {
	if c == nil {
		return 0
	}
	return c.KVHeads * c.HeadDim()
}

// maxDim bounds every size in a model file, so that a corrupt header cannot ask
// for absurd amounts of memory.
const maxDim = 1 << 24

// Validate checks that the sizes make a model.
func (c *Config) Validate() error {
	if err := status.Given("validate", "config", c); err != nil {
		return err
	}
	for _, f := range [...]struct {
		name string
		v    int
	}{{"dim", c.Dim}, {"hidden", c.Hidden}, {"layers", c.Layers}, {"heads", c.Heads}, {"kv_heads", c.KVHeads}, {"vocab", c.Vocab}, {"max_seq", c.MaxSeq}} {
		if f.v < 1 || f.v > maxDim {
			return fmt.Errorf("model: %s: want 1 to %d, got %d", f.name, maxDim, f.v)
		}
	}
	switch {
	case c.Dim%c.Heads != 0 || c.HeadDim()%2 != 0:
		return fmt.Errorf("model: dim %d does not make %d heads of an even width", c.Dim, c.Heads)
	case c.Heads%c.KVHeads != 0:
		return fmt.Errorf("model: %d heads do not share %d kv_heads evenly", c.Heads, c.KVHeads)
	case !(c.Epsilon > 0) || !(c.RopeBase > 0):
		return fmt.Errorf("model: want a positive epsilon and rope base, got %g and %g", c.Epsilon, c.RopeBase)
	}
	_, err := c.floats()
	return err
}

// floats returns the number of float32 in a model file of valid sizes, or an
// error when a slice cannot hold that many bytes.
func (c *Config) floats() (int64, error) {
	parts := [...][3]int{
		{1, c.Vocab, c.Dim},              // embedding
		{c.Layers, 2, c.Dim},             // norms
		{c.Layers, 2 * c.Dim, c.Dim},     // wq, wo
		{c.Layers, 2 * c.KVDim(), c.Dim}, // wk, wv
		{c.Layers, 3 * c.Hidden, c.Dim},  // w1, w2, w3
		{1, 1, c.Dim},                    // final norm
		{2, c.MaxSeq, c.HeadDim() / 2},   // cosines, sines
		{1, c.classifierRows(), c.Dim},   // classifier
	}
	total := int64(0)
	for _, p := range parts {
		if f := float64(total) + float64(p[0])*float64(p[1])*float64(p[2]); f > math.MaxInt/8 {
			return 0, fmt.Errorf("model: %.3g weights are too many for the address space", f)
		}
		total += int64(p[0]) * int64(p[1]) * int64(p[2])
	}
	return total, nil
}

// classifierRows is the number of rows of a classifier of its own.
func (c *Config) classifierRows() int {
	if c.SharedClassifier {
		return 0
	}
	return c.Vocab
}
