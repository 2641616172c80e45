package paged

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/kernel/parts"
	"goatb/tensor"
)

// relayout returns b with the same sequences in a cache of another block size
// and layout. Slots that no sequence uses hold NaN.
func (b *problem) relayout(bs int64, headMajor bool) *problem {
	s := b.setup
	s.bs, s.params.HeadMajor = bs, headMajor
	longest := int64(0)
	for _, c := range s.contexts {
		longest = max(longest, c)
	}
	s.columns = ceil(longest, bs)
	s.blocks = int64(len(s.contexts))*s.columns + 2
	o := s.build()
	o.values[InQuery], o.in[InQuery] = b.values[InQuery], b.in[InQuery]
	for _, in := range []int{InKey, InValue} {
		d := o.p.In[in]
		v := make([]float64, d.Numel())
		for i := range v {
			v[i] = math.NaN()
		}
		for q := range int64(len(s.contexts)) {
			for j := range s.contexts[q] {
				from, to := int64(b.at(InTables, q*b.columns+j/b.bs)), int64(o.at(InTables, q*o.columns+j/bs))
				for h := range s.params.KVHeads {
					for c := range d.Dim(3) {
						i := ((to*bs+j%bs)*s.params.KVHeads + h) * d.Dim(3)
						if headMajor {
							i = ((to*s.params.KVHeads+h)*bs + j%bs) * d.Dim(3)
						}
						v[i+c] = b.cacheAt(in, from, j%b.bs, h, c)
					}
				}
			}
		}
		i := -1
		o.set(in, d.DType, func() float64 { i++; return v[i] }, d.Shape.Dims()...)
	}
	return o
}

// The block size and the layout of the cache change no bit, and what lies in
// unused slots has no influence.
func TestBlockSizeDoesNotMatter(t *testing.T) {
	for _, dt := range []tensor.DType{f32, f16} {
		s := plain()
		s.kv, s.bs, s.columns, s.blocks = dt, 16, 50, 150
		s.contexts = []int64{5, 790, 513}
		b := s.build()
		want := b.attend(t)
		compare(t, b, want)
		for _, bs := range []int64{1, 2, 3, 7, 8, 128, 512, 1000} {
			for _, headMajor := range []bool{false, true} {
				got := b.relayout(bs, headMajor).attend(t)
				require.True(t, bytes.Equal(want, got), "%s, block size %d, head major %t", dt, bs, headMajor)
			}
		}
	}
}

// only returns b reduced to one of its sequences.
func (b *problem) only(s int64) *problem {
	o := b.setup
	o.contexts, o.tokens = o.contexts[s:s+1], 1
	first := s
	if o.params.QueryLens {
		first = 0
		for _, n := range b.queryLens[:s] {
			first += n
		}
		o.queryLens, o.tokens = o.queryLens[s:s+1], b.queryLens[s]
	}
	p := o.build()
	for _, in := range []int{InKey, InValue} {
		p.in[in], p.values[in] = b.in[in], b.values[in]
	}
	row := o.params.Heads * o.dk
	size := b.p.In[InQuery].DType.Size() * row
	p.in[InQuery] = b.in[InQuery][first*size : (first+o.tokens)*size]
	p.in[InTables] = b.in[InTables][s*o.columns*4 : (s+1)*o.columns*4]
	return p
}

// A row's bits do not depend on its batch.
func TestBatchDoesNotMatter(t *testing.T) {
	for _, query := range [][]int64{nil, {3, 1, 40, 0}} {
		s := plain()
		s.kv, s.bs, s.columns, s.blocks = bf16, 16, 50, 200
		s.contexts, s.tokens = []int64{5, 790, 513, 31}, 4
		if query != nil {
			s.params.QueryLens, s.queryLens, s.tokens = true, query, 44
		}
		b := s.build()
		whole := b.attend(t)
		at := 0
		for i := range int64(len(s.contexts)) {
			if query != nil && query[i] == 0 {
				continue
			}
			alone := b.only(i).attend(t)
			require.True(t, bytes.Equal(whole[at:at+len(alone)], alone), "sequence %d of %v", i, query)
			at += len(alone)
		}
		require.Len(t, whole, at)
	}
}

