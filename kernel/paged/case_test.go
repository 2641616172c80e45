package paged

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/kernel/kerneltest"
	"goatb/kernel/parts"
	"goatb/tensor"
)

// setup describes a problem in words of the operation; build makes the
// operands.
type setup struct {
	params               Params
	q, kv, mask, out     tensor.DType
	tokens, dk, dv       int64
	bs, columns, blocks  int64
	contexts, queryLens  []int64
	statuses             []int64
	maskShape            []int64
	logN, razor, offsets bool
	scaleType            tensor.DType
	// hide is the share of mask elements that are -Inf.
	hide float64
	seed uint64
	// order permutes the blocks.
	order bool
}

// problem is a built setup: descriptors, bytes and the same data as float64.
type problem struct {
	setup
	p      kernel.Problem
	in     [][]byte
	values [][]float64
}

func (s setup) build() *problem {
	r := rand.New(rand.NewPCG(s.seed, 9))
	b := &problem{setup: s, in: make([][]byte, NumInputs), values: make([][]float64, NumInputs)}
	b.p.In = make([]tensor.Desc, NumInputs)
	a := &b.params
	heads := a.KVHeads
	if a.PerHead {
		heads = 1
	}
	cache := func(width int64) []int64 {
		if a.HeadMajor {
			return []int64{s.blocks, heads, s.bs, width}
		}
		return []int64{s.blocks, s.bs, heads, width}
	}
	data := func(t tensor.DType) func() float64 {
		if t == tensor.Int8 {
			return func() float64 { return float64(r.IntN(256) - 128) }
		}
		return func() float64 { return r.NormFloat64() }
	}
	b.set(InQuery, s.q, data(s.q), s.tokens, a.Heads, s.dk)
	b.set(InKey, s.kv, data(s.kv), cache(s.dk)...)
	if a.ValueDim == 0 {
		b.set(InValue, s.kv, data(s.kv), cache(s.dv)...)
	}
	n := int64(len(s.contexts))
	b.tables(r)
	if s.maskShape != nil {
		b.set(InMask, s.mask, func() float64 {
			if r.Float64() < s.hide {
				return math.Inf(-1)
			}
			return r.NormFloat64()
		}, s.maskShape...)
	}
	if s.razor {
		b.set(InRazor, tensor.Float32, r.NormFloat64, s.blocks, s.bs)
	}
	if s.logN {
		b.set(InLogN, tensor.Float32, func() float64 { return 1 + r.Float64() }, n)
	}
	b.scales(r)
	b.p.Params = *a
	b.value(s.contexts, true)
	b.value(s.queryLens, a.QueryLens)
	b.value(s.statuses, a.RunStatus)
	b.p.Out = []tensor.Desc{tensor.Of(s.out, s.tokens, a.Heads, s.dv)}
	return b
}

// tables gives every sequence its own blocks as far as they go, in an order
// that is not the order of the cache.
func (b *problem) tables(r *rand.Rand) {
	n := int64(len(b.contexts)) * b.columns
	perm := r.Perm(int(b.blocks))
	next := 0
	b.set(InTables, tensor.Int32, func() float64 {
		next++
		return float64(perm[(next-1)%len(perm)])
	}, n/b.columns, b.columns)
}

func (b *problem) scales(r *rand.Rand) {
	a := &b.params
	switch a.Quant {
	case Dequant:
		st := b.scaleType
		for i, w := range map[int]int64{InKeyScale: b.dk, InValueScale: b.dv} {
			b.set(i, tensor.Float32, func() float64 { return 0.005 + 0.01*r.Float64() }, a.KVHeads*w)
			if st == tensor.Int64 {
				v := make([]int64, a.KVHeads*w)
				for j := range v {
					v[j] = int64(math.Float32bits(float32(b.values[i][j])))
				}
				b.in[i], b.p.In[i] = device.BytesOf(v), tensor.Of(st, a.KVHeads*w)
			}
			if b.offsets {
				b.set(i+1, tensor.Int32, func() float64 { return float64(r.IntN(41) - 20) }, a.KVHeads*w)
			}
		}
	case Offline, Online:
		b.set(InKeyScale, tensor.Float32, func() float64 { return 1e-4 * (1 + r.Float64()) }, a.Heads)
		b.set(InValueScale, tensor.Float32, func() float64 { return 0.01 * (1 + r.Float64()) }, a.Heads)
		if a.Quant == Offline {
			b.set(InProbScale, tensor.Float32, func() float64 { return 60 + 60*r.Float64() }, a.Heads)
		}
	}
}

