package attention

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/operation"
	"goatb/operation/cache"
	"goatb/operation/optest"
	"goatb/status"
	"goatb/tensor"
)

// The sample of the tests below: three keys and values, a query [1,0] and the
// scale 1/sqrt(2). seenOf[n] is the result over the first n positions.
var (
	sampleKeys   = []float64{1, 0, 0, 1, 1, 1}
	sampleValues = []float64{1, 2, 3, 4, 5, 6}
	seenOf       = [][]float64{{0, 0}, {1, 2}, {1.6604769, 2.6604769}, {3, 4}}
)

// sampleCase makes a case over the sample: every sequence has its own copy of
// the first keys and values.
func sampleCase(spec PagedAttention, bs int64, contexts ...int64) *pagedCase {
	spec.HeadNum, spec.KVHeadNum, spec.QKScale = 1, 1, float32(1/math.Sqrt2)
	c := newPagedCase(spec, tensor.Float32, 1)
	c.dk, c.dv, c.bs, c.contexts, c.qLens, c.status = 2, 2, bs, contexts, nil, nil
	c.columns = (3 + bs - 1) / bs
	c.maskColumns = 3
	return c
}

// fill builds the case and writes the sample, NaN into unused slots.
func (c *pagedCase) fill() *pagedCase {
	c.build()
	for name, rows := range map[string][]float64{"kCache": sampleKeys, "vCache": sampleValues} {
		v := make([]float64, c.blocks*c.bs*2)
		for i := range v {
			v[i] = math.NaN()
		}
		for s := range c.contexts {
			for j := range min(c.contexts[s], int64(len(rows)/2)) {
				at := (c.block(int64(s), j)*c.bs + j%c.bs) * 2
				copy(v[at:at+2], rows[2*j:2*j+2])
			}
		}
		c.set(name, v...)
	}
	q := make([]float64, 2*c.tokens)
	for i := range c.tokens {
		q[2*i] = 1
	}
	c.set("query", q...)
	return c
}

func (c *pagedCase) want(t *testing.T, rows ...[]float64) {
	t.Helper()
	got, _ := c.run(t)
	require.Len(t, got, 2*len(rows))
	for i, r := range rows {
		assert.InDeltaSlice(t, r, got[2*i:2*i+2], 1e-6, "row %d of %v", i, got)
	}
}

// One operation over growing and shrinking contexts of equal shapes.
func TestPagedContextsOfOneShape(t *testing.T) {
	c := sampleCase(PagedAttention{}, 2, 3).fill()
	outs := map[int64][]byte{}
	for _, n := range []int64{1, 2, 3, 2} {
		c.set("contextLens", float64(n))
		c.want(t, seenOf[n])
		_, out := c.run(t)
		if before, ok := outs[n]; ok {
			assert.True(t, bytes.Equal(before, out))
		}
		outs[n] = out
	}
}

// Several query rows of a sequence, the last ones causal.
func TestPagedSpeculativeRows(t *testing.T) {
	for _, mask := range []PagedMaskType{PagedMaskSpec, PagedMaskNorm} {
		c := sampleCase(PagedAttention{CalcType: PagedCalcSpec, MaskType: mask}, 2, 3, 2)
		c.qLens = []int64{2, 1}
		c.fill()
		inf := math.Inf(-1)
		c.set("mask", 0, 0, inf, 0, 0, 0, 0, 0, inf)
		if mask == PagedMaskNorm {
			c.set("mask", 0, inf, inf, 0, 0, inf, 0, 0, 0)
		}
		c.want(t, seenOf[2], seenOf[3], seenOf[2])
	}
}

// An empty sequence shifts nothing, with values in the keys and without.
func TestPagedEmptyContext(t *testing.T) {
	c := sampleCase(PagedAttention{}, 2, 2, 0, 3).fill()
	c.want(t, seenOf[2], seenOf[0], seenOf[3])
	c = sampleCase(PagedAttention{}, 2, 0, 0).fill()
	c.want(t, seenOf[0], seenOf[0])

	m := newPagedCase(PagedAttention{HeadNum: 1, KVHeadNum: 1, QKScale: 0.7, MLAVHeadSize: 8}, tensor.Float32, 4)
	m.contexts = []int64{2, 0, 3}
	m.build().check(t)
}

// Sequences shorter than a block.
func TestPagedShortSequences(t *testing.T) {
	sampleCase(PagedAttention{}, 2, 1, 1).fill().want(t, seenOf[1], seenOf[1])
}

func TestPagedEmptyQueries(t *testing.T) {
	c := sampleCase(PagedAttention{CalcType: PagedCalcSpec, MaskType: PagedMaskSpec}, 2, 0, 3, 0, 2)
	c.qLens = []int64{0, 1, 0, 1}
	c.fill()
	c.set("mask", 0, 0, 0, 0, 0, 0)
	c.want(t, seenOf[3], seenOf[2])
}

