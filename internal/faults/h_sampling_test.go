package faults_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/model/llama"
)

// drawn draws n tokens of given probabilities and returns the share of each, and
// the tokens in order.
func drawn(t *testing.T, probs []float64, topP float64, seed uint64, n int) (shares []float64, ids []int32) {
	t.Helper()
	s, err := llama.NewSampler(1, topP, seed)
	require.NoError(t, err)
	logits := make([]float32, len(probs))
	for i, p := range probs {
		logits[i] = float32(math.Log(p))
	}
	shares = make([]float64, len(probs))
	for range n {
		id, err := s.Next(logits)
		require.NoError(t, err)
		shares[id]++
		ids = append(ids, id)
	}
	for i := range shares {
		shares[i] /= float64(n)
	}
	return shares, ids
}

// follows checks shares of n draws against probabilities: within five standard
// deviations, and none at all of what has probability 0.
func follows(t *testing.T, want, shares []float64, n int) {
	t.Helper()
	for i, p := range want {
		assert.InDelta(t, p, shares[i], 5*math.Sqrt(p*(1-p)/float64(n)), "token %d", i)
	}
}

const draws = 4000

// B33: sampling was wrong with seed 0.
func TestB33(t *testing.T) {
	probs := []float64{0.3, 0.1, 0.1, 0.5}
	var first [][]int32
	for _, seed := range []uint64{0, 1} {
		shares, ids := drawn(t, probs, 1, seed, draws)
		follows(t, probs, shares, draws)
		shares, again := drawn(t, probs, 1, seed, draws)
		follows(t, probs, shares, draws)
		assert.Equal(t, ids, again, "seed %d gives one sequence of draws", seed)
		shares, _ = drawn(t, probs, 0.7, seed, draws)
		follows(t, []float64{0.375, 0, 0, 0.625}, shares, draws)
		first = append(first, ids)
	}
	assert.NotEqual(t, first[0], first[1], "seeds give draws of their own")
}

// H11: one token too many was kept where the probabilities reached top-p exactly.
// Logits are rounded, which must not make the difference: weights that are not
// normalised have the same probabilities and are rounded otherwise.
func TestH11(t *testing.T) {
	probs := []float64{0.3, 0.1, 0.1, 0.5}
	for seed := range uint64(100) {
		weights := make([]float64, len(probs))
		for i, p := range probs {
			weights[i] = p * math.Exp(float64(seed)/10)
		}
		const n = 400
		shares, _ := drawn(t, weights, 0.8, seed, n)
		follows(t, []float64{0.375, 0, 0, 0.625}, shares, n)
	}
	// A little more lets one of the equal tokens in, the one of the smaller id.
	shares, _ := drawn(t, probs, 0.81, 1, draws)
	follows(t, []float64{3. / 9, 1. / 9, 0, 5. / 9}, shares, draws)
}

// H13: with top-p 1 no token reached it, and the first was taken always.
func TestH13(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 10} {
		uniform := repeat(1/float64(n), int64(n))
		shares, _ := drawn(t, uniform, 1, 1, draws)
		follows(t, uniform, shares, draws)
		assert.Positive(t, slices.Min(shares), "%d tokens, all kept", n)
	}
}
