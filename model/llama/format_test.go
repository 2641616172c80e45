package llama_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/model/llama"
	"goatb/tensor"
)

// TestQuantisedWeightsFollow decodes stories260K with int8 and int4 weights and
// compares the logits with float64 ones, in deviations over the vocabulary divided
// by that of the logits themselves.
func TestQuantisedWeightsFollow(t *testing.T) {
	dir := stories(t)
	g := loadGolden(t, dir)
	w, _, err := llama.LoadDir(dir)
	require.NoError(t, err)
	for _, x := range []struct {
		f llama.Format
		// off bounds the deviation.
		off float64
	}{
		{llama.Format{DType: tensor.Float32, Weights: llama.Int8}, 0.06},
		{llama.Format{DType: tensor.BFloat16, Weights: llama.Int8}, 0.06},
		{llama.Format{DType: tensor.Float32, Weights: llama.Int4}, 0.25},
		{llama.Format{DType: tensor.Float16, Weights: llama.Int4}, 0.25},
	} {
		for _, whole := range []bool{false, true} {
			t.Run(x.f.DType.String()+"/"+x.f.Weights.String(), func(t *testing.T) {
				c := newContext(t, newDevice(t))
				m, err := llama.UploadAs(c, w, x.f)
				require.NoError(t, err)
				s, err := llama.NewSession(c, m, llama.Options{Sequences: 1, BlockSize: 16, Whole: whole})
				require.NoError(t, err)
				defer func() { require.NoError(t, closeAll(s, m, c)) }()
				worst := 0.0
				decode(t, s, g, 7, 200, func(pos int, logits []float32) {
					want := g.Steps[pos].Logits
					if len(want) == 0 {
						return
					}
					var off, sum, square float64
					for i, v := range want {
						off += (float64(logits[i]) - v) * (float64(logits[i]) - v)
						sum, square = sum+v, square+v*v
					}
					n := float64(len(want))
					worst = max(worst, math.Sqrt(off/(square-sum*sum/n)))
				})
				t.Logf("deviation %.4f", worst)
				require.Positive(t, worst)
				require.Less(t, worst, x.off)
			})
		}
	}
}

func closeAll(s *llama.Session, m *llama.Model, c *atb.Context) error {
	for _, f := range []func() error{s.Close, m.Close, c.Close} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// TestQuantisedBatches checks that a row of a quantised model gives the same bits
// alone and beside others, and that a shared classifier is there once.
func TestQuantisedBatches(t *testing.T) {
	cfg := smallConfig()
	cfg.Dim, cfg.Hidden, cfg.SharedClassifier = 32, 64, true
	w, err := llama.NewSeeded(cfg, 9)
	require.NoError(t, err)
	own := cfg
	own.SharedClassifier = false
	alone, err := llama.NewSeeded(own, 9)
	require.NoError(t, err)
	for _, f := range []llama.WeightFormat{llama.AsActivations, llama.Int8, llama.Int4} {
		c := newContext(t, newDevice(t))
		m, err := llama.UploadAs(c, w, llama.Format{DType: tensor.Float32, Weights: f})
		require.NoError(t, err)
		apart, err := llama.UploadAs(c, alone, llama.Format{DType: tensor.Float32, Weights: f})
		require.NoError(t, err)
		require.Greater(t, apart.Bytes(), m.Bytes())
		require.NoError(t, apart.Close())
		s, err := llama.NewSession(c, m, llama.Options{Sequences: 2, BlockSize: 4})
		require.NoError(t, err)
		together := forward(t, s, llama.Row{Token: 3}, llama.Row{Seq: 1, Token: 5})
		require.NoError(t, s.Reset(0))
		require.NoError(t, s.Reset(1))
		require.Equal(t, together[0], forward(t, s, llama.Row{Token: 3})[0])
		require.Equal(t, together[1], forward(t, s, llama.Row{Seq: 1, Token: 5})[0])
		require.NoError(t, closeAll(s, m, c))
	}
}
