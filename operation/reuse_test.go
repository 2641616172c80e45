package operation_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/operation"
	"goatb/operation/elementwise"
	"goatb/status"
	"goatb/tensor"
)

// A closed operation's runner serves the next one with equal parameters, which
// brings its tilings along; one with other parameters gets its own.
func TestRunnerPool(t *testing.T) {
	b := newBed(t, atbctx.WithTilingCaches(1))
	x := b.f32([]float32{1, 2})
	once := func(s operation.Spec) []float32 {
		o := newOp(t, s)
		out := b.run(o, x)
		require.NoError(t, o.Close())
		return out
	}
	assert.Equal(t, []float32{2, 4}, once(muls(2)))
	before := b.c.Stats()
	assert.Equal(t, 1, before.PoolIdle)
	assert.Equal(t, []float32{2, 4}, once(muls(2)))
	after := b.c.Stats()
	assert.Equal(t, before.PoolHits+1, after.PoolHits)
	assert.Equal(t, before.HostTilings, after.HostTilings, "the tiling came with the runner")
	assert.Zero(t, after.SetupHits, "its plan did not: the parameters' version is no key across operations")
	assert.Equal(t, []float32{3, 6}, once(muls(3)))
	assert.Equal(t, []float32{-1, -2}, once(elementwise.Of(elementwise.Neg)))
	for range 5 {
		assert.Equal(t, []float32{2, 4}, once(muls(2)))
		assert.Equal(t, []float32{3, 6}, once(muls(3)))
	}
	assert.Equal(t, 3, b.c.Stats().PoolIdle)
}

func TestRunnerPoolSize(t *testing.T) {
	for _, size := range []int{0, 2} {
		b := newBed(t, atbctx.WithVariable("ATB_RUNNER_POOL_SIZE", fmt.Sprint(size)))
		var ops []*operation.Op
		for i := range 4 {
			o := newOp(t, muls(float32(i)))
			b.run(o, b.f32([]float32{1}))
			ops = append(ops, o)
		}
		for _, o := range ops {
			require.NoError(t, o.Close())
		}
		assert.Equal(t, size, b.c.Stats().PoolIdle)
	}
}

// Runners of graphs, conditions and events hold what is not theirs: they are not
// kept.
func TestPoolKeepsNoTrees(t *testing.T) {
	b := newBed(t)
	x := b.f32([]float32{1})
	g, err := operation.NewGraph(chain(t, 3))
	require.NoError(t, err)
	b.run(g, x)
	c := newOp(t, b.cond(&branch{}, muls(2), muls(3)))
	b.run(c, x)
	e := newOp(t, record(b.event()))
	require.NoError(t, b.fire(e, b.c))
	for _, o := range []*operation.Op{g, c, e} {
		require.NoError(t, o.Close())
	}
	b.sync()
	assert.Zero(t, b.c.Stats().PoolIdle)
}

// What a Setup may find unchanged and what it must not.
func TestSetupReuse(t *testing.T) {
	b := newBed(t, atbctx.WithStreams(2))
	o := b.op(shift{})
	x, y := b.f32([]float32{1, 2}), b.f32([]float32{1, 2, 3})
	base := b.pack(o, x, host(1, 2))
	b.setup(o, base)
	with := func(change func(p *operation.VariantPack)) operation.VariantPack {
		p := operation.VariantPack{In: append([]device.Tensor(nil), base.In...), Out: append([]device.Tensor(nil), base.Out...)}
		change(&p)
		return p
	}
	for _, tt := range []struct {
		name   string
		pack   operation.VariantPack
		before func()
		hit    bool
	}{
		{"nothing", base, nil, true},
		{"addresses", with(func(p *operation.VariantPack) { p.In[0] = b.f32([]float32{7, 8}) }), nil, true},
		{"host values", with(func(p *operation.VariantPack) { p.In[1] = host(3, 4) }), nil, true},
		{"policy", base, func() { require.NoError(t, b.c.SetPolicy("overall")) }, true},
		{"host values of another plan", with(func(p *operation.VariantPack) { p.In[1] = host(30, 4) }), nil, false},
		{"and back", base, nil, false},
		{"input shape", operation.VariantPack{In: []device.Tensor{y, host(1, 2)}, Out: []device.Tensor{b.empty(y.Desc)}}, nil, false},
		{"shape and back", base, nil, false},
		{"number of values", with(func(p *operation.VariantPack) { p.In[1] = host(1, 2, 3) }), nil, false},
		{"values and back", base, nil, false},
		{"parameters", base, func() { require.NoError(t, o.Update(shift{Bias: 1})) }, false},
		{"equal parameters", base, func() { require.NoError(t, o.Update(shift{Bias: 1})) }, true},
		{"stream", base, func() { require.NoError(t, o.SetStream(1)) }, false},
		{"same stream", base, func() { require.NoError(t, o.SetStream(1)) }, true},
		{"streams of the context", base, func() {
			s, err := b.c.Stream(0)
			require.NoError(t, err)
			require.NoError(t, b.c.SetStreams(s, s))
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.before != nil {
				tt.before()
			}
			n := b.c.Stats().SetupHits
			b.setup(o, tt.pack)
			assert.Equal(t, tt.hit, b.c.Stats().SetupHits > n)
		})
	}
	off := newBed(t, atbctx.WithSetupReuse(false))
	o = off.op(shift{})
	p := off.pack(o, off.f32([]float32{1}), host(1))
	for range 3 {
		off.setup(o, p)
	}
	assert.Zero(t, off.c.Stats().SetupHits)
	assert.Equal(t, int64(3), off.c.Stats().Setups)
}

