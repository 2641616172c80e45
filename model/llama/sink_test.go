package llama_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/model/llama"
	"goatb/tensor"
)

// The greedy ids of stories260K are exact in every form, with lengths that grow
// with every step. But for v2 a step computes no tiling on the host, and one on
// the device for each layer.
func TestDeviceSinkIsGolden(t *testing.T) {
	dir := stories(t)
	g := loadGolden(t, dir)
	w, _, err := llama.LoadDir(dir)
	require.NoError(t, err)
	for _, form := range []string{"update", "ffts", "superkernel", "v2"} {
		t.Run(form, func(t *testing.T) {
			c := newContext(t, newDevice(t), atb.WithPolicy("device-sink"), atb.WithSinkForm(form))
			s := openOn(t, c, w, tensor.Float32, llama.Options{Sequences: 1, BlockSize: 16})
			steps := len(g.Steps)
			if testing.Short() {
				steps = 70
			}
			var before atb.Stats
			decode(t, s, g, 7, steps, func(pos int, logits []float32) {
				require.Equal(t, g.Steps[pos].Argmax, argmax(logits), "position %d", pos)
				if pos == 7 {
					before = c.Stats()
				}
			})
			after, n := c.Stats(), int64(steps-8)
			layers := int64(w.Config.Layers)
			assert.Equal(t, before.Captures, after.Captures, "nothing is captured again")
			assert.Zero(t, after.Fallbacks, "%v", after.FallbackReasons)
			if form == "v2" {
				assert.Equal(t, n, after.HostTilings-before.HostTilings, "one for all layers: the others find it in the cache")
				assert.Zero(t, after.DeviceTilings)
				return
			}
			assert.Equal(t, before.HostTilings, after.HostTilings)
			assert.Equal(t, layers*n, after.DeviceTilings-before.DeviceTilings)
			assert.Equal(t, n, after.Replays-before.Replays, "a step is one replay")
		})
	}
}
