package faults_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device/cpu"
	"goatb/operation/attention"
	"goatb/operation/catalog"
	"goatb/operation/elementwise"
	"goatb/operation/norm"
	"goatb/operation/rope"
	"goatb/operation/shape"
	"goatb/status"
	"goatb/tensor"
)

// B15: a length of 0 shifted the offsets of all later sequences.
func TestB15(t *testing.T) {
	decoder := t3Self(attention.SelfDecoder, attention.SelfMaskNone)
	decoder.KVCacheCfg = attention.KVBypass
	keys, values := flat(t3K...), flat(t3V...)
	for _, contexts := range [][]int32{{2, 0, 3}, {0, 2, 3}, {3, 2, 0}, {0, 0, 1}} {
		assert.InDeltaSlice(t, t3Rows(contexts...), newBed(t).run(t3Paged(), t3Pages(2, contexts...)...), tight, "paged, %v", contexts)

		in := t3Pages(2, contexts...)
		rows, queries := lengths(1, 1, 1), f32(flat(t3Q, t3Q, t3Q), 3, 2)
		got := newBed(t).run(decoder, queries, f32(flat(keys, keys, keys), 1, 3, 3, 2), f32(flat(values, values, values), 1, 3, 3, 2),
			lengths(contexts...), countRows(contexts), lengths(0))
		assert.InDeltaSlice(t, padded(contexts), got, tight, "cache, %v", contexts)

		got = newBed(t).run(t3Prefix(), queries, in[1], in[2], in[3], countRows(contexts), lengths(contexts...))
		assert.InDeltaSlice(t, padded(contexts), got, tight, "prefix, %v", contexts)

		var k, v []float64
		for _, n := range contexts {
			k, v = append(k, keys[:2*n]...), append(v, values[:2*n]...)
		}
		got = newBed(t).run(t3Self(attention.SelfPAEncoder, attention.SelfMaskNone), queries, f32(k, int64(len(k)/2), 2), f32(v, int64(len(v)/2), 2),
			operand{desc: tensor.Of(tensor.Int32, 2, 3), data: slices.Concat(rows.data, lengths(contexts...).data), host: true})
		assert.InDeltaSlice(t, t3Rows(contexts...), got, tight, "encoder, %v", contexts)
	}
}

// countRows gives one row to every sequence that has positions.
func countRows(contexts []int32) operand {
	rows := make([]int32, len(contexts))
	for i, n := range contexts {
		rows[i] = min(n, 1)
	}
	return lengths(rows...)
}

// padded are the rows of the sequences that have some, then zeros.
func padded(contexts []int32) []float64 {
	some := slices.DeleteFunc(slices.Clone(contexts), func(n int32) bool { return n == 0 })
	return append(t3Rows(some...), repeat(0, int64(2*(len(contexts)-len(some))))...)
}

// B17: partial results were joined by exponentials of their logarithms, without
// their maximum, and overflowed.
func TestB17(t *testing.T) {
	const n = 2048
	keys, values := make([][]float64, n), make([][]float64, n)
	for j := range keys {
		keys[j], values[j] = []float64{1, 0}, []float64{1, 0}
		if j >= n/2 {
			values[j] = []float64{3, 0}
		}
	}
	k, v, tables := pages(128, sequence{keys, values})
	masked := t3Paged()
	masked.MaskType = attention.PagedMaskNorm
	masked.QKScale = 1
	for _, tt := range []struct {
		name       string
		score      float64
		from, to   int
		value, off float64
	}{
		{"equal", 1000, 0, 0, 2, 0},
		{"negative", -1000, 0, 0, 2, 0},
		{"later ones hidden", 1000, n / 2, n, 1, 0},
		{"earlier ones hidden", 1000, 0, n / 2, 3, 0},
		{"all hidden", 1000, 0, n, 0, 0},
	} {
		mask := repeat(0, n)
		for j := tt.from; j < tt.to; j++ {
			mask[j] = -inf
		}
		c := newBed(t).ready(masked, f32([]float64{tt.score, 0}, 1, 1, 2), k, v, tables, lengths(n), f32(mask, 1, n))
		require.Greater(t, len(c.op.Graph().Nodes), 1, "the context is cut into parts and joined")
		assert.InDeltaSlice(t, []float64{tt.value, 0}, c.again(), tight, tt.name)
	}

	x := repeat(1e30, 40000)
	c := newBed(t).ready(shape.Softmax{Axes: []int64{0}}, f32(x, 40000))
	require.Greater(t, len(c.op.Graph().Nodes), 1)
	assert.InDeltaSlice(t, repeat(1.0/40000, 40000), c.again(), 1e-10)
}

