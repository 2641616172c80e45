package llama_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/model/llama"
	"goatb/tensor"
)

// tiny is a random model for tests that need no numbers.
func tiny(t testing.TB) *llama.Weights {
	t.Helper()
	w, err := llama.Random(llama.Config{Dim: 32, Hidden: 48, Layers: 2, Heads: 4, KVHeads: 2, Vocab: 64, MaxSeq: 40, Epsilon: 1e-5, RopeBase: 10000}, 9)
	require.NoError(t, err)
	return w
}

// TestBatchesDoNotMix decodes three sequences of unequal lengths together, and
// each alone: the logits are the same bit for bit.
func TestBatchesDoNotMix(t *testing.T) {
	w, dev := tiny(t), newDevice(t)
	texts := [][]int32{{1, 5, 9, 2, 7, 7, 3}, {1, 8}, {1, 40, 41, 42}}
	var alone [3][]float32
	for i, text := range texts {
		s := open(t, w, tensor.Float32, llama.Options{Sequences: 1, BlockSize: 4}, dev)
		for _, id := range text {
			logits, err := s.Forward(t.Context(), []llama.Row{{Token: id}}, []int32{0})
			require.NoError(t, err)
			alone[i] = append([]float32(nil), logits...)
		}
	}
	s := open(t, w, tensor.Float32, llama.Options{Sequences: 3, BlockSize: 4}, dev)
	var rows []llama.Row
	var want []int32
	for i, text := range texts {
		for _, id := range text {
			rows = append(rows, llama.Row{Seq: i, Token: id})
		}
		want = append(want, int32(len(rows)-1))
	}
	logits, err := s.Forward(t.Context(), rows, want)
	require.NoError(t, err)
	for i := range texts {
		require.Equal(t, alone[i], logits[i*64:(i+1)*64], "sequence %d", i)
		require.Equal(t, len(texts[i]), s.Length(i))
	}
}

// TestFixedLengthsNeedNoTiling repeats a step at the same lengths.
func TestFixedLengthsNeedNoTiling(t *testing.T) {
	w, dev := tiny(t), newDevice(t)
	c, err := atb.NewContext(dev)
	require.NoError(t, err)
	defer c.Close()
	m, err := llama.Upload(c, w, tensor.Float32)
	require.NoError(t, err)
	defer m.Close()
	s, err := llama.NewSession(c, m, llama.Options{Sequences: 2, BlockSize: 4})
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Forward(t.Context(), []llama.Row{{Token: 1}, {Token: 2}, {Seq: 1, Token: 3}}, []int32{0})
	require.NoError(t, err)
	rows := []llama.Row{{Token: 4}, {Seq: 1, Token: 5}}
	var first []float32
	var before atb.Stats
	for i := range 5 {
		logits, err := s.Forward(t.Context(), rows, []int32{0, 1})
		require.NoError(t, err)
		if i == 0 {
			first, before = append(first, logits...), c.Stats()
		}
		require.Equal(t, first, logits)
		require.NoError(t, s.Rewind(0, 1))
		require.NoError(t, s.Rewind(1, 1))
	}
	after := c.Stats()
	require.Zero(t, after.HostTilings-before.HostTilings)
	require.Equal(t, after.Setups-before.Setups, after.SetupHits-before.SetupHits)
}

// TestForwardRefuses lists what Forward refuses; the session goes on unharmed.
func TestForwardRefuses(t *testing.T) {
	s := open(t, tiny(t), tensor.Float32, llama.Options{Sequences: 2, BlockSize: 4}, newDevice(t))
	good, err := s.Forward(t.Context(), []llama.Row{{Token: 1}}, []int32{0})
	require.NoError(t, err)
	good = append([]float32(nil), good...)
	require.NoError(t, s.Rewind(0, 1))
	long := make([]llama.Row, 41)
	for _, c := range []struct {
		rows []llama.Row
		want []int32
		says string
	}{
		{nil, []int32{0}, "want at least 1 row"},
		{[]llama.Row{{Token: 1}}, nil, "want at least 1 row"},
		{[]llama.Row{{Seq: 2}}, []int32{0}, "want a sequence below 2, got 2"},
		{[]llama.Row{{Token: 64}}, []int32{0}, "want a token below 64, got 64"},
		{[]llama.Row{{Token: -1}}, []int32{0}, "got -1"},
		{[]llama.Row{{Token: 1}}, []int32{1}, "want below 1, got 1"},
		{long, []int32{0}, "sequence 0 is full at 40 positions"},
	} {
		_, err := s.Forward(t.Context(), c.rows, c.want)
		require.ErrorContains(t, err, c.says)
		require.Zero(t, s.Length(0))
	}
	again, err := s.Forward(t.Context(), []llama.Row{{Token: 1}}, []int32{0})
	require.NoError(t, err)
	require.Equal(t, good, again)
	require.Error(t, s.Rewind(0, 2))
	require.Error(t, s.Rewind(2, 0))
	s.Reset(0)
	require.Zero(t, s.Length(0))
}

func TestCloseInAnyOrder(t *testing.T) {
	w, dev := tiny(t), newDevice(t)
	c, err := atb.NewContext(dev)
	require.NoError(t, err)
	m, err := llama.Upload(c, w, tensor.Float16)
	require.NoError(t, err)
	s, err := llama.NewSession(c, m, llama.Options{Sequences: 1, BlockSize: 2})
	require.NoError(t, err)
	_, err = s.Forward(t.Context(), []llama.Row{{Token: 1}}, []int32{0})
	require.NoError(t, err)
	require.NoError(t, c.Close())
	_, err = s.Forward(t.Context(), []llama.Row{{Token: 1}}, []int32{0})
	require.ErrorContains(t, err, "closed")
	for range 2 {
		require.NoError(t, m.Close())
		require.NoError(t, s.Close())
	}
}
