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

var (
	f32, f16, bf16, i8, i32 = tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Int8, tensor.Int32
)

// noise returns random bytes for d.
func noise(r *rand.Rand, d tensor.Desc) []byte {
	if d.Empty() {
		return nil
	}
	b := device.BytesOf(make([]uint64, (d.Bytes()+7)/8))[:d.Bytes()]
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// scatterCase is a problem of Scatter; value is empty for keys alone.
type scatterCase struct {
	layout             Layout
	key, value         tensor.Desc
	keyCache, valCache tensor.Desc
	slots              []int32
}

func (c scatterCase) problem() (kernel.Problem, [][]byte) {
	r := rand.New(rand.NewPCG(4, uint64(len(c.slots))))
	p := kernel.Problem{
		In:     []tensor.Desc{c.key, c.value, tensor.Of(i32, int64(len(c.slots))), c.keyCache, c.valCache},
		Out:    []tensor.Desc{c.keyCache, c.valCache},
		Params: ScatterParams{c.layout},
	}
	in := [][]byte{noise(r, c.key), noise(r, c.value), device.BytesOf(c.slots), noise(r, c.keyCache), noise(r, c.valCache)}
	return p, in
}

// want writes element by element.
func (c scatterCase) want(x, cache tensor.Desc, src, old []byte) []byte {
	if x.Empty() {
		return nil
	}
	out := bytes.Clone(old)
	size := x.DType.Size()
	width := x.Numel() / x.Dim(0)
	for i, s := range c.slots {
		if s < 0 {
			continue
		}
		for e := range width {
			at := int64(s)*width + e
			if c.layout == NZ {
				l, bs := cache.Dim(3), cache.Dim(2)
				at = ((int64(s)/bs*cache.Dim(1)+e/l)*bs+int64(s)%bs)*l + e%l
			}
			from := int64(i)*width + e
			copy(out[at*size:(at+1)*size], src[from*size:(from+1)*size])
		}
	}
	return out
}

func TestScatter(t *testing.T) {
	nd := func(k tensor.DType, v tensor.DType, n, blocks, bs, h, dk, dv int64, slots ...int32) scatterCase {
		return scatterCase{Rows, tensor.Of(k, n, h, dk), tensor.Of(v, n, h, dv), tensor.Of(k, blocks, bs, h, dk), tensor.Of(v, blocks, bs, h, dv), slots}
	}
	nz := func(k tensor.DType, v tensor.DType, n, blocks, bs, h, dk, dv int64, slots ...int32) scatterCase {
		c := nd(k, v, n, blocks, bs, h, dk, dv, slots...)
		c.layout = NZ
		piece := func(t tensor.DType) int64 {
			if t == i8 {
				return 32
			}
			return 16
		}
		c.keyCache = tensor.Of(k, blocks, h*dk/piece(k), bs, piece(k))
		c.valCache = tensor.Of(v, blocks, h*dv/piece(v), bs, piece(v))
		return c
	}
	single := nd(f16, f16, 3, 2, 4, 2, 8, 8, 7, 0, 3)
	single.value, single.valCache = tensor.Desc{}, tensor.Desc{}
	many := make([]int32, 300)
	for i := range many {
		many[i] = int32(i * 7 % 320)
	}
	for name, c := range map[string]scatterCase{
		"f16":             nd(f16, f16, 3, 2, 4, 2, 8, 8, 5, 0, 7),
		"f32 wide value":  nd(f32, f32, 2, 3, 5, 2, 3, 7, 14, 1),
		"bf16":            nd(bf16, bf16, 2, 3, 5, 2, 3, 7, 14, 1),
		"int8":            nd(i8, i8, 2, 3, 5, 1, 33, 1, 14, 1),
		"skipped":         nd(f16, f16, 4, 2, 4, 2, 8, 8, -1, 3, -2147483648, 0),
		"all skipped":     nd(f16, f16, 2, 2, 4, 2, 8, 8, -1, -1),
		"same slot twice": nd(f16, f16, 4, 2, 4, 2, 8, 8, 6, 3, 6, 6),
		"key alone":       single,
		"many rows":       nd(f16, f16, 300, 20, 16, 8, 64, 64, many...),
		"nz f16":          nz(f16, bf16, 3, 2, 16, 2, 16, 24, 5, 31, 0),
		"nz int8":         nz(i8, f16, 3, 2, 16, 6, 64, 128, 5, 31, 0),
		"nz f32":          nz(f32, f32, 2, 2, 3, 2, 16, 24, 5, 1),
		"nz many":         nz(bf16, bf16, 300, 20, 16, 4, 64, 128, many...),
		"nz one piece":    nz(f16, f16, 2, 2, 16, 1, 16, 32, 5, 31),
	} {
		t.Run(name, func(t *testing.T) {
			p, in := c.problem()
			out := kerneltest.Run(t, kerneltest.Case{Kernel: Scatter[0], Problem: p, In: in, InPlace: map[int]int{0: 3, 1: 4}})
			require.True(t, bytes.Equal(c.want(c.key, c.keyCache, in[0], in[3]), out[0]), "keys")
			require.True(t, bytes.Equal(c.want(c.value, c.valCache, in[1], in[4]), out[1]), "values")
		})
	}
}

// run launches a kernel whose outputs are the last inputs, on one core, and
// returns its error.
func run(t *testing.T, k *kernel.Kernel, p kernel.Problem, in [][]byte) error {
	t.Helper()
	p.Machine = kernel.Machine{Cores: 2}
	require.NoError(t, k.Supports(&p))
	a := device.Args{Tiling: device.BytesOf(make([]uint64, k.TilingSize(&p)/8))}
	for _, b := range append(in, in[len(in)-2:]...) {
		if b == nil {
			a.Buffers = append(a.Buffers, device.Buffer{})
			continue
		}
		a.Buffers = append(a.Buffers, device.Wrap(b))
	}
	grid, err := k.Tile(&p, a.Tiling)
	require.NoError(t, err)
	a.Key, a.Blocks = grid.Key, grid.Blocks
	for b := range a.Blocks {
		if err := k.Program().Run(&a, b); err != nil {
			return err
		}
	}
	return nil
}

// A slot behind the cache is an error, and no row is written, not even the
// ones before it.
func TestScatterSlotOutside(t *testing.T) {
	for _, layout := range []Layout{Rows, NZ} {
		c := scatterCase{layout, tensor.Of(f16, 3, 1, 16), tensor.Of(f16, 3, 1, 16), tensor.Of(f16, 2, 4, 1, 16), tensor.Of(f16, 2, 4, 1, 16), []int32{1, -1, 8}}
		if layout == NZ {
			c.keyCache, c.valCache = tensor.Of(f16, 2, 1, 4, 16), tensor.Of(f16, 2, 1, 4, 16)
		}
		p, in := c.problem()
		before := [][]byte{bytes.Clone(in[3]), bytes.Clone(in[4])}
		err := run(t, Scatter[0], p, in)
		require.ErrorIs(t, err, status.ErrRuntimeFail)
		assert.Contains(t, err.Error(), "slots: position 2: want a slot below 8, got 8")
		assert.Equal(t, before, in[3:])
	}
}

func TestScatterRefuses(t *testing.T) {
	base := scatterCase{Rows, tensor.Of(f16, 2, 2, 8), tensor.Of(f16, 2, 2, 8), tensor.Of(f16, 3, 4, 2, 8), tensor.Of(f16, 3, 4, 2, 8), []int32{0, 1}}
	for name, change := range map[string]func(*kernel.Problem){
		"inputs":       func(p *kernel.Problem) { p.In = p.In[1:] },
		"output":       func(p *kernel.Problem) { p.Out[0].DType = bf16 },
		"slot type":    func(p *kernel.Problem) { p.In[ScatterSlots].DType = tensor.Int64 },
		"slot count":   func(p *kernel.Problem) { p.In[ScatterSlots] = tensor.Of(i32, 3) },
		"slot rank":    func(p *kernel.Problem) { p.In[ScatterSlots] = tensor.Of(i32, 1, 2) },
		"types":        func(p *kernel.Problem) { p.In[ScatterKey].DType = bf16 },
		"width":        func(p *kernel.Problem) { p.In[ScatterKey] = tensor.Of(f16, 2, 2, 9) },
		"no cache":     func(p *kernel.Problem) { p.In[ScatterKeyCache], p.Out[0] = tensor.Desc{}, tensor.Desc{} },
		"no key":       func(p *kernel.Problem) { p.In[ScatterKey] = tensor.Desc{} },
		"slots differ": func(p *kernel.Problem) { d := tensor.Of(f16, 2, 4, 2, 8); p.In[ScatterValueCache], p.Out[1] = d, d },
		"cache rank":   func(p *kernel.Problem) { d := tensor.Of(f16, 12, 2, 8); p.In[ScatterKeyCache], p.Out[0] = d, d },
		"nz":           func(p *kernel.Problem) { p.Params = ScatterParams{NZ} },
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := base.problem()
			require.NoError(t, Scatter[0].Supports(&p))
			change(&p)
			assert.ErrorIs(t, Scatter[0].Supports(&p), status.ErrInvalidParam)
		})
	}
}

// Offsets are exact where 32 bits are not enough: slot 2^20+3 of a cache of
// 2^21 slots of 2^14 bytes lies behind 2^34.
func TestOffsetsAreInt64(t *testing.T) {
	var c target
	require.NoError(t, c.fill(&tensor.Desc{DType: f16, Shape: tensor.ShapeOf(1<<14, 128, 64, 128)}, Rows, 64*128))
	assert.Equal(t, int64(1<<21), c.Slots)
	assert.Equal(t, int64(1<<20+3)<<14, c.offset(1<<20+3))
	var nz target
	require.NoError(t, nz.fill(&tensor.Desc{DType: f16, Shape: tensor.ShapeOf(1<<14, 512, 128, 16)}, NZ, 64*128))
	assert.Equal(t, int64(1<<13)*512*128*32+3*32, nz.offset(1<<20+3))
}
