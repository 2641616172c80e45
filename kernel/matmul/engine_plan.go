package matmul

import (
	"math"

	"goatb/internal/asm/gemm"
	"goatb/kernel"
	"goatb/tensor"
)

// Estimates of an engine on one core, in nanoseconds.
const (
	// nanosPerStep is the time of one step of a row in a tile: as many
	// multiply-add instructions as a core begins in a cycle.
	nanosPerStep = 0.4
	// leastSteps is the number of rows below which a step of a tile takes no
	// less time: its sums wait for each other.
	leastSteps = 4
	// nanosPerWord is the price of a word that is packed from memory where it
	// lies along K, nanosPerOddWord that of any other.
	nanosPerWord    = 0.2
	nanosPerOddWord = 1.5
	// nanosPerNearByte is the price of a byte of weights that stay in L2.
	nanosPerNearByte = 0.015
	// waiting is the part of the shorter one of multiplying and reading weights that
	// the longer one does not cover.
	waiting = 0.4
	// nanosPerPanel is the price of beginning a chunk of a panel, with several rows.
	nanosPerPanel = 100
)

const (
	// maxSweepM and maxSweepN bound the rows of an item, and its columns where
	// sums of all of them are kept.
	maxSweepM = 4096
	maxSweepN = 1024
	// maxSweepBytes bounds the sums that are kept.
	maxSweepBytes = 3 << 18
	// leastKeptBytes and mostKeptBytes bound the packed weights that are kept: as
	// much as a core's share of L3 lets stay there.
	leastKeptBytes = 3 << 18
	mostKeptBytes  = 4 << 20
)

// plan plans a product, or the partial sums of one.
func (e *engine) plan(p *kernel.Problem, s *shape, split bool) plan {
	var t plan
	t.Batch, t.M, t.N, t.K = s.batch, s.m, s.n, s.k
	t.X, t.W, t.OutBatch, t.OutRow = s.x, s.w, s.outBatch, s.outRow
	t.Chunk, t.Unit = chunkOf(s.k), gemm.PanelColumns
	t.Split, t.Rotate = split, split && p.Options.ShuffleK
	t.DirectOut = split || p.Out[0].DType == tensor.Float32 && e.word != tensor.Int8 && p.In[Bias].Empty() && p.In[Acc].Empty()
	e.cut(&t, p.Machine)
	t.Items = t.Batch * t.TilesM * t.TilesN * t.chunks()
	t.grid.Blocks = int(min(int64(t.grid.Blocks), t.Items))
	e.walk(&t, p.Machine)
	e.book(&t, p.Machine)
	return t
}

// cut chooses the tiles: of the ways to cut rows and columns that keep the cores
// busy, the one whose slowest block is done first.
func (e *engine) cut(t *plan, m kernel.Machine) {
	others := t.Batch * t.chunks()
	panels := ceilDiv(t.N, gemm.PanelColumns)
	total := float64(others) * e.itemNanos(t, t.M, t.N, m)
	most := min(panels*ceilDiv(t.M, e.set.MaxRows()), math.MaxInt32) * min(others, math.MaxInt32)
	blocks := int64(kernel.BlocksFor(m, most, total))
	if t.M == 1 && e.passes(&t.W) {
		bytes := saturate(float64(others) * float64(t.N) * float64(t.span()) * float64(t.W.DType.Size()))
		blocks = int64(kernel.StreamBlocks(m, int(blocks), most, bytes))
	}
	best := math.Inf(1)
	mostM, mostN := e.limits(t, m)
	leastM := ceilDiv(t.M, mostM)
	for cutM := leastM; ; cutM *= 2 {
		tileM := ceilDiv(t.M, cutM)
		leastN := ceilDiv(t.N, mostN)
		if !t.DirectOut {
			leastN = max(leastN, ceilDiv(4*tileM*t.N, maxSweepBytes))
		}
		cutN := shared(others*cutM, min(max(leastN, ceilDiv(blocks, others*cutM)), panels), panels, blocks)
		tileN := ceilDiv(panels, cutN) * gemm.PanelColumns
		tilesM := ceilDiv(t.M, tileM)
		items := others * tilesM * cutN
		nanos := float64(ceilDiv(items, blocks)) * e.itemNanos(t, tileM, min(tileN, t.N), m)
		if nanos < best {
			best = nanos
			t.TileM, t.TileN, t.TilesM, t.TilesN = tileM, tileN, tilesM, cutN
		}
		if tileM <= e.set.MaxRows() || cutM >= 64*leastM {
			break
		}
	}
	t.nanos, t.grid.Blocks = best, int(blocks)
}

