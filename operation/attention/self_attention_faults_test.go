package attention

import (
	"math"
	"math/rand/v2"
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

// sample is one head of size 2 with three keys: q = [1,0], K = [[1,0],[0,1],[1,1]],
// V = [[1,2],[3,4],[5,6]], scale 1/sqrt(2).
var (
	sampleQ    = []float64{1, 0}
	sampleK    = []float64{1, 0, 0, 1, 1, 1}
	sampleV    = []float64{1, 2, 3, 4, 5, 6}
	sampleOver = map[int64][]float64{0: {0, 0}, 1: {1, 2}, 2: {1.6604769, 2.6604769}, 3: {3, 4}}
)

// runRaw runs a spec on float32 and int32 operands.
func runRaw(t *testing.T, spec SelfAttention, operands ...any) []float64 {
	t.Helper()
	c := optest.Case{Spec: spec}
	for i := 0; i < len(operands); i += 2 {
		dims := operands[i].([]int64)
		switch v := operands[i+1].(type) {
		case []float64:
			c.In = append(c.In, tensor.Of(tensor.Float32, dims...))
			c.Data = append(c.Data, encode(v, tensor.Float32))
		case []int32:
			c.In = append(c.In, tensor.Of(tensor.Int32, dims...))
			c.Data = append(c.Data, device.BytesOf(v))
		}
	}
	return floatsOf(optest.Run(t, c).Out[0], tensor.Float32)
}

func dims(d ...int64) []int64 { return d }

func sampleSpec(calc SelfCalcType, mask SelfMaskType) SelfAttention {
	p := DefaultSelfAttention()
	p.HeadNum, p.CalcType, p.MaskType, p.QKScale = 1, calc, mask, float32(1/math.Sqrt2)
	return p
}

// decodeSample decodes one row per sequence over the first keys of the sample;
// the rest of the cache is NaN.
func decodeSample(t *testing.T, rows, keys []int32) []float64 {
	n := int64(len(keys))
	k, v := slices.Repeat([]float64{math.NaN()}, int(n)*8), slices.Repeat([]float64{math.NaN()}, int(n)*8)
	var q []float64
	for i, l := range keys {
		copy(k[i*8:], sampleK[:l*2])
		copy(v[i*8:], sampleV[:l*2])
		for range rows[i] {
			q = append(q, sampleQ...)
		}
	}
	tokens := max(int64(len(q))/2, 1)
	q = append(q, make([]float64, int(tokens)*2-len(q))...)
	p := sampleSpec(SelfDecoder, SelfMaskNone)
	p.KVCacheCfg = KVBypass
	return runRaw(t, p, dims(tokens, 2), q, dims(1, n, 4, 2), k, dims(1, n, 4, 2), v,
		dims(n), keys, dims(n), rows, dims(1), []int32{0})
}

func TestSampleLengths(t *testing.T) {
	for _, keys := range [][]int32{{1, 2, 3}, {3, 0, 1}, {2, 0, 3}, {0, 0, 3}} {
		rows := []int32{1, 1, 1}
		for i, k := range keys {
			rows[i] = min(k, 1)
		}
		got, at := decodeSample(t, rows, keys), 0
		for i, k := range keys {
			if rows[i] == 1 {
				assert.InDeltaSlice(t, sampleOver[int64(k)], got[at:at+2], 1e-6, "keys %v, sequence %d", keys, i)
				at += 2
			}
		}
	}
}

// TestEmptySequencesGiveNoRows has empty sequences first, last and in between.
func TestEmptySequencesGiveNoRows(t *testing.T) {
	got := decodeSample(t, []int32{0, 1, 0, 1}, []int32{0, 3, 0, 2})
	require.Len(t, got, 4)
	assert.InDeltaSlice(t, sampleOver[3], got[:2], 1e-6)
	assert.InDeltaSlice(t, sampleOver[2], got[2:], 1e-6)
	for _, size := range []int64{64, 128, 256} {
		d := newSelfData(sampleSpec(SelfPAEncoder, SelfMaskCausal), uint64(size))
		d.rows, d.keys, d.pair = []int64{0, 2, 0, 1}, []int64{1, 2, 1, 1}, true
		d.dk, d.dv = size, size
		d.build()
		out, _ := d.run(t, operation.Native())
		d.check(t, out)
	}
}

func TestOnlyEmptySequences(t *testing.T) {
	assert.Equal(t, []float64{0, 0}, decodeSample(t, []int32{0, 0}, []int32{0, 0}))
	assert.Equal(t, []float64{0, 0}, decodeSample(t, []int32{0, 0}, []int32{2, 3}))
}

// TestRowsOutsideLengthsDoNotMatter compares 21 rows with 24 of which 3 are NaN.
func TestRowsOutsideLengthsDoNotMatter(t *testing.T) {
	for _, mask := range []SelfMaskType{SelfMaskNone, SelfMaskCausal} {
		rng := rand.New(rand.NewPCG(4, 4))
		x := make([]float64, 24*4)
		for i := range x {
			x[i] = rng.Float64()
			if i >= 21*4 {
				x[i] = math.NaN()
			}
		}
		lens := []int32{5, 0, 16}
		p := sampleSpec(SelfPAEncoder, mask)
		p.HeadNum = 2
		long := runRaw(t, p, dims(24, 4), x, dims(24, 4), x, dims(24, 4), x, dims(3), lens)
		short := runRaw(t, p, dims(21, 4), x[:84], dims(21, 4), x[:84], dims(21, 4), x[:84], dims(3), lens)
		assert.Equal(t, short, long[:84])
		assert.Equal(t, make([]float64, 12), long[84:])
	}
}

// maskedSample runs the sample's three keys as an encoder with a mask of three
// rows; every query is q, or [0,1] when turned.
func maskedSample(t *testing.T, p SelfAttention, turned bool, mask []float64) []float64 {
	q := slices.Concat(sampleQ, sampleQ, sampleQ)
	if turned {
		slices.Reverse(q)
	}
	return runRaw(t, p, dims(3, 2), q, dims(3, 2), sampleK, dims(3, 2), sampleV, dims(3, 3), mask, dims(1), []int32{3})
}

func TestMaskWithFewOrNoKeys(t *testing.T) {
	h := math.Inf(-1)
	got := maskedSample(t, sampleSpec(SelfPAEncoder, SelfMaskNorm), false, []float64{h, h, h, h, 0, h, 0, 0, 0})
	assert.Equal(t, []float64{0, 0}, got[:2], "no key open")
	assert.Equal(t, []float64{3, 4}, got[2:4], "one key open")
	assert.InDeltaSlice(t, sampleOver[3], got[4:], 1e-6, "all keys open")

	p := sampleSpec(SelfPAEncoder, SelfMaskNorm)
	p.IsTriuMask = 1
	got = maskedSample(t, p, false, []float64{h, 0, 0, 0, 0, 0, 0, 0, 0})
	assert.Equal(t, []float64{0, 0}, got[:2], "row 0 is causal and its key is masked")
	assert.InDeltaSlice(t, sampleOver[2], got[2:4], 1e-6)
}

// TestFiniteMaskOnAWholeRow weighs all keys alike.
func TestFiniteMaskOnAWholeRow(t *testing.T) {
	for _, m := range []float64{-65504, -1e9, -3e38, -math.MaxFloat32} {
		got := maskedSample(t, sampleSpec(SelfPAEncoder, SelfMaskNorm), true, []float64{m, m, m, m, 0, m, 0, 0, 0})
		assert.InDeltaSlice(t, []float64{3, 4, 3, 4, 3.4066726, 4.4066726}, got, 1e-6, "mask %v", m)
	}
	d := newSelfData(sampleSpec(SelfPAEncoder, SelfMaskNorm), 1)
	d.dtype, d.maskT = tensor.BFloat16, tensor.BFloat16
	d.maskValue = func(rng *rand.Rand) float64 { return float64(rng.IntN(2)) }
	d.build()
	got, _ := d.run(t, operation.Native())
	d.check(t, got)
}

// TestHiddenKeysStayHiddenWhateverTheScale has scales that turn -Inf into NaN or
// +Inf when they are multiplied with it.
func TestHiddenKeysStayHiddenWhateverTheScale(t *testing.T) {
	h := math.Inf(-1)
	for _, scale := range []float32{0, -1} {
		p := sampleSpec(SelfUndefined, SelfMaskNorm)
		p.QScale, p.QKScale = 0, scale
		cache := slices.Repeat([]float64{math.NaN()}, 6)
		got := runRaw(t, p, dims(3, 2), slices.Repeat(sampleQ, 3), dims(3, 2), sampleK, dims(3, 2), sampleV,
			dims(1, 1, 3, 2), cache, dims(1, 1, 3, 2), cache, dims(3, 3), []float64{h, 0, 0, h, h, h, 0, h, h},
			dims(1), []int32{3}, dims(1), []int32{3}, dims(1), []int32{0})
		assert.InDeltaSlice(t, []float64{4, 5, 0, 0, 1, 2}, got, 1e-6, "scale %v", scale)
	}
}

// TestMaskShapes has masks that broadcast and masks that do not fit.
func TestMaskShapes(t *testing.T) {
	for _, x := range []struct {
		mask SelfMaskType
		dims []int64
		text string
	}{
		{SelfMaskNorm, dims(1, 1, 1, 5), ""},
		{SelfMaskNorm, dims(2, 1, 1, 5), ""},
		{SelfMaskNorm, dims(2, 4, 5, 5), ""},
		{SelfMaskALiBi, dims(4, 5, 5), ""},
		{SelfMaskALiBi, dims(1, 4, 5, 5), ""},
		{SelfMaskNorm, dims(4, 5, 5), "want [rows,columns], [2,rows,columns] or [2,4,rows,columns], where leading dimensions and rows may be 1, got f32[4,5,5]"},
		{SelfMaskALiBi, dims(2, 5, 5), "want [rows,columns], [4,rows,columns] or [2,4,rows,columns], where leading dimensions and rows may be 1, got f32[2,5,5]"},
		{SelfMaskNorm, dims(16, 1, 1, 5), "got f32[16,1,1,5]"},
	} {
		p := sampleSpec(SelfPAEncoder, x.mask)
		p.HeadNum = 4
		rows := tensor.Of(tensor.Float32, 8, 16)
		in := []tensor.Desc{rows, rows, rows, tensor.Of(tensor.Float32, x.dims...), tensor.Of(tensor.Int32, 2)}
		_, err := operation.InferShape(p, operation.Native(), in)
		if x.text == "" {
			require.NoError(t, err, "%v", x.dims)
			continue
		}
		require.ErrorIs(t, err, status.ErrInvalidTensorDim)
		assert.ErrorContains(t, err, x.text)
		assert.ErrorContains(t, err, "input 3 (attentionMask)")
	}
}

func TestMaskSmallerThanASequence(t *testing.T) {
	p := sampleSpec(SelfPAEncoder, SelfMaskNorm)
	rows := tensor.Of(tensor.Float32, 5, 2)
	in := []tensor.Desc{rows, rows, rows, tensor.Of(tensor.Float32, 4, 4), tensor.Of(tensor.Int32, 1)}
	values := func(n int64) [][]int64 { return [][]int64{4: {n}} }
	out, err := operation.InferShape(p, operation.Native(), in)
	require.NoError(t, err)
	require.NoError(t, operation.CheckSetup(p, operation.Native(), in, out, values(4)))
	err = operation.CheckSetup(p, operation.Native(), in, out, values(5))
	require.ErrorIs(t, err, status.ErrInvalidTensorDim)
	assert.ErrorContains(t, err, "mask: want at least 5 rows and 5 columns for sequence 0, got 4x4")
}

// TestALiBiRanksAgree gives a mask per head in rank 3 and, repeated, in rank 4.
func TestALiBiRanksAgree(t *testing.T) {
	make3 := func() *selfData {
		d := newSelfData(sampleSpec(SelfPAEncoder, SelfMaskALiBi), 17)
		d.spec.HeadNum = 2
		d.rows, d.keys, d.lead = []int64{3, 3}, []int64{3, 3}, "h"
		d.maskValue = func(rng *rand.Rand) float64 { return rng.Float64() }
		return d
	}
	three := make3().build()
	got3, _ := three.run(t, operation.Native())
	four := make3().build()
	mask := four.spec.ports().mask
	d := four.in[mask]
	four.in[mask] = d.WithShape(2, 2, d.Dim(1), d.Dim(2))
	four.data[mask] = slices.Concat(four.data[mask], four.data[mask])
	got4, _ := four.run(t, operation.Native())
	assert.Equal(t, got3, got4)
	three.check(t, got3)
}

// TestWindowEnds counts a window with the row's own key: a window of 3 shows
// keys 3, 4 and 5 to query 5; one of the whole length is causal.
func TestWindowEnds(t *testing.T) {
	const n = 6
	v := make([]float64, n)
	for i := range v {
		v[i] = math.Pow(10, float64(i))
	}
	zeros := make([]float64, n)
	run := func(window int) []float64 {
		p := sampleSpec(SelfPAEncoder, SelfMaskSlidingWindowNorm)
		p.WindowSize = window
		return runRaw(t, p, dims(n, 1), zeros, dims(n, 1), zeros, dims(n, 1), v, dims(n, n), make([]float64, n*n), dims(1), []int32{n})
	}
	causal := runRaw(t, sampleSpec(SelfPAEncoder, SelfMaskCausal), dims(n, 1), zeros, dims(n, 1), zeros, dims(n, 1), v, dims(1), []int32{n})
	assert.InDelta(t, 37000, run(3)[5], 0.1)
	assert.InDeltaSlice(t, v, run(1), 0.1)
	assert.Equal(t, causal, run(n))
	assert.Equal(t, causal, run(n+1))
	for _, w := range []int{0, -1} {
		p := sampleSpec(SelfPAEncoder, SelfMaskSlidingWindowNorm)
		p.WindowSize = w
		require.ErrorIs(t, p.Validate(), status.ErrInvalidParam)
	}
}