// tileSizes are sizes around which a kernel may change tiles.
var tileSizes = []int64{15, 16, 31, 32, 63, 64, 127, 128, 255, 256, 511, 512}

// flatRows are n queries of zeros over n keys, values 0, 1, 2, ...: every row is
// the mean of the values that it sees.
func flatRows(n int64) []operand {
	return []operand{f32(repeat(0, n), n, 1), f32(repeat(0, n), n, 1), f32(counting(n), n, 1)}
}

// mean is the mean of 0 to n-1.
func mean(n int64) float64 { return float64(n-1) / 2 }

// B19: behind the first tile the mask was read from its start again.
func TestB19(t *testing.T) {
	for _, tile := range tileSizes {
		n := tile + 1
		rows := []int64{0, n / 2, n - 1}
		mask := repeat(0, n*n)
		for r := range n {
			mask[r*n+n-1] = -inf
		}
		got := newBed(t).run(t3Self(attention.SelfPAEncoder, attention.SelfMaskNorm), append(flatRows(n), f32(mask, n, n), lengths(int32(n)))...)
		for _, r := range rows {
			assert.InDelta(t, mean(n-1), got[r], 1e-3, "row %d of %d", r, n)
		}
		sparse := repeat(-inf, n*n)
		for r := range n {
			sparse[r*n+n-1] = 0
		}
		got = newBed(t).run(t3Self(attention.SelfPAEncoder, attention.SelfMaskNorm), append(flatRows(n), f32(sparse, n, n), lengths(int32(n)))...)
		for _, r := range rows {
			assert.InDelta(t, float64(n-1), got[r], 1e-3, "only the last column, row %d of %d", r, n)
		}
	}
}

// One query row over whole tiles: nothing but the offset tells their masks apart.
func TestB19OfOneRow(t *testing.T) {
	masked := t3Paged()
	masked.MaskType = attention.PagedMaskNorm
	for n := int64(16); n <= 4096; n *= 2 { // sums below 2^24 are exact
		k, v, tables := pages(16, sequence{rowsOf(repeat(0, n), 1), rowsOf(counting(n), 1)})
		run := func(mask []float64) []float64 {
			many := newBed(t).run(t3Self(attention.SelfPAEncoder, attention.SelfMaskNorm), f32([]float64{0}, 1, 1), f32(repeat(0, n), n, 1), f32(counting(n), n, 1),
				f32(mask, 1, n), operand{desc: tensor.Of(tensor.Int32, 2, 1), data: lengths(1, int32(n)).data, host: true})
			paged := newBed(t).run(masked, f32([]float64{0}, 1, 1, 1), k, v, tables, lengths(int32(n)), f32(mask, 1, n))
			return append(many, paged...)
		}
		for _, open := range []int64{0, n/2 - 1, n / 2, n - 1} {
			mask := repeat(-inf, n)
			mask[open] = 0
			assert.InDeltaSlice(t, repeat(float64(open), 2), run(mask), 1e-3, "column %d of %d alone", open, n)
		}
		mask := repeat(0, n)
		mask[n-1] = -inf
		assert.InDeltaSlice(t, repeat(mean(n-1), 2), run(mask), 0.01, "all of %d but the last", n)
	}
}

// B21: a mask for all sequences was seen as one for each.
func TestB21(t *testing.T) {
	const batch, heads, seq, side = 2, 3, 3, 5
	rng := random(21)
	plane := repeat(nan, heads*side*side)
	for h := range heads {
		for r := range seq {
			copy(plane[(h*side+r)*side:], normals(rng, seq))
		}
	}
	q, k, v := draw(rng, batch*seq, heads*2), draw(rng, batch*seq, 2), draw(rng, batch*seq, 2)
	spec := t3Self(attention.SelfPAEncoder, attention.SelfMaskALiBi)
	spec.HeadNum, spec.KVHeadNum = heads, 1
	run := func(mask operand) []float64 { return newBed(t).run(spec, q, k, v, mask, lengths(seq, seq)) }
	three := run(f32(plane, heads, side, side))
	four := run(f32(flat(plane, plane), batch, heads, side, side))
	assert.Equal(t, three, four)
	qv, kv, vv := q.values(), rowsOf(k.values(), 2), rowsOf(v.values(), 2)
	for row := range batch * seq {
		first := row / seq * seq
		for h := range heads {
			at := (row*heads + h) * 2
			bias := plane[(h*side+row%seq)*side:][:seq]
			want := attend(qv[at:at+2], kv[first:first+seq], vv[first:first+seq], t3Scale, bias)
			assert.InDeltaSlice(t, want, three[at:at+2], 1e-5)
		}
	}
}