// shared returns the number of cuts, at least n and at most most, that gives every
// block as many items, of which each cut makes some: n where there is none nearby.
func shared(each, n, most, blocks int64) int64 {
	for c := n; c < n+blocks && c <= most; c++ {
		if each%blocks*c%blocks == 0 {
			return c
		}
	}
	return n
}

// limits returns the most rows and columns of an item. Weights that need no
// packing pass once for the rows that stay in L2, and so do others where these are
// all rows; else they are packed once for many rows, so columns are what fits.
func (e *engine) limits(t *plan, m kernel.Machine) (rows, columns int64) {
	if rows = t.subRows(e, m); e.passes(&t.W) || rows == t.M {
		columns = t.N
		if !t.DirectOut {
			columns = maxSweepN
		}
		return rows, columns
	}
	kept := max(leastKeptBytes, min(mostKeptBytes, m.L3/2/int64(max(m.Cores, 1))))
	fit := kept / (4 * e.words(min(t.Chunk, t.K))) / gemm.PanelColumns * gemm.PanelColumns
	if !t.DirectOut {
		fit = min(fit, maxSweepN)
	}
	return maxSweepM, max(gemm.PanelColumns, fit)
}

// subRows returns the number of rows that are packed at a time: those of a chunk
// stay in L2 beside panels, and the parts of all rows are about equal. Where weights
// are packed too, parts are smaller, since tiles fetch the rows of the next one on
// the way, unless all rows can stay beside a single panel.
func (t *plan) subRows(e *engine, m kernel.Machine) int64 {
	const alone = 4
	share := l2(m) / 8
	if !e.passes(&t.W) {
		share /= 2
	}
	fit := max(2*e.set.MaxRows(), share/(4*e.words(min(t.Chunk, t.K))))
	if t.M <= alone*fit && !e.passes(&t.W) {
		return t.M
	}
	parts := max(1, (t.M+fit/2)/fit)
	return ceilDiv(t.M, parts)
}

// itemNanos estimates an item of m rows and n columns.
func (e *engine) itemNanos(t *plan, m, n int64, mach kernel.Machine) float64 {
	words := float64(e.words(t.span()))
	groups := ceilDiv(m, e.set.MaxRows())
	steps := float64(max(m, leastSteps*groups)) * float64(ceilDiv(n, e.set.Columns))
	perByte := nanosPerByte
	if t.weightBatches()*t.N*t.K*t.W.DType.Size() <= l2(mach)/2 {
		perByte = nanosPerNearByte
	}
	memory := float64(n) * float64(t.span()) * float64(t.W.DType.Size()) * perByte
	compute := words * steps * nanosPerStep
	nanos := max(compute, memory) + waiting*min(compute, memory) + float64(m)*words*e.wordNanos(&t.X)
	if t.M > 1 {
		nanos += float64(ceilDiv(n, gemm.PanelColumns)) * float64(ceilDiv(t.span(), t.Chunk)) * nanosPerPanel
	}
	if !e.passes(&t.W) {
		nanos += float64(n) * words * e.weightNanos(&t.W)
	}
	return nanos
}

// passes reports whether panels of w are read as they are.
func (e *engine) passes(w *matrix) bool { return e.isPanels(w) || e.narrow(w) != nil }

// weightNanos estimates the packing of a word of w: columns that lie side by side
// have loops of their own.
func (e *engine) weightNanos(w *matrix) float64 {
	if !w.AlongK && w.Block == 0 {
		return nanosPerWord
	}
	return e.wordNanos(w)
}

