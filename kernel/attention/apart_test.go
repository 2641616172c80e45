package attention

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/kernel"
	"goatb/kernel/parts"
	"goatb/tensor"
)

// TestAttendAcrossParts walks lengths around the ends of parts under every
// source, with windows that begin anywhere in a part.
func TestAttendAcrossParts(t *testing.T) {
	sizes := [][2]int64{{8, 8}, {72, 5}, {24, 40}}
	heads := [][2]int64{{1, 1}, {4, 2}, {3, 1}}
	for s, src := range sources {
		for n := range cases(6) {
			t.Run(fmt.Sprintf("%s/%d", src.name, n), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(s), 100+n))
				size, h := sizes[rng.IntN(len(sizes))], heads[rng.IntN(len(heads))]
				var rows, keys []int64
				for range 1 + rng.IntN(3) {
					r := []int64{0, 1, 1, 3, 9}[rng.IntN(5)]
					rows = append(rows, r)
					keys = append(keys, r+[]int64{0, 100, parts.Len - 1, parts.Len, 2*parts.Len - 2, 2*parts.Len + 1}[rng.IntN(6)])
				}
				c := newCall(n, floatTypes[n%3], h[0], h[1], size[0], size[1], rows, keys)
				c.a.Causal = rng.IntN(2) == 0
				if n%2 == 0 {
					c.a.Causal, c.a.Window = true, []int64{1, 100, parts.Len, parts.Len + 1, 900}[rng.IntN(5)]
				}
				c.build(src.layout)
				c.check(t, c.run(t))
			})
		}
	}
}

// TestMaskedParts hides whole parts and single keys at their ends.
func TestMaskedParts(t *testing.T) {
	const cols = 3*parts.Len + 5
	for name, open := range map[string]func(r, j int64) bool{
		"first part":  func(_, j int64) bool { return j < parts.Len },
		"middle":      func(_, j int64) bool { return j/parts.Len == 1 },
		"behind":      func(_, j int64) bool { return j >= 3*parts.Len },
		"ends":        func(_, j int64) bool { return j%parts.Len == 0 || j%parts.Len == parts.Len-1 },
		"one row":     func(r, _ int64) bool { return r == 1 },
		"a part each": func(r, j int64) bool { return j/parts.Len == r },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCall(21, tensor.Float32, 2, 1, 16, 8, []int64{3, 1}, []int64{cols, 2 * parts.Len}).build(sources[2].layout)
			c.mask = make([]float64, 3*cols)
			for i := range c.mask {
				if !open(int64(i)/cols, int64(i)%cols) {
					c.mask[i] = math.Inf(-1)
				}
			}
			c.addMask(3, cols)
			c.check(t, c.run(t))
		})
	}
}

// TestNotANumberInAPart has a NaN key in the first, a middle and the last part
// that there is, of two sequences.
func TestNotANumberInAPart(t *testing.T) {
	for _, at := range []int64{0, parts.Len + 7, 2*parts.Len + 1} {
		c := newCall(22, tensor.Float32, 2, 1, 8, 8, []int64{1, 1}, []int64{2*parts.Len + 2, 2*parts.Len + 2}).build(sources[2].layout)
		c.k[1][at*8] = math.NaN()
		c.layRows(InKey, InNewKey, c.k, c.a.Key, c.a.NewKey, c.a.KeySize, nil)
		got := decode(c.run(t), tensor.Float32)
		for i := range int64(2) {
			for _, v := range got[i*16 : (i+1)*16] {
				assert.Equal(t, i == 1, math.IsNaN(v))
			}
		}
	}
}

// TestScoresFarApart has a part whose scores are e^200 times another's.
func TestScoresFarApart(t *testing.T) {
	for _, big := range []int64{3, parts.Len + 3} {
		c := newCall(23, tensor.Float32, 1, 1, 8, 8, []int64{1}, []int64{2 * parts.Len}).build(sources[2].layout)
		c.mask = make([]float64, 2*parts.Len)
		c.mask[big] = 200
		c.addMask(1, 2*parts.Len)
		c.check(t, c.run(t))
	}
}

