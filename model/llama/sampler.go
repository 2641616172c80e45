package llama

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"goatb/internal/vec"
)

// logitError is about what rounding logits to float32 does to a probability:
// whether some tokens reach top-p exactly must not hang on it.
const logitError = 1e-6

// Sampler chooses tokens from logits. It belongs to one goroutine.
type Sampler struct {
	temperature, topP float64
	rng               *rand.Rand
	order             []int32
	probs             []float64
}

// NewSampler makes a sampler. Temperature 0 takes the most likely token, the
// smallest id among equals. topP keeps the most likely tokens until their
// probabilities reach it, to the precision of logits; the token that reaches it
// is kept, and 1 keeps all. Errors: a temperature that is negative or not finite,
// topP outside (0, 1].
func NewSampler(temperature, topP float64, seed uint64) (*Sampler, error) {
	if !(temperature >= 0) || math.IsInf(temperature, 1) {
		return nil, fmt.Errorf("sampler: want a finite temperature of at least 0, got %g", temperature)
	}
	if !(topP > 0 && topP <= 1) {
		return nil, fmt.Errorf("sampler: want top-p in (0, 1], got %g", topP)
	}
	return &Sampler{temperature: temperature, topP: topP, rng: rand.New(rand.NewPCG(seed, 0x5a))}, nil
}

// likeliest returns the place of the largest logit, the first of equal ones. Logits
// are looked at one by one only where the piece that has it is known, or one that is
// not finite: the sum of others may be infinite too.
func likeliest(logits []float32) (best int, err error) {
	const piece, fewLogits = 1024, 64
	top := float32(math.Inf(-1))
	for at := 0; at < len(logits); at += piece {
		part := logits[at:min(at+piece, len(logits))]
		if sum := vec.Sum(part); sum-sum != 0 {
			for i, v := range part {
				if v-v != 0 {
					return 0, fmt.Errorf("sampler: logit %d is %g", at+i, v)
				}
			}
		}
		if most := vec.Max(part); most > top {
			best, top = at, most
		}
	}
	part := logits[best:min(best+piece, len(logits))]
	for len(part) > fewLogits {
		half := len(part) / 2
		if vec.Max(part[:half]) == top {
			part = part[:half]
		} else {
			best, part = best+half, part[half:]
		}
	}
	return best + slices.Index(part, top), nil
}

// Next returns the next token. Logits that are not numbers, and infinite ones,
// are an error: no token follows from them.
func (s *Sampler) Next(logits []float32) (int32, error) {
	if s == nil || s.rng == nil {
		return 0, fmt.Errorf("sampler: it is nil or zero: make one with NewSampler")
	}
	if len(logits) == 0 {
		return 0, fmt.Errorf("sampler: want logits, got none")
	}
	best, err := likeliest(logits)
	if err != nil {
		return 0, err
	}
	if s.temperature == 0 {
		return int32(best), nil
	}
	s.order, s.probs = s.order[:0], s.probs[:0]
	var sum float64
	for i, v := range logits {
		p := math.Exp(float64(v-logits[best]) / s.temperature)
		s.order, s.probs = append(s.order, int32(i)), append(s.probs, p)
		sum += p
	}
	slices.SortStableFunc(s.order, func(a, b int32) int { return cmp.Compare(s.probs[b], s.probs[a]) })
	limit := math.Inf(1)
	if s.topP < 1 {
		limit = (s.topP - logitError) * sum
	}
	kept, n := 0.0, 0
	for n < len(s.order) && (n == 0 || kept < limit) {
		kept += s.probs[s.order[n]]
		n++
	}
	u := s.rng.Float64() * kept
	for _, i := range s.order[:n] {
		if u -= s.probs[i]; u < 0 {
			return i, nil
		}
	}
	return s.order[n-1], nil
}
