package cache

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/kernel/kerneltest"
	"goatb/status"
	"goatb/tensor"
)

// windowsCase is a problem of Windows; offsets nil is without Drop.
type windowsCase struct {
	dtype                          tensor.DType
	tokens, heads, dk, dv          int64
	blocks, bs                     int64
	slots, sizes, lengths, offsets []int32
}

func (c windowsCase) problem() (kernel.Problem, [][]byte) {
	r := rand.New(rand.NewPCG(5, 5))
	ints := func(v []int32) tensor.Desc {
		if v == nil {
			return tensor.Desc{}
		}
		return tensor.Of(i32, int64(len(v)))
	}
	keyCache, valCache := tensor.Of(c.dtype, c.blocks, c.bs, 1, c.dk), tensor.Of(c.dtype, c.blocks, c.bs, 1, c.dv)
	p := kernel.Problem{
		In: []tensor.Desc{
			tensor.Of(c.dtype, c.tokens, c.heads, c.dk), tensor.Of(c.dtype, c.tokens, c.heads, c.dv),
			ints(c.slots), ints(c.sizes), ints(c.lengths), ints(c.offsets), keyCache, valCache,
		},
		Out:    []tensor.Desc{keyCache, valCache},
		Params: WindowsParams{Drop: c.offsets != nil},
	}
	in := [][]byte{noise(r, p.In[0]), noise(r, p.In[1]), device.BytesOf(c.slots), device.BytesOf(c.sizes), device.BytesOf(c.lengths), device.BytesOf(c.offsets), noise(r, keyCache), noise(r, valCache)}
	return p, in
}

// want lists the kept tokens of each sequence and head and writes them.
func (c windowsCase) want(width int64, src, old []byte) []byte {
	out := bytes.Clone(old)
	row := width * c.dtype.Size()
	first := int64(0)
	for s, length := range c.lengths {
		for h := range c.heads {
			i := int64(s)*c.heads + h
			var kept []int64
			for j := range int64(length) {
				size := int64(c.sizes[i])
				keep := j >= int64(length)-size
				if c.offsets != nil {
					o := int64(c.offsets[i])
					keep = o == -1 || j < o || j >= o+size
				}
				if keep {
					kept = append(kept, first+j)
				}
			}
			if c.slots[i] < 0 {
				continue
			}
			for n, token := range kept {
				from, to := (token*c.heads+h)*row, (int64(c.slots[i])+int64(n))*row
				copy(out[to:to+row], src[from:from+row])
			}
		}
		first += int64(length)
	}
	return out
}

func TestWindows(t *testing.T) {
	long := windowsCase{dtype: f16, tokens: 300, heads: 2, dk: 64, dv: 64, blocks: 40, bs: 16, lengths: []int32{100, 200}}
	long.slots, long.sizes = []int32{0, 150, 250, 440}, []int32{100, 7, 190, 200}
	dropped := long
	dropped.offsets = []int32{-1, 3, 0, 199}
	for name, c := range map[string]windowsCase{
		"last tokens": {
			dtype: f16, tokens: 7, heads: 2, dk: 8, dv: 4, blocks: 4, bs: 4, lengths: []int32{3, 4},
			slots: []int32{0, 4, 7, 12}, sizes: []int32{3, 1, 4, 0},
		},
		"fewer tokens than rows": {
			dtype: f32, tokens: 7, heads: 1, dk: 3, dv: 3, blocks: 4, bs: 4, lengths: []int32{3, 0, 2},
			slots: []int32{0, 4, 7}, sizes: []int32{2, 0, 1},
		},
		"skipped": {
			dtype: i8, tokens: 5, heads: 2, dk: 32, dv: 32, blocks: 2, bs: 4, lengths: []int32{5},
			slots: []int32{-1, 2}, sizes: []int32{99, 5},
		},
		"dropped window": {
			dtype: bf16, tokens: 6, heads: 3, dk: 8, dv: 8, blocks: 8, bs: 4, lengths: []int32{6},
			slots: []int32{0, 8, 16}, sizes: []int32{2, 9, 1}, offsets: []int32{1, -1, 6},
		},
		"overlapping slots": {
			dtype: f16, tokens: 6, heads: 2, dk: 8, dv: 8, blocks: 8, bs: 4, lengths: []int32{6},
			slots: []int32{0, 3}, sizes: []int32{6, 6},
		},
		"long":         long,
		"long dropped": dropped,
	} {
		t.Run(name, func(t *testing.T) {
			p, in := c.problem()
			out := kerneltest.Run(t, kerneltest.Case{Kernel: Windows[0], Problem: p, In: in, InPlace: map[int]int{0: 6, 1: 7}})
			require.True(t, bytes.Equal(c.want(c.dk, in[0], in[6]), out[0]), "keys")
			require.True(t, bytes.Equal(c.want(c.dv, in[1], in[7]), out[1]), "values")
		})
	}
}