// TestPartsDoNotDependOnTheirBatch compares the bits of long rows in a batch
// with those of the rows alone.
func TestPartsDoNotDependOnTheirBatch(t *testing.T) {
	for _, window := range []int64{0, 700} {
		c := newCall(24, tensor.Float16, 2, 1, 16, 8, []int64{1, 4, 1}, []int64{1300, 1029, parts.Len})
		c.a.Causal, c.a.Window = window > 0, window
		c.build(sources[2].layout)
		base := c.run(t)
		c.workers = fewWorkers
		for i := range c.rows {
			alone := c.with(i, sources[2])
			require.Equal(t, c.bits(base, i), alone.bits(alone.run(t), 0), "sequence %d alone", i)
			pages := c.with(i, sources[4], 30)
			require.Equal(t, c.bits(base, i), pages.bits(pages.run(t), 0), "sequence %d in pages beside another", i)
		}
	}
}

// TestRowsOfABlockKeepTheirBits compares a prefill with its rows one by one.
func TestRowsOfABlockKeepTheirBits(t *testing.T) {
	const n = parts.Len + 40
	c := newCall(25, tensor.Float32, 2, 1, 16, 16, []int64{n}, []int64{n})
	c.a.Causal, c.workers = true, fewWorkers
	c.build(sources[2].layout)
	whole := c.bits(c.run(t), 0)
	row := len(whole) / n
	for _, r := range []int64{0, 1, parts.Len - 1, parts.Len, parts.Len + 1, n - 1} {
		one := newCall(25, tensor.Float32, 2, 1, 16, 16, []int64{1}, []int64{r + 1})
		one.a.Causal, one.workers = true, fewWorkers
		one.build(sources[2].layout)
		one.q[0], one.k[0], one.v[0] = c.q[0][r*32:(r+1)*32], c.k[0][:(r+1)*16], c.v[0][:(r+1)*16]
		one.layQuery()
		one.layRows(InKey, InNewKey, one.k, one.a.Key, one.a.NewKey, one.a.KeySize, nil)
		one.layRows(InValue, InNewValue, one.v, one.a.Value, one.a.NewValue, one.a.ValueSize, nil)
		require.Equal(t, whole[int(r)*row:int(r+1)*row], one.bits(one.run(t), 0), "row %d", r)
	}
}

// TestMaxParts compares the bound of the parts with what sequences need.
func TestMaxParts(t *testing.T) {
	for _, x := range []struct {
		name   string
		change func(a *Params)
		want   int64
	}{
		{"cache", func(*Params) {}, 8},
		{"pages", func(a *Params) { a.Source, a.Slots, a.Columns = Paged, 100, 30 }, 6},
		{"mask", func(a *Params) { a.Bias, a.Mask.Cols = MaskBias, 1500 }, 3},
		{"window of one key", func(a *Params) { a.Window = 1 }, 1},
		{"window", func(a *Params) { a.Window = 2 }, 2},
		{"window and rows", func(a *Params) { a.Window, a.Rows = 510, 4 }, 2},
		{"window and one row more", func(a *Params) { a.Window, a.Rows = 510, 5 }, 3},
		{"wide window", func(a *Params) { a.Window = 1 << 62 }, 8},
		{"ring", func(a *Params) { a.Ring, a.Window, a.Slots = true, 1025, 1025 }, 3},
		{"huge pages", func(a *Params) { a.Source, a.Slots, a.Columns = Paged, 1<<40, 1<<40 }, maxKeys / parts.Len},
	} {
		a := Params{Source: Cache, Slots: 4096, Rows: 1}
		x.change(&a)
		assert.Equal(t, x.want, a.maxParts(), x.name)
	}
}

// TestWindowsFitTheirParts walks every place of a window against the bound.
func TestWindowsFitTheirParts(t *testing.T) {
	for _, window := range []int64{1, 2, parts.Len - 1, parts.Len, parts.Len + 1, 1000} {
		for _, rows := range []int64{1, 2, 5} {
			a := Params{Source: Cache, Slots: 1 << 30, Rows: rows, Causal: true, Window: window}
			most := int64(0)
			for keys := rows; keys < 4*parts.Len; keys++ {
				s := sequence{Rows: rows, Live: rows, Keys: keys}
				_, n := s.parts(&a)
				most = max(most, n)
			}
			assert.Equal(t, a.maxParts(), most, "window %d, %d rows", window, rows)
		}
	}
}

