package llama

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Sampler chooses tokens from logits. It belongs to one goroutine.
type Sampler struct {
	temperature, topP float64
	rng               *rand.Rand
	order             []int
	probs             []float64
}

// NewSampler makes a sampler. Temperature 0 takes the most likely token, the
// smallest id among equals. topP keeps the most likely tokens until their
// probabilities reach it; the token that reaches it is kept.
func NewSampler(temperature, topP float64, seed uint64) *Sampler {
	return &Sampler{temperature: temperature, topP: topP, rng: rand.New(rand.NewPCG(seed, 0x5a))}
}

// Next returns the next token.
func (s *Sampler) Next(logits []float32) int32 {
	best := 0
	for i, v := range logits {
		if v > logits[best] {
			best = i
		}
	}
	if s.temperature == 0 {
		return int32(best)
	}
	s.order, s.probs = s.order[:0], s.probs[:0]
	var sum float64
	for i, v := range logits {
		p := math.Exp(float64(v-logits[best]) / s.temperature)
		s.order, s.probs = append(s.order, i), append(s.probs, p)
		sum += p
	}
	slices.SortStableFunc(s.order, func(a, b int) int {
		switch {
		case s.probs[a] > s.probs[b]:
			return -1
		case s.probs[a] < s.probs[b]:
			return 1
		}
		return 0
	})
	kept, n := 0.0, 0
	for n < len(s.order) && (n == 0 || kept < s.topP*sum) {
		kept += s.probs[s.order[n]]
		n++
	}
	u := s.rng.Float64() * kept
	for _, i := range s.order[:n] {
		if u -= s.probs[i]; u < 0 {
			return int32(i)
		}
	}
	return int32(s.order[n-1])
}