// Ten equal steps: nine Setups are reused and one tiling is computed. Its 16 bytes
// are moved once, with the launch that the stream keeps, where the local cache (levels
// 1 and 3) says that they are still the same.
func TestCounters(t *testing.T) {
	for levels, moved := range map[int]int64{0: 160, 1: 16, 2: 160, 3: 16} {
		want := int64(1)
		if levels == 0 {
			want = 10
		}
		b := newBed(t, atbctx.WithTilingCaches(levels))
		o := b.op(shift{})
		p := b.pack(o, b.f32([]float32{1}), host(1))
		for range 10 {
			b.execute(o, p, b.setup(o, p))
			b.sync()
		}
		s := b.c.Stats()
		assert.Equal(t, int64(9), s.SetupHits)
		assert.Equal(t, int64(10), s.Executes)
		assert.Equal(t, int64(10), s.Kernels)
		assert.Equal(t, want, s.HostTilings, "caches %d", levels)
		assert.Equal(t, moved, s.BytesMoved, "caches %d", levels)
		assert.Equal(t, s.HostTilings, max(s.Misses, int64(10*(1-min(levels, 1)))), "each tiling is a miss of the caches that are on")
	}
}

// Tilings are shared by operations of a type through the global cache, also
// between contexts where the user asks for it.
func TestGlobalCacheIsShared(t *testing.T) {
	b := newBed(t, atbctx.WithTilingCaches(2))
	x := b.f32([]float32{1, 2})
	for range 3 {
		assert.Equal(t, []float32{2, 4}, b.run(b.op(muls(2)), x))
	}
	assert.Equal(t, int64(1), b.c.Stats().HostTilings)
	b.c = b.context(atbctx.WithGlobalCache(b.c.Env().Global))
	assert.Equal(t, []float32{2, 4}, b.run(b.op(muls(2)), x))
	assert.Zero(t, b.c.Stats().HostTilings)
	assert.Equal(t, []float32{3, 6}, b.run(b.op(muls(3)), x), "other parameters")
	assert.Equal(t, int64(1), b.c.Stats().HostTilings)
}

// A tiling above the size of a cache slot is computed every time.
func TestSlotSize(t *testing.T) {
	b := newBed(t, atbctx.WithVariable("ATB_OPSRUNNER_KERNEL_CACHE_TILING_SIZE", "8"))
	o := b.op(shift{})
	p := b.pack(o, b.f32([]float32{1}), host(1))
	for range 3 {
		b.execute(o, p, b.setup(o, p))
	}
	b.sync()
	assert.Equal(t, int64(3), b.c.Stats().HostTilings)
	assert.Zero(t, b.c.Stats().Misses)
}

