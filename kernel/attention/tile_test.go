package attention

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

var kernelMachine = kernel.Machine{Cores: 2, L1: 32 << 10, L2: 1 << 20, L3: 32 << 20}

// key returns the tiling key of the call.
func (c *call) key(t testing.TB) uint64 {
	t.Helper()
	p := c.problem
	p.Machine = kernelMachine
	g, err := attend.Tile(&p, make([]byte, attend.TilingSize(&p)))
	require.NoError(t, err)
	return g.Key
}

// blocks returns the block table.
func (c *call) blocks() []int32 { return device.View[int32](c.in[InTable]) }

func TestTileChecksHostValues(t *testing.T) {
	base := func(src int) *call {
		return newCall(1, tensor.Float32, 2, 1, 8, 8, []int64{2, 1}, []int64{4, 3}).build(sources[src].layout)
	}
	for _, x := range []struct {
		name   string
		source int
		change func(c *call)
		code   status.Code
		text   string
	}{
		{"negative rows", 2, func(c *call) { c.problem.Values[1] = []int64{-1, 1} }, status.ErrInvalidParam, "seqLen of sequence 0: want 0 to 6, the rows that the query has for it, got -1"},
		{"too many rows", 2, func(c *call) { c.problem.Values[1] = []int64{2, 5} }, status.ErrInvalidParam, "seqLen of sequence 1: want 0 to 4, the rows that the query has for it, got 5"},
		{"offset beyond the cache", 2, func(c *call) { c.problem.Values[0] = []int64{4, 6} }, status.ErrInvalidParam, "tokenOffset of sequence 1: want 0 to 5, the keys that there is room for, got 6"},
		{"offset before the rows", 2, func(c *call) { c.problem.Values[0] = []int64{1, 3} }, status.ErrInvalidParam, "tokenOffset of sequence 0: want at least its 2 query rows, got 1"},
		{"layer", 2, func(c *call) { c.problem.Values[2] = []int64{3} }, status.ErrInvalidParam, "layerId: want 0 to 2, the cache has 3 layers, got [3]"},
		{"negative layer", 2, func(c *call) { c.problem.Values[2] = []int64{-1} }, status.ErrInvalidParam, "layerId"},
		{"missing values", 2, func(c *call) { c.problem.Values = c.problem.Values[:2] }, status.ErrInvalidParam, "want 3 lists of host values, got 2"},
		{"too few values", 2, func(c *call) { c.problem.Values[0] = []int64{4} }, status.ErrInvalidParam, "want 2 host values, got 1"},
		{"padded rows", 3, func(c *call) { c.problem.Values[1] = []int64{4, 1} }, status.ErrInvalidParam, "seqLen of sequence 0: want 0 to 3"},
		{"keys beyond the tokens", 0, func(c *call) { c.problem.Values[0] = []int64{2, 1, 4, 6} }, status.ErrInvalidParam, "seqLen of sequence 1: want 0 to 5, the keys"},
		{"keys beyond the padding", 1, func(c *call) { c.problem.Values[0] = []int64{2, 1, 4, 6} }, status.ErrInvalidParam, "seqLen of sequence 1: want 0 to 5, the keys"},
		{"keys beyond the table", 4, func(c *call) { c.problem.Values[1] = []int64{4, 6} }, status.ErrInvalidParam, "kvSeqLen of sequence 1: want 0 to 5, the keys"},
		{"fewer keys than rows", 4, func(c *call) { c.problem.Values[1] = []int64{1, 3} }, status.ErrInvalidParam, "kvSeqLen of sequence 0: want at least its 2 query rows, got 1"},
		{"window beyond the ring", 5, func(c *call) { c.problem.Values[0], c.problem.Values[1] = []int64{100, 3}, []int64{4, 1} }, status.ErrInvalidParam, "need a ring of at least 23 slots, got 21"},
		{"mask rows", 2, func(c *call) { c.addMaskOf(1, 9); c.a.Mask.Row = 9; c.problem.Params = c.a }, status.ErrInvalidTensorDim, "mask: want at least 2 rows and 4 columns for sequence 0, got 1x9"},
		{"mask columns", 2, func(c *call) { c.addMaskOf(4, 3) }, status.ErrInvalidTensorDim, "mask: want at least 2 rows and 4 columns for sequence 0, got 4x3"},
		{"factors", 0, func(c *call) {
			c.a.Factor, c.a.FactorLen = RowFactor, 1
			c.putFloats(InFactor, []float64{1}, tensor.Float32)
			c.problem.Params = c.a
		}, status.ErrInvalidTensorDim, "logN: want at least 4 factors for sequence 0, got 1"},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := base(x.source)
			require.NoError(t, attend.Supports(&c.problem))
			unchanged := c.a
			require.NoError(t, unchanged.CheckValues(c.problem.Values))
			x.change(c)
			require.NoError(t, attend.Supports(&c.problem))
			p := c.problem
			p.Machine = kernelMachine
			_, err := attend.Tile(&p, make([]byte, attend.TilingSize(&p)))
			require.ErrorIs(t, err, x.code)
			assert.ErrorContains(t, err, x.text)
			p.Out = []tensor.Desc{c.a.PartsDesc()}
			_, apart := attendParts.Tile(&p, make([]byte, attendParts.TilingSize(&p)))
			assert.Equal(t, err, apart, "both kernels agree")
			checked := c.a
			assert.Equal(t, err, checked.CheckValues(p.Values), "both checks agree")
		})
	}
}

