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
	// query and score have a row per row of the item: its query and the scores
	// of the current keys. part and total are the sums over the current part
	// of the keys and over all parts before it.
	query, score []float32
	part, total  sums
	// before and tileNorm are the rows' largest scores before a tile and the norms
	// of the tile.
	before, tileNorm           []float32
	key, value                 operand
	queries, out               []byte
	slopes, factors            []byte
	keyScale, valueScale, prob []float32
	bias                       biasRow
	// mixed holds a tile's values of some rows before they are added to part.
	mixed  []float32
	panels panels
	// sights are the first key that each row sees, and the one behind the last.
	sights []int64
	// plain says that a score is its product times factor.
	plain  bool
	factor float32
	// tileFrom is the first key of the tile.
	tileFrom int64

	// seq is the item's sequence, keyHead its key head. Its rows are those
	// numbered first to first+rows-1, row r of query head h of the group being
	// number r*Group+h.
	seq           sequence
	keyHead       int64
	first         int64
	rows, keyTile int
	// spans and seen are the places of a tile's keys, ahead what follows them.
	spans, seen []vec.Span
	ahead       []vec.Ahead
}

// sums are what a softmax sums up, for every row of an item: the weighted
// values, the largest score and the sum of exponentials.
type sums struct{ values, max, norm []float32 }

// start places a block's buffers.
func (w *worker) start(a *kernel.Args, block int, t *tiling) {
	w.t, w.keyTile = t, int(t.KeyTile)
	s := &t.Scratch
	buf := device.View[float32](a.Scratch.Bytes())[int64(block)*s.Size:][:s.Size]
	words := device.View[int64](device.BytesOf(buf[s.Spans:s.Query]))
	w.spans, w.ahead = vec.SpansIn(words[:2*vec.SpanWords]), vec.AheadIn(words[2*vec.SpanWords:])
	w.spans, w.seen = w.spans[:1:1], w.spans[1:2]
	w.query, w.score, w.bias.values = buf[s.Query:s.Key], buf[s.Score:s.Bias], buf[s.Bias:s.Part]
	w.part = sums{buf[s.Part:s.PartMax], buf[s.PartMax:s.PartNorm], buf[s.PartNorm:s.Total]}
	w.total = sums{buf[s.Total:s.TotalMax], buf[s.TotalMax:s.TotalNorm], buf[s.TotalNorm:s.Before]}
	w.before, w.tileNorm = buf[s.Before:s.TileNorm], buf[s.TileNorm:s.Mixed]
	w.mixed, w.sights = buf[s.Mixed:s.Sights], sightsIn(buf[s.Sights:s.PackKey])
	w.panels.key, w.panels.value, w.panels.sums = buf[s.PackKey:s.PackValue], buf[s.PackValue:s.PackSum], buf[s.PackSum:s.Size]
	w.plain = t.P.Quant == NoQuant && t.P.Factor == NoFactor && !t.P.Clamp && t.P.Bias == NoBias
	w.factor = t.P.QScale * t.P.QKScale
	w.queries, w.out = a.Mem(InQuery), a.Mem(NumIn)
	w.mask, w.slopes, w.factors = a.Mem(InMask), a.Mem(InSlopes), a.Mem(InFactor)
	w.keyScale = device.View[float32](a.Mem(InKeyScale))
	w.valueScale = device.View[float32](a.Mem(InValueScale))
	w.prob = device.View[float32](a.Mem(InProbScale))
	table := device.View[int32](a.Mem(InTable))
	w.key = operand{mem: a.Mem(InKey), fresh: a.Mem(InNewKey), table: table, at: t.P.Key, new: t.P.NewKey, size: t.P.KeySize, buf: buf[s.Key:s.Value]}
	w.value = operand{mem: a.Mem(InValue), fresh: a.Mem(InNewValue), table: table, at: t.P.Value, new: t.P.NewValue, size: t.P.ValueSize, buf: buf[s.Value:s.Score]}
}

