package move

import (
	"goatb/device"
	"goatb/internal/vec"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

const (
	// tileBytes is the length of a tile's rows in the input: some lines, which
	// prefetching fetches together.
	tileBytes = 256
	// tileAcross is the length of a tile's rows in the output, in elements: few
	// enough for the pages of a tile to stay in the translation caches.
	tileAcross = 256
)

// nanosPerTurnedByte estimates the time of one core for a transposed byte.
func nanosPerTurnedByte() float64 { return kernel.Nanos(0.12, 0.35) }

// transposeTiles moves tiles of 1, 2, 4 or 8 byte elements: the last
// axis changes.
var transposeTiles = kernel.Define(kernel.Def[Perm, permTiling]{
	Name:  "transpose/tiles",
	Class: device.Move,
	Supports: func(p *kernel.Problem, a Perm) error {
		if err := checkPerm(p, &a); err != nil {
			return err
		}
		size := p.In[0].DType.Size()
		m := merge(&p.In[0], &a)
		if size > 8 {
			return status.Errorf(status.ErrInvalidParam, "want elements of at most 8 bytes, got %d", size)
		}
		if m.n < 2 || m.in[m.n-1] == size {
			return status.Errorf(status.ErrInvalidParam, "the last axis stays")
		}
		return nil
	},
	Tile: func(p *kernel.Problem, a Perm, t *permTiling, _ []int64) (kernel.Grid, error) {
		m := merge(&p.In[0], &a)
		t.Size = p.In[0].DType.Size()
		tileTiles(&m, t)
		tiles := t.Outer * t.TilesDown * t.TilesAcross
		return kernel.Grid{Blocks: kernel.BlocksFor(p.Machine, tiles, float64(p.In[0].Bytes())*nanosPerTurnedByte())}, nil
	},
	Run: func(a *kernel.Args, block int, t *permTiling, _ []int64) error {
		turnTiles(a, block, t)
		return nil
	},
	Cost: func(t *permTiling, _ []int64) (flops, bytes int64) {
		return 0, 2 * t.Outer * t.Down * t.Across * t.Size
	},
})

// tileTiles finds the matrix: its output rows run along the input's last axis,
// its output columns along the output's last axis. The other axes are outer.
func tileTiles(m *merged, t *permTiling) {
	var out [tensor.MaxRank]int64
	s := t.Size
	for i := m.n - 1; i >= 0; i-- {
		out[i] = s
		s *= m.dim[i]
	}
	last := m.n - 1
	t.Across, t.InStride = m.dim[last], m.in[last]
	t.Outer = 1
	for i := range last {
		if m.in[i] == t.Size {
			t.Down, t.OutStride = m.dim[i], out[i]
			continue
		}
		t.Dim[t.Axes], t.In[t.Axes], t.Out[t.Axes] = m.dim[i], m.in[i], out[i]
		t.Outer *= m.dim[i]
		t.Axes++
	}
	t.Tile = tileBytes / t.Size
	t.TilesDown = (t.Down + t.Tile - 1) / t.Tile
	t.TilesAcross = (t.Across + tileAcross - 1) / tileAcross
}

// turnTiles gives each block a run of tiles. Tiles of one output row band
// follow each other.
func turnTiles(a *kernel.Args, block int, t *permTiling) {
	src, dst := a.Mem(0), a.Mem(1)
	lo, hi := kernel.Share(t.Outer*t.TilesDown*t.TilesAcross, block, a.Blocks)
	for i := lo; i < hi; i++ {
		col := i % t.TilesAcross * tileAcross
		row := i / t.TilesAcross % t.TilesDown * t.Tile
		from, to, rest := int64(0), int64(0), i/t.TilesAcross/t.TilesDown
		for k := t.Axes - 1; k >= 0; k-- {
			at := rest % t.Dim[k]
			from += at * t.In[k]
			to += at * t.Out[k]
			rest /= t.Dim[k]
		}
		from += row*t.Size + col*t.InStride
		to += row*t.OutStride + col*t.Size
		vec.Turn(int(t.Size), dst[to:], src[from:], int(t.OutStride), int(t.InStride), int(min(t.Tile, t.Down-row)), int(min(tileAcross, t.Across-col)))
	}
}
