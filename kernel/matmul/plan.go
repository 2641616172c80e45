package matmul

import (
	"goatb/device"
	"math"

	"goatb/kernel"
	"goatb/tensor"
)

// Estimates of one core, in nanoseconds.
const (
	nanosPerFloatMAC = 0.18
	nanosPerInt8MAC  = 0.13
	// nanosPerInt8RowMAC holds where int8 weights are read in place.
	nanosPerInt8RowMAC = 0.2
	// nanosPerPacked is the price of an element that is converted and packed.
	nanosPerPacked = 0.5
	// nanosPerByte is the price of a byte of memory traffic.
	nanosPerByte = 0.08
	// nanosPerLaunch is the price of one more kernel, and of the cores waiting for
	// each other once more.
	nanosPerLaunch = 5000
)

const (
	// fewRows is the number of rows of x up to which weights are read in place.
	fewRows = 16
	// maxRowBytes bounds the rows of x that are walked again and again while
	// weights are read in place; they stay in L2 or L3.
	maxRowBytes = 4 << 20
	// maxRowTile and maxColumnTile bound the columns of a tile where weights
	// are read in place, maxTileM and maxTileN a tile of panels.
	maxRowTile    = 256
	maxColumnTile = 512
	maxTileM      = 512
	maxTileN      = 256
	// minTile is the smallest tile that work is cut into.
	minTile = 16
	// subM is the number of rows of x that are packed at a time.
	subM = 64
	// defaultL2 stands in for a size that the device does not know.
	defaultL2 = 256 << 10
)

// plan is a tiling with its launch shape and an estimate.
type plan struct {
	tiling
	grid  kernel.Grid
	nanos float64
}

// newPlan plans a product, or the partial sums of one.
func newPlan(p *kernel.Problem, s *shape, split bool) plan {
	var t plan
	t.Batch, t.M, t.N, t.K = s.batch, s.m, s.n, s.k
	t.X, t.W, t.OutBatch, t.OutRow = s.x, s.w, s.outBatch, s.outRow
	t.Chunk = chunkOf(s.k)
	t.Split, t.Rotate = split, split && p.Options.ShuffleK
	t.grid.Key = t.chooseKey()
	perMAC := t.nanosPerMAC()
	if t.grid.Key == keyPanels {
		t.planPanels(p.Machine, perMAC)
	} else {
		t.planInPlace(p.Machine, perMAC)
	}
	t.Items = t.Batch * t.TilesM * t.TilesN * t.chunks()
	t.grid.Blocks = int(min(int64(t.grid.Blocks), t.Items))
	t.book()
	return t
}

// chunks returns the number of items that a tile is cut into.
func (t *plan) chunks() int64 {
	if t.Split {
		return ceilDiv(t.K, t.Chunk)
	}
	return 1
}

// chooseKey picks the variant from the shape. Few rows of x read the weights
// once, in place, with all of x at hand; more rows pay for packing.
func (t *plan) chooseKey() uint64 {
	x := 4 * t.M * min(t.span(), math.MaxInt32)
	few := t.M <= fewRows && x <= maxRowBytes || t.M <= panelWidth && t.wholeX()
	switch {
	case !few:
		return keyPanels
	case t.W.AlongK:
		return keyRows
	case t.X.DType == tensor.Int8:
		return keyPanels
	}
	return keyColumns
}

// nanosPerMAC estimates a multiplication and addition of the variant.
func (t *plan) nanosPerMAC() float64 {
	switch {
	case t.X.DType != tensor.Int8:
		return nanosPerFloatMAC
	case t.grid.Key == keyPanels:
		return nanosPerInt8MAC
	}
	return nanosPerInt8RowMAC
}

// span returns the length of the range of K that an item covers.
func (t *plan) span() int64 {
	if t.Split {
		return min(t.Chunk, t.K)
	}
	return t.K
}

func l2(m kernel.Machine) int64 {
	if m.L2 > 0 {
		return m.L2
	}
	return defaultL2
}

// planInPlace cuts the columns for the variants that read weights in place.
func (t *plan) planInPlace(m kernel.Machine, perMAC float64) {
	unit, widest := int64(panelWidth), int64(maxRowTile)
	if t.grid.Key == keyColumns {
		unit, widest = minTile, maxColumnTile
	}
	t.TileM, t.TilesM, t.SubM, t.Unit = t.M, 1, t.M, unit
	weights := float64(t.Batch) * float64(t.N) * float64(t.K)
	perWeight := max(float64(t.M)*perMAC, float64(t.W.DType.Size())*nanosPerByte)
	if !t.W.direct() && t.X.DType != tensor.Int8 {
		perWeight += nanosPerPacked / 2
	}
	t.nanos = weights * perWeight
	others := t.Batch * t.chunks()
	t.grid.Blocks = kernel.BlocksFor(m, others*ceilDiv(t.N, unit), t.nanos)
	need := ceilDiv(int64(t.grid.Blocks), others)
	t.TilesN = roundUp(ceilDiv(t.N, widest), need)
	t.TileN = roundUp(ceilDiv(t.N, t.TilesN), unit)
	t.TilesN = ceilDiv(t.N, t.TileN)
	items := others * t.TilesN
	share := ceilDiv(items, int64(t.grid.Blocks))
	t.nanos = t.nanos*float64(share)/float64(items) + t.nanosForX(share)
}

