package attention

import "goatb/kernel/parts"

// attendPart sums part p of the keys up.
func (w *worker) attendPart(p int64, key uint64) error {
	w.part.clear(w.rows, int(w.t.P.ValueSize))
	lo, hi := w.span()
	first := p * parts.Len
	lo, hi = max(lo, first), min(hi, first+parts.Len)
	if key == keySingle {
		return w.single(first, lo, hi)
	}
	return w.tiles(first, lo, hi, weigh)
}

// allParts does an item and writes its output rows.
func (w *worker) allParts(key uint64) error {
	size := int(w.t.P.ValueSize)
	clear(w.total.norm[:w.rows]) // nothing seen yet: Join copies the first part
	lo, hi := w.span()
	for p := lo / parts.Len; p < parts.Count(hi); p++ {
		if err := w.attendPart(p, key); err != nil {
			return err
		}
		for x := range w.rows {
			parts.Join(w.total.values[x*size:(x+1)*size], &w.total.max[x], &w.total.norm[x],
				w.part.values[x*size:(x+1)*size], w.part.max[x], w.part.norm[x])
		}
	}
	values := w.total.values[:w.rows*size]
	parts.Finish(values, values, w.total.norm[:w.rows])
	for x := range w.rows {
		w.store(x, values[x*size:(x+1)*size])
	}
	return nil
}

// onePart does one part of an item, counted from the first that the sequence's
// rows see, and writes it apart. The item of the last part, or the only one of
// rows without parts, marks the end.
func (w *worker) onePart(p int64, key uint64) error {
	t := w.t
	size := t.P.ValueSize
	first, n := w.seq.parts(&t.P)
	if n > 0 {
		if err := w.attendPart(first+p, key); err != nil {
			return err
		}
	}
	out := parts.ViewOf(w.out, t.Parts, size)
	for x := range w.rows {
		row := w.outAt(x) / size
		if n > 0 {
			out.Put(row, p, w.part.values[int64(x)*size:int64(x+1)*size], w.part.max[x], w.part.norm[x])
		}
		if p >= n-1 {
			out.End(row, n)
		}
	}
	return nil
}
