package llama_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/model/llama"
	"goatb/tensor"
)

// A set up step runs nothing and changes no logits; compiled, it is the step of a
// Forward, in one graph and in several.
func TestSetUpForACompiler(t *testing.T) {
	for _, policy := range []string{"device-sink", "kernel-follow"} {
		dev := newDevice(t)
		rows := []llama.Row{{Token: 1}, {Token: 2}, {Token: 3}}
		o := llama.Options{Sequences: 1, BlockSize: 4, Whole: policy == "device-sink"}
		c := newContext(t, dev, atb.WithPolicy(policy))
		s := openOn(t, c, small(t), tensor.Float32, o)
		compiler, err := atb.NewCompiler(c, atb.CompileOptions{})
		require.NoError(t, err)
		want := forward(t, s, rows...)
		require.NoError(t, s.Reset(0))
		kernels := c.Stats().Kernels
		for _, shape := range [][2]int{{3, 3}, {1, 1}} {
			ops, err := s.SetUp(shape[0], shape[1])
			require.NoError(t, err)
			for _, op := range ops {
				require.NoError(t, compiler.Add(op))
			}
		}
		assert.Equal(t, kernels, c.Stats().Kernels, "nothing runs")
		assert.Zero(t, s.Length(0))
		assert.Equal(t, want, forward(t, s, rows...))

		again := newContext(t, dev, atb.WithCompiled(compiler.File()))
		x := openOn(t, again, small(t), tensor.Float32, llama.Options{Sequences: 1, BlockSize: 4, Whole: true})
		before := again.Stats()
		if policy == "kernel-follow" {
			assert.False(t, compiler.File().Has("step"), "an operation for each layer")
			continue
		}
		assert.Equal(t, want, forward(t, x, rows...))
		assert.Equal(t, before.HostTilings, again.Stats().HostTilings)
		assert.Equal(t, before.Compiled+1, again.Stats().Compiled)
	}
}

func TestSetUpRefuses(t *testing.T) {
	s := open(t, small(t), tensor.Float32, llama.Options{Sequences: 1, BlockSize: 4}, newDevice(t))
	for _, n := range [][2]int{{0, 1}, {1, 0}, {1, 2}} {
		_, err := s.SetUp(n[0], n[1])
		assert.ErrorContains(t, err, "want at least 1 row and 1 wanted row among them")
	}
	require.NoError(t, s.Close())
	_, err := s.SetUp(1, 1)
	assert.ErrorContains(t, err, "is closed")
}