// B23: one parameter had two defaults, 0 in one place and 1 in another. Here
// the defaults of code and of JSON are one, and a literal means what it says.
func TestB23(t *testing.T) {
	self, plain := attention.DefaultSelfAttention(), norm.DefaultRMSNorm()
	self.HeadNum, plain.LayerType = 1, norm.Plain
	for _, tt := range []struct {
		name, param string
		want        atb.Spec
	}{
		{"SelfAttentionOperation", `{"headNum":1}`, self},
		{"RmsNormOperation", `{"layerType":1}`, plain},
		{"RopeOperation", `{}`, rope.DefaultRope()},
	} {
		got, err := catalog.New(tt.name, []byte(tt.param))
		require.NoError(t, err)
		assert.Equal(t, tt.want, got)
	}
	assert.Equal(t, float32(1), attention.DefaultSelfAttention().QScale)
	tokens := []operand{f32(t3Q, 1, 2), f32(flat(t3K...), 3, 2), f32(flat(t3V...), 3, 2), {desc: tensor.Of(tensor.Int32, 2, 1), data: lengths(1, 3).data, host: true}}
	spec := t3Self(attention.SelfPAEncoder, attention.SelfMaskNone)
	assert.InDeltaSlice(t, t3Over[3], newBed(t).run(spec, tokens...), tight)
	tokens[0] = f32([]float64{0, 9}, 1, 2)
	spec.QScale = 0
	assert.InDeltaSlice(t, []float64{3, 4}, newBed(t).run(spec, tokens...), tight, "a scale of 0 weighs all keys alike")
}

// B25: a rotary coefficient that does not divide the width went unnoticed.
func TestB25(t *testing.T) {
	for _, tt := range []struct{ coeff, width int64 }{{4, 6}, {0, 6}, {0, 4}, {-2, 4}, {3, 6}, {math.MinInt64, 4}} {
		b := newBed(t)
		in := b.putAll([]operand{f32(repeat(1, 12), 1, 12), f32(repeat(1, 12), 1, 12), f32(repeat(1, tt.width), 1, tt.width), f32(repeat(0, tt.width), 1, tt.width), ints([]int32{1})})
		_, err := b.op(rope.Rope{RotaryCoeff: tt.coeff}).Setup(atb.VariantPack{In: in, Out: in[:2]}, b.c)
		require.ErrorIs(t, err, status.ErrInvalidParam, "%+v", tt)
		assert.ErrorContains(t, err, "RopeOperation: setup: rotaryCoeff: want ")
		assert.ErrorContains(t, err, fmt.Sprintf("of cos, got %d", tt.coeff))
	}
}

// B27: with many cores a kernel needed more workspace than setup had asked for.
// Every workspace here is of the very size, between canaries.
func TestB27(t *testing.T) {
	each(t, func(t *testing.T, s *sample) {
		in := s.in(random(27), 7)
		var want [][]byte
		for _, workers := range []int{1, 2, 3, 16} {
			c := bedOn(t, newDevice(t, cpu.WithWorkers(workers))).ready(s.spec, in...)
			c.execute(c.op, c.pack, c.ws)
			got := c.images()
			c.checkCanaries()
			if want == nil {
				want = got
			}
			assert.Equal(t, want, got, "%d workers", workers)
		}
	})
}

// B29: 64 lengths were read where the batch had fewer.
func TestB29(t *testing.T) {
	many := lengths(3, 2, -1, 1<<30, 7, 7, 7, 7)
	in := t3Pages(2, 3, 2)
	b := newBed(t)
	op := b.op(t3Paged())
	p := b.pack(op, b.putAll(in)...)
	p.In[4].Host = many.data[:8:8]
	c := call{b, op, p, b.setup(op, p)}
	assert.InDeltaSlice(t, t3Rows(3, 2), c.again(), tight)
	p.In[4].Host = many.data[:8]
	assert.InDeltaSlice(t, t3Rows(3, 2), c.again(), tight, "bytes behind the slice are not read")
	for _, n := range []int{7, 9, len(many.data)} { // more or less than the descriptor's elements
		p.In[4].Host = many.data[:n]
		require.ErrorIs(t, op.Execute(p, c.ws, b.c), status.ErrInvalidTensorAddr)
	}
}

