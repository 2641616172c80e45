package faults_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/operation/attention"
	"goatb/operation/cache"
	"goatb/status"
	"goatb/tensor"
)

// twoLengths makes the query and key lengths of PA_ENCODER.
func twoLengths(rows, keys []int32) operand {
	return operand{desc: tensor.Of(tensor.Int32, 2, int64(len(rows))), data: slices.Concat(ints(rows).data, ints(keys).data), host: true}
}

// uneven are the operands of one head with query and key lengths that differ,
// and what comes out.
func uneven(width int64, rows, keys []int32) (in []operand, want []float64) {
	rng := random(uint64(width))
	var q, k, v []float64
	for s := range rows {
		sq, sk, sv := normals(rng, int64(rows[s])*width), normals(rng, int64(keys[s])*width), normals(rng, int64(keys[s])*width)
		for _, row := range rowsOf(sq, width) {
			want = append(want, attend(row, rowsOf(sk, width), rowsOf(sv, width), t3Scale, nil)...)
		}
		q, k, v = append(q, sq...), append(k, sk...), append(v, sv...)
	}
	in = []operand{f32(q, int64(len(q))/width, width), f32(k, int64(len(k))/width, width), f32(v, int64(len(v))/width, width), twoLengths(rows, keys)}
	return in, want
}

// D01: sequences without queries broke one head size only.
func TestD01(t *testing.T) {
	for _, width := range []int64{64, 128, 256} {
		in, want := uneven(width, []int32{0, 2, 1, 0}, []int32{1, 1, 1, 1})
		got := newBed(t).run(t3Self(attention.SelfPAEncoder, attention.SelfMaskNone), in...)
		assert.InDeltaSlice(t, want, got, 1e-5, "heads of %d", width)
	}
}

// D03: with one query at most, empty sequences were taken for rows.
func TestD03(t *testing.T) {
	rows, keys := []int32{0, 1, 0, 1}, []int32{0, 3, 0, 5}
	in, want := uneven(2, rows, keys)
	got := newBed(t).run(t3Self(attention.SelfPAEncoder, attention.SelfMaskNone), in...)
	assert.InDeltaSlice(t, want, got, tight)

	var all []sequence
	k, v := rowsOf(in[1].values(), 2), rowsOf(in[2].values(), 2)
	for _, n := range keys {
		all = append(all, sequence{k[:n], v[:n]})
		k, v = k[n:], v[n:]
	}
	kc, vc, tables := pages(2, all...)
	spec := t3Paged()
	spec.CalcType, spec.MaskType = attention.PagedCalcSpec, attention.PagedMaskSpec
	q := in[0]
	q.desc = q.desc.WithShape(2, 1, 2)
	got = newBed(t).run(spec, q, kc, vc, tables, lengths(keys...), f32(repeat(0, 10), 2, 5), lengths(rows...))
	assert.InDeltaSlice(t, want, got, tight, "paged")
	got = newBed(t).run(t3Prefix(), in[0], kc, vc, tables, lengths(rows...), lengths(keys...))
	assert.InDeltaSlice(t, want, got, tight, "prefix")
}

// D05: a batch of nothing but empty sequences aborted. A tensor without elements
// does not exist here, so there is a row of padding, which gives zeros.
func TestD05(t *testing.T) {
	row := f32([]float64{nan, nan}, 1, 2)
	got := newBed(t).run(t3Self(attention.SelfPAEncoder, attention.SelfMaskNone), row, row, row, lengths(0, 0))
	assert.Equal(t, []float64{0, 0}, got)
	in := t3Pages(2, 0, 0)
	assert.Equal(t, repeat(0, 4), newBed(t).run(t3Paged(), in...))
	assert.Equal(t, []float64{0, 0}, newBed(t).run(t3Prefix(), row, in[1], in[2], in[3], lengths(0, 0), lengths(0, 0)))

	b := newBed(t)
	none := atb.Tensor{Desc: tensor.Of(tensor.Float32, 0, 2)}
	_, err := b.op(t3Self(attention.SelfPAEncoder, attention.SelfMaskNone)).Setup(
		atb.VariantPack{In: []atb.Tensor{none, none, none, b.put(lengths(0, 0))}, Out: []atb.Tensor{none}}, b.c)
	require.ErrorIs(t, err, status.ErrInvalidTensorSize)
	assert.ErrorContains(t, err, "SelfAttentionOperation: setup: input 0 (query): want every dimension at least 1")
}

