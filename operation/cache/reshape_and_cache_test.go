package cache

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/kernel/move"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/operation/optest"
	"goatb/status"
	"goatb/tensor"
)

func decode(param []byte) (operation.Spec, error) {
	return operation.Decode(param, DefaultReshapeAndCache())
}

func TestRows(t *testing.T)    { optest.CheckRows(t, "reshape_and_cache", decode, 35) }
func TestGoldens(t *testing.T) { optest.CheckGoldens(t, "ReshapeAndCacheOperation", decode) }

// nz returns d in layout fractal_nz.
func nz(t tensor.DType, dims ...int64) tensor.Desc {
	d := tensor.Of(t, dims...)
	d.Format = tensor.FractalNZ
	return d
}

// problem is an operation with random data; ints are the inputs from slots on.
type problem struct {
	spec ReshapeAndCache
	in   []tensor.Desc
	data [][]byte
}

func newProblem(p ReshapeAndCache, descs []tensor.Desc, ints ...[]int32) problem {
	r := rand.New(rand.NewPCG(6, 6))
	x := problem{spec: p, in: descs}
	for _, d := range descs {
		b := make([]byte, d.Bytes())
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		x.data = append(x.data, b)
	}
	for _, v := range ints {
		x.in = append(x.in, tensor.Of(tensor.Int32, int64(len(v))))
		x.data = append(x.data, device.BytesOf(v))
	}
	return x
}

// want writes element e of a row to the place that the documentation names.
func (x *problem) want(source, cache int) []byte {
	out := bytes.Clone(x.data[cache])
	s, c := &x.in[source], &x.in[cache]
	size, width := s.DType.Size(), s.Dim(1)*s.Dim(2)
	slots := device.View[int32](x.data[x.spec.sides().slots])
	for i, slot := range slots {
		for e := range width {
			if slot < 0 {
				continue
			}
			to := int64(slot)*width + e
			if x.spec.KVCacheCfg == KeyAndValueNZ {
				bs, l := c.Dim(2), c.Dim(3)
				to = ((int64(slot)/bs*c.Dim(1)+e/l)*bs+int64(slot)%bs)*l + e%l
			}
			from := int64(i)*width + e
			copy(out[to*size:(to+1)*size], x.data[source][from*size:(from+1)*size])
		}
	}
	return out
}

func TestReshapeAndCache(t *testing.T) {
	f32, f16, bf16, i8 := tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Int8
	slots := []int32{5, -1, 0, 31}
	for name, x := range map[string]problem{
		"f16":       newProblem(ReshapeAndCache{}, []tensor.Desc{tensor.Of(f16, 4, 2, 8), tensor.Of(f16, 4, 2, 8), tensor.Of(f16, 2, 16, 2, 8), tensor.Of(f16, 2, 16, 2, 8)}, slots),
		"f32 mixed": newProblem(ReshapeAndCache{}, []tensor.Desc{tensor.Of(f32, 4, 2, 5), tensor.Of(i8, 4, 2, 3), tensor.Of(f32, 4, 8, 2, 5), tensor.Of(i8, 4, 8, 2, 3)}, slots),
		"key only":  newProblem(ReshapeAndCache{KVCacheCfg: KeyOnly}, []tensor.Desc{tensor.Of(bf16, 4, 2, 8), tensor.Of(bf16, 2, 16, 2, 8)}, slots),
		"nz":        newProblem(ReshapeAndCache{KVCacheCfg: KeyAndValueNZ}, []tensor.Desc{tensor.Of(i8, 4, 2, 32), tensor.Of(bf16, 4, 2, 24), nz(i8, 2, 2, 16, 32), nz(bf16, 2, 3, 16, 16)}, slots),
		"nz f32":    newProblem(ReshapeAndCache{KVCacheCfg: KeyAndValueNZ}, []tensor.Desc{tensor.Of(f32, 4, 2, 32), tensor.Of(f32, 4, 2, 24), nz(f32, 8, 4, 4, 16), nz(f32, 8, 3, 4, 16)}, slots),
	} {
		t.Run(name, func(t *testing.T) {
			s := x.spec.sides()
			places := map[int]int{}
			for i, c := range s.cache {
				places[i] = c
			}
			for _, inPlace := range []map[int]int{nil, places} {
				r := optest.Run(t, optest.Case{Spec: x.spec, In: x.in, Data: x.data, InPlace: inPlace})
				for i, c := range s.cache {
					require.True(t, bytes.Equal(x.want(s.source[i], c), r.Out[i]), "output %d", i)
					if inPlace == nil {
						assert.True(t, bytes.Equal(x.data[c], r.In[c]), "input %d changed", c)
					}
				}
			}
		})
	}
}

