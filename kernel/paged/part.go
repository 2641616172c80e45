package paged

import (
	"math"

	"goatb/device"
	"goatb/internal/vec"
	"goatb/kernel"
	"goatb/kernel/parts"
)

func fromBits(v uint64) float32 { return math.Float32frombits(uint32(v)) }

// attend computes part p of the item: partMax, partSum and part. A row that
// sees no position has sum 0 and values 0.
func (w *worker) attend(p int64) error {
	t := w.t
	first := p * parts.Len
	n := w.look(first, min(parts.Len, w.context-first))
	rows := w.rows()
	if n == 0 {
		clear(w.part[:rows*t.ValueDim])
		clear(w.partMax[:rows])
		clear(w.partSum[:rows])
		return nil
	}
	if err := w.score(first, n); err != nil {
		return err
	}
	if t.HasRazor {
		if err := w.loadRazor(first, n); err != nil {
			return err
		}
	}
	w.softmax(first, n)
	return w.mix(first, n)
}

// look finds how many of the n positions from first on each query row sees
// and returns the largest number: behind it everything is hidden.
func (w *worker) look(first, n int64) (most int64) {
	m := &w.t.Mask
	for r := range w.queryRows {
		seen := n
		switch {
		case m.Causal:
			seen = min(max(w.position+r+1-first, 0), n)
		case m.Present && m.Head == 0:
			seen = m.open(w.a.Mem(InMask), w.maskRow(r, 0)+first, n)
		}
		w.open[r] = seen
		most = max(most, seen)
	}
	return most
}

// maskRow returns the offset of the mask row of a query row and query head.
func (w *worker) maskRow(r, head int64) int64 {
	s := w.sequence
	if w.t.PerHead {
		s /= w.t.KVHeads
	}
	return w.t.Mask.row(s, head, w.firstRow+r, w.position+r)
}

// score fills the scores of n positions with the inner products of query and
// key rows.
func (w *worker) score(first, n int64) error {
	t := w.t
	for j := int64(0); j < n; {
		var k vec.Cache
		if err := w.load(&k, &t.Key, w.key, first+j, n-j); err != nil {
			return err
		}
		width, rows := vec.Padded(int(t.KeyDim)), int(w.queryRows*w.group)
		switch {
		case t.Fixed:
			k.FixedScores(w.scores[j:], int(t.Span), w.query, width, rows)
		case w.panels.on:
			w.panels.scores(w, &k, int(j))
		default:
			k.Scores(w.scores[j:], int(t.Span), w.query, width, rows)
		}
		j += int64(k.Rows())
	}
	return nil
}

// mix adds the value rows of n positions, weighted by the probabilities.
func (w *worker) mix(first, n int64) error {
	t := w.t
	mix := w.mixRows
	if w.panels.on {
		mix = w.mixPanels
	}
	if err := mix(first, n); err != nil {
		return err
	}
	if err := w.mixApart(first, n); err != nil {
		return err
	}
	switch t.Quant {
	case Offline, Online:
		w.scaleValues()
	case Dequant:
		w.dequantise()
	}
	return nil
}

// mixRows is mix with the values as they lie.
func (w *worker) mixRows(first, n int64) error {
	t := w.t
	clear(w.part[:w.rows()*t.ValueDim])
	for j := int64(0); j < n; {
		var v vec.Cache
		if err := w.load(&v, &t.Value, w.value, first+j, n-j); err != nil {
			return err
		}
		v.Mix(w.part, int(t.ValueDim), w.scores[j:], int(t.Span), int(w.queryRows*w.group))
		j += int64(v.Rows())
	}
	return nil
}

// mixPanels is mix with packed values, one head after the other.
func (w *worker) mixPanels(first, n int64) error {
	for h := range int(w.heads) {
		for j := int64(0); j < n; {
			var v vec.Cache
			if err := w.load(&v, &w.t.Value, w.value, first+j, n-j); err != nil {
				return err
			}
			w.panels.pack(w, &v, h, int(j))
			j += int64(v.Rows())
		}
		w.panels.mix(w, h)
	}
	return nil
}

// mixApart is mix for the query rows that do not see all of the n positions, by
// their own ones alone, where the values are not all finite: a weight of 0 adds NaN
// for an infinity.
func (w *worker) mixApart(first, n int64) error {
	size := w.t.ValueDim
	for r := range w.queryRows {
		if w.open[r] == n {
			continue
		}
		for h := range w.heads {
			row := (h*w.queryRows + r) * w.group
			part := w.part[row*size : (row+w.group)*size]
			if s := vec.SumSquares(part); s-s == 0 {
				continue
			}
			clear(part)
			if err := w.mixHead(part, w.scores[row*w.t.Span:], first, w.open[r], int(h)); err != nil {
				return err
			}
		}
	}
	return nil
}

