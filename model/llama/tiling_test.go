package llama_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/model/llama"
	"goatb/tensor"
)

// TestLayersShareTilings: the attentions of all layers have one tiling, which a
// step computes once, also without the global cache; without caches every kernel is
// tiled.
func TestLayersShareTilings(t *testing.T) {
	for levels, tilings := range map[int]int64{0: 0, 1: 1, 3: 1} {
		for _, policy := range policies {
			c := newContext(t, newDevice(t), atb.WithPolicy(policy), atb.WithTilingCaches(levels))
			s := openOn(t, c, small(t), tensor.Float32, llama.Options{Sequences: 1, BlockSize: 4, Whole: true})
			for n := range 20 {
				before, kernels := c.Stats().HostTilings, c.Stats().Kernels
				forward(t, s, llama.Row{Token: int32(n)})
				got := c.Stats().HostTilings - before
				if levels == 0 {
					tilings = c.Stats().Kernels - kernels
				}
				if n > 0 {
					require.Equal(t, tilings, got, "caches %d, %s, step %d", levels, policy, n)
				}
			}
		}
	}
}