// Query rows behind the last sequence have no influence and give zeros.
func TestPagedPaddingRows(t *testing.T) {
	spec := PagedAttention{CalcType: PagedCalcSpec, MaskType: PagedMaskSpec}
	short := sampleCase(spec, 2, 3, 3)
	short.qLens = []int64{20, 1}
	short.fill()
	zeros := make([]float64, 24*3)
	short.set("mask", zeros[:21*3]...)
	padded := sampleCase(spec, 2, 3, 3)
	padded.qLens = []int64{20, 4}
	padded.fill()
	q := append([]float64(nil), padded.values["query"]...)
	for i := 42; i < len(q); i++ {
		q[i] = math.NaN()
	}
	padded.set("query", q...)
	padded.set("mask", zeros...)
	padded.set("qSeqLens", 20, 1)
	padded.set("blockTables", short.values["blockTables"]...)
	padded.set("kCache", short.values["kCache"]...)
	padded.set("vCache", short.values["vCache"]...)
	want, _ := short.run(t)
	got, _ := padded.run(t)
	assert.Equal(t, want, got[:42])
	assert.Equal(t, make([]float64, 6), got[42:])
}

// The block size changes no bit, down to one position.
func TestPagedBlockSizes(t *testing.T) {
	var first []byte
	for _, bs := range []int64{1, 2, 3, 16, 128} {
		c := sampleCase(PagedAttention{}, bs, 5)
		c.columns, c.blocks = (5+bs-1)/bs, (5+bs-1)/bs
		c.build()
		k, v := make([]float64, c.blocks*bs*2), make([]float64, c.blocks*bs*2)
		for j := range int64(5) {
			at := (c.block(0, j)*bs + j%bs) * 2
			copy(k[at:], []float64{float64(j % 2), float64(1 - j%3)})
			copy(v[at:], []float64{float64(j), float64(2*j + 1)})
		}
		c.set("kCache", k...)
		c.set("vCache", v...)
		c.set("query", 1, 0.5)
		c.check(t)
		_, out := c.run(t)
		if first == nil {
			first = out
		}
		assert.Equal(t, first, out, "block size %d", bs)
	}
}

// Prefill that resumes from the cache gives what a prefill at once gives.
func TestPagedPrefillResumes(t *testing.T) {
	spec := PagedAttention{HeadNum: 4, KVHeadNum: 2, QKScale: 0.4, CalcType: PagedCalcSpec, MaskType: PagedMaskNorm}
	at := func(context, rows int64) *pagedCase {
		c := newPagedCase(spec, tensor.Float32, 11)
		c.bs, c.columns, c.blocks, c.contexts, c.qLens, c.maskColumns = 2, 2, 2, []int64{context}, []int64{rows}, 4
		c.build()
		mask := make([]float64, 16)
		for i := range mask {
			if i%4 > i/4 {
				mask[i] = math.Inf(-1)
			}
		}
		c.set("mask", mask...)
		return c
	}
	whole := at(4, 4)
	rows, _ := whole.run(t)
	width := 4 * whole.dk
	for _, half := range []int64{0, 1} {
		c := at(2+2*half, 2)
		c.set("query", whole.values["query"][half*2*width:(half+1)*2*width]...)
		for _, name := range []string{"kCache", "vCache", "blockTables"} {
			c.set(name, whole.values[name]...)
		}
		got, _ := c.run(t)
		assert.Equal(t, rows[half*2*4*c.dv:(half+1)*2*4*c.dv], got)
	}
}

// Rows of a mask with nothing, one and everything open.
func TestPagedMaskRows(t *testing.T) {
	inf := math.Inf(-1)
	c := sampleCase(PagedAttention{MaskType: PagedMaskNorm}, 2, 3, 3, 3).fill()
	c.set("mask", inf, inf, inf, inf, 0, inf, 0, 0, 0)
	c.want(t, []float64{0, 0}, []float64{3, 4}, seenOf[3])
	// A causal row whose own key is hidden as well sees nothing.
	c = sampleCase(PagedAttention{MaskType: PagedMaskSpec, CalcType: PagedCalcSpec}, 2, 3)
	c.qLens = []int64{3}
	c.fill()
	c.set("mask", inf, inf, inf, inf, 0, inf, inf, 0, 0)
	got, _ := c.run(t)
	assert.Equal(t, []float64{0, 0, 3, 4}, got[:4])
}

