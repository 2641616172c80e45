package paged

import (
	"sort"

	"goatb/device"
	"goatb/internal/vec"
	"goatb/kernel"
	"goatb/kernel/parts"
	"goatb/tensor"
)

// worker computes the items of one block, one after the other.
type worker struct {
	a *kernel.Args
	t *tiling
	// key and value are the memory of the caches.
	key, value []byte
	item

	// query and scores have a row per row of the item; part and total hold
	// the weighted values of the part at hand and of all parts before it, with
	// the largest score and the sum of the exponentials of each row.
	query, scores              []float32
	part, total                []float32
	partMax, partSum           []float32
	totalMax, totalSum         []float32
	bias, tile                 []float32
	panels                     panels
	keyScale                   []float32
	valueScale, valueOffset    []float32
	keyChannels, valueChannels affine
	// open is the number of positions of the part that each query row sees.
	open []int64
	// spans are the blocks of a part.
	spans  []vec.Span
	stream stream
}

// item is a range of query rows and heads of one sequence. Its rows are the
// pairs of a query row and a query head: row (h*queryRows + r)*group + g is
// query row r and query head g of the group of kv head h.
type item struct {
	sequence, context int64
	// table is the sequence's row of the block tables.
	table []int32
	// firstRow is the first query row in the query tensor, position its
	// position in the context.
	firstRow, queryRows, position int64
	// firstKVHead counts in the model, firstHead in the cache; both are kv
	// heads. firstGroup is the first query head inside each kv head's group.
	firstKVHead, firstHead, heads int64
	firstGroup, group             int64
	// part is the part that the item does, -1 for all.
	partIndex int64
}

func (i *item) rows() int64 { return i.heads * i.queryRows * i.group }

// start gives the worker its share of the scratch memory.
func (w *worker) start(a *kernel.Args, block int, t *tiling) {
	w.a, w.t = a, t
	w.key, w.value = a.Mem(InKey), a.Mem(InValue)
	if w.value == nil {
		w.value = w.key
	}
	mem := device.View[float32](a.Scratch.Bytes())[int64(block)*t.Each:][:t.Each]
	take := func(n int64) []float32 {
		s := mem[:n:n]
		mem = mem[n:]
		return s
	}
	w.spans = vec.SpansIn(device.View[int64](device.BytesOf(take(spanFloats))))
	w.stream.runs = vec.AheadIn(device.View[int64](device.BytesOf(take(aheadFloats))))[:0]
	w.open = device.View[int64](device.BytesOf(take(2 * t.Rows)))
	w.query = take(t.Rows * padded(t.KeyDim))
	w.scores = take(t.Rows * t.Span)
	w.part = take(t.Rows * t.ValueDim)
	w.partMax, w.partSum = take(t.Rows), take(t.Rows)
	w.bias = take(t.Span)
	if t.MaxContext > parts.Len {
		w.total = take(t.Rows * t.ValueDim)
		w.totalMax, w.totalSum = take(t.Rows), take(t.Rows)
	}
	if t.Tile > 0 {
		w.tile = take(t.Tile)
	}
	if t.Keys > 0 {
		w.panels.key, w.panels.value = take(t.Keys), take(t.Values)
	}
	if t.Quant == Dequant {
		n := t.Affine / (t.KeyDim + 2*t.ValueDim)
		w.keyScale = take(n * t.KeyDim)
		w.valueScale, w.valueOffset = take(n*t.ValueDim), take(n*t.ValueDim)
	}
}

// share does the items of the blocks [first, end) of Attend or Parts.
func share(a *kernel.Args, first, end int, t *tiling, tail []int64) error {
	var w worker
	w.start(a, first, t)
	return w.items(tail, first, end)
}

func (w *worker) items(tail []int64, firstBlock, endBlock int) error {
	t := w.t
	lo, hi := blockItems(tail, t.Sequences, firstBlock, endBlock)
	if lo == hi {
		return nil
	}
	s := int64(0)
	if lo > 0 {
		s = int64(sort.Search(int(t.Sequences), func(s int) bool { return readSequence(tail, int64(s)).End > lo }))
	}
	tables := device.View[int32](w.a.Mem(InTables))
	for ; lo < hi; s++ {
		q, first := readSequence(tail, s), int64(0)
		if s > 0 {
			first = readSequence(tail, s-1).End
		}
		w.sequence, w.context, w.table = s, q.Context, nil
		if q.Context > 0 {
			w.table = tables[s*t.Columns : (s+1)*t.Columns]
		}
		for ; lo < min(hi, q.End); lo++ {
			w.choose(&q, lo-first)
			if err := w.do(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *worker) do() error {
	w.panels.begin(w)
	if w.t.Parts > 0 {
		return w.attendPart()
	}
	return w.attendAll()
}

// choose sets the item's ranges: item n of its sequence. Query rows change
// fastest, then groups, then parts, then heads.
func (w *worker) choose(q *sequence, n int64) {
	t, r := w.t, int64(0)
	w.firstGroup, w.firstKVHead, w.partIndex = 0, 0, 0
	if n > 0 { // an item that is the only one needs no divisions
		tiles := ceil(q.Rows, t.QueryTile)
		r = n % tiles * t.QueryTile
		n /= tiles
		w.firstGroup = n % t.GroupRanges * t.GroupTile
		n /= t.GroupRanges
		if t.Parts > 0 {
			count := max(parts.Count(w.context), 1)
			w.partIndex = n % count
			n /= count
		}
		w.firstKVHead = n * t.HeadTile
	}
	w.firstRow, w.queryRows = q.Row+r, min(t.QueryTile, q.Rows-r)
	w.position = q.Context - q.Rows + r
	w.group = min(t.GroupTile, t.Group-w.firstGroup)
	w.heads = min(t.HeadTile, t.KVHeads-w.firstKVHead)
	w.firstHead = w.firstKVHead
	if t.PerHead && w.sequence < t.Sequences {
		w.firstKVHead, w.firstHead = w.sequence%t.KVHeads, 0
	}
}

// queryHead returns the query head of group member g of the item's head h.
func (w *worker) queryHead(h, g int64) int64 {
	return (w.firstKVHead+h)*w.t.Group + w.firstGroup + g
}

// together is the number of kv heads of the item whose query heads lie together: all
// where it has whole groups of one query row.
func (w *worker) together() int64 {
	if w.queryRows == 1 && w.group == w.t.Group {
		return w.heads
	}
	return 1
}

// loadQuery widens the item's query rows and, for int8 caches, its scales.
func (w *worker) loadQuery() {
	t := w.t
	width := padded(t.KeyDim)
	heads, at := w.together(), int64(0)
	for h := int64(0); h < w.heads; h += heads {
		for r := range w.queryRows {
			rows := heads * w.group
			w.loadRows(w.query[at:at+rows*width], rows, ((w.firstRow+r)*t.Heads+w.queryHead(h, 0))*t.KeyDim)
			at += rows * width
		}
	}
	if t.Quant == Dequant {
		w.keyChannels = w.channels(w.keyScale, nil, InKeyScale, InKeyOffset, t.KeyDim, t.KeyScaleType, false)
		w.valueChannels = w.channels(w.valueScale, w.valueOffset, InValueScale, InValueOffset, t.ValueDim, t.ValueScaleType, t.HasValueOffset)
		w.scaleQuery()
	}
}

// loadRows widens rows of the query that lie together from an element on.
func (w *worker) loadRows(dst []float32, rows, from int64) {
	t, mem := w.t, w.a.Mem(InQuery)
	width := padded(t.KeyDim)
	if width == t.KeyDim {
		widen(dst, mem, t.QueryType, from)
		return
	}
	for i := range rows {
		row := dst[i*width:][:width]
		widen(row[:t.KeyDim], mem, t.QueryType, from+i*t.KeyDim)
		clear(row[t.KeyDim:])
	}
}

// padded is the length of a row of widened queries.
func padded(width int64) int64 { return int64(vec.Padded(int(width))) }

// channels loads the scales and offsets of the item's heads.
func (w *worker) channels(scale, offset []float32, scaleIn, offsetIn int, width int64, st tensor.DType, hasOffset bool) affine {
	from, n := w.firstKVHead*width, w.heads*width
	f := affine{scale: scale[:n]}
	mem := w.a.Mem(scaleIn)
	if st == tensor.Float32 {
		copy(f.scale, device.View[float32](mem)[from:from+n])
	} else {
		// An int64 scale is the bits of a float32 in its low half.
		for i, v := range device.View[uint64](mem)[from : from+n] {
			f.scale[i] = fromBits(v)
		}
	}
	if hasOffset {
		f.offset = offset[:n]
		for i, v := range device.View[int32](w.a.Mem(offsetIn))[from : from+n] {
			f.offset[i] = float32(v)
		}
	}
	return f
}