// B31: a store of whole blocks wrote past an output with an element per row.
func TestB31(t *testing.T) {
	rstd := norm.RMS(norm.Plain, 1e-5)
	rstd.Norm.Rstd = true
	for _, rows := range []int64{1, 7, 8, 9, 17} {
		x := draw(random(31), rows, 8)
		c := newBed(t).ready(rstd, x, f32(repeat(1, 8), 8))
		c.again()
		got := c.out(1)
		d := newBed(t).ready(elementwise.Of(elementwise.DynamicQuant), x)
		d.again()
		scales := d.out(1)
		for r, row := range rowsOf(x.values(), 8) {
			sum, top := 0.0, 0.0
			for _, v := range row {
				sum += v * v
				top = max(top, math.Abs(v))
			}
			assert.InDelta(t, 1/math.Sqrt(sum/8+1e-5), got[r], tight)
			assert.InDelta(t, top/127, scales[r], tight)
		}
		c.checkCanaries()
		d.checkCanaries()
	}
}

// B35: what hid the tail of one sequence was left in place for the next.
func TestB35(t *testing.T) {
	for _, tile := range tileSizes {
		for _, contexts := range [][]int64{{tile + 3, 2 * tile}, {2 * tile, tile + 3}} {
			var all []sequence
			for _, n := range contexts {
				all = append(all, sequence{rowsOf(repeat(0, n), 1), rowsOf(counting(n), 1)})
			}
			k, v, tables := pages(16, all...)
			context := lengths(int32(contexts[0]), int32(contexts[1]))
			want := []float64{mean(contexts[0]), mean(contexts[1])}
			assert.InDeltaSlice(t, want, newBed(t).run(t3Paged(), f32([]float64{0, 0}, 2, 1, 1), k, v, tables, context), 1e-3, "paged, %v", contexts)
			assert.InDeltaSlice(t, want, newBed(t).run(t3Prefix(), f32([]float64{0, 0}, 2, 1), k, v, tables, lengths(1, 1), context), 1e-3, "prefix, %v", contexts)
		}
	}
}

// B37: axes were compared by adding 1 to one of them, which overflows.
func TestB37(t *testing.T) {
	for _, axes := range [][]int64{{math.MaxInt64 - 1, math.MaxInt64}, {-1, 0}, {0, 0}, {1, 0}, {math.MaxInt64}, {math.MinInt64}, {0, math.MaxInt64}, {math.MaxInt64, math.MinInt64}, {}, {0, 1, 2}} {
		_, err := newBed(t).op(shape.Softmax{Axes: axes}).InferShape([]atb.Desc{tensor.Of(tensor.Float32, 2, 3)})
		require.ErrorIs(t, err, status.ErrInvalidParam, "%v", axes)
		assert.ErrorContains(t, err, "SoftmaxOperation: infer shape: axes")
	}
}

// B41: text of the environment that is no number ended the process.
func TestB41(t *testing.T) {
	d := newDevice(t)
	names := []string{"ATB_HOST_TILING_BUFFER_BLOCK_NUM", "ATB_DEVICE_TILING_BUFFER_BLOCK_NUM", "ATB_WORKSPACE_MEM_ALLOC_ALG_TYPE", "ATB_OPSRUNNER_KERNEL_CACHE_TYPE", "ATB_WORKSPACE_MEM_ALLOC_GLOBAL"}
	for _, value := range []string{"", "abc", "99999999999999999999", "-1", " 1", "1 ", "+1", "0x20", "1e2", "\x00"} {
		c, err := atb.NewContext(d, atb.WithEnv(func(name string) (string, bool) { return value, slices.Contains(names, name) }))
		require.ErrorIs(t, err, status.ErrInvalidParam, "%q", value)
		assert.Nil(t, c)
		for _, name := range names {
			assert.ErrorContains(t, err, fmt.Sprintf("%s=%q: want ", name, value), "all bad values in one error")
		}
	}
}
