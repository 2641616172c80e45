package matmul

import (
	"goatb/device"
	"goatb/internal/asm/gemm"
	"goatb/kernel"
)

// int4Engine multiplies with int4 weights by one set of assembly loops.
type int4Engine struct{ set *gemm.Int4Set }

// quantUnit is what the loops that round x to int16 work in.
const quantUnit = 16

// rowPanels is the number of panels whose sums of one row are finished together.
const rowPanels = 16

// book sizes the buffers: packed rows and their factors, one for each chunk and
// row; what comes off the groups of one row; a row of floats and a group of rows of
// int16; sums, and the finisher's. One row is packed for all blocks.
func (e int4Engine) book(t *int4Tiling) {
	chunks, most := ceilDiv(t.K, t.Chunk), int64(len(e.set.Rows))
	chunk := roundUp(t.Chunk, quantUnit)
	t.OneRow = t.M == 1 && e.set.Row != nil
	columns := int64(gemm.PanelColumns)
	if t.OneRow {
		columns *= min(t.Panels, rowPanels)
		t.LessBytes = roundUp(4*t.Groups, 64)
	}
	t.RowBytes = roundUp(2*t.TileM*t.K+4*e.set.Width, 64)
	t.FactorBytes = roundUp(4*chunks*t.TileM, 64)
	t.TempBytes = 4*chunk + 2*most*chunk
	t.SumBytes = (t.TileM + finisherRows) * 4 * columns
	packing := t.RowBytes + t.FactorBytes + t.LessBytes + t.TempBytes
	if t.BlockScratch = t.SumBytes; t.OneRow {
		t.Prepared = packing
	} else {
		t.BlockScratch += packing
	}
}

// int4Sweeper computes the items of a share of blocks.
type int4Sweeper struct {
	e       int4Engine
	t       *int4Tiling
	x, w    []byte
	rows    []byte
	factors []float32
	less    []int32
	floats  []float32
	ints    []int16
	sums    []float32
	f       finisher
}

// sweeper takes the buffers of a block.
func (e int4Engine) sweeper(a *kernel.Args, block int, t *int4Tiling) int4Sweeper {
	mem := a.Scratch.Bytes()
	own := mem[t.Prepared+int64(block)*t.BlockScratch:][:t.BlockScratch]
	if !t.OneRow {
		mem = own
	}
	take := func(n int64) []byte {
		b := mem[:n:n]
		mem = mem[n:]
		return b
	}
	s := int4Sweeper{e: e, t: t, x: a.Mem(X), w: a.Mem(W), rows: take(t.RowBytes), factors: device.View[float32](take(t.FactorBytes))}
	s.less = device.View[int32](take(t.LessBytes))
	s.floats = device.View[float32](take(4 * roundUp(t.Chunk, quantUnit)))
	s.ints = device.View[int16](take(t.TempBytes - 4*int64(len(s.floats))))
	sums := device.View[float32](own[t.BlockScratch-t.SumBytes:])
	held := int64(len(sums)) / (t.TileM + finisherRows) * t.TileM
	s.sums, s.f = sums[:held], finisher{a: a, ep: &t.Ep, buf: sums[held:]}
	return s
}

// begin packs the row of x that all blocks multiply.
func (e int4Engine) begin(a *kernel.Args, t *int4Tiling, _ []int64) error {
	if t.OneRow {
		s := e.sweeper(a, 0, t)
		s.orderRow()
	}
	return nil
}

func (e int4Engine) share(a *kernel.Args, first, end int, t *int4Tiling, _ []int64) error {
	s := e.sweeper(a, first, t)
	if t.OneRow {
		s.oneRow(a, first, end)
		return nil
	}
	s.items(a, first, end)
	return nil
}

// items computes the items of a share.
func (s *int4Sweeper) items(a *kernel.Args, begin, end int) {
	t := s.t
	lo, hi := kernel.Shares(t.TilesM*t.TilesN, begin, end, a.Blocks)
	held := int64(-1)
	for i := lo; i < hi; i++ {
		row, rows, panel, panels := t.item(i)
		if row != held {
			s.packRows(row, rows)
			held = row
		}
		for j := panel; j < panel+panels; j++ {
			s.panel(row, rows, j)
		}
	}
}

// oneRow computes the items of a share where x has one row: panels pass as
// memory gives them.
func (s *int4Sweeper) oneRow(a *kernel.Args, begin, end int) {
	t, set := s.t, s.e.set
	lo, hi := kernel.Shares(t.TilesN, begin, end, a.Blocks)
	first, last := t.panel(lo), t.panel(hi)
	for panel := first; panel < last; panel += rowPanels {
		panels := min(rowPanels, last-panel)
		j := panel * gemm.PanelColumns
		columns := min(panels*gemm.PanelColumns, t.Columns-j)
		set.Row(int(panels), int(t.Groups), int(t.Chunk/t.Group), int(t.Group/8), &s.rows[0], &s.less[0], &s.factors[0],
			&s.w[panel*t.PanelBytes], &s.sums[0], t.ScaleBytes == 2)
		s.f.floatColumns(0, j, columns)
		s.f.floats(j, s.sums[:columns])
	}
}