// nanosForX estimates the conversion of rows of x in a block with the given
// number of items: once for each batch, or for each chunk of a split K.
func (t *plan) nanosForX(items int64) float64 {
	if t.wholeX() {
		return 0
	}
	if !t.Split {
		items = min(items, t.Batch)
	}
	return float64(items) * float64(t.M) * float64(t.span()) * nanosPerPacked / 2
}

// wholeX reports whether rows of x are read where they lie.
func (t *plan) wholeX() bool {
	return t.X.direct() && t.X.AlongK || t.X.DType == tensor.Int8 && t.M == 1
}

// planPanels cuts rows and columns so that packing is small beside the product
// and every block gets about the same.
func (t *plan) planPanels(m kernel.Machine, perMAC float64) {
	unit := int64(2)
	t.Unit = panelWidth
	total := float64(t.Batch) * float64(t.M) * float64(t.N) * float64(t.K) * perMAC
	others := t.Batch * t.chunks()
	most := min(ceilDiv(t.M, minTile)*ceilDiv(t.N, minTile), math.MaxInt32) * min(others, math.MaxInt32)
	blocks := int64(kernel.BlocksFor(m, most, total))
	widest := max(minTile, min(maxTileN, l2(m)/4/(4*t.Chunk)&^15))
	leastM, leastN := ceilDiv(t.M, maxTileM), ceilDiv(t.N, widest)
	best := math.Inf(1)
	for cutM := leastM; cutM <= max(leastM, ceilDiv(t.M, minTile)); cutM *= 2 {
		cutN := max(leastN, ceilDiv(blocks, others*cutM))
		if over := others * cutM * cutN % blocks; over != 0 && others*cutM*cutN < 8*blocks {
			cutN = ceilDiv(roundUp(others*cutM*cutN, blocks), others*cutM)
		}
		cutN = min(cutN, max(leastN, ceilDiv(t.N, minTile)))
		tileM, tileN := roundUp(ceilDiv(t.M, cutM), unit), roundUp(ceilDiv(t.N, cutN), panelWidth)
		tilesM, tilesN := ceilDiv(t.M, tileM), ceilDiv(t.N, tileN)
		items := others * tilesM * tilesN
		nanos := float64(ceilDiv(items, blocks)) * t.tileNanos(tileM, tileN, perMAC)
		if nanos < best {
			best = nanos
			t.TileM, t.TileN, t.TilesM, t.TilesN = tileM, tileN, tilesM, tilesN
		}
		if cutM >= 64*leastM {
			break
		}
	}
	t.SubM = min(t.TileM, max(minTile, min(subM, l2(m)/4/(4*t.Chunk)&^1)))
	t.nanos, t.grid.Blocks = best, int(blocks)
}

// tileNanos estimates one item of the panel variant.
func (t *plan) tileNanos(tileM, tileN int64, perMAC float64) float64 {
	k := float64(t.span())
	return k * (float64(tileM)*float64(tileN)*perMAC + float64(tileM+tileN)*nanosPerPacked)
}

// book sizes the buffers of a block.
func (t *plan) book() {
	t.Span = t.span()
	chunk := min(t.Chunk, t.K)
	var w [numBufs]int64
	w[bufAcc] = roundUp(t.TileM, 2) * roundUp(t.TileN, panelWidth)
	w[bufColumn] = 2 * t.TileN
	switch {
	case t.X.DType == tensor.Int8:
		t.bookInt8(&w)
	case t.grid.Key == keyPanels:
		w[bufX] = roundUp(t.SubM, 2) * chunk
		w[bufW] = roundUp(t.TileN, panelWidth) * chunk
		w[bufTmp] = max(panelWidth*chunk, t.TileN+panelWidth, t.SubM+2)
	default:
		t.DirectX = t.wholeX()
		if !t.DirectX {
			w[bufX] = t.M * t.Span
			w[bufTmp] = t.M
		}
		if t.grid.Key == keyColumns {
			w[bufPart] = t.M * t.TileN
			w[bufW] = panelWidth * t.TileN
		} else if !t.W.direct() {
			w[bufW] = panelWidth * chunk
		}
	}
	t.setBuffers(w)
}

// scratch returns the scratch bytes of the launch.
func (t *plan) scratch() int64 { return int64(t.grid.Blocks) * t.BlockScratch }

// planner checks and plans a product.
type planner func(p *kernel.Problem, a Params) (plan, error)

// productDef defines a kernel by its plan: what cannot be planned is not
// supported.
func productDef(name string, plan planner, share func(*kernel.Args, int, int, *tiling, []int64) error) kernel.Def[Params, tiling] {
	return kernel.Def[Params, tiling]{
		Name:  name,
		Class: device.Cube,
		Supports: func(p *kernel.Problem, a Params) error {
			_, err := plan(p, a)
			return err
		},
		Scratch: func(p *kernel.Problem, a Params) int64 {
			l, err := plan(p, a)
			if err != nil {
				return 0
			}
			return l.scratch()
		},
		Tile: func(p *kernel.Problem, a Params, t *tiling, _ []int64) (kernel.Grid, error) {
			l, err := plan(p, a)
			*t = l.tiling
			return l.grid, err
		},
		Share:   share,
		Ahead:   rowAhead,
		Explain: func(t *tiling, _ []int64) string { return t.explain() },
		Cost:    func(t *tiling, _ []int64) (int64, int64) { return t.cost() },
	}
}
