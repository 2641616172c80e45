package matmul

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/internal/asm/gemm"
	"goatb/kernel"
	"goatb/tensor"
)

// TestPartsOfRows multiplies more rows than are packed at a time with weights that
// are packed on the way: later parts find what the first one packed.
func TestPartsOfRows(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		seed := uint64(0)
		for _, x := range append([]tensor.DType{tensor.Int8}, floats...) {
			for _, p := range layouts() {
				for _, out := range []tensor.DType{x, tensor.Float32} {
					seed++
					c := product{x: x, out: out, b: 1, wb: 1, m: 115, n: 43, k: 533, p: p}
					if x == tensor.Int8 {
						c.out, c.scale = tensor.Float32, tensor.Float32
					}
					d := newData(c, seed)
					d.problem.Machine = kernel.Machine{L1: 8 << 10, L2: 16 << 10, L3: 64 << 10}
					if e := engineFor(x); e != nil {
						s, err := shapeOf(&d.problem, c.p)
						require.NoError(t, err)
						l := e.plan(&d.problem, &s, false)
						require.Less(t, l.SubM, l.TileM)
						require.True(t, l.Kept)
					}
					d.check(t, d.run(t))
				}
			}
		}
	})
}

// TestStretchCoversMemory checks that the tiles of a panel fetch all that it is
// asked for, whatever their number and their steps.
func TestStretchCoversMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	s := sweeper{rows: make([]byte, 1)}
	for range 1000 {
		size, tiles, steps := 1+r.Int64N(1<<17), 1+r.Int64N(40), 1+r.Int64N(512)
		const from = 1 << 20
		s.stretch(from, size, tiles, steps)
		end := uintptr(from)
		for range tiles {
			next, pace := s.fetched(0)
			require.Equal(t, end, next)
			end += pace * uintptr(steps)
		}
		require.GreaterOrEqual(t, end, uintptr(from+size))
		require.Less(t, end, uintptr(from+size+tiles*steps), "no more than a byte for each step too much")
		next, pace := s.fetched(0)
		assert.Equal(t, gemm.Address(s.rows), next)
		assert.Zero(t, pace, "nothing is left")
	}
}

// TestRowsAreFetchedBehindPanels checks what the tiles of a part fetch: first
// weights, and from some panel on the rows of the next part, then of the next span.
func TestRowsAreFetchedBehindPanels(t *testing.T) {
	e := engine{set: &gemm.Set{Rows: make([]gemm.Tile, 4), Columns: gemm.PanelColumns}, word: tensor.Float32}
	l := tiling{M: 20, N: 96, K: 1024, Chunk: 512, Span: 512, TileM: 20, SubM: 12, Kept: true}
	l.X = matrix{AlongK: true, Lead: 1024, DType: tensor.Float32, Step: 1}
	s := sweeper{e: &e, t: &l, x: make([]byte, 4*20*1024), rows: make([]byte, 1)}
	p := place{m: 20, n: 96, k1: 1024}
	part := place{m: 12, n: 96, k1: 1024}
	s.fetchRows(&p, &part, 0, 512)
	assert.Equal(t, pieces{at: gemm.Address(s.x[4*12*1024:]), apart: 4096, pace: 4, left: 8}, s.later)
	assert.Equal(t, int64(96-8*gemm.PanelColumns), s.laterFrom, "one spare tile for each panel")
	part = place{i: 12, m: 8, n: 96, k1: 1024}
	s.fetchRows(&p, &part, 0, 512)
	assert.Equal(t, pieces{at: gemm.Address(s.x[4*512:]), apart: 4096, pace: 4, left: 12}, s.later)
	s.fetchRows(&p, &part, 512, 1024)
	assert.Zero(t, s.later, "nothing follows the last rows")
}