// orderRow rounds the row to int16 and orders it for the loop over panels, whose
// first bytes come from memory meanwhile.
func (s *int4Sweeper) orderRow() {
	t, panels := s.t, s.w
	for c := int64(0); c*t.Chunk < t.K; c++ {
		panels = fetchSome(panels)
		from := c * t.Chunk
		k := min(t.Chunk, t.K-from)
		s.factors[c] = s.quantize(s.ints[:roundUp(k, quantUnit)], 0, from, k)
		s.e.set.Order(int(k/t.Group), int(t.Group/8), &s.rows[2*from], &s.less[from/t.Group], &s.ints[0])
	}
}

// each visits the groups of rows that a tile takes: all of about the same size.
func (s *int4Sweeper) each(rows int64, visit func(at, n int64)) {
	count := ceilDiv(rows, int64(len(s.e.set.Rows)))
	for g := range count {
		at, end := kernel.Share(rows, int(g), int(count))
		visit(at, end-at)
	}
}

// packRows rounds rows of x to int16 and packs them: group by group of rows, for
// each group the words of K.
func (s *int4Sweeper) packRows(row, rows int64) {
	t, set := s.t, s.e.set
	s.each(rows, func(at, n int64) {
		for c := int64(0); c*t.Chunk < t.K; c++ {
			from := c * t.Chunk
			k := min(t.Chunk, t.K-from)
			pitch := roundUp(k, quantUnit)
			for r := range n {
				s.factors[c*t.TileM+at+r] = s.quantize(s.ints[r*pitch:][:pitch], row+at+r, from, k)
			}
			ints := device.BytesOf(s.ints)
			set.Turn(int(k/2), &s.rows[2*(at*t.K+from*n)], int(4*n), &ints[0], int(2*pitch), int(n), 0)
		}
	})
}

// quantize stores k elements of a row of x as int16 and returns what they are to
// be multiplied with.
func (s *int4Sweeper) quantize(dst []int16, row, from, k int64) float32 {
	x := s.floats[:len(dst)]
	kernel.LoadFloats(x[:k], s.x[(row*s.t.K+from)*s.t.X.Size():], s.t.X)
	clear(x[k:])
	largest := s.e.set.Largest(len(x), &x[0])
	if largest == 0 || largest-largest != 0 { // zeros alone, or an infinity or NaN
		clear(dst)
		return largest
	}
	largest = max(largest, leastQuantized)
	s.e.set.ToInt16(len(x), &dst[0], &x[0], maxInt16/largest)
	return largest / maxInt16
}

// maxInt16 is what the largest element of a chunk becomes: the largest number whose
// lower and upper byte are both signed, see gemm.Int4Order.
const maxInt16 = 127<<8 + 127

// leastQuantized is the least number that the largest element of a chunk is
// taken for, so that its reciprocal stays finite.
const leastQuantized = 0x1p-100

// panel computes the columns of a panel.
func (s *int4Sweeper) panel(row, rows, panel int64) {
	t, set := s.t, s.e.set
	columns := min(gemm.PanelColumns, t.Columns-panel*gemm.PanelColumns)
	octets := t.Group / 8
	count := ceilDiv(rows, int64(len(set.Rows)))
	pace := uintptr(t.GroupBytes/octets) / uintptr(count*gemm.PanelColumns/set.Columns)
	for c := int64(0); c*t.Chunk < t.K; c++ {
		from := c * t.Chunk
		groups := min(t.Chunk, t.K-from) / t.Group
		scales := s.w[panel*t.PanelBytes+from/t.Group*t.GroupBytes:]
		w := scales[gemm.PanelColumns*t.ScaleBytes:]
		next := gemm.Address(scales) + uintptr(groups*t.GroupBytes)
		for h := int64(0); h < columns; h += set.Columns {
			for g := range count {
				at, end := kernel.Share(rows, int(g), int(count))
				n := end - at
				sums := device.BytesOf(s.sums[at*gemm.PanelColumns+h:])
				set.Rows[n-1](int(groups), int(octets), &s.rows[2*(at*t.K+from*n)], &w[4*h], &scales[t.ScaleBytes*h], &sums[0],
					gemm.PanelColumns, c > 0, &s.factors[c*t.TileM+at], t.ScaleBytes == 2, next, pace)
				next += pace * uintptr(groups*octets)
			}
		}
	}
	j := panel * gemm.PanelColumns
	s.f.floatColumns(0, j, columns)
	for r := range rows {
		s.f.floats((row+r)*t.Columns+j, s.sums[r*gemm.PanelColumns:][:columns])
	}
}
