package faults_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/operation/activation"
	"goatb/operation/attention"
	"goatb/operation/linear"
	"goatb/operation/norm"
	"goatb/operation/rope"
	"goatb/operation/shape"
	"goatb/tensor"
)

// twins are two sets of parameters for the same operands.
type twins struct {
	name string
	a, b atb.Spec
	in   []operand
}

func allTwins() []twins {
	rng := random(19)
	self := func(change func(*attention.SelfAttention)) atb.Spec {
		p := scaledSelf(attention.SelfPAEncoder, attention.SelfMaskNone, 0.5)
		change(&p)
		return p
	}
	masked := func(mask attention.SelfMaskType) atb.Spec {
		return self(func(p *attention.SelfAttention) { p.MaskType = mask })
	}
	windowed := func(size int) atb.Spec {
		return self(func(p *attention.SelfAttention) {
			p.MaskType, p.WindowSize = attention.SelfMaskSlidingWindowCompress, size
		})
	}
	paged := func(scale float32) atb.Spec {
		p := t3Paged()
		p.QKScale = scale
		return p
	}
	q, k := draw(rng, 4, 8), draw(rng, 4, 4)
	tokens, square := []operand{q, k, k, lengths(3, 1)}, draw(rng, 4, 4)
	withMask := []operand{q, k, k, draw(rng, 4, 4), lengths(4)}
	cos := draw(rng, 4, 4)
	swish := activation.Of(activation.Swish)
	swish.Scale = 2
	erf := activation.Of(activation.Gelu)
	erf.GeluMode = activation.GeluErf
	gemma := norm.RMS(norm.Plain, 1e-5)
	gemma.Norm.ModelType = norm.ModelGemma
	return []twins{
		{"scale", self(func(*attention.SelfAttention) {}), self(func(p *attention.SelfAttention) { p.QKScale = 0.25 }), tokens},
		{"query scale", self(func(*attention.SelfAttention) {}), self(func(p *attention.SelfAttention) { p.QScale = 2 }), tokens},
		{"paged scale", paged(1), paged(0.5), t3Pages(2, 3, 2)},
		{"mask type", masked(attention.SelfMaskNone), masked(attention.SelfMaskCausal), tokens},
		{"mask type with a mask", masked(attention.SelfMaskNorm), masked(attention.SelfMaskNormCompress), withMask},
		{"triangle", masked(attention.SelfMaskNorm), self(func(p *attention.SelfAttention) { p.MaskType, p.IsTriuMask = attention.SelfMaskNorm, 1 }), withMask},
		{"kv heads", self(func(*attention.SelfAttention) {}), self(func(p *attention.SelfAttention) { p.HeadNum, p.KVHeadNum = 4, 2 }), tokens},
		{"window", windowed(1), windowed(2), withMask},
		{"clamp", self(func(*attention.SelfAttention) {}), self(func(p *attention.SelfAttention) { p.ClampType, p.ClampMax = attention.ClampMinMax, 0.125 }), tokens},
		{"epsilon", norm.RMS(norm.Plain, 1e-5), norm.RMS(norm.Plain, 1), []operand{square, draw(rng, 4)}},
		{"model", norm.RMS(norm.Plain, 1e-5), gemma, []operand{square, draw(rng, 4)}},
		{"factor", muls(2), muls(3), []operand{square}},
		{"quantisation", quantise(2), quantise(3), []operand{square}},
		{"weight transposed", linear.Linear{}, linear.Linear{TransposeB: true}, []operand{square, square}},
		{"x transposed", linear.Linear{}, linear.Linear{TransposeA: true}, []operand{square, square}},
		{"pairs", rope.Rope{RotaryCoeff: 2}, rope.Rope{RotaryCoeff: 4}, []operand{q, q, cos, cos, ints([]int32{4})}},
		{"activation", activation.Of(activation.Swish), swish, []operand{square}},
		{"form of gelu", activation.Of(activation.Gelu), erf, []operand{square}},
		{"axis", shape.Softmax{Axes: []int64{0}}, shape.Softmax{Axes: []int64{1}}, []operand{square}},
		{"permutation", shape.Transpose{Perm: []int64{0, 1}}, shape.Transpose{Perm: []int64{1, 0}}, []operand{square}},
		{"offset", shape.Slice{Offsets: []int64{0, 0}, Size: []int64{2, 2}}, shape.Slice{Offsets: []int64{1, 2}, Size: []int64{2, 2}}, []operand{square}},
		{"axis of a gather", shape.Gather{}, shape.Gather{Axis: 1}, []operand{square, ints([]int32{3, 1, 0, 2})}},
	}
}

