package attention

import (
	"math"

	"goatb/device"
	"goatb/internal/vec"
	"goatb/kernel"
)

var negInf = float32(math.Inf(-1))

// worker does the items of one block.
type worker struct {
	t    *tiling
	mask []byte
	// query, score, sum, max and norm have a row or an element per row of the
	// item: its query, the scores of the current keys, the weighted values so
	// far, and the largest score and the sum of exponentials so far.
	query, score, sum, max, norm []float32
	key, value                   operand
	queries, out                 []byte
	slopes, factors              []byte
	keyScale, valueScale, prob   []float32
	bias                         biasRow

	// seq is the item's sequence, keyHead its key head. Its rows are those
	// numbered first to first+rows-1, row r of query head h of the group being
	// number r*Group+h.
	seq           sequence
	keyHead       int64
	first         int64
	rows, keyTile int
}

// start places a block's buffers.
func (w *worker) start(a *kernel.Args, block int, t *tiling) {
	w.t, w.keyTile = t, int(t.KeyTile)
	s := &t.Scratch
	buf := device.View[float32](a.Scratch.Bytes())[int64(block)*s.Size:][:s.Size]
	w.query, w.score, w.sum = buf[s.Query:s.Key], buf[s.Score:s.Sum], buf[s.Sum:s.Max]
	w.max, w.norm, w.bias.values = buf[s.Max:s.Norm], buf[s.Norm:s.Bias], buf[s.Bias:s.Size]
	w.queries, w.out = a.Mem(InQuery), a.Mem(NumIn)
	w.mask, w.slopes, w.factors = a.Mem(InMask), a.Mem(InSlopes), a.Mem(InFactor)
	w.keyScale = device.View[float32](a.Mem(InKeyScale))
	w.valueScale = device.View[float32](a.Mem(InValueScale))
	w.prob = device.View[float32](a.Mem(InProbScale))
	table := device.View[int32](a.Mem(InTable))
	w.key = operand{mem: a.Mem(InKey), fresh: a.Mem(InNewKey), table: table, at: t.P.Key, new: t.P.NewKey, size: t.P.KeySize, buf: buf[s.Key:s.Value]}
	w.value = operand{mem: a.Mem(InValue), fresh: a.Mem(InNewValue), table: table, at: t.P.Value, new: t.P.NewValue, size: t.P.ValueSize, buf: buf[s.Value:s.Score]}
}

// item does item i of the current sequence.
func (w *worker) item(i int64, key uint64) error {
	t := w.t
	w.keyHead, w.first = i%t.P.KeyHeads, i/t.P.KeyHeads*t.RowTile
	w.rows = int(min(t.RowTile, w.seq.Rows*t.Group-w.first))
	w.key.start, w.value.start = w.seq.Key, w.seq.Value
	w.reset()
	var err error
	switch {
	case key == keySingle:
		err = w.single()
	case t.P.Quant != NoQuant:
		err = w.quantised()
	default:
		err = w.tiles(weigh)
	}
	if err == nil {
		w.store()
	}
	return err
}

// row returns the query row and the query head of the item's row x.
func (w *worker) row(x int) (r, head int64) {
	n := w.first + int64(x)
	return n / w.t.Group, w.keyHead*w.t.Group + n%w.t.Group
}

// reset loads the queries and clears what is summed up.
func (w *worker) reset() {
	a := &w.t.P
	size := int(a.KeySize)
	for x := range w.rows {
		r, head := w.row(x)
		if r >= w.seq.Live {
			break
		}
		widen(w.query[x*size:(x+1)*size], w.queries, w.seq.Query+r*a.Query.Row+head*a.Query.Head, w.t.QueryType)
	}
	clear(w.sum)
	for x := range w.rows {
		w.max[x], w.norm[x] = negInf, 0
	}
}

// position returns the position of query row r among the keys.
func (w *worker) position(r int64) int64 { return w.seq.Keys - w.seq.Live + r }

// visible returns the keys [lo, hi) that query row r sees.
func (w *worker) visible(r int64) (lo, hi int64) {
	if r >= w.seq.Live {
		return 0, 0
	}
	a, pos := &w.t.P, w.position(r)
	hi = w.seq.Keys
	if a.Causal {
		hi = min(hi, pos+1)
	}
	if a.Window > 0 {
		lo = max(pos-a.Window+1, 0)
	}
	return lo, max(hi, lo)
}