// Two sequences of 3 and 2 tokens, 2 heads; token j of head h holds 10*j+h.
func TestCompressed(t *testing.T) {
	descs := []tensor.Desc{
		tensor.Of(tensor.Float32, 5, 2, 1), tensor.Of(tensor.Float32, 5, 2, 1),
		tensor.Of(tensor.Float32, 4, 4, 1, 1), tensor.Of(tensor.Float32, 4, 4, 1, 1),
	}
	for name, c := range map[string]struct {
		spec ReshapeAndCache
		ints [][]int32
		want []float32
	}{
		"last tokens": {
			ReshapeAndCache{CompressType: CompressKVHead},
			[][]int32{{0, 4, 8, -1}, {2, 3, 1, 2}, {3, 2}},
			[]float32{10, 20, 0, 0, 1, 11, 21, 0, 40, 0, 0, 0, 0, 0, 0, 0},
		},
		"without a window": {
			ReshapeAndCache{CompressType: CompressKVHeadRope},
			[][]int32{{0, 4, 8, 12}, {1, 9, 1, 5}, {3, 2}, {1, -1, 0, 1}},
			[]float32{0, 20, 0, 0, 1, 11, 21, 0, 40, 0, 0, 0, 31, 0, 0, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newProblem(c.spec, descs, c.ints...)
			for i := range 2 {
				v := device.View[float32](x.data[i])
				for j := range v {
					v[j] = float32(j/2*10 + j%2)
				}
				clear(x.data[2+i])
			}
			r := optest.Run(t, optest.Case{Spec: x.spec, In: x.in, Data: x.data, InPlace: map[int]int{0: 2, 1: 3}})
			assert.Equal(t, c.want, device.View[float32](r.Out[0]))
			assert.Equal(t, c.want, device.View[float32](r.Out[1]))
		})
	}
}

func TestValidate(t *testing.T) {
	for _, p := range []ReshapeAndCache{
		{CompressType: -1}, {CompressType: 3}, {KVCacheCfg: -1}, {KVCacheCfg: 3},
		{CompressType: CompressKVHead, KVCacheCfg: KeyOnly}, {CompressType: CompressKVHeadRope, KVCacheCfg: KeyAndValueNZ},
	} {
		assert.ErrorIs(t, p.Validate(), status.ErrInvalidParam, "%+v", p)
	}
	s, err := decode([]byte(`{"compressType":2,"rsv":[0]}`))
	require.NoError(t, err)
	assert.Equal(t, ReshapeAndCache{CompressType: CompressKVHeadRope}, s)
}