// D07: an offset into a large cache left 32 bits, and another slot was written.
func TestD07(t *testing.T) {
	const layers, batch, depth, heads, width = 32, 5, 4096, 32, 128
	const row = heads * width
	b := newBed(t)
	d := tensor.Of(tensor.Float16, layers, batch, depth, row)
	require.Greater(t, d.Numel(), int64(1<<31))
	var caches [2]atb.Tensor
	for i := range caches {
		m, err := b.dev.Reserve(d.Bytes())
		if errors.Is(err, status.ErrOutOfDeviceMemory) {
			t.Skipf("no address space for a cache of %d bytes: %v", d.Bytes(), err)
		}
		require.NoError(t, err)
		caches[i] = atb.Tensor{Desc: d, Data: m}
	}
	// rows holds a number for each sequence: base, base+1, ...
	rows := func(base int) operand {
		var v []float64
		for s := range batch {
			v = append(v, repeat(float64(base+s), row)...)
		}
		return floats(tensor.Float16, v, batch, row)
	}
	spec := scaledSelf(attention.SelfDecoder, attention.SelfMaskNone, 1)
	spec.HeadNum, spec.KVHeadNum = heads, heads
	op := b.op(spec)
	zero := floats(tensor.Float16, repeat(0, batch*row), batch, row)
	for step := range 2 {
		keys := int32(step + 1)
		in := append(b.putAll([]operand{zero, rows(100 * step), rows(10 + 20*step)}), caches[0], caches[1],
			b.put(lengths(keys, keys, keys, keys, keys)), b.put(lengths(1, 1, 1, 1, 1)), b.put(lengths(layers-1)))
		p := b.pack(op, in...)
		c := call{b, op, p, b.setup(op, p)}
		got := c.again()
		for s := range batch {
			assert.Equal(t, float64(10+10*step+s), got[s*row], "the mean of the sequence's values so far")
		}
	}
	part := func(c atb.Tensor, layer, s, pos int64) []float64 {
		at := ((layer*batch+s)*depth + pos) * row * 2
		return valuesOf(atb.Tensor{Desc: tensor.Of(tensor.Float16, row), Data: c.Data.At(at, row*2)})
	}
	for s := range int64(batch) {
		for pos := range int64(2) {
			assert.Equal(t, repeat(float64(100*pos+s), row), part(caches[0], layers-1, s, pos))
			assert.Equal(t, repeat(float64(10+20*pos+s), row), part(caches[1], layers-1, s, pos))
		}
	}
	assert.Equal(t, repeat(0, row), part(caches[1], 0, 0, 0), "and nothing at the start")
}

// windowed runs a sliding window over n rows of zeros; every row is the mean of
// the values 0 to n-1 that it sees.
func windowed(t testing.TB, mask attention.SelfMaskType, size int, n int64) []float64 {
	t.Helper()
	spec := t3Self(attention.SelfPAEncoder, mask)
	spec.WindowSize = size
	return newBed(t).run(spec, append(flatRows(n), f32(repeat(0, n*n), n, n), lengths(int32(n)))...)
}

// D09: a window of W positions was W on one path and W+1 on another. It counts
// the row's own position.
func TestD09(t *testing.T) {
	for _, mask := range []attention.SelfMaskType{attention.SelfMaskSlidingWindowNorm, attention.SelfMaskSlidingWindowCompress} {
		got := windowed(t, mask, 3, 6)
		assert.InDeltaSlice(t, []float64{0, 0.5, 1, 2, 3, 4}, got, tight, "%s: row 5 sees 3, 4 and 5", mask)
	}
	// A row at the end of a cache sees the same.
	spec := t3Self(attention.SelfDecoder, attention.SelfMaskSlidingWindowNorm)
	spec.WindowSize, spec.KVCacheCfg = 3, attention.KVBypass
	got := newBed(t).run(spec, f32([]float64{0}, 1, 1), f32(repeat(0, 6), 1, 1, 6, 1), f32(counting(6), 1, 1, 6, 1), lengths(6), lengths(1), lengths(0))
	assert.InDeltaSlice(t, []float64{4}, got, tight)
}

