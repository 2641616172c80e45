package attention

import (
	"math"

	"goatb/internal/vec"
)

const (
	// maskBlock is the number of columns of a group in a blocked mask.
	maskBlock = 16
	// lowest is the bias that hides a key for any other: adding it to a score
	// gives lowest again, so a row of nothing else weighs all keys alike.
	lowest = -3e38
	// hides is the largest mask value that stands for lowest: the least finite
	// f16.
	hides = -65504
)

// biasRow is a row of the bias of the current keys.
type biasRow struct {
	values []float32
	// row, head and n say which one; row is -1 for none.
	row, head int64
	n         int
}

func (b *biasRow) forget() { b.row = -1 }

// addBias adds the bias of query row r to the scores s of the keys from j on.
func (w *worker) addBias(r, head, j int64, s []float32, scale float32) {
	a := &w.t.P
	sharedHead := head
	if a.Mask.Head == 0 {
		sharedHead = 0
	}
	b := &w.bias
	if b.row != r || b.head != sharedHead || b.n != len(s) {
		b.row, b.head, b.n = r, sharedHead, len(s)
		w.loadBias(r, sharedHead, j, b.values[:len(s)])
	}
	values := b.values[:len(s)]
	switch {
	case a.Bias != MaskBias:
		slope := element(w.slopes, head, w.t.SlopeType)
		if a.ScaleBias {
			slope *= scale
		}
		vec.Axpy(slope, values, s)
	case a.ScaleBias && scale != 1:
		for i, v := range values {
			if v == negInf {
				s[i] = negInf
			} else {
				s[i] += float32(v * scale)
			}
		}
	default:
		vec.Add(s, s, values)
	}
}

// loadBias loads the bias of query row r for the keys from j on.
func (w *worker) loadBias(r, head, j int64, dst []float32) {
	switch w.t.P.Bias {
	case MaskBias:
		w.loadMask(dst, head, r, j)
		w.hide(dst)
	case Position:
		w.positionBias(w.seq.position(r), head, j, dst)
	default:
		w.distanceBias(w.seq.position(r), head, j, dst)
	}
}

// hide replaces the mask values that stand for the lowest one.
func (w *worker) hide(dst []float32) {
	one := w.t.P.OneHides
	for i, v := range dst {
		if (v <= hides && v != negInf) || (one && v == 1) {
			dst[i] = lowest
		}
	}
}

// maskAt returns the element of mask row r and column c.
func (w *worker) maskAt(head, r, c int64) int64 {
	m := &w.t.P.Mask
	at := head*m.Head + r*m.Row
	if w.t.P.Bias == MaskBias {
		at += w.seq.Index * m.Batch
	}
	if m.Block == 0 {
		return at + c
	}
	return at + c/maskBlock*m.Block + c%maskBlock
}

// loadMask widens mask row r from column c on.
func (w *worker) loadMask(dst []float32, head, r, c int64) {
	if w.t.P.Mask.Block == 0 {
		widen(dst, w.mask, w.maskAt(head, r, c), w.t.MaskType)
		return
	}
	for len(dst) > 0 {
		n := min(int(maskBlock-c%maskBlock), len(dst))
		widen(dst[:n], w.mask, w.maskAt(head, r, c), w.t.MaskType)
		dst, c = dst[n:], c+int64(n)
	}
}

// distanceBias gives the bias of the distances between position pos and the
// keys from j on, all of which are at or before pos.
func (w *worker) distanceBias(pos, head, j int64, dst []float32) {
	m := &w.t.P.Mask
	if pos < m.Rows && j < m.Cols {
		n := min(int64(len(dst)), m.Cols-j)
		w.loadMask(dst[:n], head, pos, j)
		dst, j = dst[n:], j+n
	}
	if len(dst) == 0 {
		return
	}
	sign := float32(-1)
	if element(w.mask, w.maskAt(head, m.Rows-1, 0), w.t.MaskType) > 0 {
		sign = 1
	}
	for i := range dst {
		switch d := pos - j - int64(i); {
		case d < m.Rows:
			dst[i] = element(w.mask, w.maskAt(head, d, 0), w.t.MaskType)
		case w.t.P.Bias == RootDistance:
			dst[i] = sign * float32(math.Sqrt(float64(d)))
		default:
			dst[i] = sign * float32(d)
		}
	}
}

// positionBias gives the bias of the keys from j on for a query at pos.
func (w *worker) positionBias(pos, head, j int64, dst []float32) {
	m := &w.t.P.Mask
	row := min(pos, m.Rows-1)
	if j < m.Cols {
		n := min(int64(len(dst)), m.Cols-j)
		w.loadMask(dst[:n], head, row, j)
		dst, j = dst[n:], j+n
	}
	if len(dst) == 0 {
		return
	}
	first := element(w.mask, w.maskAt(head, row, 0), w.t.MaskType)
	last := element(w.mask, w.maskAt(head, row, m.Cols-1), w.t.MaskType)
	step := float32(1)
	if last < first {
		step = -1
	}
	for i := range dst {
		dst[i] = last + float32(step*float32(j+int64(i)-m.Cols+1))
	}
}
