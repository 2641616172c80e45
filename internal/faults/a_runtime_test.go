package faults_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device/cpu"
	"goatb/operation/cache"
	"goatb/operation/linear"
	"goatb/operation/norm"
	"goatb/operation/shape"
	"goatb/status"
	"goatb/tensor"
)

// A03: among many setups of valid lengths some failed, and said no more than
// that they had.
func TestA03(t *testing.T) {
	b := newBed(t)
	op := b.op(t3Paged())
	rng := random(3)
	describe := func(batch, columns int64, contexts []int32) atb.VariantPack {
		in := []atb.Tensor{
			{Desc: tensor.Of(tensor.Float32, batch, 1, 2)}, {Desc: tensor.Of(tensor.Float32, 128, 4, 1, 2)}, {Desc: tensor.Of(tensor.Float32, 128, 4, 1, 2)},
			{Desc: tensor.Of(tensor.Int32, batch, columns)}, b.put(lengths(contexts...)),
		}
		return atb.VariantPack{In: in, Out: in[:1]}
	}
	for i := range 1000 {
		batch := 1 + rng.Int64N(8)
		contexts := make([]int32, batch)
		for s := range contexts {
			contexts[s] = int32(1 + rng.IntN(64))
		}
		_, err := op.Setup(describe(batch, 16, contexts), b.c)
		require.NoError(t, err, "setup %d, lengths %v", i, contexts)
		if i%100 == 99 {
			_, err = op.Setup(describe(1, 16, []int32{65}), b.c)
			require.ErrorIs(t, err, status.ErrInvalidParam)
			assert.EqualError(t, err, "PagedAttentionOperation: setup: input 4 (contextLens): sequence 0: length 65 needs 17 blocks of 4, its table row has 16 (ERROR_INVALID_PARAM)")
		}
	}
	x := b.on(op, t3Pages(2, 3)...)
	x.ws = b.setup(op, x.pack)
	assert.InDeltaSlice(t, t3Over[3], x.again(), tight)
}

// A09: the error of a device queue ended the process.
func TestA09(t *testing.T) {
	for _, bad := range []struct {
		spec atb.Spec
		in   []operand
		text string
	}{
		{shape.Gather{}, []operand{f32(counting(8), 4, 2), ints([]int32{0, 5})}, "GatherOperation: execute: "},
		{probe{Mode: probeFails}, []operand{f32(counting(8), 8)}, "ProbeOperation: execute: "},
		{probe{Mode: probePanics}, []operand{f32(counting(8), 8)}, "ProbeOperation: execute: "},
	} {
		for _, policy := range policies {
			b := newBed(t, atb.WithStreams(2), atb.WithPolicy(policy))
			other := bedOn(t, b.dev)
			wrong := b.op(bad.spec)
			require.NoError(t, wrong.SetStream(1))
			p := b.pack(wrong, b.putAll(bad.in)...)
			ws := b.setup(wrong, p)
			right := b.ready(muls(2), f32([]float64{1, 2}, 2))
			elsewhere := other.ready(muls(3), f32([]float64{1, 2}, 2))

			b.execute(wrong, p, ws)
			right.execute(right.op, right.pack, right.ws)
			assert.Equal(t, []float64{3, 6}, elsewhere.again(), "another context of the device")
			err := b.c.Synchronize(t.Context())
			require.ErrorIs(t, err, status.ErrRuntimeFail)
			assert.ErrorContains(t, err, bad.text)
			assert.Equal(t, []float64{2, 4}, right.out(0), "the other stream went on")
			assert.Equal(t, []float64{2, 4}, right.again(), "and the context does")
			b.execute(wrong, p, ws)
			require.Error(t, b.c.Synchronize(t.Context()), "the operation can be executed, and fails, again")
		}
	}
}

// A11: keys were written into a cache of another layout.
func TestA11(t *testing.T) {
	b := newBed(t)
	key, slots := draw(random(11), 2, 2, 8), ints([]int32{0, 1})
	for _, cfg := range []cache.KVCacheConfig{cache.KeyAndValue, cache.KeyAndValueNZ} {
		right := f32(repeat(0, 64), 2, 2, 2, 8)
		if cfg == cache.KeyAndValueNZ {
			right = f32(repeat(0, 64), 2, 1, 2, 16)
		}
		wrong := right // KeyAndValueNZ wants fractal_nz, which this is not
		if cfg == cache.KeyAndValue {
			wrong.desc.Format = tensor.FractalNZ
		}
		in := b.putAll([]operand{key, key, wrong, wrong, slots})
		op := b.op(cache.ReshapeAndCache{KVCacheCfg: cfg})
		_, err := op.Setup(atb.VariantPack{In: in, Out: in[2:4]}, b.c)
		require.ErrorIs(t, err, status.ErrInvalidTensorIniMatch)
		assert.ErrorContains(t, err, "ReshapeAndCacheOperation: setup: ")
		assert.Equal(t, repeat(0, 64), valuesOf(in[2]))
	}
}