func TestRefused(t *testing.T) {
	f16, f32, i32 := tensor.Float16, tensor.Float32, tensor.Int32
	plain := []tensor.Desc{tensor.Of(f16, 4, 2, 32), tensor.Of(f16, 4, 2, 32), tensor.Of(f16, 3, 16, 2, 32), tensor.Of(f16, 3, 16, 2, 32), tensor.Of(i32, 4)}
	blocked := []tensor.Desc{tensor.Of(f16, 4, 2, 32), tensor.Of(f16, 4, 2, 32), nz(f16, 3, 4, 16, 16), nz(f16, 3, 4, 16, 16), tensor.Of(i32, 4)}
	heads := []tensor.Desc{tensor.Of(f16, 4, 2, 32), tensor.Of(f16, 4, 2, 32), tensor.Of(f16, 3, 16, 1, 32), tensor.Of(f16, 3, 16, 1, 32), tensor.Of(i32, 6), tensor.Of(i32, 6), tensor.Of(i32, 3)}
	with := func(in []tensor.Desc, changes ...any) []tensor.Desc {
		out := append([]tensor.Desc(nil), in...)
		for i := 0; i < len(changes); i += 2 {
			out[changes[i].(int)] = changes[i+1].(tensor.Desc)
		}
		return out
	}
	for _, c := range []struct {
		name   string
		spec   ReshapeAndCache
		in     []tensor.Desc
		board  status.Code
		native status.Code
	}{
		{"key rank", ReshapeAndCache{}, with(plain, 0, tensor.Of(f16, 4, 64)), badRank, badRank},
		{"cache rank", ReshapeAndCache{}, with(plain, 3, tensor.Of(f16, 48, 2, 32)), badRank, badRank},
		{"slots rank", ReshapeAndCache{}, with(plain, 4, tensor.Of(i32, 1, 4)), badRank, badRank},
		{"tokens", ReshapeAndCache{}, with(plain, 1, tensor.Of(f16, 5, 2, 32)), badDim, badDim},
		{"slots", ReshapeAndCache{}, with(plain, 4, tensor.Of(i32, 5)), badDim, badDim},
		{"cache heads", ReshapeAndCache{}, with(plain, 2, tensor.Of(f16, 3, 16, 3, 32)), badDim, badDim},
		{"cache width", ReshapeAndCache{}, with(plain, 3, tensor.Of(f16, 3, 16, 2, 33)), badDim, badDim},
		{"blocks", ReshapeAndCache{}, with(plain, 3, tensor.Of(f16, 4, 16, 2, 32)), badDim, badDim},
		{"block size", ReshapeAndCache{}, with(plain, 3, tensor.Of(f16, 3, 8, 2, 32)), badDim, badDim},
		{"layout", ReshapeAndCache{}, with(plain, 2, nz(f16, 3, 16, 2, 32)), status.ErrInvalidTensorIniMatch, status.ErrInvalidTensorIniMatch},
		{"f32", ReshapeAndCache{}, []tensor.Desc{tensor.Of(f32, 4, 2, 32), tensor.Of(f32, 4, 2, 32), tensor.Of(f32, 3, 16, 2, 32), tensor.Of(f32, 3, 16, 2, 32), tensor.Of(i32, 4)}, status.ErrInvalidTensorIniMatch, status.OK},
		{"nz", ReshapeAndCache{KVCacheCfg: KeyAndValueNZ}, blocked, status.OK, status.OK},
		{"nz pieces", ReshapeAndCache{KVCacheCfg: KeyAndValueNZ}, with(blocked, 2, nz(f16, 3, 2, 16, 32)), badDim, badDim},
		{"nz row", ReshapeAndCache{KVCacheCfg: KeyAndValueNZ}, with(blocked, 2, nz(f16, 3, 5, 16, 16)), badDim, badDim},
		{"nz block size", ReshapeAndCache{KVCacheCfg: KeyAndValueNZ}, with(blocked, 2, nz(f16, 3, 4, 8, 16), 3, nz(f16, 3, 4, 8, 16)), badDim, status.OK},
		{"nz block sizes", ReshapeAndCache{KVCacheCfg: KeyAndValueNZ}, with(blocked, 3, nz(f16, 3, 4, 32, 16)), badDim, badDim},
		{"heads", ReshapeAndCache{CompressType: CompressKVHead}, heads, status.OK, status.OK},
		{"heads entries", ReshapeAndCache{CompressType: CompressKVHead}, with(heads, 4, tensor.Of(i32, 5)), badDim, badDim},
		{"heads windows", ReshapeAndCache{CompressType: CompressKVHead}, with(heads, 5, tensor.Of(i32, 5)), badDim, badDim},
		{"heads of a cache", ReshapeAndCache{CompressType: CompressKVHead}, with(heads, 2, tensor.Of(f16, 3, 16, 2, 32)), badDim, badDim},
		{"heads sizes", ReshapeAndCache{CompressType: CompressKVHead}, with(heads, 1, tensor.Of(f16, 4, 2, 64), 3, tensor.Of(f16, 3, 16, 1, 64)), badDim, status.OK},
		{"heads align", ReshapeAndCache{CompressType: CompressKVHead}, with(heads, 0, tensor.Of(f16, 4, 2, 8), 1, tensor.Of(f16, 4, 2, 8), 2, tensor.Of(f16, 3, 16, 1, 8), 3, tensor.Of(f16, 3, 16, 1, 8)), badDim, status.OK},
	} {
		t.Run(c.name, func(t *testing.T) {
			for p, want := range map[*operation.Profile]status.Code{operation.Board910B(): c.board, operation.Native(): c.native} {
				_, err := operation.InferShape(c.spec, p, c.in)
				assert.Equal(t, want, status.CodeOf(err), "%s: %v", p.Name(), err)
			}
		})
	}
	err := operation.CheckSetup(ReshapeAndCache{}, operation.Board910B(), plain, []tensor.Desc{plain[2], tensor.Of(f16, 4, 12, 2, 32)}, nil)
	assert.ErrorIs(t, err, badDim)
	assert.ErrorContains(t, err, "output 1 (vCache)")
}

