package llama_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/model/llama"
)

func TestGreedyTakesTheFirstOfTheLargest(t *testing.T) {
	s, err := llama.NewSampler(0, 1, 1)
	require.NoError(t, err)
	got, err := s.Next([]float32{-3, 2, 2, 1})
	require.NoError(t, err)
	assert.Equal(t, int32(1), got)
}

// The largest logit is found wherever it is, the first of equal ones, also where sums
// of logits are beyond float32.
func TestGreedyOverManyLogits(t *testing.T) {
	s, err := llama.NewSampler(0, 1, 1)
	require.NoError(t, err)
	logits := make([]float32, 5000)
	for _, base := range []float32{0, -3e38, 2e38} {
		for i := range logits {
			logits[i] = base - float32(i%7)*1e36
		}
		for _, at := range []int{4999, 3000, 1024, 1023, 1} {
			logits[at] = 3e38
			got, err := s.Next(logits)
			require.NoError(t, err)
			assert.Equal(t, int32(at), got, "beside %g", base)
		}
	}
	logits[4321] = float32(math.NaN())
	_, err = s.Next(logits)
	require.ErrorContains(t, err, "logit 4321")
}

// TestSamplesFollowTheProbabilities draws 20000 tokens: the share of a token of
// probability p lies within five standard deviations of p.
func TestSamplesFollowTheProbabilities(t *testing.T) {
	logits := []float32{float32(math.Log(1)), float32(math.Log(4)), float32(math.Log(2)), float32(math.Log(1))}
	const n = 20000
	for _, c := range []struct {
		name              string
		temperature, topP float64
		want              []float64
	}{
		{"all", 1, 1, []float64{1. / 8, 4. / 8, 2. / 8, 1. / 8}},
		{"half temperature squares", 0.5, 1, []float64{1. / 22, 16. / 22, 4. / 22, 1. / 22}},
		{"the largest alone", 1, 0.5, []float64{0, 1, 0, 0}},
		{"two of them", 1, 0.51, []float64{0, 4. / 6, 2. / 6, 0}},
		{"the first of equals", 1, 0.76, []float64{1. / 7, 4. / 7, 2. / 7, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := llama.NewSampler(c.temperature, c.topP, 3)
			require.NoError(t, err)
			count := make([]float64, len(logits))
			for range n {
				id, err := s.Next(logits)
				require.NoError(t, err)
				count[id]++
			}
			for i, p := range c.want {
				assert.InDelta(t, p, count[i]/n, 5*math.Sqrt(p*(1-p)/n), "token %d", i)
			}
		})
	}
}

func TestSamplerRefuses(t *testing.T) {
	for _, bad := range [][2]float64{{-1, 1}, {math.NaN(), 1}, {math.Inf(1), 1}, {1, 0}, {1, 1.5}, {1, math.NaN()}} {
		_, err := llama.NewSampler(bad[0], bad[1], 1)
		assert.Error(t, err, "%v", bad)
	}
	s, err := llama.NewSampler(0, 1, 1)
	require.NoError(t, err)
	for _, bad := range [][]float32{nil, {1, float32(math.NaN())}, {float32(math.Inf(1)), 1}, {1, float32(math.Inf(-1))}} {
		_, err := s.Next(bad)
		assert.Error(t, err, "%v", bad)
	}
}