// A21: what was launched kept no hold on memory that the user had let go of.
func TestA21(t *testing.T) {
	rng := random(21)
	spec := norm.RMS(norm.Plain, 1e-5)
	spec.Norm.QuantType = norm.QuantInt8
	in := []operand{draw(rng, 4, 64), draw(rng, 64), draw(rng, 64), f32([]float64{0.0625}, 1), ints([]int8{1})}
	want := cold(t, spec, in...)
	for _, policy := range policies {
		b := newBed(t, atb.WithPolicy(policy))
		whole := func(size int64) atb.Buffer {
			m, err := b.c.Alloc(size)
			require.NoError(t, err)
			return m
		}
		out := b.blank(in[0].desc.WithShape(4, 64))
		out.Desc.DType = tensor.Int8
		out.Data = out.Data.At(0, out.Desc.Bytes())
		release := b.hold(0)
		var sizes []int64
		func() {
			op, err := atb.New(spec)
			require.NoError(t, err)
			p := atb.VariantPack{Out: []atb.Tensor{out}}
			for _, o := range in {
				m := whole(o.desc.Bytes())
				copy(m.Bytes(), o.data)
				p.In = append(p.In, atb.Tensor{Desc: o.desc, Data: m})
			}
			n, err := op.Setup(p, b.c)
			require.NoError(t, err)
			require.Positive(t, n, "a workspace is at stake too")
			ws := whole(n)
			require.NoError(t, op.Execute(p, ws, b.c))
			for _, x := range append(p.In, atb.Tensor{Data: ws}) {
				sizes = append(sizes, x.Data.Size())
				require.NoError(t, b.c.Free(x.Data))
			}
			require.NoError(t, op.Close())
		}()
		runtime.GC()
		runtime.GC()
		for range 4 {
			for _, size := range sizes {
				fill(whole(size), poison)
			}
		}
		release()
		b.sync()
		assert.Equal(t, want[0], out.Data.Bytes(), policy)
	}
}

// A23: asking for a workspace size while a stream was not free to run ended in
// a deadlock.
func TestA23(t *testing.T) {
	for _, policy := range policies {
		b := newBed(t, atb.WithPolicy(policy))
		busy := b.ready(muls(2), f32([]float64{1, 2}, 2))
		release := b.hold(0)
		busy.execute(busy.op, busy.pack, busy.ws)
		op := b.op(shape.Softmax{Axes: []int64{0}})
		x := b.on(op, draw(random(23), 40000))
		var size int64
		b.within(func() (err error) {
			if size, err = op.Setup(x.pack, b.c); err == nil {
				err = busy.op.Close()
			}
			return err
		})
		assert.Positive(t, size)
		release()
		assert.Equal(t, []float64{2, 4}, busy.out(0), policy)
	}
}

// A25: a tiling larger than a block of the ring failed late, and only when
// memory was short. It is refused at Setup, whatever the policy.
func TestA25(t *testing.T) {
	const n = 400_000
	for _, policy := range policies {
		b := newBed(t, atb.WithPolicy(policy))
		op := b.op(t3Paged())
		in := []atb.Tensor{
			{Desc: tensor.Of(tensor.Float32, n, 1, 2)}, {Desc: tensor.Of(tensor.Float32, 1, 1, 1, 2)}, {Desc: tensor.Of(tensor.Float32, 1, 1, 1, 2)},
			{Desc: tensor.Of(tensor.Int32, n, 1)}, b.put(lengths(make([]int32, n)...)),
		}
		_, err := op.Setup(atb.VariantPack{In: in, Out: in[:1]}, b.c)
		require.ErrorIs(t, err, status.ErrOutOfHostMemory, policy)
		assert.ErrorContains(t, err, "PagedAttentionOperation: setup: ")
		assert.ErrorContains(t, err, "3145728")

		c := b.ready(probe{Add: 1, Words: 3<<20/8 - 100}, f32([]float64{1}, 1))
		assert.Equal(t, []float64{2}, c.again(), "a tiling that nearly fills a block, %s", policy)
	}
}

