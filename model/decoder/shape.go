package decoder

import (
	"fmt"
	"math"

	"goatb/status"
)

// Shape is the shape of a decoder model.
type Shape struct {
	Name   string
	Layers int
	// Hidden is the width of the residual stream, Intermediate that of the
	// feed-forward network.
	Hidden, Intermediate int
	// Heads query heads of width HeadDim share KVHeads key and value heads.
	Heads, KVHeads, HeadDim int
	Vocab                   int
	// Tied says that the head uses the embedding.
	Tied bool
	// QKNorm says that queries and keys are normalised by head.
	QKNorm bool
	// Epsilon belongs to the norms, RopeBase to the rotary embedding.
	Epsilon, RopeBase float64
	// Latent is set where keys and values are compressed to a latent vector.
	Latent Latent
	// Experts is set where the feed-forward network is a mixture of experts.
	Experts Experts
	// Parallel is the number of devices that share the model.
	Parallel int
}

// Latent is the shape of attention over a compressed cache: HeadDim of the shape
// is then the part of a head without position.
type Latent struct {
	// Rank is the width of the compressed vector, Rope that of the part with
	// position, Value that of a value head. Rank is 0 for ordinary attention.
	Rank, Rope, Value int
}

// Experts is the shape of a mixture of experts.
type Experts struct {
	// Count experts of width Width, Active of them for a token, and Shared of the
	// same width for every token. Count is 0 for a dense network.
	Count, Active, Shared, Width int
	// Dense is the number of layers at the start that have a dense network.
	Dense int
}

// maxSize bounds every size, so that products fit 64 bits.
const maxSize = 1 << 24

// Validate checks that the sizes make a model.
func (s *Shape) Validate() error {
	if err := status.Given("validate", "shape", s); err != nil {
		return err
	}
	for _, f := range [...]struct {
		name string
		v    int
	}{
		{"num_hidden_layers", s.Layers}, {"hidden_size", s.Hidden}, {"intermediate_size", s.Intermediate}, {"num_attention_heads", s.Heads},
		{"num_key_value_heads", s.KVHeads}, {"head_dim", s.HeadDim}, {"vocab_size", s.Vocab}, {"tensor-parallel degree", s.Parallel},
	} {
		if f.v < 1 || f.v > maxSize {
			return fmt.Errorf("model %s: %s: want 1 to %d, got %d", s.Name, f.name, maxSize, f.v)
		}
	}
	switch {
	case s.Layers > maxLayers:
		return fmt.Errorf("model %s: want at most %d layers, got %d", s.Name, maxLayers, s.Layers)
	case s.Heads%s.KVHeads != 0:
		return fmt.Errorf("model %s: %d heads do not share %d key and value heads evenly", s.Name, s.Heads, s.KVHeads)
	case s.ropeDim()%2 != 0:
		return fmt.Errorf("model %s: want an even width of the rotary embedding, got %d", s.Name, s.ropeDim())
	case !(s.Epsilon > 0) || !(s.RopeBase > 0):
		return fmt.Errorf("model %s: want a positive rms_norm_eps and rope_theta, got %g and %g", s.Name, s.Epsilon, s.RopeBase)
	case s.Latent != Latent{} && (s.Latent.Rank < 1 || s.Latent.Rope < 1 || s.Latent.Value < 1 || s.Latent.Rank > maxSize || s.Latent.Rope > maxSize || s.Latent.Value > maxSize):
		return fmt.Errorf("model %s: want positive kv_lora_rank, qk_rope_head_dim and v_head_dim, got %+v", s.Name, s.Latent)
	case s.Experts.Count > 0 && (s.Experts.Active < 1 || s.Experts.Active > s.Experts.Count || s.Experts.Width < 1 || s.Experts.Width > maxSize || s.Experts.Shared < 0 || s.Experts.Shared > maxSize || s.Experts.Count > maxSize):
		return fmt.Errorf("model %s: these experts make no network: %+v", s.Name, s.Experts)
	}
	return nil
}

// maxLayers bounds the graph of a whole model.
const maxLayers = 1024

func (s *Shape) ropeDim() int {
	if s.Latent.Rank > 0 {
		return s.Latent.Rope
	}
	return s.HeadDim
}

// Sharded returns the part of the shape that one of n devices holds: heads, the
// width of the feed-forward network and the vocabulary are cut, and so are key and
// value heads as far as there are enough.
func (s Shape) Sharded(n int) (Shape, error) {
	if n < 1 {
		return s, fmt.Errorf("model %s: want a tensor-parallel degree of at least 1, got %d", s.Name, n)
	}
	cut := func(what string, v *int) error {
		if *v%n != 0 {
			return fmt.Errorf("model %s: a tensor-parallel degree of %d does not divide %d %s", s.Name, n, *v, what)
		}
		*v /= n
		return nil
	}
	if s.KVHeads >= n {
		if err := cut("key and value heads", &s.KVHeads); err != nil {
			return s, err
		}
	} else {
		s.KVHeads = 1
	}
	parts := []struct {
		what string
		v    *int
	}{{"heads", &s.Heads}, {"columns of the feed-forward network", &s.Intermediate}, {"tokens of the vocabulary", &s.Vocab}}
	if s.Experts.Count > 0 {
		parts = append(parts, struct {
			what string
			v    *int
		}{"columns of an expert", &s.Experts.Width})
	}
	for _, p := range parts {
		if err := cut(p.what, p.v); err != nil {
			return s, err
		}
	}
	s.Parallel *= n
	return s, s.Validate()
}

// width is the width of the feed-forward network of a layer in a step of so many
// tokens.
func (s *Shape) width(layer, tokens int) int {
	e := &s.Experts
	if e.Count == 0 || layer < e.Dense {
		return s.Intermediate
	}
	share := float64(e.Active) / float64(e.Count)
	touched := float64(e.Count) * (1 - math.Pow(1-share, float64(tokens)))
	return (e.Shared + int(math.Round(touched))) * e.Width
}

// Bytes returns the bytes of the weights that a step of so many tokens reads, in a
// type of the given size.
func (s *Shape) Bytes(tokens int, size int64) int64 {
	if s == nil {
		return 0
	}
	total := int64(s.Vocab) * int64(s.Hidden)
	if !s.Tied {
		total *= 2
	}
	for l := range s.Layers {
		for _, w := range s.weights(l, tokens) {
			total += w.rows * w.cols * max(w.heads, 1)
		}
	}
	return total * size
}