func (c *call) addMaskOf(rows, cols int64) {
	c.mask = make([]float64, rows*cols)
	c.addMask(rows, cols)
}

func TestRunChecksBlocks(t *testing.T) {
	for _, bad := range []int32{-1, 1 << 30} {
		c := newCall(1, tensor.Float16, 2, 1, 8, 8, []int64{2, 1}, []int64{4, 8}).build(sources[4].layout)
		c.blocks()[3] = bad
		p := c.problem
		p.Machine = kernel.Machine{Cores: 1}
		args, _ := arguments(t, c, &p)
		err := attend.Program().Run(args, 0)
		require.ErrorIs(t, err, status.ErrRuntimeFail)
		assert.ErrorContains(t, err, "block table: block 1 of sequence 1: want 0 to 6, the cache has 7 blocks, got")
	}
}

// arguments makes the arguments of a launch of the call.
func arguments(t testing.TB, c *call, p *kernel.Problem) (*device.Args, kernel.Grid) {
	t.Helper()
	return argumentsOf(t, attend, c, p)
}

// argumentsOf makes the arguments of a launch of the call by kernel k.
func argumentsOf(t testing.TB, k *kernel.Kernel, c *call, p *kernel.Problem) (*device.Args, kernel.Grid) {
	t.Helper()
	aligned := func(n int64) []byte { return device.BytesOf(make([]uint64, n/8+1))[:n] }
	tiling := aligned(int64(k.TilingSize(p)))
	g, err := k.Tile(p, tiling)
	require.NoError(t, err)
	a := &device.Args{Blocks: g.Blocks, Key: g.Key, Tiling: tiling, Scratch: device.Wrap(aligned(k.Scratch(p)))}
	for _, b := range c.in {
		if b == nil {
			a.Buffers = append(a.Buffers, device.Buffer{})
		} else {
			a.Buffers = append(a.Buffers, device.Wrap(b))
		}
	}
	a.Buffers = append(a.Buffers, device.Wrap(aligned(p.Out[0].Bytes())))
	return a, g
}

func TestRunAndTileAllocateNothing(t *testing.T) {
	for _, src := range sources {
		c := newCall(1, tensor.Float16, 4, 2, 64, 64, []int64{2, 1}, []int64{40, 38}).build(src.layout)
		p := c.problem
		p.Machine = kernelMachine
		for _, k := range []*kernel.Kernel{attend, attendParts} {
			if k == attendParts {
				p.Out = []tensor.Desc{c.a.PartsDesc()}
			}
			args, g := argumentsOf(t, k, c, &p)
			run := k.Program().Run
			assert.Zero(t, testing.AllocsPerRun(20, func() {
				for b := range g.Blocks {
					if run(args, b) != nil {
						t.Error("run failed")
					}
				}
			}), "%s: run %s", src.name, k.Name())
			dst := make([]byte, k.TilingSize(&p))
			assert.Zero(t, testing.AllocsPerRun(20, func() {
				if _, err := k.Tile(&p, dst); err != nil {
					t.Error(err)
				}
			}), "%s: tile %s", src.name, k.Name())
		}
	}
}

// TestOffsetsNeed64Bits locates a sequence far behind 2^31 elements.
func TestOffsetsNeed64Bits(t *testing.T) {
	row := int64(32 * 128)
	s := Strides{Row: row, Head: 128, Batch: 4096 * row, Layer: 8 * 4096 * row}
	a := Params{Source: Cache, Heads: 32, KeyHeads: 32, KeySize: 128, ValueSize: 128, Batch: 8, Rows: 8, Slots: 4096, Layers: 32, Query: Strides{Row: row}, Key: s, Value: s}
	lens, ones := make([]int64, 8), make([]int64, 8)
	for i := range lens {
		lens[i], ones[i] = 4096, 1
	}
	c, err := newCursor(&a, [][]int64{lens, ones, {31}})
	require.NoError(t, err)
	var last sequence
	for i := range a.Batch {
		last, err = c.next(i)
		require.NoError(t, err)
	}
	assert.Equal(t, int64(31*8+7)*4096*32*128, last.Key)
	assert.Greater(t, last.Key, int64(1)<<31)
}

func TestTilingFitsTheWork(t *testing.T) {
	grid := func(rows, keys int64) kernel.Grid {
		c := newCall(1, tensor.Float32, 8, 8, 64, 64, []int64{rows}, []int64{keys})
		sources[2].layout(c)
		c.problem.Params = c.a
		c.problem.In, c.problem.Out = make([]tensor.Desc, NumIn), make([]tensor.Desc, 1)
		c.setValues()
		c.problem.Machine = kernel.Machine{Cores: 8, L1: 32 << 10}
		g, err := attend.Tile(&c.problem, make([]byte, attend.TilingSize(&c.problem)))
		require.NoError(t, err)
		return g
	}
	assert.Equal(t, kernel.Grid{Key: keyGeneral, Blocks: 1}, grid(2, 4), "tiny work stays on one block")
	assert.Equal(t, 8, grid(512, 512).Blocks)
	assert.Equal(t, 8, grid(1, 4096).Blocks)
}