// A45: a plan was found by the address of its data alone.
func TestA45(t *testing.T) {
	b := newBed(t)
	m, out := b.area(24), b.area(24)
	x := f32(counting(6), 6)
	copy(m.Bytes(), x.data)
	op := b.op(shape.Transpose{Perm: []int64{1, 0}})
	for range 2 {
		for _, tt := range []struct {
			dims [2]int64
			want []float64
		}{{[2]int64{2, 3}, []float64{0, 3, 1, 4, 2, 5}}, {[2]int64{3, 2}, []float64{0, 2, 4, 1, 3, 5}}} {
			p := atb.VariantPack{
				In:  []atb.Tensor{{Desc: tensor.Of(tensor.Float32, tt.dims[0], tt.dims[1]), Data: m}},
				Out: []atb.Tensor{{Desc: tensor.Of(tensor.Float32, tt.dims[1], tt.dims[0]), Data: out}},
			}
			c := call{b, op, p, b.setup(op, p)}
			assert.Equal(t, tt.want, c.again(), "%v", tt.dims)
		}
	}
}

// A47: the answer to one and the same row depended on what else was in the
// batch.
func TestA47(t *testing.T) {
	const k, n = 4096, 24
	rng := random(47)
	x, w := draw(rng, 9, k), draw(rng, n, k)
	for _, workers := range []int{1, 2} {
		var alone []float64
		for batch := int64(1); batch <= 9; batch++ {
			b := bedOn(t, newDevice(t, cpu.WithWorkers(workers)))
			rows := x
			rows.desc, rows.data = x.desc.WithShape(batch, k), x.data[:batch*k*4]
			got := b.run(linear.Linear{TransposeB: true}, rows, w)
			if alone == nil {
				alone = got
			}
			assert.Equal(t, alone, got[:n], "row 0 of %d, %d workers", batch, workers)
		}
	}
	for _, dtype := range []atb.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
		for _, k := range []int64{64, 1000, 20000} {
			x, w := normals(rng, 17*k), normals(rng, n*k)
			for _, p := range []linear.Linear{{TransposeB: true}, {}} {
				weight := floats(dtype, w, k, n)
				if p.TransposeB {
					weight.desc = weight.desc.WithShape(n, k)
				}
				alone := newBed(t).run(p, floats(dtype, x[:k], 1, k), weight)
				for _, batch := range []int64{2, 3, 8, 17} {
					got := newBed(t).run(p, floats(dtype, x[:batch*k], batch, k), weight)
					assert.Equal(t, alone, got[:n], "row 0 of %d, %s, k %d, %+v", batch, dtype, k, p)
				}
			}
		}
	}
	q := t3Pages(2, 3, 1, 2, 3)
	assert.Equal(t, newBed(t).run(t3Paged(), t3Pages(2, 3)...), newBed(t).run(t3Paged(), q...)[:2])
}

// A49: a missing weight, or one of the wrong length, crashed the library.
func TestA49(t *testing.T) {
	b := newBed(t)
	x := b.put(f32(counting(8), 2, 4))
	for _, tt := range []struct {
		gamma operand
		code  status.Code
		text  string
	}{
		{operand{}, status.ErrInvalidTensorDim, "input 1 (gamma): want rank 1 to 8, got 0"},
		{f32(counting(3), 3), status.ErrInvalidTensorDim, "input 1 (gamma): want [4] or 1s before it as x is [2,4], got [3]"},
	} {
		op := b.op(norm.RMS(norm.Plain, 1e-5))
		_, err := op.Setup(atb.VariantPack{In: []atb.Tensor{x, b.put(tt.gamma)}, Out: []atb.Tensor{b.blank(x.Desc)}}, b.c)
		require.ErrorIs(t, err, tt.code)
		assert.ErrorContains(t, err, "RmsNormOperation: setup: "+tt.text)
	}
	c := b.ready(norm.RMS(norm.Plain, 1e-5), f32(counting(8), 2, 4), f32(repeat(1, 4), 4))
	c.pack.In[1].Data = atb.Buffer{}
	err := c.op.Execute(c.pack, c.ws, b.c)
	require.ErrorIs(t, err, status.ErrInvalidTensorAddr)
	assert.ErrorContains(t, err, "RmsNormOperation: execute: input 1 (gamma): want memory on the device, got")
}

// A51: an error of a kernel came out at a later wait, without its operation.
func TestA51(t *testing.T) {
	for _, bad := range []int32{4, 5, -1, 1 << 30} {
		b := newBed(t)
		c := b.ready(shape.Gather{}, f32(counting(8), 4, 2), ints([]int32{1, bad, 0}))
		after := b.ready(muls(2), f32([]float64{1}, 1))
		c.execute(c.op, c.pack, c.ws)
		err := b.c.Synchronize(t.Context())
		require.ErrorIs(t, err, status.ErrRuntimeFail)
		assert.ErrorContains(t, err, "GatherOperation: execute: ")
		assert.ErrorContains(t, err, fmt.Sprintf("index %d at position 1 is outside 0 to 3", bad))
		assert.Equal(t, []float64{2}, after.again(), "the context is usable")
	}
}
