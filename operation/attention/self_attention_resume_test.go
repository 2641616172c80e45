package attention

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/operation"
	"goatb/operation/optest"
	"goatb/status"
	"goatb/tensor"
)

// resume runs a cached attention in chunks of the given sizes over one sequence
// and returns the joined outputs. mask, when not nil, holds the whole
// sequence's mask of n rows.
func resume(t *testing.T, p SelfAttention, dtype tensor.DType, x, mask []float64, slots int64, chunks ...int64) []float64 {
	t.Helper()
	width := int64(p.HeadNum) * 4
	cache := encode(slices.Repeat([]float64{math.NaN()}, int(slots*width)), dtype)
	cached := [][]byte{cache, slices.Clone(cache)}
	n := int64(len(x)) / width
	var out []float64
	done := int64(0)
	for _, c := range chunks {
		total := done + c
		rows := encode(x[done*width:total*width], dtype)
		row, store := tensor.Of(dtype, c, width), tensor.Of(dtype, 1, 1, slots, width)
		k := optest.Case{Spec: p, In: []tensor.Desc{row, row, row, store, store}, Data: [][]byte{rows, rows, rows, cached[0], cached[1]}}
		if mask != nil {
			var part []float64
			for r := done; r < total; r++ {
				part = append(part, mask[r*n:r*n+total]...)
			}
			k.In, k.Data = append(k.In, tensor.Of(dtype, c, total)), append(k.Data, encode(part, dtype))
		}
		for _, v := range []int32{int32(total), int32(c), 0} {
			k.In, k.Data = append(k.In, tensor.Of(tensor.Int32, 1)), append(k.Data, device.BytesOf([]int32{v}))
		}
		res := optest.Run(t, k)
		cached = res.In[3:5]
		out = append(out, floatsOf(res.Out[0], dtype)...)
		done = total
	}
	return out
}

// TestResumedPrefill compares 4 tokens at once with 2+2 and 1+1+1+1 over a
// cache, causal by kind, by a chunk of the whole mask, and in a ring.
func TestResumedPrefill(t *testing.T) {
	x := make([]float64, 4*8)
	for i := range x {
		x[i] = math.Sin(float64(i))
	}
	mask := make([]float64, 16)
	for i := range mask {
		if i%4 > i/4 {
			mask[i] = math.Inf(-1)
		}
	}
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
		for i, c := range []struct {
			mask  SelfMaskType
			plain []float64
			slots int64
			cache CacheType
		}{{SelfMaskCausal, nil, 5, CacheNorm}, {SelfMaskNorm, mask, 5, CacheNorm}, {SelfMaskSlidingWindowNorm, make([]float64, 16), 2, CacheSWA}} {
			p := DefaultSelfAttention()
			p.HeadNum, p.MaskType, p.CacheType = 2, c.mask, c.cache
			if c.cache == CacheSWA {
				p.WindowSize = 2
			}
			whole := resume(t, p, dtype, x, c.plain, c.slots, 4)
			for _, chunks := range [][]int64{{2, 2}, {1, 1, 1, 1}, {3, 1}} {
				assert.InDeltaSlice(t, whole, resume(t, p, dtype, x, c.plain, c.slots, chunks...), 1e-6, "case %d, %s, chunks %v", i, dtype, chunks)
			}
		}
	}
}

// TestSequencesShorterThanAPage has two sequences of equal data in two pages.
func TestSequencesShorterThanAPage(t *testing.T) {
	p := sampleSpec(SelfPrefixEncoder, SelfMaskCausal)
	p.IsTriuMask, p.KernelType = 1, KernelHighPrecision
	nan := math.NaN()
	got := runRaw(t, p, dims(2, 2), []float64{1, 0, 1, 0},
		dims(3, 2, 1, 2), []float64{1, 0, nan, nan, nan, nan, nan, nan, 1, 0, nan, nan},
		dims(3, 2, 1, 2), []float64{1, 2, nan, nan, nan, nan, nan, nan, 1, 2, nan, nan},
		dims(2, 1), []int32{2, 0}, dims(2), []int32{1, 1}, dims(2), []int32{1, 1})
	assert.Equal(t, []float64{1, 2, 1, 2}, got)
}