func (b *problem) set(i int, t tensor.DType, f func() float64, dims ...int64) {
	d := tensor.Of(t, dims...)
	v := make([]float64, d.Numel())
	for j := range v {
		v[j] = f()
	}
	b.p.In[i], b.in[i] = d, tensor.FromFloat64s(t, v)
	b.values[i], _ = tensor.Float64s(b.in[i], t)
}

func (b *problem) value(v []int64, there bool) {
	if there {
		b.p.Val = append(b.p.Val, tensor.Of(tensor.Int32, int64(len(v))))
		b.p.Values = append(b.p.Values, v)
	}
}

// attend runs Attend.
func (b *problem) attend(t testing.TB) []byte {
	t.Helper()
	k, _, err := Attend.Select(&b.p, kernel.Filter{})
	require.NoError(t, err)
	return kerneltest.Run(t, kerneltest.Case{Kernel: k, Problem: b.p, In: b.in})[0]
}

// split runs Parts and then parts.Merge.
func (b *problem) split(t testing.TB) []byte {
	t.Helper()
	p := b.p
	var g geometry
	require.NoError(t, g.measure(&p, b.params))
	p.Out = []tensor.Desc{parts.Desc(b.tokens*b.params.Heads, parts.Count(g.MaxContext), b.dv)}
	k, _, err := Parts.Select(&p, kernel.Filter{})
	require.NoError(t, err)
	apart := kerneltest.Run(t, kerneltest.Case{Kernel: k, Problem: p, In: b.in, Keep: true})
	m := kernel.Problem{In: p.Out, Out: b.p.Out, Params: struct{}{}}
	k, _, err = parts.Merge.Select(&m, kernel.Filter{})
	require.NoError(t, err)
	return kerneltest.Run(t, kerneltest.Case{Kernel: k, Problem: m, In: apart})[0]
}

// at reads element i of input n.
func (b *problem) at(n int, i int64) float64 { return b.values[n][i] }

// cacheAt reads a channel of a cached row.
func (b *problem) cacheAt(in int, block, slot, head, c int64) float64 {
	d := &b.p.In[in]
	if b.params.PerHead {
		head = 0
	}
	i := ((block*d.Dim(1)+slot)*d.Dim(2) + head) * d.Dim(3)
	if b.params.HeadMajor {
		i = ((block*d.Dim(1)+head)*d.Dim(2) + slot) * d.Dim(3)
	}
	return b.at(in, i+c)
}

// keyAt and valueAt read channel c of position j, dequantised by channel.
func (b *problem) keyAt(s, head, j, c int64) float64 {
	return b.channel(InKey, InKeyScale, s, head, j, c, b.dk)
}

func (b *problem) valueAt(s, head, j, c int64) float64 {
	in := InValue
	if b.params.ValueDim > 0 {
		in = InKey
	}
	return b.channel(in, InValueScale, s, head, j, c, b.dv)
}

func (b *problem) channel(in, scale int, s, head, j, c, width int64) float64 {
	block := int64(b.at(InTables, s*b.columns+j/b.bs))
	v := b.cacheAt(in, block, j%b.bs, head, c)
	if b.params.Quant == Dequant {
		if b.values[scale+1] != nil {
			v += b.at(scale+1, head*width+c)
		}
		v *= b.at(scale, head*width+c)
	}
	return v
}

// maskAt reads the mask for a query row: its sequence, its token, its position.
func (b *problem) maskAt(s, token, position, head, j int64) float64 {
	dims := b.maskShape
	pick := func(axis int, i int64) int64 {
		if dims[axis] == 1 {
			return 0
		}
		return i
	}
	if b.params.PerHead {
		s /= b.params.KVHeads
	}
	var row int64
	switch {
	case b.params.Mask == ByToken:
		row = token
	case b.params.Mask == ByPosition && len(dims) == 2:
		row = position
	case b.params.Mask == ByPosition:
		row = pick(0, s)*dims[1] + pick(1, position)
	case len(dims) == 2:
		row = pick(0, s)
	default:
		row = pick(0, s)*dims[1] + pick(1, head)
	}
	return b.at(InMask, row*dims[len(dims)-1]+j)
}
