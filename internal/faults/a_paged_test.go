package faults_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/operation/attention"
	"goatb/operation/cache"
	"goatb/status"
	"goatb/tensor"
)

// A01: decoding with lengths that change from step to step went wrong, and only
// switching the reuse of setups or of workspace memory off helped.
func TestA01(t *testing.T) {
	var first []float64
	for i := range 8 {
		for _, policy := range policies {
			on := func(bit int) string { return fmt.Sprint(i >> bit & 1) }
			solver := map[string]string{"0": "0", "1": "4"}[on(2)]
			b := newBed(t, atb.WithPolicy(policy), atb.WithVariable("ATB_OPSRUNNER_SETUP_CACHE_ENABLE", on(0)),
				atb.WithVariable("ATB_WORKSPACE_MEM_ALLOC_GLOBAL", on(1)), atb.WithVariable("ATB_WORKSPACE_MEM_ALLOC_ALG_TYPE", solver))
			op := b.op(t3Paged())
			var got []float64
			for _, n := range []int32{1, 2, 3, 2} {
				p := b.pack(op, b.putAll(t3Pages(2, n))...)
				c := call{b, op, p, b.setup(op, p)}
				got = append(got, c.again()...)
			}
			assert.InDeltaSlice(t, t3Rows(1, 2, 3, 2), got, tight)
			if first == nil {
				first = got
			}
			assert.Equal(t, first, got, "settings %03b, %s", i, policy)
		}
	}
}

// A05: paged attention could not be set up when speculative decoding brought
// more than one query row per sequence.
func TestA05(t *testing.T) {
	in := t3Pages(2, 3, 2)
	in[0] = f32([]float64{1, 0, 0, 1, 1, 0}, 3, 1, 2)
	causal := []float64{0, -inf, -inf, 0, 0, -inf, 0, 0, 0}
	spec := t3Paged()
	spec.CalcType, spec.MaskType = attention.PagedCalcSpec, attention.PagedMaskNorm
	got := newBed(t).run(spec, append(in, f32(causal, 3, 3), lengths(2, 1))...)
	assert.InDeltaSlice(t, flat(t3Over[2], []float64{3.4066726, 4.4066726}, t3Over[2]), got, tight)

	spec.MaskType = attention.PagedMaskSpec
	open := repeat(0, 9)
	got = newBed(t).run(spec, append(in, f32(open, 3, 3), lengths(2, 1))...)
	assert.InDeltaSlice(t, flat(t3Over[3], []float64{3.4066726, 4.4066726}, t3Over[2]), got, tight, "an open mask shows every row the whole context")
}

// A27: lengths that the host gave at planning were baked into what was launched
// later; new ones had no effect.
func TestA27(t *testing.T) {
	for _, policy := range policies {
		c := newBed(t, atb.WithPolicy(policy)).ready(t3Paged(), t3Pages(2, 1)...)
		assert.InDeltaSlice(t, t3Over[1], c.again(), tight)
		for _, n := range []int32{2, 3, 1, 3} {
			c.pack.In[4] = c.put(lengths(n))
			assert.InDeltaSlice(t, t3Over[n], c.again(), tight, "one setup, then length %d, %s", n, policy)
		}
	}
}

// A29: as A27, with lengths that change in place in the user's own host tensor,
// for every operation that reads lengths.
func TestA29(t *testing.T) {
	paged := t3Pages(1, 1, 1)
	prefix := append(paged[1:4:4], lengths(1, 1), lengths(1, 1))
	decoder := t3Self(attention.SelfDecoder, attention.SelfMaskNone)
	decoder.KVCacheCfg = attention.KVBypass
	keys, values := flat(t3K...), flat(t3V...)
	for _, tt := range []struct {
		name string
		spec atb.Spec
		in   []operand
		// lengths is the input to change.
		lengths int
	}{
		{"paged", t3Paged(), paged, 4},
		{"prefix", t3Prefix(), append([]operand{f32(flat(t3Q, t3Q), 2, 2)}, prefix...), 5},
		{"decoder", decoder, []operand{
			f32(flat(t3Q, t3Q), 2, 2), f32(flat(keys, keys), 1, 2, 3, 2), f32(flat(values, values), 1, 2, 3, 2),
			lengths(1, 1), lengths(1, 1), lengths(0),
		}, 3},
		{"encoder", t3Self(attention.SelfPAEncoder, attention.SelfMaskNone), []operand{
			f32(flat(t3Q, t3Q), 2, 2), f32(flat(keys, keys), 6, 2), f32(flat(values, values), 6, 2),
			{desc: tensor.Of(tensor.Int32, 2, 2), data: lengths(1, 1, 3, 3).data, host: true},
		}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newBed(t).ready(tt.spec, tt.in...)
			if tt.lengths < 0 {
				assert.InDeltaSlice(t, t3Rows(3, 3), c.again(), tight)
				copy(c.pack.In[3].Host, lengths(2, 0, 3, 3).data)
				assert.InDeltaSlice(t, t3Rows(3, 3), c.again(), tight, "both rows are of sequence 0 now")
				return
			}
			for _, n := range [][]int32{{1, 1}, {3, 2}, {2, 3}, {1, 2}} {
				copy(c.pack.In[tt.lengths].Host, lengths(n...).data)
				assert.InDeltaSlice(t, t3Rows(n...), c.again(), tight, "lengths %v", n)
			}
		})
	}
}

