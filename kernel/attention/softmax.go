package attention

import (
	"math"

	"goatb/internal/vec"
)

// int8Max is the largest int8, to which online quantisation scales the largest
// probability of a row.
const int8Max = math.MaxInt8

// adjust turns the products of row x with keys from j on into scores but for a
// factor, which it returns.
func (w *worker) adjust(x int, j int64, s []float32) float32 {
	if w.plain {
		return w.factor
	}
	a := &w.t.P
	r, head := w.row(x)
	pre, scale := a.QScale, a.QKScale
	if a.Quant != NoQuant {
		pre *= w.keyScale[head]
	}
	switch a.Factor {
	case RowFactor:
		scale *= element(w.factors, max(w.seq.position(r), 0), w.t.FactorType)
	case BatchFactor:
		scale *= element(w.factors, w.seq.Index, w.t.FactorType)
	}
	switch {
	case !a.Clamp && a.Bias == NoBias:
		return pre * scale
	case !a.Clamp:
		vec.Scale(s, s, pre*scale)
	case a.ClampScaled:
		vec.Scale(s, s, pre*scale)
		vec.Clamp(s, a.ClampMin, a.ClampMax)
	default:
		vec.Scale(s, s, pre)
		vec.Clamp(s, a.ClampMin, a.ClampMax)
		vec.Scale(s, s, scale)
	}
	if a.Bias != NoBias {
		w.addBias(r, head, j, s, scale)
	}
	return 1
}

// soften takes the scores of n rows from row x on, but for a factor, into their
// softmax and turns them into weights: exponentials less the row's largest score
// so far. The scores are those of `keys` keys from key j of the tile on. What was
// summed before is brought to that scale.
func (w *worker) soften(x, n, j, keys int, factor float32) {
	tops, norms := w.part.max[x:x+n], w.part.norm[x:x+n]
	before, sums := w.before[x:x+n], w.tileNorm[x:x+n]
	copy(before, tops)
	vec.Soften(w.score[x*w.keyTile+j:], keys, n, w.keyTile, factor, tops, sums)
	size := int(w.t.P.ValueSize)
	for i, norm := range norms {
		if tops[i] > before[i] && norm != 0 {
			f := vec.ExpOf(before[i] - tops[i])
			// Rounded before the sum below, as the values are.
			norm = float32(norm * f)
			values := w.part.values[(x+i)*size : (x+i+1)*size]
			vec.Scale(values, values, f)
		}
		norms[i] = norm + sums[i]
	}
}

// quantised does an item whose weights are rounded to int8. It needs the whole
// row's largest score and norm before it rounds, so it scores twice, and does
// all keys as one part.
func (w *worker) quantised() error {
	size := int(w.t.P.ValueSize)
	w.part.clear(w.rows, size)
	lo, hi := w.span()
	for _, p := range [...]pass{measure, round} {
		if err := w.tiles(0, lo, hi, p); err != nil {
			return err
		}
	}
	for x := range w.rows {
		o := w.part.values[x*size : (x+1)*size]
		if w.part.norm[x] == 0 {
			clear(o)
		} else {
			_, head := w.row(x)
			vec.Scale(o, o, w.outScale(x, head))
		}
		w.store(x, o)
	}
	return nil
}

// roundWeights turns the scores of row x, but for a factor, into rounded weights.
func (w *worker) roundWeights(x int, s []float32, factor float32) {
	vec.Scale(s, s, factor)
	vec.ExpSum(s, s, w.part.max[x])
	if w.t.P.Quant == Online {
		// The largest exponential of a row is 1.
		vec.RoundInt8(s, int8Max)
		return
	}
	_, head := w.row(x)
	vec.RoundInt8(s, w.prob[head]/w.part.norm[x])
}

// outScale is what the sum of row x is multiplied with; its norm is not 0.
func (w *worker) outScale(x int, head int64) float32 {
	if w.t.P.Quant == Online {
		return w.valueScale[head] / int8Max / w.part.norm[x]
	}
	return w.valueScale[head]
}
