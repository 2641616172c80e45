package llama

import "fmt"

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

// HeadDim is the width of one head.
func (c *Config) HeadDim() int { return c.Dim / c.Heads }

// KVDim is the width of all key heads together.
func (c *Config) KVDim() int { return c.KVHeads * c.HeadDim() }

// maxDim bounds every size in a model file, so that a corrupt header cannot ask
// for absurd amounts of memory.
const maxDim = 1 << 24

// Validate checks that the sizes make a model.
func (c *Config) Validate() error {
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
	return nil
}