// Finite masks are numbers like any other: where they swallow the scores the
// weights are uniform, otherwise the scores decide.
func TestPagedFiniteMask(t *testing.T) {
	c := sampleCase(PagedAttention{MaskType: PagedMaskNorm}, 2, 3).fill()
	c.set("query", 0, 1)
	c.set("mask", -3e38, -3e38, -3e38)
	c.want(t, []float64{3, 4})
	c.set("mask", 0, 0, 0)
	c.want(t, []float64{3.4066726, 4.4066726})
	h := sampleCase(PagedAttention{MaskType: PagedMaskNorm}, 2, 3)
	h.maskType = tensor.Float16
	h.fill()
	h.set("mask", -65504, -65504, -65504)
	got, _ := h.run(t)
	// Scores of up to 0.71 keep 2^-9 of their value beside 65504.
	assert.InDeltaSlice(t, []float64{3, 4}, got, 1e-2)
}

func TestPagedHeadSize256(t *testing.T) {
	for _, layout := range []InputLayout{LayoutBSND, LayoutBNSD} {
		c := newPagedCase(PagedAttention{HeadNum: 2, KVHeadNum: 1, QKScale: 0.06, InputLayout: layout}, tensor.Float16, 2)
		c.dk, c.dv = 256, 256
		c.build().check(t)
	}
}

// What ReshapeAndCache writes, block by block, PagedAttention reads.
func TestPagedReadsWhatReshapeAndCacheWrites(t *testing.T) {
	c := newPagedCase(PagedAttention{HeadNum: 4, KVHeadNum: 2, QKScale: 0.3}, tensor.Float16, 8)
	c.contexts = []int64{7, 24, 1}
	c.build()
	var slots []int32
	for s := range c.contexts {
		for j := range c.contexts[s] {
			slots = append(slots, int32(c.block(int64(s), j)*c.bs+j%c.bs))
		}
	}
	n := int64(len(slots))
	source := func(d int64) ([]float64, []byte) {
		v := make([]float64, n*2*d)
		for i := range v {
			v[i] = c.rand.NormFloat64()
		}
		b := tensor.FromFloat64s(tensor.Float16, v)
		v, err := tensor.Float64s(b, tensor.Float16)
		require.NoError(t, err)
		return v, b
	}
	key, keyBytes := source(c.dk)
	value, valueBytes := source(c.dv)
	nan := func(d *tensor.Desc) []byte { return bytes.Repeat([]byte{0xff}, int(d.Bytes())) }
	r := optest.Run(t, optest.Case{
		Spec: cache.ReshapeAndCache{},
		In: []tensor.Desc{
			tensor.Of(tensor.Float16, n, 2, c.dk), tensor.Of(tensor.Float16, n, 2, c.dv), c.in[1], c.in[2], tensor.Of(tensor.Int32, n),
		},
		Data: [][]byte{keyBytes, valueBytes, nan(&c.in[1]), nan(&c.in[2]), device.BytesOf(slots)},
	})
	c.data[1], c.data[2] = r.Out[0], r.Out[1]
	got, _ := c.run(t)
	// The reference reads the rows in the order of the slots.
	for i, slot := range slots {
		copy(c.values["kCache"][int64(slot)*2*c.dk:], key[int64(i)*2*c.dk:int64(i+1)*2*c.dk])
		copy(c.values["vCache"][int64(slot)*2*c.dv:], value[int64(i)*2*c.dv:int64(i+1)*2*c.dv])
	}
	assert.InDeltaSlice(t, c.reference(), got, 2e-3)
}

// Counts and lengths that do not go together are refused at Setup with both
// numbers.
func TestPagedStaleLengths(t *testing.T) {
	c := sampleCase(PagedAttention{}, 2, 3, 3).fill()
	out := []tensor.Desc{tensor.Of(tensor.Float32, 2, 1, 2)}
	setup := func(values [][]int64) error {
		return operation.CheckSetup(c.spec, operation.Native(), c.in, out, values)
	}
	for _, n := range []int64{1, 3} {
		in := c.in[4]
		c.in[4] = tensor.Of(tensor.Int32, n)
		err := setup(nil)
		require.ErrorIs(t, err, status.ErrInvalidTensorDim)
		assert.ErrorContains(t, err, fmt.Sprintf("input 4 (contextLens): want 2 lengths, one for each row of the block tables, got %d", n))
		c.in[4] = in
	}
	require.NoError(t, setup([][]int64{4: {3, 4}}))
	for text, lens := range map[string][]int64{
		"sequence 1: length 5 needs 3 blocks of 2, its table row has 2": {3, 5},
		"sequence 0: want a length of at least 0, got -1":               {-1, 3},
	} {
		err := setup([][]int64{4: lens})
		require.ErrorIs(t, err, status.ErrInvalidParam)
		assert.ErrorContains(t, err, text)
	}
}

