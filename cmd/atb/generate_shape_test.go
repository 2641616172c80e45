package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGenerateShape runs a random model of a shape in every format, the same at
// every call and under every policy.
func TestGenerateShape(t *testing.T) {
	file := write(t, "tiny.json", []byte(tinyShape))
	var seen [][]float32
	for _, weights := range []string{"", "int8", "int4"} {
		args := []string{"generate", "--shape", file, "--steps", "6", "--prompt-ids", "1,2,3", "--logits", "2,7", "--json"}
		if weights != "" {
			args = append(args, "--weights", weights)
		}
		var first, again report
		strictJSON(t, fine(t, args...), &first)
		strictJSON(t, fine(t, args...), &again)
		require.True(t, first.IDsAgree)
		require.Greater(t, len(first.Runs), 1)
		assert.Equal(t, first.Runs[0].Logits, again.Runs[0].Logits)
		assert.Equal(t, weights, first.Runs[0].Weights)
		assert.Len(t, first.Runs[0].IDs, 6)
		for _, other := range seen {
			assert.NotEqual(t, other, first.Runs[0].Logits["2"], "formats differ")
		}
		seen = append(seen, first.Runs[0].Logits["2"])
	}
}