// A slot behind the cache is an error that names position, slot and size, and
// nothing is written; -1 is skipped.
func TestSlotOutsideCache(t *testing.T) {
	d := []tensor.Desc{tensor.Of(tensor.Float32, 2, 1, 2), tensor.Of(tensor.Float32, 2, 1, 2), tensor.Of(tensor.Float32, 2, 4, 1, 2), tensor.Of(tensor.Float32, 2, 4, 1, 2)}
	x := newProblem(ReshapeAndCache{}, d, []int32{-1, 8})
	env := &kernelgraph.Env{Machine: kernel.Machine{Cores: 1}, Copy: move.Copy}
	g, err := operation.Lower(x.spec, operation.Native(), env, x.in, d[2:4], nil)
	require.NoError(t, err)
	n := g.Nodes[len(g.Nodes)-1]
	a := device.Args{Blocks: 1, Tiling: device.BytesOf(make([]uint64, n.TilingSize/8))}
	before := bytes.Clone(x.data[2])
	for _, i := range []int{0, 1, 4, 2, 3, 2, 3} {
		a.Buffers = append(a.Buffers, device.Wrap(x.data[i]))
	}
	_, err = n.Kernel.Tile(&n.Problem, a.Tiling)
	require.NoError(t, err)
	err = n.Kernel.Program().Run(&a, 0)
	require.ErrorIs(t, err, status.ErrRuntimeFail)
	assert.ErrorContains(t, err, "position 1: want a slot below 8, got 8")
	assert.Equal(t, before, x.data[2])
}

// The same operation with other data, other slots and other parameters gives
// what a first call gives.
func TestRunsShareNothing(t *testing.T) {
	f16 := tensor.Float16
	d := []tensor.Desc{tensor.Of(f16, 2, 1, 32), tensor.Of(f16, 2, 1, 32), tensor.Of(f16, 2, 4, 1, 32), tensor.Of(f16, 2, 4, 1, 32)}
	for _, slots := range [][]int32{{0, 1}, {7, 3}, {0, 1}, {2, 2}} {
		x := newProblem(ReshapeAndCache{}, d, slots)
		r := optest.Run(t, optest.Case{Spec: x.spec, In: x.in, Data: x.data})
		require.True(t, bytes.Equal(x.want(0, 2), r.Out[0]), fmt.Sprint(slots))
		lens := newProblem(ReshapeAndCache{CompressType: CompressKVHead}, d, []int32{slots[0]}, []int32{1}, []int32{2})
		r = optest.Run(t, optest.Case{Spec: lens.spec, In: lens.in, Data: lens.data})
		want := bytes.Clone(lens.data[2])
		copy(want[slots[0]*64:], lens.data[0][64:])
		require.True(t, bytes.Equal(want, r.Out[0]), fmt.Sprint(slots))
	}
}