func TestInferShapeKeepsTheQuery(t *testing.T) {
	p := DefaultSelfAttention()
	p.CalcType, p.InputLayout = SelfPAEncoder, LayoutBNSD
	for _, q := range []tensor.Desc{tensor.Of(tensor.BFloat16, 1, 1, 1, 1), tensor.Of(tensor.BFloat16, 1, 16, 197, 64)} {
		p.HeadNum = int(q.Dim(1))
		for _, profile := range []*operation.Profile{operation.Native(), operation.Board910B()} {
			out, err := operation.InferShape(p, profile, []tensor.Desc{q, q, q, tensor.Of(tensor.Int32, 1)})
			require.NoError(t, err)
			assert.Equal(t, []tensor.Desc{q}, out)
		}
	}
}

// TestHeadSizes runs sizes that are no power of two, and a large one, in every
// layout.
func TestHeadSizes(t *testing.T) {
	for _, c := range []Combination{
		{CalcType: SelfPAEncoder}, {CalcType: SelfPAEncoder, InputLayout: LayoutBNSD},
		{CalcType: SelfDecoder, MaskType: SelfMaskNorm, KVCacheCfg: KVBypass, InputLayout: LayoutBNSD},
		{CalcType: SelfEncoder, MaskType: SelfMaskNone}, {CalcType: SelfPrefixEncoder, MaskType: SelfMaskCausal},
	} {
		for _, size := range []int64{72, 80, 96, 100, 256, 600} {
			d := newSelfData(c.Spec(2, 1), uint64(size))
			d.rows, d.dk, d.dv = []int64{5, 1}, size, size
			d.keys = []int64{5, 1}
			d.spec.QKScale = float32(1 / math.Sqrt(float64(size)))
			d.build()
			got, _ := d.run(t, operation.Native())
			d.check(t, got)
		}
	}
}

// TestEveryParameterCounts changes one parameter at a time of a call whose
// shapes stay: each has its own result.
func TestEveryParameterCounts(t *testing.T) {
	base := func() *selfData {
		d := newSelfData(sampleSpec(SelfPAEncoder, SelfMaskNormCompress), 23)
		d.spec.HeadNum, d.spec.KVHeadNum = 4, 2
		d.rows, d.keys = []int64{3, 6}, []int64{3, 6}
		return d
	}
	first := base().build()
	want, _ := first.run(t, operation.Native())
	first.check(t, want)
	for name, change := range map[string]func(p *SelfAttention){
		"qkScale": func(p *SelfAttention) { p.QKScale = 0.1 },
		"qScale":  func(p *SelfAttention) { p.QScale = 0.1 },
		"clamp":   func(p *SelfAttention) { p.ClampType, p.ClampMax = ClampMinMax, 0.1 },
		"mask":    func(p *SelfAttention) { p.MaskType, p.WindowSize = SelfMaskSlidingWindowNorm, 2 },
	} {
		d := base()
		change(&d.spec)
		d.maskValue = func(*randSource) float64 { return 0 }
		d.build()
		got, _ := d.run(t, operation.Native())
		assert.NotEqual(t, want, got, name)
		d.check(t, got)
	}
}

// TestBlockTableIsChecked has a block number beyond the cache.
func TestBlockTableIsChecked(t *testing.T) {
	d := newSelfData(Combination{CalcType: SelfPrefixEncoder, MaskType: SelfMaskCausal}.Spec(2, 1), 1).build()
	port := d.spec.ports().table
	device.View[int32](d.data[port])[0] = 99
	_, err := runNodes(t, d)
	require.ErrorIs(t, err, status.ErrRuntimeFail)
	assert.ErrorContains(t, err, "block table: block 0 of sequence 0: want 0 to 7, the cache has 8 blocks, got 99")
}
