package faults_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/operation/attention"
	"goatb/status"
	"goatb/tensor"
)

// packed is a problem of packed attention with random rows.
type packed struct {
	heads, kvHeads, width int64
	rows                  int64
	q, k, v               []float64
}

func newPacked(seed uint64, heads, kvHeads, width, rows int64) *packed {
	rng := random(seed)
	return &packed{heads, kvHeads, width, rows,
		normals(rng, rows*heads*width), normals(rng, rows*kvHeads*width), normals(rng, rows*kvHeads*width)}
}

// operands are those of PA_ENCODER over one sequence.
func (p *packed) operands(t atb.DType) []operand {
	return []operand{
		floats(t, p.q, p.rows, p.heads*p.width), floats(t, p.k, p.rows, p.kvHeads*p.width), floats(t, p.v, p.rows, p.kvHeads*p.width),
		lengths(int32(p.rows)),
	}
}

func (p *packed) spec(mask attention.SelfMaskType) attention.SelfAttention {
	s := t3Self(attention.SelfPAEncoder, mask)
	s.HeadNum, s.KVHeadNum, s.QKScale = int(p.heads), int(p.kvHeads), 0.25
	return s
}

// head returns rows [from, to) of head h of a matrix.
func head(m []float64, heads, width, h, from, to int64) [][]float64 {
	var rows [][]float64
	for r := from; r < to; r++ {
		at := (r*heads + h) * width
		rows = append(rows, m[at:at+width])
	}
	return rows
}

// want is the attention of every row over the positions that visible lists.
func (p *packed) want(visible func(row int64) (from, to int64)) []float64 {
	var out []float64
	for r := range p.rows {
		from, to := visible(r)
		for h := range p.heads {
			kv := h / (p.heads / p.kvHeads)
			q := head(p.q, p.heads, p.width, h, r, r+1)[0]
			out = append(out, attend(q, head(p.k, p.kvHeads, p.width, kv, from, to), head(p.v, p.kvHeads, p.width, kv, from, to), 0.25, nil)...)
		}
	}
	return out
}

func (p *packed) all(int64) (from, to int64)      { return 0, p.rows }
func (p *packed) causal(r int64) (from, to int64) { return 0, r + 1 }

// tolerance is the error of one rounding to t, of values up to 4.
func tolerance(t atb.DType) float64 {
	return map[atb.DType]float64{tensor.Float32: 1e-5, tensor.Float16: 2e-3, tensor.BFloat16: 2e-2}[t]
}

// A07: attention could not be set up for head sizes that are no multiple of 16.
func TestA07(t *testing.T) {
	for _, width := range []int64{72, 80} {
		for _, dtype := range []atb.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
			p := newPacked(7, 2, 1, width, 5)
			got := newBed(t).run(p.spec(attention.SelfMaskNone), p.operands(dtype)...)
			assert.InDeltaSlice(t, p.want(p.all), got, tolerance(dtype), "%s, heads of %d", dtype, width)
		}
	}
}

// A35: a mask of fixed side was read beyond its end once a sequence outgrew it.
func TestA35(t *testing.T) {
	b := newBed(t)
	spec := t3Self(attention.SelfPAEncoder, attention.SelfMaskNorm)
	rows := func(n int64) []operand {
		return []operand{f32(repeat(1, 2*n), n, 2), f32(repeat(1, 2*n), n, 2), f32(counting(2*n), n, 2), f32(repeat(0, 16), 4, 4), lengths(int32(n))}
	}
	op := b.op(spec)
	in := b.putAll(rows(5))
	_, err := op.Setup(atb.VariantPack{In: in, Out: []atb.Tensor{b.blank(in[0].Desc)}}, b.c)
	require.ErrorIs(t, err, status.ErrInvalidTensorDim)
	for _, part := range []string{"SelfAttentionOperation: setup: ", "mask", "4", "5"} {
		assert.ErrorContains(t, err, part)
	}

	p := b.pack(op, b.putAll(rows(4))...)
	c := call{b, op, p, b.setup(op, p)}
	assert.InDeltaSlice(t, []float64{3, 4, 3, 4, 3, 4, 3, 4}, c.again(), tight, "the operation goes on")

	more := rows(5)
	more[4] = lengths(4)
	grown := b.ready(spec, more...)
	grown.pack.In[4] = b.put(lengths(5))
	err = grown.op.Execute(grown.pack, grown.ws, b.c)
	require.ErrorIs(t, err, status.ErrInvalidTensorDim, "the length grew after setup")
	assert.ErrorContains(t, err, "SelfAttentionOperation: execute: ")
}

// A37: masks with a single row for all queries were refused.
func TestA37(t *testing.T) {
	in := func(mask operand) []operand {
		return []operand{
			f32(flat(t3Q, t3Q, t3Q, t3Q, t3Q, t3Q), 6, 2), f32(flat(append(t3K, t3K...)...), 6, 2), f32(flat(append(t3V, t3V...)...), 6, 2), mask, lengths(3, 3),
		}
	}
	spec := t3Self(attention.SelfPAEncoder, attention.SelfMaskNorm)
	got := newBed(t).run(spec, in(f32([]float64{0, 0, -inf}, 1, 1, 1, 3))...)
	assert.InDeltaSlice(t, t3Rows(2, 2, 2, 2, 2, 2), got, tight)
	got = newBed(t).run(spec, in(f32([]float64{0, 0, -inf, 0, -inf, -inf}, 2, 1, 1, 3))...)
	assert.InDeltaSlice(t, t3Rows(2, 2, 2, 1, 1, 1), got, tight)
}

// A41: heads of 256 were missing in one layout only, which showed at run time.
func TestA41(t *testing.T) {
	p := newPacked(41, 2, 1, 256, 4)
	got := newBed(t).run(p.spec(attention.SelfMaskCausal), p.operands(tensor.Float32)...)
	assert.InDeltaSlice(t, p.want(p.causal), got, tolerance(tensor.Float32))

	spec := p.spec(attention.SelfMaskNone)
	spec.InputLayout = attention.LayoutBNSD
	swap := func(m []float64, heads int64) operand {
		var out []float64
		for h := range heads {
			out = append(out, flat(head(m, heads, p.width, h, 0, p.rows)...)...)
		}
		return f32(out, 1, heads, p.rows, p.width)
	}
	c := newBed(t).ready(spec, swap(p.q, p.heads), swap(p.k, p.kvHeads), swap(p.v, p.kvHeads), lengths(int32(p.rows)))
	want, out := p.want(p.all), c.again()
	for h := range p.heads {
		for r := range p.rows {
			at := (h*p.rows + r) * p.width
			assert.InDeltaSlice(t, head(want, p.heads, p.width, h, r, r+1)[0], out[at:at+p.width], tolerance(tensor.Float32))
		}
	}
}
