package llama

import (
	"math"

	"goatb/status"
)

// Seeded is a Source of random weights: any row of any tensor is a function of the
// seed alone, so that rows are made where and when they are wanted.
type Seeded struct {
	config Config
	seed   uint64
}

// NewSeeded returns random weights of a shape. Norms lie around 1, embeddings have
// a deviation of 1/2 and other matrices of 1/sqrt(columns).
func NewSeeded(c Config, seed uint64) (*Seeded, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Seeded{c, seed}, nil
}

// Model returns the shape of the model.
func (s *Seeded) Model() Config {
	if s == nil {
		return Config{}
	}
	return s.config
}

// Rows makes rows of a tensor. Errors: a tensor or rows that there are not.
func (s *Seeded) Rows(dst []float32, t Tensor, layer, from int) error {
	if err := status.Given("rows", "seeded", s); err != nil {
		return err
	}
	if err := s.config.wantRows(t, layer, from, len(dst)); err != nil {
		return err
	}
	_, cols := s.config.Size(t)
	mean, deviation := float32(0), 1/math.Sqrt(float64(cols))
	switch t {
	case FinalNorm, AttnNorm, FFNNorm:
		mean, deviation = 1, 0.1
	case Embedding:
		deviation = 0.5
	}
	for at := 0; at < len(dst); at += cols {
		state := scramble(scramble(scramble(s.seed)+uint64(t)<<32+uint64(layer)) + uint64(from+at/cols))
		draw(dst[at:at+cols], state, mean, float32(deviation))
	}
	return nil
}

// gamma is the step of the states of SplitMix64, and scramble its output function
// (Steele, Lea and Flood 2014).
const gamma = 0x9e3779b97f4a7c15

func scramble(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// draw stores numbers that are nearly normal: sums of four uniform ones of 16
// bits, whose deviation is 65536/sqrt(3).
func draw(dst []float32, state uint64, mean, deviation float32) {
	scale := deviation * float32(math.Sqrt(3)/65536)
	for i := range dst {
		state += gamma
		x := scramble(state)
		sum := int32(x&0xffff) + int32(x>>16&0xffff) + int32(x>>32&0xffff) + int32(x>>48)
		dst[i] = mean + float32(sum-2*65535)*scale
	}
}

// Random makes the float32 weights of NewSeeded.
func Random(c Config, seed uint64) (*Weights, error) {
	s, err := NewSeeded(c, seed)
	if err != nil {
		return nil, err
	}
	return readAll(s)
}
