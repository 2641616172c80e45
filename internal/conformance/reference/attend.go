package reference

import "math"

// heads finds the vectors of width elements of a tensor's heads: that of a
// token and head starts at at(token, head).
type heads struct {
	v     []float64
	width int64
	at    func(token, head int64) int64
}

func (h *heads) row(token, head int64) []float64 {
	i := h.at(token, head)
	return h.v[i : i+h.width]
}

// packed is a tensor of rows of n heads: [tokens, n*width] or [tokens, n, width].
func packed(t *Tensor, n int64) heads {
	tokens := t.Desc.Dim(0)
	if t.Desc.Rank() == 4 {
		tokens *= t.Desc.Dim(1)
	}
	hidden := t.Desc.Numel() / tokens
	w := hidden / n
	return heads{v: t.Floats(), width: w, at: func(token, head int64) int64 { return token*hidden + head*w }}
}

// attend writes softmax(scores).V for one query vector: keys 0..n-1 of a head,
// where key and value give vectors and score turns the inner product with key j
// into a score. A negative weight of values scales nothing.
func attend(out, q []float64, n int64, key, value func(j int64) []float64, score func(dot float64, j int64) float64) {
	p := make([]float64, n)
	for j := range p {
		dot := 0.0
		for i, k := range key(int64(j))[:len(q)] {
			dot += q[i] * k
		}
		p[j] = score(dot, int64(j))
	}
	softmaxRow(p)
	clear(out)
	for j, w := range p {
		if w == 0 {
			continue
		}
		for i, v := range value(int64(j))[:len(out)] {
			out[i] += w * v
		}
	}
}

// mask is an additive mask [batch or 1, heads or 1, rows, columns].
type mask struct {
	v                          []float64
	batches, heads, rows, cols int64
}

// at returns the mask's value, 0 without a mask. Dimensions of 1 repeat.
func (m *mask) at(batch, head, row, col int64) float64 {
	if m.v == nil {
		return 0
	}
	return m.v[((batch%m.batches*m.heads+head%m.heads)*m.rows+row%m.rows)*m.cols+col]
}

// maskOf reads a mask of rank 2 to 4. In a mask of rank 3 the first dimension
// runs over heads when perHead is set and it is the number of heads, else over
// batches.
func maskOf(t *Tensor, headNum int64, perHead bool) mask {
	s := t.Desc.Shape
	m := mask{v: t.Floats(), batches: 1, heads: 1, rows: s.Dim(-2), cols: s.Dim(-1)}
	switch {
	case s.Rank() == 4:
		m.batches, m.heads = s.Dim(0), s.Dim(1)
	case s.Rank() == 3 && perHead && s.Dim(0) == headNum:
		m.heads = s.Dim(0)
	case s.Rank() == 3:
		m.batches = s.Dim(0)
	}
	return m
}

// hidden is the score of a key that a row does not see.
var hidden = math.Inf(-1)
