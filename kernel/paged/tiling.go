package paged

import (
	"goatb/internal/vec"
	"goatb/kernel"
	"goatb/kernel/parts"
	"goatb/tensor"
)

// tiling is the plan of Attend and Parts: the geometry, how a launch is cut
// into items, and the scratch of a block. An item is a sequence, a range of
// its query rows and a range of heads; for Parts also one part.
type tiling struct {
	geometry
	OutType tensor.DType
	// QueryTile, HeadTile and GroupTile are the largest numbers of query
	// rows, kv heads and query heads of one kv head in an item. HeadTile is 1
	// when GroupTile is less than the whole group.
	QueryTile, HeadTile, GroupTile int64
	// HeadRanges and GroupRanges count the ranges of heads.
	HeadRanges, GroupRanges int64
	// TileRows is the number of cache rows that are loaded at once.
	TileRows int64
	// Parts is the number of parts that a row of Parts' output has room for;
	// for Attend it is 0 and an item does all parts of its context.
	Parts int64
	scratch
}

// scratch is the memory of a block, all sizes in float32 elements.
type scratch struct {
	// Rows bounds the rows of an item: query rows times heads.
	Rows int64
	// Span is the row length of the scores: the longest part, and room for panels.
	Span int64
	// Keys holds packed keys that are loaded at once, Values the values of a part.
	Keys, Values int64
	// Tile holds cache rows, Affine the scales and offsets by channel.
	Tile, Affine int64
	// Each is the whole of a block, a multiple of 16.
	Each int64
}

const (
	// tileFloats bounds a tile of cache rows: it stays in a second level cache.
	tileFloats = 16 << 10
	// rowsWanted is the number of rows of an item that use a loaded cache row
	// well; more of them only need more scratch.
	rowsWanted = 64
	// packedRows is rowsWanted of query rows for which cache rows are packed first.
	packedRows = 128
	// widthWanted bounds heads times width of a tile's row, so that a tile has
	// enough rows.
	widthWanted = 2048
	// spanFloats is the room for the blocks of a part in scratch.
	spanFloats = ((parts.Len/directBlock+2)*2*vec.SpanWords + 15) &^ 15
	// fetchBytes bounds the memory over which the rows that are used in place at once
	// extend: they and the ones after them, which are fetched meanwhile, stay in a
	// second level cache, and their pages in a table of 96.
	fetchBytes = 64 << 10
	// fetchRows is the number of positions of which rows used at once are a
	// multiple, as inner loops take them.
	fetchRows = 16
)

// mostRows is the largest number of rows of an item.
func (g *geometry) mostRows() int64 {
	if g.packs() {
		return packedRows
	}
	return rowsWanted
}

// scratchOf bounds the scratch of a block for every blocking of g.
func scratchOf(g *geometry) scratch {
	width := max(g.KeyDim, g.ValueDim)
	s := scratch{Rows: min(g.mostRows(), g.Tokens*g.Heads), Span: min(parts.Len, g.MaxContext)}
	if g.packs() {
		s.Keys = wholePanels(min(g.Key.InPlace, s.Span)) * padded(g.KeyDim)
		s.Span = panelSpan(s.Span)
		s.Values = s.Span * g.ValueDim
	}
	heads := min(g.KVHeads, max(1, widthWanted/width))
	if !g.Key.Direct || !g.Value.Direct {
		s.Tile = max(min(tileFloats, parts.Len*heads*width), heads*width)
	}
	if g.Quant == Dequant {
		s.Affine = heads * (g.KeyDim + 2*g.ValueDim)
	}
	s.Each = s.Rows*(padded(g.KeyDim)+s.Span+2*g.ValueDim+6) + s.Span + s.Keys + s.Values + s.Tile + s.Affine + spanFloats + aheadFloats
	s.Each = (s.Each + 15) &^ 15
	return s
}

