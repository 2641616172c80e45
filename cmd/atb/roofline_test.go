package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRoofline(t *testing.T) {
	if testing.Short() {
		t.Skip("measures for a second")
	}
	var r rooflineReport
	strictJSON(t, fine(t, "roofline", "--threads", "1", "--time", "1ms", "--case", "cast", "--json"), &r)
	assert.Equal(t, "roofline", r.Command)
	assert.Positive(t, r.Peaks["1"].Read)
	require.Len(t, r.Kernels, 1)
	assert.Equal(t, "copy", r.Kernels[0].Limit)
	assert.Positive(t, r.Kernels[0].Fraction)
	for _, bad := range [][]string{{"--threads", "0"}, {"--time", "0s"}, {"--case", "no such case"}} {
		r := atbRun(t, append([]string{"roofline"}, bad...)...)
		assert.Equal(t, exitUsage, r.code, "%v", bad)
		assert.Empty(t, r.stdout)
		assert.Contains(t, r.stderr, bad[0])
	}
}

// tinyShape is a shape that every test can afford.
const tinyShape = `{"model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
	"num_key_value_heads": 2, "vocab_size": 200, "tie_word_embeddings": true}`

func TestRooflineModel(t *testing.T) {
	file := write(t, "tiny.json", []byte(tinyShape))
	var r rooflineReport
	strictJSON(t, fine(t, "roofline", "--model", file, "--threads", "1", "--time", "1ms", "--prompt", "5", "--weights", "f32,bf16,int8,int4", "--dtype", "f16", "--json"), &r)
	require.Len(t, r.Models, 4)
	for i, want := range []struct {
		weights, dtype string
		// bytes of a matrix element, of a row's scales and of an element of the cache
		element, scale, cache float64
	}{{"f32", "f32", 4, 0, 4}, {"bf16", "bf16", 2, 0, 2}, {"int8", "f16", 1, 4, 2}, {"int4", "f16", 4.5 / 8, 0, 2}} {
		m := &r.Models[i]
		assert.Equal(t, []any{want.weights, want.dtype, 1, 5}, []any{m.Weights, m.DType, m.Threads, m.Prompt})
		elements, rows := 2.0*64*(128+64+192+96)+200*64, 2.0*(128+64+192+64)+200
		if want.weights == "int8" {
			elements += 4 * 32 * (2*(4+2+6+2) + 7) // sums of columns, with those that fill the last panel
		}
		elements += 24 * 64 // columns that fill the last panel
		assert.InDelta(t, elements*want.element+rows*want.scale+2*2*32*5*want.cache, m.StepBytes, 1, want.weights)
		assert.Positive(t, m.StepFraction)
		assert.Positive(t, m.PrefillFraction)
		assert.InEpsilon(t, 2*(5*2*64*(128+64+192+96)+200*64), m.PrefillGFlops*float64(m.PrefillNS), 1e-9)
		assert.Greater(t, m.WeightBytes, m.StepBytes-4*2*2*32*5)
		assert.Positive(t, m.CacheBytes)
		assert.Positive(t, m.WorkspaceBytes)
	}
	for _, bad := range [][]string{{"--weights", "int2"}, {"--prompt", "0"}, {"--model", "deepseek-v2-lite"}, {"--model", "no-such"}} {
		r := atbRun(t, append([]string{"roofline", "--model", file}, bad...)...)
		assert.Equal(t, exitUsage, r.code, "%v", bad)
		assert.Contains(t, r.stderr, bad[0])
	}
}
