package paged

import (
	"math"

	"goatb/kernel/parts"
)

// reference computes the output in float64, one row after the other.
func (b *problem) reference() []float64 {
	a := &b.params
	out := make([]float64, b.tokens*a.Heads*b.dv)
	group := a.Heads / a.KVHeads
	token := int64(0)
	for s := range int64(len(b.contexts)) {
		rows, first, last := int64(1), int64(0), a.Heads
		switch {
		case a.QueryLens:
			rows = b.queryLens[s]
		case a.PerHead:
			token = s / a.KVHeads
			first = s % a.KVHeads * group
			last = first + group
		case token >= b.tokens:
			rows = 0
		}
		for r := range rows {
			for h := first; h < last; h++ {
				if b.contexts[s] > 0 && b.runs(s) {
					o := out[((token+r)*a.Heads+h)*b.dv:][:b.dv]
					b.row(o, s, token+r, b.contexts[s]-rows+r, h)
				}
			}
		}
		token += rows
	}
	return out
}

func (b *problem) runs(s int64) bool {
	if b.statuses == nil {
		return true
	}
	if b.params.PerHead && len(b.statuses) != len(b.contexts) {
		s /= b.params.KVHeads
	}
	return b.statuses[s] != 0
}

func (b *problem) row(o []float64, s, token, position, h int64) {
	a := &b.params
	kvHead := h / (a.Heads / a.KVHeads)
	n := b.contexts[s]
	scale := float64(a.Scale)
	if b.logN {
		scale *= b.at(InLogN, s)
	}
	scores := make([]float64, n)
	for j := range n {
		dot := 0.0
		for c := range b.dk {
			dot += b.at(InQuery, (token*a.Heads+h)*b.dk+c) * b.keyAt(s, kvHead, j, c)
		}
		if b.razor {
			dot += b.at(InRazor, int64(b.at(InTables, s*b.columns+j/b.bs))*b.bs+j%b.bs)
		}
		if a.Quant == Offline || a.Quant == Online {
			dot *= b.at(InKeyScale, h)
		}
		scores[j] = dot * scale
		if a.Mask == Causal && j > position {
			scores[j] = math.Inf(-1)
		}
		if b.maskShape != nil {
			scores[j] += b.maskAt(s, token, position, h, j)
		}
	}
	weights := b.weights(scores, h)
	for c := range b.dv {
		sum := 0.0
		for j := range n {
			if weights[j] != 0 {
				sum += weights[j] * b.valueAt(s, kvHead, j, c)
			}
		}
		if a.Quant == Offline || a.Quant == Online {
			sum *= b.at(InValueScale, h)
		}
		o[c] = sum
	}
}

// weights is the softmax of a row, quantised where the problem asks for it; a
// row that sees nothing has weights 0.
func (b *problem) weights(scores []float64, h int64) []float64 {
	top := math.Inf(-1)
	for _, v := range scores {
		top = math.Max(top, v)
	}
	w := make([]float64, len(scores))
	if math.IsInf(top, -1) {
		return w
	}
	sum := 0.0
	for j, v := range scores {
		w[j] = math.Exp(v - top)
		sum += w[j]
	}
	if b.params.Quant == Offline || b.params.Quant == Online {
		for from := 0; from < len(scores); from += parts.Len {
			b.quantise(w[from:min(from+parts.Len, len(w))], h)
		}
	}
	for j := range w {
		w[j] /= sum
	}
	return w
}

// quantise rounds the exponentials of a part.
func (b *problem) quantise(w []float64, h int64) {
	upTo := 0.0
	for from := 0; from < len(w); from += QuantBlock {
		block := w[from:min(from+QuantBlock, len(w))]
		most := 0.0
		for _, v := range block {
			most = math.Max(most, v)
		}
		upTo = math.Max(upTo, most)
		for j, v := range block {
			switch {
			case most == 0:
			case b.params.Quant == Online:
				block[j] = math.RoundToEven(v/most*127) / 127 * most
			default:
				q := math.RoundToEven(v / upTo * b.at(InProbScale, h))
				block[j] = math.Min(math.Max(q, -128), 127) * upTo
			}
		}
	}
}