// item does item i of the current sequence: row tiles change fastest, then key
// heads, then parts, so that the keys of a head stay in a cache. The tiles of odd
// heads are in reverse order: later ones see more keys, and so blocks that take
// items in turn get like shares.
func (w *worker) item(i int64, key uint64) error {
	t := w.t
	tiles := t.rowTiles(&w.seq)
	tile := i % tiles
	i /= tiles
	w.keyHead, i = i%t.P.KeyHeads, i/t.P.KeyHeads
	if w.keyHead%2 != 0 {
		tile = tiles - 1 - tile
	}
	w.first = tile * t.RowTile
	w.rows = int(min(t.RowTile, w.seq.Rows*t.Group-w.first))
	w.key.start, w.value.start = w.seq.Key, w.seq.Value
	w.loadQueries()
	w.findSights()
	w.panels.begin(w)
	switch {
	case t.P.Quant != NoQuant:
		return w.quantised()
	case t.Parts > 0:
		return w.onePart(i, key)
	}
	return w.allParts(key)
}

// row returns the query row and the query head of the item's row x.
func (w *worker) row(x int) (r, head int64) {
	n := w.first + int64(x)
	return n / w.t.Group, w.keyHead*w.t.Group + n%w.t.Group
}

// loadQueries widens the item's query rows.
func (w *worker) loadQueries() {
	a := &w.t.P
	size, width := int(a.KeySize), vec.Padded(int(a.KeySize))
	for x := range w.rows {
		r, head := w.row(x)
		if r >= w.seq.Live {
			return
		}
		row := w.query[x*width : (x+1)*width]
		widen(row[:size], w.queries, w.seq.Query+r*a.Query.Row+head*a.Query.Head, w.t.QueryType)
		clear(row[size:])
	}
}

// clear forgets everything summed up over n rows of size values.
func (s *sums) clear(n, size int) {
	clear(s.values[:n*size])
	clear(s.norm[:n])
	for x := range s.max[:n] {
		s.max[x] = vec.Lowest
	}
}