// A row of many query rows has the bits of the row as the only one: query
// tiles change nothing.
func TestQueryTileDoesNotMatter(t *testing.T) {
	s := plain()
	s.params.QueryLens = true
	s.bs, s.columns, s.blocks, s.contexts = 16, 5, 5, []int64{70}
	s.tokens, s.queryLens = 70, []int64{70}
	many := s.build()
	rows := many.attend(t)
	s.tokens, s.queryLens = 1, []int64{1}
	one := s.build()
	for _, in := range []int{InKey, InValue, InTables} {
		one.in[in] = many.in[in]
	}
	size := len(rows) / 70
	for r := range 70 {
		q := len(many.in[InQuery]) / 70
		one.in[InQuery] = many.in[InQuery][r*q : (r+1)*q]
		require.True(t, bytes.Equal(rows[r*size:(r+1)*size], one.attend(t)), "row %d", r)
	}
}

// A NaN in one query row makes that row's head NaN and no other; a NaN in a
// key of one sequence makes that sequence's rows NaN.
func TestNaNStaysInItsRow(t *testing.T) {
	s := plain()
	b := s.build()
	clean := b.attend(t)
	v := device.View[float32](b.in[InQuery])
	v[1*4*8+2*8+3] = float32(math.NaN())
	for _, got := range [][]byte{b.attend(t), b.split(t)} {
		for i, f := range device.View[float32](got) {
			if i/8 == 1*4+2 {
				assert.True(t, f != f, "element %d: want NaN, got %v", i, f)
			} else {
				assert.Equal(t, device.View[float32](clean)[i], f, "element %d", i)
			}
		}
	}
}

// Hidden positions at the end of a mask row are not looked at; a fully hidden
// row is zero; a score of +Inf gives NaN, as a softmax of it does.
func TestMaskEdges(t *testing.T) {
	s := plain()
	s.params.Mask, s.maskShape = BySequence, []int64{3, 12}
	s.contexts = []int64{12, 12, 12}
	b := s.build()
	ninf := math.Inf(-1)
	n := -1
	b.set(InMask, f32, func() float64 {
		n++
		switch {
		case n < 12: // row 0: nothing open
			return ninf
		case n < 24: // row 1: position 7 open
			if n == 12+7 {
				return 0
			}
			return ninf
		case n == 30:
			return math.Inf(1)
		}
		return 0
	}, 3, 12)
	for _, got := range [][]byte{b.attend(t), b.split(t)} {
		f := device.View[float32](got)
		for h := range int64(4) {
			for c := range int64(8) {
				assert.Zero(t, f[h*8+c])
				assert.InDelta(t, b.valueAt(1, h/2, 7, c), f[(4+h)*8+c], 1e-6)
				assert.True(t, math.IsNaN(float64(f[(8+h)*8+c])))
			}
		}
	}
}

// Every item is done once, in order, and blocks get even work.
func TestItemsAreShared(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for range 200 {
		s := plain()
		s.params.QueryLens = true
		s.bs, s.columns, s.blocks = 64, 40, 4
		s.params.Heads, s.params.KVHeads = 16, 1<<r.IntN(5)
		s.contexts, s.queryLens, s.tokens = nil, nil, 0
		for range 1 + r.IntN(6) {
			s.contexts = append(s.contexts, r.Int64N(2560))
			n := r.Int64N(40)
			s.queryLens = append(s.queryLens, n)
			s.tokens += n
		}
		s.tokens += r.Int64N(3) + 1
		b := s.build()
		b.p.Machine.Cores = 1 + r.IntN(16)
		k := Attend[0]
		require.NoError(t, k.Supports(&b.p))
		dst := device.BytesOf(make([]uint64, k.TilingSize(&b.p)/8))
		grid, err := k.Tile(&b.p, dst)
		require.NoError(t, err)
		var tl tiling
		require.NoError(t, tl.measure(&b.p, b.params))
		tail := device.View[int64](dst)[(len(dst)/8)-tailWords(&b.p, &tl.geometry):]
		end := int64(0)
		for block := range grid.Blocks {
			lo, hi := blockItems(tail, tl.Sequences, block, block+1)
			require.Equal(t, end, lo)
			require.LessOrEqual(t, lo, hi)
			end = hi
		}
		require.Equal(t, readSequence(tail, tl.Sequences).End, end)
		require.LessOrEqual(t, grid.Blocks, kernel.MostEvenBlocks(b.p.Machine))
	}
}

// Equal sequences are shared evenly: no block has two items more than another.
func TestItemsAreSharedEvenly(t *testing.T) {
	s := plain()
	s.bs, s.columns, s.blocks, s.contexts, s.tokens = 64, 8, 8, nil, 50
	for range s.tokens {
		s.contexts = append(s.contexts, 512)
	}
	b := s.build()
	b.p.Machine.Cores = 7
	var tl tiling
	require.NoError(t, tl.measure(&b.p, b.params))
	tail := make([]int64, tailWords(&b.p, &tl.geometry))
	grid, err := tile(&b.p, b.params, &tl, tail, 0)
	require.NoError(t, err)
	require.GreaterOrEqual(t, grid.Blocks, 7)
	least, most := int64(math.MaxInt64), int64(0)
	for block := range grid.Blocks {
		lo, hi := blockItems(tail, tl.Sequences, block, block+1)
		least, most = min(least, hi-lo), max(most, hi-lo)
	}
	assert.LessOrEqual(t, most-least, int64(1))
}