func TestWindowsRefusesValues(t *testing.T) {
	base := func() windowsCase {
		return windowsCase{
			dtype: f16, tokens: 7, heads: 1, dk: 8, dv: 8, blocks: 2, bs: 4, lengths: []int32{3, 4},
			slots: []int32{0, 4}, sizes: []int32{3, 4},
		}
	}
	for name, c := range map[string]struct {
		change func(*windowsCase)
		text   string
	}{
		"slot":            {func(c *windowsCase) { c.slots[1] = 5 }, "slots: position 1: want 4 slots below 8, got slot 5"},
		"window":          {func(c *windowsCase) { c.sizes[0] = 4 }, "wins: position 0: want a window of 0 to 3 tokens, got 4"},
		"negative window": {func(c *windowsCase) { c.sizes[0] = -1 }, "wins: position 0"},
		"length":          {func(c *windowsCase) { c.lengths[1] = 5 }, "seqLen: position 1: want a length from 0 to 4, got 5"},
		"negative length": {func(c *windowsCase) { c.lengths[0] = -1 }, "seqLen: position 0"},
		"offset":          {func(c *windowsCase) { c.offsets = []int32{4, 0} }, "offsetIndex: position 0: want an offset from -1 to 3, got 4"},
		"negative offset": {func(c *windowsCase) { c.offsets = []int32{-2, 0} }, "offsetIndex: position 0"},
		"drop negative": {func(c *windowsCase) {
			c.offsets, c.sizes = []int32{0, 0}, []int32{1, -1}
		}, "wins: position 1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := base()
			c.change(&w)
			p, in := w.problem()
			before := [][]byte{bytes.Clone(in[6]), bytes.Clone(in[7])}
			err := run(t, Windows[0], p, in)
			require.ErrorIs(t, err, status.ErrRuntimeFail)
			assert.Contains(t, err.Error(), c.text)
			assert.Equal(t, before, in[6:])
		})
	}
}

func TestWindowsRefuses(t *testing.T) {
	for name, change := range map[string]func(*kernel.Problem){
		"inputs":      func(p *kernel.Problem) { p.In = p.In[1:] },
		"output":      func(p *kernel.Problem) { p.Out[1].DType = bf16 },
		"drop":        func(p *kernel.Problem) { p.Params = WindowsParams{Drop: true} },
		"key rank":    func(p *kernel.Problem) { p.In[WindowsKey] = tensor.Of(f16, 7, 8) },
		"value heads": func(p *kernel.Problem) { p.In[WindowsValue] = tensor.Of(f16, 7, 2, 8) },
		"sizes":       func(p *kernel.Problem) { p.In[WindowsSizes] = tensor.Of(i32, 3) },
		"slot type":   func(p *kernel.Problem) { p.In[WindowsSlots].DType = tensor.Int64 },
		"cache heads": func(p *kernel.Problem) { d := tensor.Of(f16, 2, 4, 2, 8); p.In[WindowsKeyCache], p.Out[0] = d, d },
		"cache width": func(p *kernel.Problem) { d := tensor.Of(f16, 2, 4, 1, 9); p.In[WindowsKeyCache], p.Out[0] = d, d },
		"cache slots": func(p *kernel.Problem) { d := tensor.Of(f16, 3, 4, 1, 8); p.In[WindowsKeyCache], p.Out[0] = d, d },
	} {
		t.Run(name, func(t *testing.T) {
			c := windowsCase{
				dtype: f16, tokens: 7, heads: 1, dk: 8, dv: 8, blocks: 2, bs: 4, lengths: []int32{3, 4},
				slots: []int32{0, 4}, sizes: []int32{3, 4},
			}
			p, _ := c.problem()
			require.NoError(t, Windows[0].Supports(&p))
			change(&p)
			assert.ErrorIs(t, Windows[0].Supports(&p), status.ErrInvalidParam)
		})
	}
}