// A19: a cache's hand-made key left parameters out, so that an operation got the
// tiling of one that differed in them.
func TestA19(t *testing.T) {
	for _, tt := range allTwins() {
		t.Run(tt.name, func(t *testing.T) {
			want := map[int][]byte{0: cold(t, tt.a, tt.in...)[0], 1: cold(t, tt.b, tt.in...)[0]}
			require.NotEqual(t, want[0], want[1], "the parameter makes no difference")
			specs := []atb.Spec{tt.a, tt.b}
			for _, order := range [][]int{{0, 1, 0, 1}, {1, 0, 1, 0}} {
				b := newBed(t)
				for _, i := range order {
					c := b.ready(specs[i], tt.in...)
					c.execute(c.op, c.pack, c.ws)
					assert.Equal(t, want[i], c.images()[0], "operations in order %v", order)
					require.NoError(t, c.op.Close(), "the runner goes back to the pool")
				}
				c := b.ready(specs[order[0]], tt.in...)
				for _, i := range order {
					require.NoError(t, c.op.Update(specs[i]))
					x := b.on(c.op, tt.in...)
					x.ws = b.setup(x.op, x.pack)
					x.execute(x.op, x.pack, x.ws)
					assert.Equal(t, want[i], x.images()[0], "updates in order %v", order)
				}
			}
		})
	}
}

// shapePairs are shapes that a careless key takes for one another.
func shapePairs() [][2][]int64 {
	return [][2][]int64{
		{{3, 17, 1, 1}, {1, 152, 1, 1}}, // one well-known way to join hashes gives both the same
		{{4, 1, 2, 2}, {1, 4, 2, 2}},    // one volume
		{{2, 6}, {6, 2}},
		{{2, 3, 4}, {2, 3, 4, 1}},
	}
}

// F01: a hash of 64 bits was the whole key, and it collides.
func TestF01(t *testing.T) {
	rng := random(1)
	for _, pair := range shapePairs() {
		for _, spec := range []atb.Spec{shape.Softmax{Axes: []int64{0, 1}}, shape.Softmax{Axes: []int64{1}}, muls(2)} {
			in := [2]operand{draw(rng, pair[0]...), draw(rng, pair[1]...)}
			want := [2][]byte{cold(t, spec, in[0])[0], cold(t, spec, in[1])[0]}
			for _, order := range [][]int{{0, 1, 0}, {1, 0, 1}} {
				b := newBed(t)
				one := b.op(spec)
				for _, i := range order {
					c := b.ready(spec, in[i])
					c.execute(c.op, c.pack, c.ws)
					assert.Equal(t, want[i], c.images()[0], "%v, order %v", pair, order)
					x := b.on(one, in[i])
					x.ws = b.setup(one, x.pack)
					x.execute(one, x.pack, x.ws)
					assert.Equal(t, want[i], x.images()[0], "one operation, %v, order %v", pair, order)
				}
			}
		}
	}
}

// F03: the key was the number of elements, though strides differed. Here
// operands that broadcast have the strides.
func TestF03(t *testing.T) {
	rng := random(3)
	full := draw(rng, 4, 4, 2, 2)
	small := draw(rng, 4, 1, 2, 2)
	x, y := full.values(), small.values()
	value := func(i, j, k int64, dims []int64) float64 {
		at := i*4 + k
		if dims[0] == 1 {
			at = j*4 + k
		}
		return x[(i*4+j)*4+k] + y[at]
	}
	for _, order := range [][][]int64{{{4, 1, 2, 2}, {1, 4, 2, 2}, {4, 1, 2, 2}}, {{1, 4, 2, 2}, {4, 1, 2, 2}, {1, 4, 2, 2}}} {
		b := newBed(t)
		for _, dims := range order {
			other := small
			other.desc = tensor.Of(tensor.Float32, dims...)
			got := b.run(add(), full, other)
			for i := range int64(4) {
				for j := range int64(4) {
					for k := range int64(4) {
						require.Equal(t, value(i, j, k, dims), got[(i*4+j)*4+k], "%v", dims)
					}
				}
			}
		}
	}
}

// F05: a hit left out the sizes of the pieces.
func TestF05(t *testing.T) {
	x := f32(counting(24), 4, 6)
	for _, order := range [][]int64{{2, 3, 2}, {3, 2, 3}} {
		b := newBed(t)
		for _, n := range order {
			c := b.ready(shape.Split{SplitDim: 1, SplitNum: n}, x)
			c.execute(c.op, c.pack, c.ws)
			width := 6 / n
			for part := range n {
				var want []float64
				for row := range int64(4) {
					for col := range width {
						want = append(want, float64(row*6+part*width+col))
					}
				}
				assert.Equal(t, want, c.out(int(part)), "part %d of %d", part, n)
			}
		}
		sizes := shape.Split{SplitDim: 1, SplitNum: 2, SplitSizes: []int64{1, 5}}
		for range 2 {
			assert.Equal(t, []float64{0, 6, 12, 18}, b.run(sizes, x))
			assert.Equal(t, []float64{0, 1, 6, 7, 12, 13, 18, 19}, b.run(shape.Split{SplitDim: 1, SplitNum: 2, SplitSizes: []int64{2, 4}}, x))
		}
	}
}