// A31: a plan for a batch padded to four was used for four real sequences, and
// the rows that had been padding stayed stale.
func TestA31(t *testing.T) {
	c := newBed(t).ready(t3Paged(), t3Pages(2, 1, 2, 3, 0)...)
	assert.InDeltaSlice(t, t3Rows(1, 2, 3, 0), c.again(), tight)
	c.pack.In[4] = c.put(lengths(3, 1, 2, 3))
	assert.InDeltaSlice(t, t3Rows(3, 1, 2, 3), c.again(), tight)

	spec := t3Paged()
	spec.BatchRunStatusEnable = true
	c = newBed(t).ready(spec, append(t3Pages(2, 1, 2, 3, 3), lengths(1, 1, 1, 0))...)
	assert.InDeltaSlice(t, t3Rows(1, 2, 3, 0), c.again(), tight)
	c.pack.In[5] = c.put(lengths(1, 1, 1, 1))
	assert.InDeltaSlice(t, t3Rows(1, 2, 3, 3), c.again(), tight)
}

// A33: after days of serving, stale metadata gave fewer lengths than sequences.
func TestA33(t *testing.T) {
	for _, n := range [][]int32{{1}, {1, 2, 3}} {
		b := newBed(t)
		in := append(t3Pages(2, 1, 1)[:4:4], lengths(n...))
		op := b.op(t3Paged())
		_, err := op.Setup(atb.VariantPack{In: b.putAll(in), Out: []atb.Tensor{b.blank(in[0].desc)}}, b.c)
		require.ErrorIs(t, err, status.ErrInvalidTensorDim)
		assert.ErrorContains(t, err, fmt.Sprintf("PagedAttentionOperation: setup: input 4 (contextLens): want 2 lengths, one for each row of the block tables, got %d", len(n)))
	}
}

// A39: a page size that passed the checks gave garbage, another one was refused.
func TestA39(t *testing.T) {
	rng := random(39)
	s := sequence{rowsOf(normals(rng, 10), 2), rowsOf(normals(rng, 10), 2)}
	q := normals(rng, 2)
	want := attend(q, s.keys, s.values, t3Scale, nil)
	var first []float64
	for _, size := range []int64{1, 2, 3, 16, 128, 512} {
		k, v, tables := pages(size, s)
		got := newBed(t).run(t3Paged(), f32(q, 1, 1, 2), k, v, tables, lengths(5))
		assert.InDeltaSlice(t, want, got, tight)
		if first == nil {
			first = got
		}
		assert.Equal(t, first, got, "pages of %d", size)
		got = newBed(t).run(t3Prefix(), f32(q, 1, 2), k, v, tables, lengths(1), lengths(5))
		assert.InDeltaSlice(t, want, got, tight, "prefix, pages of %d", size)
	}
}

// A43: the layout of the cache changed in one mode only, so writer and readers
// disagreed.
func TestA43(t *testing.T) {
	const heads, width, tokens, blocks, size = 3, 4, 5, 4, 2
	rng := random(43)
	k, v, q := normals(rng, tokens*heads*width), normals(rng, tokens*heads*width), normals(rng, heads*width)
	table := []int32{3, 0, 2}
	slots := []int32{6, 7, 0, 1, 4}
	b := newBed(t)
	empty := floats(tensor.Float32, repeat(nan, blocks*size*heads*width), blocks, size, heads, width)
	w := b.ready(cache.DefaultReshapeAndCache(), f32(k, tokens, heads, width), f32(v, tokens, heads, width), empty, empty, ints(slots))
	w.execute(w.op, w.pack, w.ws)

	var want []float64
	for h := range heads {
		var keys, values [][]float64
		for j := range tokens {
			at := (j*heads + h) * width
			keys, values = append(keys, k[at:at+width]), append(values, v[at:at+width])
		}
		want = append(want, attend(q[h*width:(h+1)*width], keys, values, t3Scale, nil)...)
	}
	paged, prefix := t3Paged(), t3Prefix()
	paged.HeadNum, prefix.HeadNum = heads, heads
	for _, r := range []struct {
		spec atb.Spec
		in   []atb.Tensor
	}{
		{paged, []atb.Tensor{b.put(f32(q, 1, heads, width)), w.pack.Out[0], w.pack.Out[1], b.put(ints(table, 1, 3)), b.put(lengths(tokens))}},
		{prefix, []atb.Tensor{b.put(f32(q, 1, heads*width)), w.pack.Out[0], w.pack.Out[1], b.put(ints(table, 1, 3)), b.put(lengths(1)), b.put(lengths(tokens))}},
	} {
		op := b.op(r.spec)
		p := b.pack(op, r.in...)
		c := call{b, op, p, b.setup(op, p)}
		assert.InDeltaSlice(t, want, c.again(), tight, "%s", op.Name())
	}
	for _, side := range []struct {
		got, want []float64
	}{{w.out(0), k}, {w.out(1), v}} {
		for i, slot := range slots {
			at := int(slot) * heads * width
			assert.Equal(t, side.want[i*heads*width:(i+1)*heads*width], side.got[at:at+heads*width])
		}
		assert.True(t, math.IsNaN(side.got[2*heads*width]), "a slot that nobody named")
	}
}
