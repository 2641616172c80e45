package faults_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device/cpu"
	"goatb/operation/attention"
	"goatb/operation/norm"
	"goatb/operation/shape"
	"goatb/status"
	"goatb/tensor"
)

// C01: what was captured read plan buffers that a later plan had overwritten.
// Here tilings wait in the blocks of a ring, which wraps while the stream is
// held.
func TestC01(t *testing.T) {
	for _, policy := range policies {
		b := newBed(t, atb.WithPolicy(policy))
		release := b.hold(0)
		first := b.ready(t3Paged(), t3Pages(2, 2)...)
		first.execute(first.op, first.pack, first.ws)
		var others []*call
		for i := range 40 {
			others = append(others, b.ready(muls(float32(i)), f32(counting(int64(i+1)), int64(i+1))))
		}
		errs := make(chan error, 1)
		go func() {
			for _, c := range others {
				if err := c.op.Execute(c.pack, c.ws, c.c); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
		rings := usesRings(t, policy)
		for rings && b.c.Stats().DeviceRing.Stalls == 0 && len(errs) == 0 {
			runtime.Gosched()
		}
		if !rings {
			require.NoError(t, <-errs, "nothing to wait for")
			errs <- nil
		}
		release()
		require.NoError(t, <-errs)
		assert.InDeltaSlice(t, t3Over[2], first.out(0), tight, policy)
		for i, c := range others {
			want := counting(int64(i + 1))
			for j := range want {
				want[j] *= float64(i)
			}
			assert.Equal(t, want, c.out(0), policy)
		}
		assert.Equal(t, rings, b.c.Stats().DeviceRing.Stalls > 0, policy)
		assert.Zero(t, b.c.Stats().DeviceRing.InUse)
	}
}

// The other way for a ring to wrap: the first half of a launch was made, and the
// second half is not enqueued yet. Later launches pass over its block, and
// nothing is overwritten.
func TestC01AroundAPreparedLaunch(t *testing.T) {
	for _, policy := range policies {
		b := newBed(t, atb.WithPolicy(policy))
		first := b.ready(t3Paged(), t3Pages(2, 2)...)
		require.NoError(t, first.op.PreLaunch(first.pack, first.ws, b.c))
		for i := range 40 {
			c := b.ready(muls(float32(i)), f32([]float64{1}, 1))
			require.NoError(t, c.op.Execute(c.pack, c.ws, b.c), policy)
			assert.Equal(t, []float64{float64(i)}, c.out(0))
		}
		require.NoError(t, first.op.Launch(b.c))
		assert.InDeltaSlice(t, t3Over[2], first.out(0), tight, policy)
		c := b.ready(muls(2), f32([]float64{1}, 1))
		assert.Equal(t, []float64{2}, c.again(), "the block is free again")
	}
}

// Only when the host holds every block is a launch refused: no wait could free
// one.
func TestC01WithEveryBlockPrepared(t *testing.T) {
	for _, policy := range policies {
		b := newBed(t, atb.WithPolicy(policy))
		var prepared []*call
		var refused error
		for i := range 33 {
			c := b.ready(muls(float32(i)), f32([]float64{1}, 1))
			if refused = c.op.PreLaunch(c.pack, c.ws, b.c); refused != nil {
				break
			}
			prepared = append(prepared, c)
		}
		if !usesRings(t, policy) {
			require.NoError(t, refused, "no ring, no limit")
		} else {
			require.Len(t, prepared, 32)
			require.ErrorIs(t, refused, status.ErrOutOfDeviceMemory)
			assert.ErrorContains(t, refused, "ElewiseOperation: execute: ")
			assert.ErrorContains(t, refused, "32")
		}
		for i, c := range prepared {
			require.NoError(t, c.op.Launch(b.c))
			assert.Equal(t, []float64{float64(i)}, c.out(0), policy)
		}
		c := b.ready(muls(2), f32([]float64{1}, 1))
		assert.Equal(t, []float64{2}, c.again(), "the blocks are free again")
	}
}

// C03: a prefill ran with the plan of another length and another block table.
func TestC03(t *testing.T) {
	for _, policy := range policies {
		b := newBed(t, atb.WithPolicy(policy))
		one, three := t3Pages(2, 1), t3Pages(2, 3)
		swapped := three
		// The same positions in blocks of other numbers: 2, 1, 0 become 0, 1, 2.
		swapped[1], swapped[2], swapped[3] = reversed(three[1]), reversed(three[2]), ints([]int32{0, 1, 2}, 1, 3)
		q := f32(t3Q, 1, 2)
		c := b.ready(t3Prefix(), q, one[1], one[2], one[3], lengths(1), lengths(1))
		assert.InDeltaSlice(t, t3Over[1], c.again(), tight)
		c.pack.In = b.putAll([]operand{q, swapped[1], swapped[2], swapped[3], lengths(1), lengths(3)})
		assert.InDeltaSlice(t, t3Over[3], c.again(), tight, policy)

		p := b.ready(t3Paged(), one...)
		assert.InDeltaSlice(t, t3Over[1], p.again(), tight)
		p.pack.In = b.putAll(swapped)
		assert.InDeltaSlice(t, t3Over[3], p.again(), tight, policy)
	}
}

// reversed turns the order of the blocks of a cache around.
func reversed(o operand) operand {
	rows := rowsOf(o.values(), o.desc.Numel()/o.desc.Dim(0))
	var out []float64
	for i := range rows {
		out = append(out, rows[len(rows)-1-i]...)
	}
	return f32(out, o.desc.Shape.Dims()...)
}

// C05: a grid padded to the workers ran entries of the schedule that nobody had
// filled in.
func TestC05(t *testing.T) {
	var mu sync.Mutex
	var blocks []int
	d := newDevice(t, cpu.WithWorkers(16), cpu.WithObserver(func(x cpu.Task) {
		mu.Lock()
		defer mu.Unlock()
		if x.Kind == "launch" {
			blocks = append(blocks, x.Blocks)
		}
	}))
	b := bedOn(t, d)
	assert.InDeltaSlice(t, t3Rows(2, 3), b.run(t3Paged(), t3Pages(2, 2, 3)...), tight)
	// Two items that are worth a core each.
	const n = 4096
	k, v, tables := pages(128, sequence{rowsOf(repeat(0, n*64), 64), rowsOf(repeat(1, n*64), 64)}, sequence{rowsOf(repeat(0, n*64), 64), rowsOf(repeat(2, n*64), 64)})
	got := b.run(t3Paged(), f32(repeat(1, 128), 2, 1, 64), k, v, tables, lengths(n, n))
	assert.InDeltaSlice(t, flat(repeat(1, 64), repeat(2, 64)), got, 1e-5)
	tokens := b.run(t3Self(attention.SelfPAEncoder, attention.SelfMaskNone), f32(flat(t3Q, t3Q), 2, 2), f32(flat(t3K...), 3, 2), f32(flat(t3V...), 3, 2),
		operand{desc: tensor.Of(tensor.Int32, 2, 1), data: lengths(2, 3).data, host: true})
	assert.InDeltaSlice(t, t3Rows(3, 3), tokens, tight)
	mu.Lock()
	defer mu.Unlock()
	require.NotEmpty(t, blocks)
	assert.LessOrEqual(t, blocks[0], 2, "two items are two blocks at most")
}

// C07: host memory of one step was used again for the next while the first had
// not been copied yet.
func TestC07(t *testing.T) {
	for _, policy := range policies {
		b := newBed(t, atb.WithPolicy(policy))
		op := b.op(t3Paged())
		context := b.put(lengths(1))
		release := b.hold(0)
		var steps []*call
		for _, n := range []int32{1, 2, 3, 2} {
			x := b.on(op, t3Pages(2, n)...)
			x.pack.In[4] = context
			copy(context.Host, lengths(n).data)
			x.ws = b.setup(op, x.pack)
			x.execute(op, x.pack, x.ws)
			steps = append(steps, x)
		}
		copy(context.Host, lengths(-7).data)
		release()
		for i, n := range []int32{1, 2, 3, 2} {
			assert.InDeltaSlice(t, t3Over[n], steps[i].out(0), tight, "step %d, %s", i, policy)
		}
	}
}

// C09: the way of a repeated call ran a plan that had been pointed elsewhere
// since.
func TestC09(t *testing.T) {
	each(t, func(t *testing.T, s *sample) {
		rng := random(9)
		in := [2][]operand{s.in(rng, 3), s.in(rng, 3)}
		for i, o := range in[0] {
			if o.host {
				in[1][i] = o
			}
		}
		want := [2][][]byte{cold(t, s.spec, in[0]...), cold(t, s.spec, in[1]...)}
		for _, policy := range policies {
			b := newBed(t, atb.WithPolicy(policy))
			op := b.op(s.spec)
			x, y := b.on(op, in[0]...), b.on(op, in[1]...)
			x.ws = b.setup(op, x.pack)
			y.ws = b.areaLike(x.ws)
			for i, c := range []*call{x, y, x} {
				for j, o := range in[i%2] {
					copy(c.pack.In[j].Data.Bytes(), o.data)
				}
				before := [2][][]byte{x.images(), y.images()}
				for _, o := range c.pack.Out {
					fill(o.Data, poison)
				}
				c.execute(op, c.pack, c.ws)
				assert.Equal(t, want[i%2], c.images(), "%s, call %d", policy, i)
				assert.Equal(t, before[(i+1)%2], []*call{x, y}[(i+1)%2].images(), "the other call's memory")
			}
		}
	})
}

// C11: an element count left 32 bits, and the output was all zeros.
func TestC11(t *testing.T) {
	d := tensor.Of(tensor.Float16, 8388609, 8, 64)
	assert.Equal(t, int64(4294967808), d.Numel())
	assert.Equal(t, int64(8589935616), d.Bytes())
	b := newBed(t)
	for _, spec := range []atb.Spec{muls(2), shape.Softmax{Axes: []int64{-1}}, shape.Transpose{Perm: []int64{0, 1, 2}}} {
		op := b.op(spec)
		out, err := op.InferShape([]atb.Desc{d})
		require.NoError(t, err)
		assert.Equal(t, []atb.Desc{d}, out)
		x := []atb.Tensor{{Desc: d}}
		_, err = op.Setup(atb.VariantPack{In: x, Out: x}, b.c)
		assert.NoError(t, err, "setup reads descriptors alone")
	}
	// Temporaries of that size: a workspace counts in 64 bits too.
	quant := norm.RMS(norm.Plain, 1e-5)
	quant.Norm.QuantType = norm.QuantInt8
	gamma, one := tensor.Of(tensor.Float16, 64), tensor.Of(tensor.Float16, 1)
	in := []atb.Tensor{{Desc: d}, {Desc: gamma}, {Desc: gamma}, {Desc: one}, {Desc: tensor.Of(tensor.Int8, 1)}}
	out := []atb.Tensor{{Desc: tensor.Of(tensor.Int8, 8388609, 8, 64)}}
	size, err := b.op(quant).Setup(atb.VariantPack{In: in, Out: out}, b.c)
	require.NoError(t, err)
	assert.Greater(t, size, d.Bytes())
}

// C13: a workspace of fixed size overflowed.
func TestC13(t *testing.T) {
	each(t, func(t *testing.T, s *sample) {
		b := newBed(t)
		c := b.ready(s.spec, s.in(random(13), 3)...)
		if c.ws.IsNil() {
			return
		}
		before := c.images()
		n := c.ws.Size()
		for _, short := range []int64{1, n / 2, n} {
			if short == n {
				continue
			}
			err := c.op.Execute(c.pack, c.ws.At(0, n-short), b.c)
			require.ErrorIs(t, err, status.ErrInvalidWorkspaceSize)
			require.ErrorIs(t, err, status.ErrInvalidParam, "ATB's code matches as well")
			assert.ErrorContains(t, err, fmt.Sprintf("execute: want a workspace of %d bytes, got %d", n, n-short))
		}
		require.ErrorIs(t, c.op.Execute(c.pack, atb.Buffer{}, b.c), status.ErrInvalidWorkspaceAddr)
		assert.Equal(t, before, c.images(), "nothing was written")
		for _, v := range c.ws.Bytes() {
			require.Equal(t, byte(poison), v)
		}
		assert.Zero(t, b.c.Stats().Kernels)
		c.execute(c.op, c.pack, c.ws)
		assert.Equal(t, cold(t, s.spec, s.in(random(13), 3)...), c.images(), "the operation goes on")
	})
}

// C15: a workspace that had grown since was found too small only inside a
// capture. Here a setup that asks for more makes the old workspace refused
// before anything is enqueued.
func TestC15(t *testing.T) {
	b := newBed(t)
	op := b.op(shape.Softmax{Axes: []int64{0}})
	small, large := b.on(op, draw(random(15), 40000)), b.on(op, draw(random(15), 400000))
	old := b.setup(op, small.pack)
	large.ws = b.setup(op, large.pack)
	require.Greater(t, large.ws.Size(), old.Size())
	err := op.Execute(large.pack, old, b.c)
	require.ErrorIs(t, err, status.ErrInvalidWorkspaceSize)
	assert.ErrorContains(t, err, fmt.Sprintf("want a workspace of %d bytes, got %d", large.ws.Size(), old.Size()))
	assert.Zero(t, b.c.Stats().Kernels)
	assert.InDelta(t, 1, sumOf(large.again()), 1e-3)
}

func sumOf(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum
}

// C17: a workspace did not grow with the tokens.
func TestC17(t *testing.T) {
	quant := norm.RMS(norm.Plain, 1e-5)
	quant.Norm.QuantType = norm.QuantInt8
	last := int64(0)
	for _, tokens := range []int64{1, 64, 4096} {
		b := newBed(t)
		in := []atb.Tensor{
			{Desc: tensor.Of(tensor.Float32, tokens, 64)}, {Desc: tensor.Of(tensor.Float32, 64)}, {Desc: tensor.Of(tensor.Float32, 64)},
			{Desc: tensor.Of(tensor.Float32, 1)}, {Desc: tensor.Of(tensor.Int8, 1)},
		}
		op := b.op(quant)
		size, err := op.Setup(atb.VariantPack{In: in, Out: []atb.Tensor{{Desc: tensor.Of(tensor.Int8, tokens, 64)}}}, b.c)
		require.NoError(t, err)
		assert.Greater(t, size, last)
		last = size
		w := op.Workspace()
		assert.Equal(t, size, w.Scratch+w.Arena)
		assert.Zero(t, w.Scratch%512+w.Arena%512)
		var live int64
		for _, l := range w.Lives {
			live += (op.Graph().Tensors[l.Ref].Desc.Bytes() + 511) / 512 * 512
		}
		assert.GreaterOrEqual(t, w.Arena, tokens*64*4, "the normalised rows in float32")
		assert.LessOrEqual(t, w.Arena, live, "no more than all its parts")
	}
}

// C19: of two sequences shorter than a page the second was all zeros.
func TestC19(t *testing.T) {
	for _, size := range []int64{2, 16, 128} {
		got := newBed(t).run(t3Paged(), t3Pages(size, 1, 1)...)
		assert.Equal(t, []float64{1, 2, 1, 2}, got, "pages of %d", size)
	}
}

// C21: rows that belong to no sequence held NaN, which leaked into others.
func TestC21(t *testing.T) {
	p := newPacked(21, 2, 1, 4, 24)
	used := newPacked(21, 2, 1, 4, 24)
	used.rows = 21
	used.q, used.k, used.v = p.q[:21*8], p.k[:21*4], p.v[:21*4]
	for _, m := range [][]float64{p.q[21*8:], p.k[21*4:], p.v[21*4:]} {
		for i := range m {
			m[i] = nan
		}
	}
	for _, mask := range []attention.SelfMaskType{attention.SelfMaskNone, attention.SelfMaskCausal} {
		visible := used.all
		if mask == attention.SelfMaskCausal {
			visible = used.causal
		}
		in := p.operands(tensor.Float32)
		in[3] = lengths(21)
		got := newBed(t).run(p.spec(mask), in...)
		alone := newBed(t).run(used.spec(mask), used.operands(tensor.Float32)...)
		assert.InDeltaSlice(t, used.want(visible), alone, 1e-5)
		assert.Equal(t, alone, got[:len(alone)], "%s", mask)
		assert.Equal(t, repeat(0, 3*8), got[len(alone):], "rows of no sequence are zeros")
	}
}

// C23: a length was accepted that the block table has no room for.
func TestC23(t *testing.T) {
	b := newBed(t)
	in := t3Pages(2, 3)
	in[3], in[4] = ints([]int32{2, 1}, 1, 2), lengths(5)
	op := b.op(t3Paged())
	ts := b.putAll(in)
	_, err := op.Setup(atb.VariantPack{In: ts, Out: []atb.Tensor{b.blank(ts[0].Desc)}}, b.c)
	require.ErrorIs(t, err, status.ErrInvalidParam)
	assert.ErrorContains(t, err, "PagedAttentionOperation: setup: input 4 (contextLens): sequence 0: length 5 needs 3 blocks of 2, its table row has 2")
	_, err = b.op(t3Prefix()).Setup(atb.VariantPack{In: append([]atb.Tensor{b.put(f32(t3Q, 1, 2))}, append(ts[1:4:4], b.put(lengths(1)), b.put(lengths(5)))...), Out: []atb.Tensor{b.blank(tensor.Of(tensor.Float32, 1, 2))}}, b.c)
	require.ErrorIs(t, err, status.ErrInvalidParam)

	outside := t3Pages(2, 3)
	outside[3] = ints([]int32{2, 3, 0}, 1, 3)
	c := b.ready(t3Paged(), outside...)
	c.execute(c.op, c.pack, c.ws)
	err = b.c.Synchronize(t.Context())
	require.ErrorIs(t, err, status.ErrRuntimeFail, "a block that the cache does not have")
	assert.ErrorContains(t, err, "PagedAttentionOperation: execute: ")
	outside[3] = ints([]int32{2, 1, -9}, 1, 3)
	c = b.ready(t3Paged(), outside...)
	assert.InDeltaSlice(t, t3Over[3], c.again(), tight, "entries behind the length are not read")
	assert.InDeltaSlice(t, t3Over[3], b.run(t3Paged(), t3Pages(512, 3)...), tight, "pages of 512")
}

// C25: masks with fully hidden rows gave long runs of zeros.
func TestC25(t *testing.T) {
	q, k, v := f32(flat(t3Q, t3Q, t3Q), 3, 2), f32(flat(t3K...), 3, 2), f32(flat(t3V...), 3, 2)
	mask := []float64{-inf, -inf, -inf, -inf, 0, -inf, 0, 0, 0}
	want := flat([]float64{0, 0}, t3V[1], t3Over[3])
	got := newBed(t).run(t3Self(attention.SelfPAEncoder, attention.SelfMaskNorm), q, k, v, f32(mask, 3, 3), lengths(3))
	assert.InDeltaSlice(t, want, got, tight)
	for _, dtype := range []atb.DType{tensor.Float16, tensor.BFloat16} {
		got = newBed(t).run(t3Self(attention.SelfPAEncoder, attention.SelfMaskNorm), q, k, v, floats(dtype, mask, 3, 3), lengths(3))
		assert.InDeltaSlice(t, want, got, tight, "%s mask", dtype)
	}
	masked := t3Paged()
	masked.MaskType = attention.PagedMaskNorm
	got = newBed(t).run(masked, append(t3Pages(2, 3, 3, 3), f32(mask, 3, 3))...)
	assert.InDeltaSlice(t, want, got, tight, "paged")
}