// span returns the keys that any row of the item sees.
func (w *worker) span() (lo, hi int64) {
	from, _ := w.row(0)
	to, _ := w.row(w.rows - 1)
	return w.seq.span(&w.t.P, from, to)
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

// tiles walks the keys [lo, hi) in tiles, the first of which begins at key
// first or a multiple of the tile's size behind it.
func (w *worker) tiles(first, lo, hi int64, p pass) error {
	for j := lo - (lo-first)%w.t.KeyTile; j < hi; j += w.t.KeyTile {
		from, to := max(j, lo), min(j+w.t.KeyTile, hi)
		if err := w.scores(from, to); err != nil {
			return err
		}
		w.weights(from, to, p)
		if p == measure {
			continue
		}
		if err := w.mix(from, to); err != nil {
			return err
		}
	}
	return nil
}

// weights turns the scores of the keys [from, to) into weights, each row's visible
// ones.
func (w *worker) weights(from, to int64, p pass) {
	for x, n := 0, 0; x < w.rows; x += n {
		lo, hi := w.within(x, from, to)
		if n = 1; w.plain {
			n = w.alike(x, w.rows, from, to)
		}
		if lo >= hi {
			continue
		}
		s := w.score[x*w.keyTile+int(lo-from):][:hi-lo]
		factor := w.adjust(x, lo, s)
		if p == round {
			w.roundWeights(x, s, factor)
		} else {
			w.soften(x, n, int(lo-from), len(s), factor)
		}
	}
}

// alike returns how many rows from row x on, before row end, see the same of the
// keys [from, to).
func (w *worker) alike(x, end int, from, to int64) int {
	lo, hi := w.within(x, from, to)
	n := 1
	for ; x+n < end; n++ {
		if l, h := w.within(x+n, from, to); l != lo || h != hi {
			break
		}
	}
	return n
}

// within returns the part of the keys [from, to) that row x sees.
func (w *worker) within(x int, from, to int64) (lo, hi int64) {
	lo, hi = w.sight(x)
	return max(lo, from), min(hi, to)
}

// scores multiplies the rows with the keys [from, to).
func (w *worker) scores(from, to int64) error {
	k, err := w.load(&w.key, from, to)
	if err != nil {
		return err
	}
	w.tileFrom = from
	if w.panels.on {
		w.panels.scores(w, &k, int(to-from))
	} else {
		k.Scores(w.score, w.keyTile, w.query, vec.Padded(k.Width), w.rows)
	}
	w.bias.forget()
	return nil
}

// mix adds the values of the keys [from, to), each row's visible ones, weighted
// with its scores.
func (w *worker) mix(from, to int64) error {
	v, err := w.load(&w.value, from, to)
	if err != nil {
		return err
	}
	if !w.panels.on {
		w.mixRows(&v, from, to, 0, w.rows)
		return nil
	}
	w.panels.mix(w, &v, from, to)
	return nil
}

// spread returns the keys of [from, to) that any of n rows from row x on sees,
// and whether all see the same; the weights of those that a row does not see
// become 0.
func (w *worker) spread(from, to int64, x, n int) (lo, hi int64, even bool) {
	lo, hi, even = to, from, true
	for r := x; r < x+n; r++ {
		if l, h := w.within(r, from, to); l < h {
			even = even && (r == x || l == lo && h == hi)
			lo, hi = min(lo, l), max(hi, h)
		} else {
			even = false
		}
	}
	if even || lo >= hi {
		return lo, hi, even
	}
	for r := x; r < x+n; r++ {
		s := w.score[r*w.keyTile:]
		l, h := w.within(r, from, to)
		if l >= h {
			l, h = hi, hi
		}
		clear(s[lo-from : l-from])
		clear(s[h-from : hi-from])
	}
	return lo, hi, false
}

// mixRows is mix for n rows from row x on, by their own keys alone. Rows that see
// the same keys are done at once.
func (w *worker) mixRows(v *vec.Cache, from, to int64, x, n int) {
	for end := x + n; x < end; {
		lo, hi := w.within(x, from, to)
		n := w.alike(x, end, from, to)
		if lo < hi {
			seen := *v
			seen.Spans = append(w.seen[:0], v.Part(int(lo-from), int(hi-lo)))
			w.mixCache(&seen, x, n, int(lo-from))
		}
		x += n
	}
}

// mixCache adds the values of v, weighted with the scores of n rows from row x
// and key j of the tile on.
func (w *worker) mixCache(v *vec.Cache, x, n, j int) {
	size := int(w.t.P.ValueSize)
	for end := x + n; x < end; x += mixedRows {
		n := min(mixedRows, end-x)
		mixed := w.mixed[:n*size]
		clear(mixed)
		v.Mix(mixed, size, w.score[x*w.keyTile+j:], w.keyTile, n)
		values := w.part.values[x*size:][:n*size]
		vec.Add(values, values, mixed)
	}
}

// single is tiles for an item whose rows belong to one query row.
func (w *worker) single(first, lo, hi int64) error {
	for j := lo - (lo-first)%w.t.KeyTile; j < hi; j += w.t.KeyTile {
		from, to := max(j, lo), min(j+w.t.KeyTile, hi)
		if err := w.scores(from, to); err != nil {
			return err
		}
		w.weights(from, to, weigh)
		v, err := w.load(&w.value, from, to)
		if err != nil {
			return err
		}
		w.mixCache(&v, 0, w.rows, 0)
	}
	return nil
}

// outAt returns the element of the output where the item's row x begins.
func (w *worker) outAt(x int) int64 {
	r, head := w.row(x)
	return w.seq.Out + r*w.t.P.Out.Row + head*w.t.P.Out.Head
}

// store rounds the values of the item's row x and writes them.
func (w *worker) store(x int, values []float32) {
	at, width := w.outAt(x), w.t.OutType.Size()
	kernel.StoreFloats(w.out[at*width:(at+w.t.P.ValueSize)*width], values, w.t.OutType)
}
