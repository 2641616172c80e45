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
		for _, shape := range []llama.Shape{{Rows: 3, Want: 3, Sequences: 1}, {Rows: 1, Want: 1, Sequences: 1}} {
			ops, err := s.SetUp(shape)
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
	for _, shape := range []llama.Shape{{Rows: 0, Want: 1, Sequences: 1}, {Rows: 1, Want: 0, Sequences: 1}, {Rows: 1, Want: 2, Sequences: 1}} {
		_, err := s.SetUp(shape)
		assert.ErrorContains(t, err, "want at least 1 row and 1 wanted row among them")
	}
	for _, n := range []int{-1, 0, 4} {
		_, err := s.SetUp(llama.Shape{Rows: 3, Want: 1, Sequences: n})
		assert.ErrorContains(t, err, "want 1 to 3 sequences, as many as rows")
	}
	require.NoError(t, s.Close())
	_, err := s.SetUp(llama.Shape{Rows: 1, Want: 1, Sequences: 1})
	assert.ErrorContains(t, err, "is closed")
}