// D11: of all windows only the one that is off had been tested.
func TestD11(t *testing.T) {
	const n = 6
	for _, mask := range []attention.SelfMaskType{attention.SelfMaskSlidingWindowNorm, attention.SelfMaskSlidingWindowCompress} {
		for _, size := range []int{-1, 0} {
			spec := t3Self(attention.SelfPAEncoder, mask)
			spec.WindowSize = size
			_, err := atb.New(spec)
			require.ErrorIs(t, err, status.ErrInvalidParam)
			assert.ErrorContains(t, err, fmt.Sprintf("SelfAttentionOperation: create: windowSize: want at least %d", size+1))
		}
		assert.Equal(t, counting(n), windowed(t, mask, 1, n), "each row sees itself")
		causal := newBed(t).run(t3Self(attention.SelfPAEncoder, attention.SelfMaskCausal), append(flatRows(n), lengths(n))...)
		for _, size := range []int{n, n + 1, math.MaxInt} {
			assert.Equal(t, causal, windowed(t, mask, size, n), "a window of %d is causal", size)
		}
	}
}

// D13: a prefill that went on behind cached keys was wrong.
func TestD13(t *testing.T) {
	const n, width = 4, 4
	p := newPacked(13, 2, 1, width, n)
	want := p.want(p.causal)
	whole := newBed(t).run(p.spec(attention.SelfMaskCausal), p.operands(tensor.Float32)...)
	assert.InDeltaSlice(t, want, whole, 1e-5)

	for _, calc := range []attention.SelfCalcType{attention.SelfEncoder, attention.SelfUndefined} {
		spec := p.spec(attention.SelfMaskCausal)
		spec.CalcType = calc
		b := newBed(t)
		op := b.op(spec)
		empty := f32(repeat(nan, 8*width), 1, 1, 8, width)
		kc, vc := b.put(empty), b.put(empty)
		var got []float64
		for first := int64(0); first < n; first += 2 {
			in := append(b.putAll([]operand{
				f32(p.q[first*2*width:(first+2)*2*width], 2, 2*width), f32(p.k[first*width:(first+2)*width], 2, width), f32(p.v[first*width:(first+2)*width], 2, width),
			}), kc, vc, b.put(lengths(int32(first+2))), b.put(lengths(2)), b.put(lengths(0)))
			x := b.pack(op, in...)
			c := call{b, op, x, b.setup(op, x)}
			got = append(got, c.again()...)
		}
		assert.InDeltaSlice(t, whole, got, tight, "%s", calc)
	}
	k, v, tables := pages(2, sequence{rowsOf(p.k, width), rowsOf(p.v, width)})
	prefix := t3Prefix()
	prefix.HeadNum, prefix.KVHeadNum, prefix.QKScale = 2, 1, 0.25
	got := newBed(t).run(prefix, f32(p.q[2*2*width:], 2, 2*width), k, v, tables, lengths(2), lengths(4))
	assert.InDeltaSlice(t, whole[2*2*width:], got, tight, "prefix")
	spec := t3Paged()
	spec.HeadNum, spec.KVHeadNum, spec.QKScale = 2, 1, 0.25
	spec.CalcType, spec.MaskType = attention.PagedCalcSpec, attention.PagedMaskSpec
	mask := f32([]float64{0, 0, 0, -inf, 0, 0, 0, 0}, 2, 4)
	got = newBed(t).run(spec, f32(p.q[2*2*width:], 2, 2, width), k, v, tables, lengths(4), mask, lengths(2))
	assert.InDeltaSlice(t, whole[2*2*width:], got, tight, "paged")
}

// D15: the mask of a chunk did not know of the cached keys before it, and masks
// mixed their types with those of the rows.
func TestD15(t *testing.T) {
	const width = 4
	p := newPacked(15, 1, 1, width, 4)
	want := p.want(p.causal)[2*width:]
	for _, rows := range []atb.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
		for _, masks := range []atb.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
			spec := p.spec(attention.SelfMaskNorm)
			spec.CalcType, spec.KVCacheCfg = attention.SelfEncoder, attention.KVBypass
			mask := floats(masks, []float64{0, 0, 0, -inf, 0, 0, 0, 0}, 2, 4)
			got := newBed(t).run(spec, floats(rows, p.q[2*width:], 2, width), floats(rows, p.k, 1, 1, 4, width), floats(rows, p.v, 1, 1, 4, width),
				mask, lengths(4), lengths(2), lengths(0))
			assert.InDeltaSlice(t, want, got, tolerance(rows), "rows %s, mask %s", rows, masks)
		}
	}
}

