package matmul

import "fmt"

// Tiling keys: how a product walks its operands.
const (
	keyRows uint64 = iota
	keyColumns
	keyPanels
)

// tiling is the plan of one launch. The output is cut into Batch × TilesN ×
// TilesM tiles, and for Partial each tile into the chunks of K; a block takes a
// contiguous share of these items.
type tiling struct {
	Batch, M, N, K int64
	// Chunk is the length of the chunks of K.
	Chunk            int64
	X, W             matrix
	OutBatch, OutRow int64
	// TileM and TileN are the sizes of the largest tile, SubM the rows of x that are
	// packed at a time. Columns are cut evenly into TilesN tiles of multiples of Unit.
	TileM, TileN, SubM   int64
	TilesM, TilesN, Unit int64
	Items                int64
	// Buf holds the sizes of a block's buffers in 4-byte words, each a multiple
	// of 64 bytes, and BlockScratch their sum in bytes.
	Buf          [numBufs]int64
	BlockScratch int64
	// Span is the length of the rows of x in bufX; an engine walks K in spans,
	// multiples of Chunk unless there is only one.
	Span int64
	// DirectX says that rows of x are read where they lie.
	DirectX bool
	// Split says that items are single chunks and sums are stored as they are.
	Split bool
	// Rotate makes each block start at another chunk.
	Rotate bool
	// Strip is the number of columns of an item that an engine finishes at a time:
	// the sums of as many are kept, or of all where K is walked in several spans.
	Strip int64
	// DirectOut says that an engine makes sums in the output's memory.
	DirectOut bool
	// Kept says that packed panels of an item are kept for all parts of its rows,
	// OneRow that a row is multiplied with all panels of an item at once. Near says that
	// this row is f32, that a cache holds the panels, and that sums are made in the output.
	Kept, OneRow, Near bool
	Ep                 epilogue
}

// Buffers of a block, in scratch memory.
const (
	// bufAcc holds the sums of a tile, TileN apart.
	bufAcc = iota
	// bufX holds rows, pairs or panels of x, bufW rows or panels of w.
	bufX
	bufW
	// bufPart holds the sums of one chunk.
	bufPart
	// bufTmp holds converted elements before they are packed.
	bufTmp
	// bufColumn holds column values: a bias or scales, and a rounded row.
	bufColumn
	numBufs
)

// setBuffers books the buffers. Sizes are in 4-byte words.
func (t *tiling) setBuffers(words [numBufs]int64) {
	t.BlockScratch = 0
	for i, n := range words {
		t.Buf[i] = (n + 15) &^ 15
		t.BlockScratch += 4 * t.Buf[i]
	}
}

// place is one item of work.
type place struct {
	b, i, m, j, n int64
	// k0 and k1 are the range of K, chunk the number of its first chunk.
	k0, k1, chunk int64
}

// place returns item number i.
func (t *tiling) place(i int64) place {
	if t.Items == 1 { // most small products: the divisions below take longer than a row
		return place{k1: t.K, m: t.M, n: t.N}
	}
	p := place{k1: t.K}
	if t.Split {
		chunks := ceilDiv(t.K, t.Chunk)
		p.chunk = i % chunks
		i /= chunks
		p.k0 = p.chunk * t.Chunk
		p.k1 = min(p.k0+t.Chunk, t.K)
	}
	im := i % t.TilesM
	i /= t.TilesM
	p.b, p.i = i/t.TilesN, im*t.TileM
	p.m = min(t.TileM, t.M-p.i)
	in := i % t.TilesN
	p.j = t.column(in)
	p.n = min(t.column(in+1), t.N) - p.j
	return p
}

// column returns the first column of a tile.
func (t *tiling) column(tile int64) int64 {
	return firstUnit(ceilDiv(t.N, t.Unit), t.TilesN, tile) * t.Unit
}

// firstUnit returns the first of all units that tile number `tile` of some tiles has:
// every run of tiles has about as many units as any other run of as many tiles.
func firstUnit(units, tiles, tile int64) int64 {
	q, r := units/tiles, units%tiles
	return tile*q + tile*r/tiles
}

// element returns the output element where row r of an item starts.
func (t *tiling) element(p *place, r int64) int64 {
	return p.b*t.OutBatch + (p.i+r)*t.OutRow + p.j
}

// order returns the item that a block with the items [lo, hi) takes as number
// i of them. Results do not depend on it.
func (t *tiling) order(lo, hi, i int64, block int) int64 {
	if !t.Rotate {
		return lo + i
	}
	return lo + (i+int64(block))%(hi-lo)
}

// explain tells the size of tiles, the rows that are packed at a time and the
// length of K that they are packed for.
func (t *tiling) explain() string {
	s := fmt.Sprintf("tile %dx%d", t.TileM, t.TileN)
	if t.SubM < t.TileM {
		s += fmt.Sprintf(" rows %d", t.SubM)
	}
	if t.Span < t.K {
		s += fmt.Sprintf(" span %d", t.Span)
	}
	for _, has := range []struct {
		is   bool
		name string
	}{{t.Kept, "kept"}, {t.OneRow, "one row"}, {t.DirectX, "direct x"}, {t.Split, "split"}} {
		if has.is {
			s += " " + has.name
		}
	}
	return s
}

// cost returns the flops and bytes of a product.
func (t *tiling) cost() (flops, bytes int64) {
	mn := float64(t.Batch) * float64(t.M) * float64(t.N)
	operands := float64(t.Batch)*float64(t.M)*float64(t.K)*float64(t.X.DType.Size()) +
		float64(t.weightBatches())*float64(t.N)*float64(t.K)*float64(t.W.DType.Size())
	result := mn * float64(t.Ep.Out.Size())
	if t.Split {
		result *= float64(ceilDiv(t.K, t.Chunk))
	}
	if t.Ep.Accumulate {
		result *= 2
	}
	return saturate(2 * mn * float64(t.K)), saturate(operands + result)
}

func (t *tiling) weightBatches() int64 {
	if t.W.Batch == 0 {
		return 1
	}
	return t.Batch
}

// saturate converts an estimate that may leave int64.
func saturate(v float64) int64 {
	if v >= 1<<62 {
		return 1 << 62
	}
	return int64(v)
}
