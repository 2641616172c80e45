package decoder

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBuiltinShapes(t *testing.T) {
	for name, want := range map[string]Shape{
		"llama-2-7b":   {Layers: 32, Hidden: 4096, Intermediate: 11008, Heads: 32, KVHeads: 32, HeadDim: 128, Vocab: 32000},
		"llama-3-8b":   {Layers: 32, Hidden: 4096, Intermediate: 14336, Heads: 32, KVHeads: 8, HeadDim: 128, Vocab: 128256},
		"llama-3.2-1b": {Layers: 16, Hidden: 2048, Intermediate: 8192, Heads: 32, KVHeads: 8, HeadDim: 64, Vocab: 128256, Tied: true},
		"qwen3-0.6b":   {Layers: 28, Hidden: 1024, Intermediate: 3072, Heads: 16, KVHeads: 8, HeadDim: 128, Vocab: 151936, Tied: true, QKNorm: true},
		"qwen3-1.7b":   {Layers: 28, Hidden: 2048, Intermediate: 6144, Heads: 16, KVHeads: 8, HeadDim: 128, Vocab: 151936, Tied: true, QKNorm: true},
		"Qwen3-8B":     {Layers: 36, Hidden: 4096, Intermediate: 12288, Heads: 32, KVHeads: 8, HeadDim: 128, Vocab: 151936, QKNorm: true},
		"qwen2.5-0.5b": {Layers: 24, Hidden: 896, Intermediate: 4864, Heads: 14, KVHeads: 2, HeadDim: 64, Vocab: 151936, Tied: true},
	} {
		s, err := ByName(name)
		require.NoError(t, err)
		want.Name, want.Epsilon, want.RopeBase, want.Parallel = s.Name, s.Epsilon, s.RopeBase, 1
		assert.Equal(t, want, s)
	}
	for _, name := range Names() {
		_, err := ByName(name)
		require.NoError(t, err, name)
	}
	require.Contains(t, Names(), "deepseek-v2-lite")
}

// TestBytes compares the weights that a step reads with the models' sizes.
func TestBytes(t *testing.T) {
	for name, billions := range map[string]float64{"llama-2-7b": 6.7, "llama-3-8b": 8.0, "llama-3.2-1b": 1.236, "qwen3-0.6b": 0.6, "qwen3-8b": 8.2, "qwen2.5-0.5b": 0.49, "ernie-4.5-0.3b": 0.36} {
		s, err := ByName(name)
		require.NoError(t, err)
		assert.InEpsilon(t, billions*1e9, float64(s.Bytes(1, 1)), 0.03, name)
	}
	s, err := ByName("deepseek-v2-lite")
	require.NoError(t, err)
	assert.InEpsilon(t, 2.66e9, float64(s.Bytes(1, 1)), 0.05, "2.4 billion weights for a token, and the embedding")
	assert.InEpsilon(t, 15.7e9, float64(s.Bytes(4096, 1)), 0.03, "a long prompt touches all experts")
}

func TestSharded(t *testing.T) {
	s, err := ByName("llama-3-8b")
	require.NoError(t, err)
	one, err := s.Sharded(1)
	require.NoError(t, err)
	assert.Equal(t, s, one)
	four, err := s.Sharded(4)
	require.NoError(t, err)
	assert.Equal(t, []int{8, 2, 3584, 32064, 4096, 4}, []int{four.Heads, four.KVHeads, four.Intermediate, four.Vocab, four.Hidden, four.Parallel})
	sixteen, err := s.Sharded(16)
	require.NoError(t, err)
	assert.Equal(t, 1, sixteen.KVHeads, "key heads are shared where there are fewer than devices")
	_, err = s.Sharded(3)
	require.ErrorContains(t, err, "does not divide")
	_, err = s.Sharded(0)
	require.ErrorContains(t, err, "at least 1")
}

func TestParse(t *testing.T) {
	const good = `"hidden_size":64,"intermediate_size":128,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":100`
	s, err := Parse("mine", []byte(`{`+good+`,"torch_dtype":"bfloat16","rope_scaling":null}`))
	require.NoError(t, err)
	assert.Equal(t, 4, s.KVHeads)
	assert.Equal(t, 16, s.HeadDim)
	for text, want := range map[string]string{
		`x`:                                      "invalid character",
		`{}`:                                     "num_hidden_layers",
		`{` + good + `,"num_key_value_heads":3}`: "evenly",
		`{` + good + `,"num_key_value_heads":-1}`:                "num_key_value_heads",
		`{` + good + `,"num_attention_heads":5}`:                 "head_dim",
		`{` + good + `,"head_dim":7}`:                            "even width",
		`{` + good + `,"rms_norm_eps":-1}`:                       "rms_norm_eps",
		`{` + good + `,"num_hidden_layers":5000}`:                "at most",
		`{` + good + `,"hidden_size":99999999999}`:               "hidden_size",
		`{` + good + `,"kv_lora_rank":8}`:                        "qk_rope_head_dim",
		`{` + good + `,"num_experts":8,"num_experts_per_tok":9}`: "experts",
	} {
		_, err := Parse("mine", []byte(text))
		require.ErrorContains(t, err, want, text)
		require.ErrorContains(t, err, "mine", text)
	}
	dir := filepath.Join(t.TempDir(), "My-Model")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{`+good+`}`), 0o644))
	for _, path := range []string{dir, filepath.Join(dir, "config.json")} {
		s, err := ByName(path)
		require.NoError(t, err)
		assert.Equal(t, "My-Model", s.Name)
	}
	_, err = ByName("gpt-17")
	require.ErrorContains(t, err, "llama-3-8b")
}