// D17: slots outside the cache were not checked. A negative one is passed over.
func TestD17(t *testing.T) {
	key := f32(counting(4), 2, 1, 2)
	value := f32([]float64{10, 11, 12, 13}, 2, 1, 2)
	empty := f32(repeat(-1, 16), 2, 4, 1, 2)
	c := newBed(t).ready(cache.DefaultReshapeAndCache(), key, value, empty, empty, ints([]int32{-1, 7}))
	got := c.again()
	assert.Equal(t, flat(repeat(-1, 14), []float64{2, 3}), got)
	assert.Equal(t, flat(repeat(-1, 14), []float64{12, 13}), c.out(1))
	for _, bad := range []int32{8, 9, 1 << 30} {
		c = newBed(t).ready(cache.DefaultReshapeAndCache(), key, value, empty, empty, ints([]int32{0, bad}))
		c.execute(c.op, c.pack, c.ws)
		err := c.c.Synchronize(t.Context())
		require.ErrorIs(t, err, status.ErrRuntimeFail)
		assert.ErrorContains(t, err, "ReshapeAndCacheOperation: execute: ")
		assert.ErrorContains(t, err, fmt.Sprint(bad))
		assert.Equal(t, repeat(-1, 16), valuesOf(c.pack.Out[0]), "then nothing is written")
	}
}

// D19: head sizes that are no powers of two failed in one path.
func TestD19(t *testing.T) {
	for _, width := range []int64{80, 96, 100, 1, 3, 33} {
		p := newPacked(uint64(width), 2, 1, width, 5)
		want := p.want(p.all)
		assert.InDeltaSlice(t, want, newBed(t).run(p.spec(attention.SelfMaskNone), p.operands(tensor.Float32)...), 2e-5, "%d", width)

		k, v, tables := pages(2, sequence{rowsOf(p.k, width), rowsOf(p.v, width)})
		paged := t3Paged()
		paged.HeadNum, paged.KVHeadNum, paged.QKScale = 2, 1, 0.25
		got := newBed(t).run(paged, f32(p.q[4*2*width:], 1, 2, width), k, v, tables, lengths(5))
		assert.InDeltaSlice(t, want[4*2*width:], got, 2e-5, "paged, %d", width)

		cached := p.spec(attention.SelfMaskNone)
		cached.CalcType, cached.KVCacheCfg = attention.SelfDecoder, attention.KVBypass
		got = newBed(t).run(cached, f32(p.q[4*2*width:], 1, 2*width), f32(p.k, 1, 1, 5, width), f32(p.v, 1, 1, 5, width), lengths(5), lengths(1), lengths(0))
		assert.InDeltaSlice(t, want[4*2*width:], got, 2e-5, "cache, %d", width)
	}
}

// D21: inference of shapes turned a batch of 1 into one of 0.
func TestD21(t *testing.T) {
	for _, dims := range [][]int64{{1, 1, 1, 1}, {1, 16, 197, 64}} {
		spec := t3Self(attention.SelfPAEncoder, attention.SelfMaskNone)
		spec.InputLayout, spec.HeadNum = attention.LayoutBNSD, int(dims[1])
		q := tensor.Of(tensor.Float16, dims...)
		out, err := newBed(t).op(spec).InferShape([]atb.Desc{q, q, q, tensor.Of(tensor.Int32, 1)})
		require.NoError(t, err)
		assert.Equal(t, []atb.Desc{q}, out)

		packed := q.WithShape(dims[2], dims[1], dims[3])
		spec.InputLayout = attention.LayoutBSND
		out, err = newBed(t).op(spec).InferShape([]atb.Desc{packed, packed, packed, tensor.Of(tensor.Int32, 1)})
		require.NoError(t, err)
		assert.Equal(t, []atb.Desc{packed}, out)
	}
}