// TestSplit lists what parts are worth their second kernel for.
func TestSplit(t *testing.T) {
	rows := func(n int64) func(*Params) { return func(a *Params) { a.Rows, a.Batch = n, n } }
	for _, x := range []struct {
		name   string
		cores  int
		change func(a *Params)
		want   bool
	}{
		{"one head", 2, func(*Params) {}, true},
		{"three parts", 2, func(a *Params) { a.Slots = 3 * parts.Len }, false},
		{"four parts", 2, func(a *Params) { a.Slots = 3*parts.Len + 1 }, true},
		{"short mask", 2, func(a *Params) { a.Bias, a.Mask.Cols = MaskBias, 1000 }, false},
		{"short window", 2, func(a *Params) { a.Window = 600 }, false},
		{"long window in a ring", 2, func(a *Params) { a.Ring, a.Window, a.Slots = true, 1600, 1600 }, true},
		{"one core", 1, func(*Params) {}, false},
		{"a row for each core", 2, rows(2), false},
		{"three rows", 2, rows(3), true},
		{"four rows", 2, rows(4), false},
		{"four rows on many cores", 16, rows(4), true},
		{"a query head for each core", 2, func(a *Params) { a.Heads, a.KeyHeads = 2, 2 }, false},
		{"grouped heads", 2, func(a *Params) { a.Heads, a.KeyHeads = 8, 2 }, true},
		{"many grouped heads", 2, func(a *Params) { a.Heads, a.KeyHeads = 8, 4 }, false},
		{"a tile of rows", 2, func(a *Params) { a.Rows = maxRows }, true},
		{"many rows of a sequence", 2, func(a *Params) { a.Rows = 4 * maxRows }, false},
		{"padded rows", 2, func(a *Params) { a.Rows = 3; a.Query.Batch = 24; a.Out = headMajor(1, 3, 8) }, true},
		{"padded sequences", 2, func(a *Params) { a.Rows, a.Batch, a.Query.Batch, a.Out = 3, 4, 24, headMajor(1, 3, 8) }, false},
		{"quantised", 2, func(a *Params) { a.Quant = Online }, false},
		{"gaps between rows", 2, func(a *Params) { a.Rows, a.Out.Row = 3, 16 }, false},
		{"too many parts", 2, func(a *Params) { a.Source, a.Slots, a.Columns = Paged, 1<<40, 1 }, false},
		{"no rows", 2, func(a *Params) { a.Rows, a.Heads = 0, 2 }, false},
	} {
		a := Params{Source: Cache, Heads: 1, KeyHeads: 1, KeySize: 8, ValueSize: 8, Batch: 1, Rows: 1, Slots: 4096}
		x.change(&a)
		if a.Out.Head == 0 {
			a.Out = Strides{Row: max(a.Out.Row, a.Heads*a.ValueSize), Head: a.ValueSize}
		}
		assert.Equal(t, x.want, Split(a, kernel.Machine{Cores: x.cores}), x.name)
	}
}

// TestPartsBlocks cuts one head over the cores.
func TestPartsBlocks(t *testing.T) {
	c := newCall(1, tensor.Float32, 1, 1, 64, 64, []int64{1}, []int64{4096}).build(func(c *call) {
		sources[2].layout(c)
		c.a.Rows = 1
	})
	p := c.problem
	p.Machine = kernel.Machine{Cores: 8, L1: 32 << 10}
	g, err := attend.Tile(&p, make([]byte, attend.TilingSize(&p)))
	require.NoError(t, err)
	assert.Equal(t, 1, g.Blocks)
	p.Out = []tensor.Desc{c.a.PartsDesc()}
	g, err = attendParts.Tile(&p, make([]byte, attendParts.TilingSize(&p)))
	require.NoError(t, err)
	assert.Equal(t, 8, g.Blocks)
}
