package llama_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device"
	"goatb/device/cpu"
	"goatb/model/llama"
	"goatb/tensor"
)

// smallConfig is a model that every test can afford: two layers, two query
// heads a key head, 40 positions.
func smallConfig() llama.Config {
	return llama.Config{Dim: 16, Hidden: 24, Layers: 2, Heads: 4, KVHeads: 2, Vocab: 40, MaxSeq: 40, Epsilon: 1e-5, RopeBase: 10000}
}

// small returns a small random model.
func small(t testing.TB) *llama.Weights {
	t.Helper()
	w, err := llama.Random(smallConfig(), 7)
	require.NoError(t, err)
	return w
}

// newContext makes a context that no variable of the environment reaches.
func newContext(t testing.TB, dev device.Device, opts ...atb.Option) *atb.Context {
	t.Helper()
	c, err := atb.NewContext(dev, append([]atb.Option{atb.WithEnv(func(string) (string, bool) { return "", false })}, opts...)...)
	require.NoError(t, err)
	return c
}

// open makes a session over the model of a folder.
func open(t testing.TB, w *llama.Weights, dtype tensor.DType, o llama.Options, dev device.Device, opts ...atb.Option) *llama.Session {
	t.Helper()
	return openOn(t, newContext(t, dev, opts...), w, dtype, o)
}

// openOn makes a session on a context, which is closed with it.
func openOn(t testing.TB, c *atb.Context, w *llama.Weights, dtype tensor.DType, o llama.Options) *llama.Session {
	t.Helper()
	m, err := llama.Upload(c, w, dtype)
	require.NoError(t, err)
	s, err := llama.NewSession(c, m, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.NoError(t, m.Close())
		require.NoError(t, c.Close())
	})
	return s
}

func newDevice(t testing.TB, opts ...cpu.Option) *cpu.Device {
	t.Helper()
	dev, err := cpu.New(opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}