// span returns the keys that any row of the item sees.
func (w *worker) span() (lo, hi int64) {
	from, _ := w.row(0)
	if from >= w.seq.Live {
		return 0, 0
	}
	to, _ := w.row(w.rows - 1)
	lo, _ = w.visible(from)
	_, hi = w.visible(min(to, w.seq.Live-1))
	return lo, hi
}

// pass tells what a walk over the keys does with the scores.
type pass uint8

const (
	// weigh weighs the values as it goes.
	weigh pass = iota
	// measure only finds the rows' largest scores and norms.
	measure
	// round weighs the values with rounded weights, after measure.
	round
)

// tiles walks the tiles of keys.
func (w *worker) tiles(p pass) error {
	lo, hi := w.span()
	for j := lo - lo%w.t.KeyTile; j < hi; j += w.t.KeyTile {
		from, to := max(j, lo), min(j+w.t.KeyTile, hi)
		if err := w.scores(from, to); err != nil {
			return err
		}
		for x := range w.rows {
			r, head := w.row(x)
			a, b := w.within(r, from, to)
			if a >= b {
				continue
			}
			s := w.score[x*w.keyTile:][a-from : b-from]
			w.adjust(r, head, a, s)
			if p == round {
				w.roundWeights(x, head, s)
			} else {
				w.soften(x, s)
			}
		}
		if p == measure {
			continue
		}
		if err := w.mix(from, to); err != nil {
			return err
		}
	}
	return nil
}

// within returns the part of the keys [from, to) that query row r sees.
func (w *worker) within(r, from, to int64) (lo, hi int64) {
	lo, hi = w.visible(r)
	return max(lo, from), min(hi, to)
}

// scores multiplies the rows with the keys [from, to).
func (w *worker) scores(from, to int64) error {
	k, step, err := w.load(&w.key, from, to)
	if err != nil {
		return err
	}
	size := int(w.t.P.KeySize)
	vec.ScoreRows(w.score, w.keyTile, w.query, size, w.rows, k, step, int(to-from), size)
	w.bias.forget()
	return nil
}

// mix adds the values of the keys [from, to), each row's visible ones, weighted
// with its scores. Rows that see the same keys are done at once.
func (w *worker) mix(from, to int64) error {
	v, step, err := w.load(&w.value, from, to)
	if err != nil {
		return err
	}
	size := int(w.t.P.ValueSize)
	for x := 0; x < w.rows; {
		r, _ := w.row(x)
		lo, hi := w.within(r, from, to)
		n := 1
		for ; x+n < w.rows; n++ {
			r, _ = w.row(x + n)
			if l, h := w.within(r, from, to); l != lo || h != hi {
				break
			}
		}
		if lo < hi {
			at := int(lo - from)
			vec.MixRows(w.sum[x*size:], size, w.score[x*w.keyTile+at:], w.keyTile, n, v[at*step:], step, int(hi-lo), size)
		}
		x += n
	}
	return nil
}

// single does an item whose rows belong to one query row.
func (w *worker) single() error {
	lo, hi := w.visible(0)
	size := int(w.t.P.ValueSize)
	for j := lo - lo%w.t.KeyTile; j < hi; j += w.t.KeyTile {
		from, to := max(j, lo), min(j+w.t.KeyTile, hi)
		if err := w.scores(from, to); err != nil {
			return err
		}
		for x := range w.rows {
			s := w.score[x*w.keyTile:][:to-from]
			head := w.keyHead*w.t.Group + w.first + int64(x)
			w.adjust(0, head, from, s)
			w.soften(x, s)
		}
		v, step, err := w.load(&w.value, from, to)
		if err != nil {
			return err
		}
		vec.MixRows(w.sum, size, w.score, w.keyTile, w.rows, v, step, int(to-from), size)
	}
	return nil
}

// store divides the sums by their norms and writes them.
func (w *worker) store() {
	t, a := w.t, &w.t.P
	size, width := int(a.ValueSize), t.OutType.Size()
	for x := range w.rows {
		r, head := w.row(x)
		o := w.sum[x*size : (x+1)*size]
		if w.norm[x] == 0 {
			clear(o)
		} else {
			vec.Scale(o, o, w.outScale(x, head))
		}
		at := (w.seq.Out + r*a.Out.Row + head*a.Out.Head) * width
		kernel.StoreFloats(w.out[at:at+int64(size)*width], o, t.OutType)
	}
}
