package decoder

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"goatb/internal/boundedfile"
)

//go:embed data/*.json
var builtin embed.FS

// config is what Hugging Face's config.json says about a decoder. Other keys are
// passed over.
type config struct {
	ModelType    string  `json:"model_type"`
	Hidden       int     `json:"hidden_size"`
	Intermediate int     `json:"intermediate_size"`
	Layers       int     `json:"num_hidden_layers"`
	Heads        int     `json:"num_attention_heads"`
	KVHeads      int     `json:"num_key_value_heads"`
	HeadDim      int     `json:"head_dim"`
	Vocab        int     `json:"vocab_size"`
	Tied         bool    `json:"tie_word_embeddings"`
	Epsilon      float64 `json:"rms_norm_eps"`
	RopeBase     float64 `json:"rope_theta"`

	Rank  int `json:"kv_lora_rank"`
	Rope  int `json:"qk_rope_head_dim"`
	NoPE  int `json:"qk_nope_head_dim"`
	Value int `json:"v_head_dim"`

	Routed      int `json:"n_routed_experts"`
	Experts     int `json:"num_experts"`
	LocalCount  int `json:"num_local_experts"`
	Active      int `json:"num_experts_per_tok"`
	Shared      int `json:"n_shared_experts"`
	ExpertWidth int `json:"moe_intermediate_size"`
	Dense       int `json:"first_k_dense_replace"`
}

// Names lists the built-in shapes, in the order of their names.
func Names() []string {
	files, err := fs.Glob(builtin, "data/*.json")
	if err != nil {
		return nil // the pattern is well formed
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(path.Base(f), ".json")
	}
	return files
}

// ByName returns a built-in shape, or reads a config.json or a folder with one.
// Upper case counts as lower case.
func ByName(name string) (Shape, error) {
	if b, err := builtin.ReadFile("data/" + strings.ToLower(name) + ".json"); err == nil {
		return Parse(strings.ToLower(name), b)
	}
	file := name
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		file = filepath.Join(name, "config.json")
	}
	b, err := boundedfile.Read(file, boundedfile.Text)
	if errors.Is(err, fs.ErrNotExist) {
		return Shape{}, fmt.Errorf("model %q: want one of %s, or a config.json", name, strings.Join(Names(), ", "))
	}
	if err != nil {
		return Shape{}, fmt.Errorf("model: %w", err)
	}
	short := strings.TrimSuffix(filepath.Base(file), ".json")
	if dir := filepath.Base(filepath.Dir(file)); short == "config" && dir != "." && dir != string(filepath.Separator) {
		short = dir
	}
	return Parse(short, b)
}

// Parse reads a config.json.
func Parse(name string, b []byte) (Shape, error) {
	c := config{Epsilon: 1e-6, RopeBase: 10000}
	if err := json.Unmarshal(b, &c); err != nil {
		return Shape{}, fmt.Errorf("model %s: %w", name, err)
	}
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.HeadDim == 0 && c.Heads > 0 {
		if c.Hidden%c.Heads != 0 && c.NoPE == 0 {
			return Shape{}, fmt.Errorf("model %s: hidden_size %d does not make %d heads; want head_dim", name, c.Hidden, c.Heads)
		}
		c.HeadDim = c.Hidden / c.Heads
	}
	s := Shape{
		Name: name, Layers: c.Layers, Hidden: c.Hidden, Intermediate: c.Intermediate, Heads: c.Heads, KVHeads: c.KVHeads, HeadDim: c.HeadDim,
		Vocab: c.Vocab, Tied: c.Tied, QKNorm: strings.HasPrefix(c.ModelType, "qwen3"), Epsilon: c.Epsilon, RopeBase: c.RopeBase, Parallel: 1,
	}
	if c.Rank > 0 {
		s.Latent = Latent{Rank: c.Rank, Rope: c.Rope, Value: c.Value}
		s.HeadDim, s.KVHeads = c.NoPE, 1
		if c.NoPE == 0 {
			return s, fmt.Errorf("model %s: kv_lora_rank wants qk_nope_head_dim, qk_rope_head_dim and v_head_dim", name)
		}
	}
	if n := max(c.Routed, c.Experts, c.LocalCount); n > 0 {
		s.Experts = Experts{Count: n, Active: c.Active, Shared: c.Shared, Width: c.ExpertWidth, Dense: c.Dense}
		if s.Experts.Width == 0 {
			s.Experts.Width = c.Intermediate
		}
	}
	return s, s.Validate()
}