// mixHead adds n values of a head of the item, weighted by the probabilities p of the
// rows of one query row.
func (w *worker) mixHead(part, p []float32, first, n int64, head int) error {
	for j := int64(0); j < n; {
		var v vec.Cache
		if err := w.load(&v, &w.t.Value, w.value, first+j, n-j); err != nil {
			return err
		}
		v.Only(head)
		v.Mix(part, int(w.t.ValueDim), p[j:], int(w.t.Span), int(w.group))
		j += int64(v.Rows())
	}
	return nil
}

// loadRazor gathers the offsets of the raw scores of n positions.
func (w *worker) loadRazor(first, n int64) error {
	razor, bs := device.View[float32](w.a.Mem(InRazor)), w.t.BlockSize
	for j := int64(0); j < n; {
		id, err := w.block((first + j) / bs)
		if err != nil {
			return err
		}
		slot := (first + j) % bs
		m := min(n-j, bs-slot)
		copy(w.bias[j:j+m], razor[id*bs+slot:])
		j += m
	}
	return nil
}

// softmax turns the scores of n positions into probabilities, exponentials
// relative to the largest score of the part, with partMax and partSum. Query
// rows are the outer loop: the heads of a row mostly share its mask row.
func (w *worker) softmax(first, n int64) {
	t, m := w.t, &w.t.Mask
	scale := t.Scale
	if t.HasLogN {
		scale *= device.View[float32](w.a.Mem(InLogN))[w.sequence]
	}
	if !m.Present && !t.HasRazor && !t.rounds() {
		w.softenOpen(n, scale)
		return
	}
	for r := range w.queryRows {
		seen := w.open[r]
		bias := w.bias[:seen]
		if m.Present && m.Head == 0 {
			bias = w.mask(w.maskRow(r, 0)+first, seen)
		}
		for h := range w.heads {
			for g := range w.group {
				if m.Present && m.Head != 0 {
					bias = w.mask(w.maskRow(r, w.queryHead(h, g))+first, seen)
				}
				row := (h*w.queryRows+r)*w.group + g
				s := w.scores[row*t.Span:][:n]
				clear(s[seen:])
				w.rowSoftmax(row, w.queryHead(h, g), s[:seen], scale, bias)
			}
		}
	}
}

// softenOpen turns the scores of the item's rows into probabilities where no bias is
// added: rows that see the same number of the n positions are done at once.
func (w *worker) softenOpen(n int64, scale float32) {
	if w.open[0] == n { // the first query row sees the fewest
		w.soften(0, w.rows(), n, scale)
		return
	}
	for h := range w.heads {
		for r := range w.queryRows {
			seen, first := w.open[r], (h*w.queryRows+r)*w.group
			for row := first; row < first+w.group; row++ {
				clear(w.scores[row*w.t.Span:][seen:n])
			}
			w.soften(first, w.group, seen, scale)
		}
	}
}

// mask returns n elements of the mask from element at on.
func (w *worker) mask(at, n int64) []float32 {
	m := &w.t.Mask
	return kernel.Floats(w.bias, w.a.Mem(InMask)[at*m.Type.Size():], m.Type, n)
}

// soften turns the scaled scores of n positions of some rows into probabilities.
func (w *worker) soften(row, rows, n int64, scale float32) {
	tops := w.partMax[row:][:rows]
	for i := range tops {
		tops[i] = vec.Lowest
	}
	vec.Soften(w.scores[row*w.t.Span:], int(n), int(rows), int(w.t.Span), scale, tops, w.partSum[row:])
}

// rowSoftmax does softmax for the scores s of one row, which begin its row of
// scores.
func (w *worker) rowSoftmax(row, head int64, s []float32, scale float32, bias []float32) {
	t := w.t
	if t.rounds() {
		scale *= device.View[float32](w.a.Mem(InKeyScale))[head]
	}
	switch {
	case t.HasRazor:
		vec.Add(s, s, bias)
	case t.Mask.Present:
		vec.Blend(scale, s, 1, bias)
		scale = 1
	}
	if !t.rounds() {
		w.soften(row, 1, int64(len(s)), scale)
		return
	}
	vec.Scale(s, s, scale)
	w.partMax[row] = vec.Max(s)
	w.partSum[row] = w.quantise(s, head, w.partMax[row])
}