// Growing lengths, as in decoding: every Setup is a hit, one tiling for the one
// kernel that depends on them, no allocation.
func TestSteadyState(t *testing.T) {
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			b := newBed(t, atbctx.WithPolicy(policy))
			g := b.shifted()
			lengths := []int32{0, 1}
			p := b.pack(g, b.f32([]float32{1}), host(lengths...))
			copy(device.View[int32](p.In[1].Host), lengths)
			ws := b.setup(g, p)
			live := device.View[int32](p.In[1].Host)
			step := func() {
				live[0] = (live[0] + 1) % 10
				if _, err := g.Setup(p, b.c); err != nil {
					t.Error(err)
				}
				if err := g.Execute(p, ws, b.c); err != nil {
					t.Error(err)
				}
				if err := b.c.Synchronize(t.Context()); err != nil {
					t.Error(err)
				}
			}
			for range 400 {
				step()
			}
			before := b.c.Stats()
			assert.Zero(t, testing.AllocsPerRun(100, step))
			after := b.c.Stats()
			n := after.Setups - before.Setups
			assert.Equal(t, n, after.SetupHits-before.SetupHits)
			assert.LessOrEqual(t, after.HostTilings-before.HostTilings, n)
			assert.Equal(t, []float32{10 * (2 + float32(live[0]) + 1)}, b.values(p.Out[0]))
		})
	}
}

// New weights in the same buffer are used; the same shapes with another number
// of elements per axis are another problem.
func TestDataAreNotCached(t *testing.T) {
	b := newBed(t)
	o := b.op(add())
	x, w := b.f32([]float32{1, 2}), b.f32([]float32{10, 20})
	assert.Equal(t, []float32{11, 22}, b.run(o, x, w))
	copy(device.View[float32](w.Data.Bytes()), []float32{5, 5})
	assert.Equal(t, []float32{6, 7}, b.run(o, x, w))

	four := []float32{1, 2, 3, 4}
	wide, tall := b.f32(four, 2, 2), b.f32(four, 4, 1)
	row := b.f32([]float32{10, 20}, 1, 2)
	assert.Equal(t, []float32{11, 22, 13, 24}, b.run(o, wide, row))
	assert.Equal(t, []float32{11, 21, 12, 22, 13, 23, 14, 24}, b.run(o, tall, row))
	assert.Equal(t, tensor.Of(tensor.Float32, 4, 1), tall.Desc)
	assert.Equal(t, []float32{11, 22, 13, 24}, b.run(o, wide, row))
}

// A Setup without tensors stands for that of the last ones: host data are read
// again, a plan that is out of date is made anew, and after a Setup that failed
// there are none.
func TestSetupOfItsOwnTensors(t *testing.T) {
	for _, reuse := range []bool{true, false} {
		b := newBed(t, atbctx.WithSetupReuse(reuse))
		o := b.op(shift{})
		own := operation.VariantPack{}
		_, err := o.Setup(own, b.c)
		require.ErrorIs(t, err, status.ErrInvalidInTensorNum, "there is no last Setup")
		p := b.pack(o, b.f32([]float32{1}), host(2, 3))
		b.execute(o, p, b.setup(o, p))
		assert.Equal(t, []float32{6}, b.values(p.Out[0]))
		values := device.View[int32](p.In[1].Host)
		hits := b.c.Stats().SetupHits
		for i := range int32(3) {
			values[0] = i
			_, err = o.Setup(own, b.c)
			require.NoError(t, err)
			b.execute(o, own, device.Buffer{})
			assert.Equal(t, []float32{float32(i) + 4}, b.values(p.Out[0]))
		}
		assert.Equal(t, map[bool]int64{true: 3, false: 0}[reuse], b.c.Stats().SetupHits-hits)
		values[0] = 15 // asks for another plan
		size, err := o.Setup(own, b.c)
		require.NoError(t, err)
		b.execute(o, own, b.empty(tensor.Of(tensor.Uint8, size)).Data)
		assert.Equal(t, []float32{19}, b.values(p.Out[0]))
		require.NoError(t, o.Update(shift{Bias: 1}))
		_, err = o.Setup(own, b.c)
		require.NoError(t, err)
		other := newBed(t)
		_, err = o.Setup(own, other.c)
		require.ErrorIs(t, err, status.ErrInvalidInTensorNum, "another context")
		_, err = o.Setup(p, b.c)
		require.NoError(t, err)
		values[0] = 101
		_, err = o.Setup(own, b.c)
		require.ErrorIs(t, err, status.ErrInvalidParam)
		values[0] = 1
		_, err = o.Setup(own, b.c)
		require.ErrorIs(t, err, status.ErrInvalidInTensorNum, "the last Setup failed")
	}
}