// Blocks are as even as whole items allow, also where items differ by their parts.
func TestPartsAreSharedEvenly(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for range 200 {
		s := plain()
		s.params.Heads, s.params.KVHeads = 16, 8
		s.bs, s.columns, s.blocks, s.contexts = 512, 4, 4, nil
		s.tokens = 1 + r.Int64N(3)
		for range s.tokens {
			s.contexts = append(s.contexts, 1+r.Int64N(4*parts.Len))
		}
		b := s.build()
		b.p.Out = []tensor.Desc{parts.Desc(s.tokens*16, 4, s.dv)}
		var tl tiling
		require.NoError(t, tl.measure(&b.p, b.params))
		tail := make([]int64, tailWords(&b.p, &tl.geometry))
		_, err := tile(&b.p, b.params, &tl, tail, 4)
		require.NoError(t, err)
		var nanos []float64 // of every item
		for i := range s.tokens {
			q := readSequence(tail, i)
			w := tl.workOf(&q)
			for range tl.HeadRanges {
				for p := range parts.Count(q.Context) {
					nanos = append(nanos, w.wholeNanos)
					if p == w.whole {
						nanos[len(nanos)-1] = w.lastNanos
					}
				}
			}
		}
		items, total := tl.count(tail)
		require.EqualValues(t, items, len(nanos))
		blocks := 1 + r.IntN(kernel.MostEvenBlocks(b.p.Machine))
		most, longest := tl.shareItems(tail, items, blocks, total), 0.0
		for block := range blocks {
			lo, hi := blockItems(tail, tl.Sequences, block, block+1)
			sum := 0.0
			for _, n := range nanos[lo:hi] {
				sum += n
			}
			longest = max(longest, sum)
			assert.LessOrEqual(t, sum, total/float64(blocks)+slices.Max(nanos), "%v in %d", s.contexts, blocks)
		}
		assert.InEpsilon(t, longest, most, 1e-9, "%v in %d", s.contexts, blocks)
	}
}

// Where items are few and differ, heads are cut: no block has most of the work.
func TestUnevenItemsAreCut(t *testing.T) {
	for _, c := range []struct {
		contexts []int64
		apart    int64
		heads    int64
	}{
		{[]int64{parts.Len + 1}, 4, 4}, // a part and a position
		{[]int64{parts.Len + parts.Len/2}, 4, 4},
		{[]int64{3 * parts.Len}, 4, 4},
		{[]int64{4 * parts.Len}, 4, 8},
		{[]int64{4*parts.Len - 9}, 4, 8},
		{[]int64{4 * parts.Len, 100}, 0, 4},
		{[]int64{4 * parts.Len, 4*parts.Len - 100}, 0, 8},
	} {
		s := plain()
		s.params.Heads, s.params.KVHeads = 16, 8
		s.bs, s.columns, s.blocks, s.contexts, s.tokens = 512, 4, 4, c.contexts, int64(len(c.contexts))
		b := s.build()
		b.p.Machine.Cores = 2
		if c.apart > 0 {
			b.p.Out = []tensor.Desc{parts.Desc(s.tokens*16, c.apart, s.dv)}
		}
		var tl tiling
		require.NoError(t, tl.measure(&b.p, b.params))
		tail := make([]int64, tailWords(&b.p, &tl.geometry))
		_, err := tile(&b.p, b.params, &tl, tail, c.apart)
		require.NoError(t, err)
		assert.Equal(t, c.heads, tl.HeadTile, "%+v", c)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	s := plain()
	s.params.Mask, s.maskShape = BySequence, []int64{3, 1, 12}
	b := s.build()
	l := newLaunch(t, Attend[0], b.p, b.in)
	l.p.Machine.Cores = 1
	assert.Zero(t, testing.AllocsPerRun(20, func() { l.tile(t); l.run(t) }))
	p := b.p
	p.Out = []tensor.Desc{parts.Desc(12, 1, 8)}
	l = newLaunch(t, Parts[0], p, b.in)
	assert.Zero(t, testing.AllocsPerRun(20, func() { l.tile(t); l.run(t) }))
}