// wordNanos estimates the packing of a word of a matrix.
func (e *engine) wordNanos(m *matrix) float64 {
	switch {
	case e.inPlace(m), e.step() == 1 && m.DType == tensor.Float32:
		return nanosPerWord
	case e.step() == 1:
		return 2 * nanosPerWord
	}
	return nanosPerOddWord
}

// rowStreams reports whether one row is multiplied with many panels at a time, as
// memory gives them.
func (e *engine) rowStreams(t *plan) bool {
	return e.pairStreams(t) || e.word == tensor.Int8 && e.set.Row != nil && t.M == 1 && e.isPanels(&t.W) && !t.Split && t.Span >= t.K
}

// pairStreams reports whether that row is one of pairs of bf16, where it lies.
func (e *engine) pairStreams(t *plan) bool {
	narrow := e.narrow(&t.W)
	return narrow != nil && narrow.Row != nil && t.M == 1 && !t.Split && t.X.AlongK && t.X.Block == 0 && t.K%int64(t.W.Step) == 0
}

// walk chooses the parts of rows and the span of K whose packed rows stay in L2.
func (e *engine) walk(t *plan, m kernel.Machine) {
	t.SubM = min(t.TileM, t.subRows(e, m))
	t.Kept = !e.passes(&t.W) && t.SubM < t.TileM
	t.DirectX = e.pairStreams(t) || t.M == 1 && e.inPlace(&t.X) && e.flip() == 0 && t.K%e.step() == 0
	t.Span = t.span()
	fit := l2(m) / 8 / (4 * t.SubM)
	if t.Kept {
		fit = 0
	}
	if e.words(t.Span) > fit && !t.DirectX {
		t.Span = min(t.Span, max(fit*e.step()/t.Chunk, 1)*t.Chunk)
	}
}

// book sizes the buffers of a block.
func (e *engine) book(t *plan, m kernel.Machine) {
	t.Strip = t.strip()
	chunk, width := min(t.Chunk, t.K), e.set.Width
	var w [numBufs]int64
	if !t.DirectX {
		w[bufX] = t.SubM*(e.words(t.Span)+1) + width
	}
	t.Near = e.word == tensor.Float32 && e.set.Row != nil && t.DirectX && t.DirectOut && !t.Split && e.isPanels(&t.W) && t.K <= t.Chunk && 4*t.N*t.K <= l2(m)
	t.OneRow = t.Near || e.rowStreams(t)
	panel := gemm.PanelColumns * roundUp(e.words(chunk), 2)
	switch {
	case t.Kept:
		w[bufW] = ceilDiv(t.TileN, gemm.PanelColumns) * panel
	case !e.isPanels(&t.W) && (e.narrow(&t.W) == nil || t.SubM > e.mostRows(&t.tiling)):
		w[bufW] = panel
	}
	if e.word == tensor.Float32 && !(e.inPlace(&t.X) && e.inPlace(&t.W)) {
		w[bufTmp] = width * max(chunk, 4)
	}
	if !e.passes(&t.W) && !t.W.AlongK {
		w[bufTmp] = max(w[bufTmp], acrossWords)
	}
	sums, columns := t.SubM, t.Strip
	if t.manySpans() {
		sums = t.TileM
	}
	if e.rowStreams(t) {
		columns = t.excessColumns()
	}
	w[bufAcc], w[bufColumn] = sums*max(columns, t.pitch()), finisherRows*columns
	if e.word == tensor.Int8 {
		w[bufPart] = t.excessColumns() + e.words(chunk)
		w[bufColumn] += columns
	}
	t.setBuffers(w)
}

// strip returns the number of columns whose sums are kept and finished together: as
// many as stay in L2 beside rows and panels, for runs of the output that are worth
// their call.
func (t *plan) strip() int64 {
	const most, bytes = 512, 128 << 10
	all := roundUp(t.TileN, gemm.PanelColumns)
	switch {
	case t.DirectOut:
		return gemm.PanelColumns
	case t.manySpans():
		return all
	}
	fit := bytes / (4 * t.SubM) / gemm.PanelColumns * gemm.PanelColumns
	return max(gemm.PanelColumns, min(all, most, fit))
}
