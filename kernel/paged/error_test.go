package paged

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/kernel/parts"
	"goatb/status"
	"goatb/tensor"
)

// A block number outside the cache is an error that says where; nothing is
// read with it. Numbers that no position needs are not looked at.
func TestBlockOutsideCache(t *testing.T) {
	for _, half := range []bool{false, true} {
		for _, bad := range []int32{-1, 9, 1 << 30, -1 << 31} {
			s := plain()
			s.bs, s.columns, s.blocks = 8, 3, 9
			if half {
				s.kv = f16
			}
			s.contexts = []int64{5, 17, 1}
			b := s.build()
			table := device.View[int32](b.in[InTables])
			table[2], table[8] = bad, bad
			l := newLaunch(t, Attend[0], b.p, b.in)
			require.NoError(t, l.k.Program().Run(&l.args, 0), "unused columns")
			table[5] = bad
			err := l.k.Program().Run(&l.args, 0)
			require.Error(t, err)
			assert.ErrorIs(t, err, status.ErrRuntimeFail)
			assert.Contains(t, err.Error(), "block table: block 2 of sequence 1: want 0 to 8, the cache has 9 blocks, got")
		}
	}
}

func TestRazorChecksBlocks(t *testing.T) {
	s := plain()
	s.razor = true
	b := s.build()
	device.View[int32](b.in[InTables])[0] = 9
	l := newLaunch(t, Attend[0], b.p, b.in)
	assert.ErrorIs(t, l.k.Program().Run(&l.args, 0), status.ErrRuntimeFail)
}

// Host values that would lead outside the operands are refused by every
// kernel's tiling.
func TestTileRefusesValues(t *testing.T) {
	position := func(s *setup) {
		s.params.QueryLens, s.params.Mask, s.maskShape = true, ByPosition, []int64{10, 12}
		s.queryLens = []int64{1, 1, 1}
	}
	for name, c := range map[string]struct {
		change func(*setup)
		text   string
	}{
		"negative context": {func(s *setup) { s.contexts[1] = -1 }, "sequence 1: want a context length from 0 to"},
		"long context":     {func(s *setup) { s.contexts[2] = 13 }, "sequence 2: want a context length from 0 to 12, got 13"},
		"narrow mask": {func(s *setup) {
			s.params.Mask, s.maskShape = BySequence, []int64{3, 11}
		}, "sequence 1: want a context length from 0 to 11, got 12"},
		"negative query": {func(s *setup) {
			s.params.QueryLens, s.queryLens = true, []int64{1, -1, 1}
		}, "sequence 1: want 0 to 2 query rows, got -1"},
		"too many query rows": {func(s *setup) {
			s.params.QueryLens, s.queryLens = true, []int64{1, 1, 2}
		}, "sequence 2: want 0 to 1 query rows, got 2"},
		"few mask rows": {func(s *setup) { position(s) }, "sequence 1: 1 query rows in a context of 12"},
		"more rows than context": {func(s *setup) {
			position(s)
			s.contexts, s.queryLens = []int64{1, 5, 1}, []int64{2, 1, 0}
		}, "sequence 0: 2 query rows in a context of 1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := plain()
			c.change(&s)
			b := s.build()
			refuse := func(k *kernel.Kernel, p kernel.Problem) {
				require.NoError(t, k.Supports(&p))
				_, err := k.Tile(&p, device.BytesOf(make([]uint64, k.TilingSize(&p)/8)))
				require.ErrorIs(t, err, status.ErrInvalidParam)
				assert.Contains(t, err.Error(), c.text)
			}
			refuse(Attend[0], b.p)
			p := b.p
			p.Out = []tensor.Desc{parts.Desc(12, 1, 8)}
			refuse(Parts[0], p)
		})
	}
}