func TestPagedValuesAgainstMask(t *testing.T) {
	c := sampleCase(PagedAttention{MaskType: PagedMaskNorm, CalcType: PagedCalcSpec}, 4, 4)
	c.qLens, c.columns, c.maskShape = []int64{1}, 2, []int64{4, 4}
	c.build()
	out := []tensor.Desc{tensor.Of(tensor.Float32, 1, 1, 2)}
	for _, x := range []struct {
		mask    []int64
		lens, q int64
		text    string
	}{
		{[]int64{4, 4}, 5, 1, "length 5 needs as many columns, the mask [4,4] has 4"},
		{[]int64{4, 8}, 5, 1, "length 5 needs as many rows, the mask [4,8] has 4"},
		{[]int64{1, 4, 8}, 5, 1, "length 5 needs as many rows, the mask [1,4,8] has 4"},
		{[]int64{4, 8}, 1, 2, "sequence 0: want 0 to 1 query rows of 1 in all, got 2"},
		{[]int64{4, 8}, 1, -1, "want 0 to 1 query rows"},
		{[]int64{1, 1, 8}, 5, 1, ""},
		{[]int64{4, 8}, 0, 1, ""},
	} {
		c.in[5] = tensor.Of(tensor.Float32, x.mask...)
		err := operation.CheckSetup(c.spec, operation.Native(), c.in, out, [][]int64{4: {x.lens}, 6: {x.q}})
		if x.text == "" {
			require.NoError(t, err, x.mask)
			continue
		}
		require.ErrorIs(t, err, status.ErrInvalidParam)
		assert.ErrorContains(t, err, x.text)
	}
	c.in[0] = tensor.Of(tensor.Float32, 2, 1, 2)
	c.in[5] = tensor.Of(tensor.Float32, 4, 8)
	err := operation.CheckSetup(c.spec, operation.Native(), c.in, []tensor.Desc{tensor.Of(tensor.Float32, 2, 1, 2)}, [][]int64{4: {1}, 6: {2}})
	assert.ErrorContains(t, err, "want at most 1 query rows for its length, got 2")
}

// Sequences that do not run may have stale lengths.
func TestPagedSkippedSequences(t *testing.T) {
	c := sampleCase(PagedAttention{BatchRunStatusEnable: true}, 2, 3, 3, 3)
	c.status = []int64{1, 0, 1}
	c.fill()
	c.set("contextLens", 2, 99, 3)
	c.want(t, seenOf[2], seenOf[0], seenOf[3])
}

// With contexts by head the statuses may be by sequence.
func TestPagedStatusBySequence(t *testing.T) {
	spec := PagedAttention{HeadNum: 4, KVHeadNum: 2, QKScale: 0.3, CompressType: PagedCompressKVHead, BatchRunStatusEnable: true}
	byHead := newPagedCase(spec, tensor.Float32, 5)
	byHead.status = []int64{1, 1, 0, 0, 1, 1}
	want, _ := byHead.build().run(t)
	bySequence := newPagedCase(spec, tensor.Float32, 5)
	bySequence.status = []int64{1, 0, 1}
	bySequence.build()
	lens := bySequence.values["contextLens"]
	bySequence.set("contextLens", lens[0], lens[1], 99, 99, lens[4], lens[5])
	got, _ := bySequence.run(t)
	assert.Equal(t, want, got)
}

// Equal problems mean equal operations: nothing that tells two combinations
// apart is missing from what tilings and plans are cached by.
func TestPagedProblemsTellCombinationsApart(t *testing.T) {
	type lowered struct {
		p PagedAttention
		k *kernel.Kernel
		q kernel.Problem
	}
	var all []lowered
	for p := range PagedMatrix() {
		c := newPagedCase(p, tensor.Float32, 1).build()
		r := optest.Run(t, optest.Case{Spec: p, In: c.in, Data: c.data})
		n := r.Graph.Nodes[0]
		all = append(all, lowered{p, n.Kernel, n.Problem})
	}
	same := func(p PagedAttention) PagedAttention {
		p.HasQuantOffset = p.quantOffset()
		if !p.spec() && p.MaskType == PagedMaskSpec {
			p.MaskType = PagedMaskNorm
		}
		return p
	}
	for i := range all {
		for j := range i {
			if all[i].k == all[j].k && all[i].q.Same(&all[j].q) {
				require.Equal(t, same(all[i].p), same(all[j].p))
			}
		}
	}
	p := PagedAttention{HeadNum: 4, KVHeadNum: 2, QKScale: 0.25}
	wider := p
	wider.QKScale = 0.5
	c, d := newPagedCase(p, tensor.Float32, 1).build(), newPagedCase(wider, tensor.Float32, 1).build()
	for _, x := range []*pagedCase{c, d, c, d, d, c} {
		x.check(t)
	}
}