// block chooses the blocking of heads and query rows. most is the largest
// number of query rows of a sequence.
func (t *tiling) block(most int64) {
	t.scratch = scratchOf(&t.geometry)
	t.GroupTile = min(t.Group, rowsWanted)
	t.QueryTile = max(1, min(t.mostRows()/t.GroupTile, most))
	t.HeadTile = 1
	if t.GroupTile == t.Group && !t.PerHead {
		width := max(t.KeyDim, t.ValueDim)
		t.HeadTile = max(1, min(rowsWanted/(t.GroupTile*t.QueryTile), widthWanted/width, t.KVHeads))
	}
	t.setRanges()
}

func (t *tiling) setRanges() {
	t.HeadRanges = ceil(t.KVHeads, t.HeadTile)
	if t.PerHead {
		t.HeadRanges = 1
	}
	t.GroupRanges = ceil(t.Group, t.GroupTile)
	t.TileRows = max(1, min(tileFloats/(t.HeadTile*max(t.KeyDim, t.ValueDim)), parts.Len))
}

// count writes the item counts of all sequences and returns the items and their work.
func (t *tiling) count(tail []int64) (items int64, nanos float64) {
	for s := range t.Sequences + 1 {
		q := readSequence(tail, s)
		w := t.workOf(&q)
		n, each := w.all()
		items, nanos = items+n, nanos+each
		q.End = items
		writeSequence(tail, s, q)
	}
	return items, nanos
}

const (
	// evenShare is the number of items per block from which on blocks of whole
	// items are even enough.
	evenShare = 4
	// evenWork is the share of the blocks' time that has to be work where there are
	// fewer items.
	evenWork = 0.9
)

// even reports whether blocks of whole items are even enough: there are many items, or
// the others have to wait little for the block that has most.
func (t *tiling) even(tail []int64, items int64, blocks int, total float64) bool {
	return blocks == 1 || items >= evenShare*int64(blocks) ||
		total >= evenWork*float64(blocks)*t.shareItems(tail, items, blocks, total)
}

// cut chooses the number of blocks and narrows the range of heads of an item
// until the blocks have even shares, then gives each block its items.
func (t *tiling) cut(m kernel.Machine, tail []int64) kernel.Grid {
	items, nanos := t.count(tail)
	for t.HeadTile > 1 && !t.even(tail, items, kernel.BlocksFor(m, items*t.HeadTile, nanos), nanos) {
		t.HeadTile = (t.HeadTile + 1) / 2
		t.setRanges()
		items, nanos = t.count(tail)
	}
	blocks := kernel.EvenBlocksFor(m, max(items, 1), nanos)
	t.shareItems(tail, items, blocks, nanos)
	return kernel.Grid{Key: t.key(), Blocks: blocks}
}

// shareItems writes the first of the items of each block, so that all blocks do about
// the same work, and returns that of the block with most; total is the work of all
// items.
func (t *tiling) shareItems(tail []int64, items int64, blocks int, total float64) (most float64) {
	bounds := tail[(t.Sequences+1)*sequenceWords:]
	done, begun, b, first := 0.0, 0.0, 1, int64(0)
	for s := int64(0); b < blocks && s <= t.Sequences; s++ {
		q := readSequence(tail, s)
		w := t.workOf(&q)
		for n, nanos := w.all(); b < blocks; b++ {
			upTo, does := w.reach(total*float64(b)/float64(blocks) - done)
			if upTo == n {
				done += nanos
				break
			}
			bounds[b] = first + upTo
			most, begun = max(most, done+does-begun), done+does
		}
		first = q.End
	}
	for ; b <= blocks; b++ {
		bounds[b] = items
	}
	return max(most, total-begun)
}

// Tiling keys: what the inner loops read.
const (
	// keyDirect: rows where they lie.
	keyDirect = iota
	// keyWiden: rows that are gathered and widened first.
	keyWiden
	// keyQuant: as keyWiden, with quantised probabilities.
	keyQuant

	numKeys = iota
)

func (t *tiling) key() uint64 {
	switch {
	case t.rounds():
		return keyQuant
	case t.Key.Direct && t.Value.Direct:
		return keyDirect
	}
	return keyWiden
}