func TestSupportsRefuses(t *testing.T) {
	for name, change := range map[string]func(*problem){
		"inputs":         func(b *problem) { b.p.In = b.p.In[:5] },
		"heads":          func(b *problem) { b.params.Heads = 5 },
		"no kv heads":    func(b *problem) { b.params.KVHeads = 0 },
		"query rank":     func(b *problem) { b.p.In[InQuery] = tensor.Of(f32, 3, 32) },
		"query heads":    func(b *problem) { b.p.In[InQuery] = tensor.Of(f32, 3, 8, 8) },
		"query type":     func(b *problem) { b.p.In[InQuery].DType = tensor.Int32 },
		"key rank":       func(b *problem) { b.p.In[InKey] = tensor.Of(f32, 9, 4, 16) },
		"key heads":      func(b *problem) { b.p.In[InKey] = tensor.Of(f32, 9, 4, 4, 8) },
		"key width":      func(b *problem) { b.p.In[InKey] = tensor.Of(f32, 9, 4, 2, 9) },
		"key type":       func(b *problem) { b.p.In[InKey].DType = tensor.Int64 },
		"value blocks":   func(b *problem) { b.p.In[InValue] = tensor.Of(f32, 8, 4, 2, 8) },
		"value missing":  func(b *problem) { b.p.In[InValue] = tensor.Desc{} },
		"value and keys": func(b *problem) { b.params.ValueDim = 8 },
		"table type":     func(b *problem) { b.p.In[InTables].DType = tensor.Int64 },
		"table rows":     func(b *problem) { b.p.In[InTables] = tensor.Of(tensor.Int32, 4, 3) },
		"contexts":       func(b *problem) { b.p.Val = []tensor.Desc{tensor.Of(tensor.Int32, 2)} },
		"no contexts":    func(b *problem) { b.p.Val = nil },
		"mask missing":   func(b *problem) { b.params.Mask = BySequence },
		"mask unwanted":  func(b *problem) { b.p.In[InMask] = tensor.Of(f32, 3, 12) },
		"mask batch":     func(b *problem) { b.params.Mask = BySequence; b.p.In[InMask] = tensor.Of(f32, 2, 12) },
		"mask heads":     func(b *problem) { b.params.Mask = BySequence; b.p.In[InMask] = tensor.Of(f32, 3, 2, 12) },
		"mask rank":      func(b *problem) { b.params.Mask = BySequence; b.p.In[InMask] = tensor.Of(f32, 12) },
		"mask tokens":    func(b *problem) { b.params.Mask = ByToken; b.p.In[InMask] = tensor.Of(f32, 4, 12) },
		"mask type":      func(b *problem) { b.params.Mask = ByToken; b.p.In[InMask] = tensor.Of(i8, 3, 12) },
		"mask positions": func(b *problem) { b.params.Mask = ByPosition; b.p.In[InMask] = tensor.Of(f32, 1, 1, 12, 12) },
		"razor":          func(b *problem) { b.p.In[InRazor] = tensor.Of(f32, 9, 5) },
		"logN":           func(b *problem) { b.p.In[InLogN] = tensor.Of(f32, 2) },
		"dequant floats": func(b *problem) { b.params.Quant = Dequant },
		"scales":         func(b *problem) { b.params.Quant = Online; b.p.In[InKeyScale] = tensor.Of(f32, 3) },
		"output":         func(b *problem) { b.p.Out[0] = tensor.Of(f32, 3, 4, 9) },
		"output type":    func(b *problem) { b.p.Out[0].DType = i8 },
		"status":         func(b *problem) { b.params.RunStatus = true; b.p.Val = append(b.p.Val, tensor.Of(tensor.Int32, 2)) },
		"query lengths":  func(b *problem) { b.params.QueryLens = true; b.p.Val = append(b.p.Val, tensor.Of(tensor.Int32, 2)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := plain().build()
			require.NoError(t, Attend[0].Supports(&b.p))
			change(b)
			b.p.Params = b.params
			assert.ErrorIs(t, Attend[0].Supports(&b.p), status.ErrInvalidParam)
		})
	}
}

// Two kernels are worth it where a long context meets few heads for the cores.
func TestSplit(t *testing.T) {
	p := Params{Heads: 8, KVHeads: 1}
	wide := Params{Heads: 32, KVHeads: 8}
	perHead := Params{Heads: 32, KVHeads: 8, PerHead: true}
	query := Params{Heads: 8, KVHeads: 1, QueryLens: true}
	for _, c := range []struct {
		params                  Params
		cores                   int
		tokens, context, values int64
		want                    bool
	}{
		{p, 2, 1, 2048, 128, true},
		{p, 2, 1, 1536, 128, false},   // three parts
		{p, 1, 1, 8192, 128, false},   // one core
		{p, 2, 8, 8192, 128, false},   // enough sequences
		{wide, 2, 1, 8192, 128, true}, // heads shared evenly, but not whole rows
		{wide, 2, 8, 8192, 128, false},
		{wide, 16, 8, 8192, 128, true},
		{perHead, 2, 1, 8192, 128, false}, // a sequence for each head
		{query, 2, 16, 8192, 128, true},   // two tiles of query rows
		{query, 2, 64, 8192, 128, false},  // eight
		{p, 2, 1, 1 << 40, 128, false},    // parts beyond the memory for them
	} {
		m := kernel.Machine{Cores: c.cores}
		assert.Equal(t, c.want, Split(c.params, m, c.tokens, c.context, c.values), "%+v", c)
	}
}

func TestCapacityDoesNotOverflow(t *testing.T) {
	assert.Equal(t, int64(12), Capacity(3, 4))
	assert.Equal(t, int64(maxContext), Capacity(1<<36, 1<<36))
}