// Estimates of one core, in nanoseconds, for assembly and for plain Go.
const (
	// a multiplication with its addition
	nanosPerProduct, plainNanosPerProduct = 0.08, 0.3
	// widening one element of a cache to memory
	nanosPerWiden, plainNanosPerWiden = 0.1, 0.5
	nanosPerExp, plainNanosPerExp     = 0.4, 3
	nanosPerItem                      = 250
)

// work estimates the items of a sequence, in nanoseconds: ranges of heads, each with
// whole parts and a last one, which are `each` items.
type work struct {
	ranges, whole, each   int64
	wholeNanos, lastNanos float64
}

// workOf estimates a sequence.
func (t *tiling) workOf(q *sequence) work {
	context := q.Context
	if t.Mask.Causal && q.Rows > 0 {
		context = t.pairs(q) / q.Rows
	}
	heads := min(t.HeadTile, t.KVHeads)
	rows := min(t.QueryTile, q.Rows) * heads * t.GroupTile
	width := float64(t.KeyDim + t.ValueDim)
	each := float64(rows) * (width*kernel.Nanos(nanosPerProduct, plainNanosPerProduct) + kernel.Nanos(nanosPerExp, plainNanosPerExp))
	if !t.Key.Direct || !t.Value.Direct {
		each += float64(heads) * width * kernel.Nanos(nanosPerWiden, plainNanosPerWiden)
	}
	w := work{ranges: t.HeadRanges, each: ceil(q.Rows, t.QueryTile) * t.GroupRanges}
	if t.Parts > 0 {
		w.whole = max(parts.Count(q.Context), 1) - 1
	}
	w.wholeNanos = nanosPerItem + float64(min(context, parts.Len))*each
	w.lastNanos = nanosPerItem + float64(max(context-w.whole*parts.Len, 0))*each
	return w
}

// ofRange is the number of items of a range of heads, and their work.
func (w *work) ofRange() (n int64, nanos float64) {
	return (w.whole + 1) * w.each, float64(w.each) * (float64(w.whole)*w.wholeNanos + w.lastNanos)
}

// all is the number of items, and their work.
func (w *work) all() (n int64, nanos float64) {
	n, nanos = w.ofRange()
	return w.ranges * n, float64(w.ranges) * nanos
}

// reach returns how many items do about so much work, and how much they do.
func (w *work) reach(nanos float64) (n int64, does float64) {
	items, each := w.ofRange()
	if nanos <= 0 || items == 0 {
		return 0, 0
	}
	r := min(int64(nanos/each), w.ranges)
	n, does = r*items, float64(r)*each
	if r == w.ranges {
		return n, does
	}
	whole := min(int64((nanos-does)/w.wholeNanos+0.5), w.whole*w.each)
	n, does = n+whole, does+float64(whole)*w.wholeNanos
	if whole == w.whole*w.each {
		last := min(int64(max(nanos-does, 0)/w.lastNanos+0.5), w.each)
		n, does = n+last, does+float64(last)*w.lastNanos
	}
	return n, does
}

// pairs is the number of pairs of a query row and a position that it may see.
func (t *tiling) pairs(q *sequence) int64 {
	n := q.Context * q.Rows
	if t.Mask.Causal && q.Context >= q.Rows {
		n -= q.Rows * (q.Rows - 1) / 2
	}
	return n
}

// cost counts the work of a launch for its tiling.
func (t *tiling) cost(tail []int64) (flops, bytes int64) {
	heads, kvHeads := t.Heads, t.KVHeads
	if t.PerHead {
		heads, kvHeads = t.Group, 1
	}
	width := t.KeyDim + t.ValueDim
	for s := range t.Sequences {
		q := readSequence(tail, s)
		flops += 2 * t.pairs(&q) * heads * width
		bytes += q.Context * kvHeads * (t.KeyDim*t.Key.Type.Size() + t.ValueDim*t.Value.Type.Size())
	}
	bytes += t.Tokens * t.Heads * (t.KeyDim*t.QueryType.Size() + t.ValueDim*t.OutType.Size())
	return flops, bytes
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }
