package faults_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/operation/linear"
	"goatb/operation/norm"
)

// B01: at the second launch with another workspace some kernels still had the
// address of the first.
func TestB01(t *testing.T) {
	each(t, func(t *testing.T, s *sample) {
		in := s.in(random(1), 4)
		want := cold(t, s.spec, in...)
		for _, policy := range policies {
			b := newBed(t, atb.WithPolicy(policy))
			c := b.ready(s.spec, in...)
			first := c.ws
			c.execute(c.op, c.pack, first)
			b.sync()
			fill(first, poison)
			c.refill(in)
			c.ws = b.areaLike(first)
			c.execute(c.op, c.pack, c.ws)
			assert.Equal(t, want, c.images(), "%s, another workspace alone", policy)
			x := b.on(c.op, in...)
			x.ws = b.areaLike(first)
			x.execute(x.op, x.pack, x.ws)
			assert.Equal(t, want, x.images(), "%s, everything elsewhere", policy)
			for _, v := range first.Bytes() {
				require.Equal(t, byte(poison), v, "the first workspace was touched")
			}
		}
	})
}

// B03: a cached kernel remembered how its tiling travelled, and was used where
// tilings travel in another way.
func TestB03(t *testing.T) {
	each(t, func(t *testing.T, s *sample) {
		in := s.in(random(3), 3)
		want := cold(t, s.spec, in...)
		b := newBed(t)
		c := b.ready(s.spec, in...)
		for _, policy := range []string{"overall", "kernel-follow", "multi-stream", "kernel-follow", "overall", "multi-stream", "overall"} {
			require.NoError(t, b.c.SetPolicy(policy))
			x := b.on(c.op, in...)
			x.ws = c.ws
			x.execute(x.op, x.pack, x.ws)
			assert.Equal(t, want, x.images(), "%s, execute alone", policy)
			x = b.on(c.op, in...)
			x.ws = b.setup(x.op, x.pack)
			x.execute(x.op, x.pack, x.ws)
			assert.Equal(t, want, x.images(), policy)
		}
	})
}

// B05: a replay computed its tilings anew. Here the repetition of a call does
// not, whatever the policy.
func TestB05(t *testing.T) {
	each(t, func(t *testing.T, s *sample) {
		for _, policy := range policies {
			b := newBed(t, atb.WithPolicy(policy))
			c := b.ready(s.spec, s.in(random(5), 3)...)
			c.execute(c.op, c.pack, c.ws)
			b.sync()
			before := b.c.Stats().HostTilings
			require.Positive(t, before)
			for range 3 {
				_, err := c.op.Setup(c.pack, b.c)
				require.NoError(t, err)
				c.execute(c.op, c.pack, c.ws)
				b.sync()
			}
			assert.Equal(t, before, b.c.Stats().HostTilings, policy)
		}
	})
}

// B07: giving ring memory back called a function of an object that was gone.
func TestB07(t *testing.T) {
	for _, policy := range policies {
		d := newDevice(t)
		var allocs, frees [2]atomic.Int64
		var held [2]atb.Buffer
		ring := func(i int, take func(int64) (atb.Buffer, error)) (func(int64) (atb.Buffer, error), func(atb.Buffer) error) {
			return func(size int64) (atb.Buffer, error) {
					allocs[i].Add(1)
					m, err := take(size)
					held[i] = m
					return m, err
				}, func(m atb.Buffer) error {
					frees[i].Add(1)
					assert.Equal(t, held[i], m)
					return d.Free(m)
				}
		}
		onDevice, offDevice := ring(0, d.Reserve)
		onHost, offHost := ring(1, d.AllocHost)
		c, err := atb.NewContext(d, atb.WithEnv(noEnv), atb.WithPolicy(policy), atb.WithTilingAllocator(onDevice, offDevice), atb.WithHostTilingAllocator(onHost, offHost))
		require.NoError(t, err)
		b := &bed{TB: t, dev: d, c: c}
		x := b.ready(muls(2), f32([]float64{3}, 1))
		for range 3 {
			assert.Equal(t, []float64{6}, x.again())
		}
		done := make(chan error)
		go func() { done <- c.Close() }()
		require.NoError(t, c.Close())
		require.NoError(t, <-done)
		require.NoError(t, c.Close(), "a third time")
		for i := range allocs {
			assert.EqualValues(t, 1, allocs[i].Load())
			assert.Equal(t, allocs[i].Load(), frees[i].Load(), "each area is given back once")
		}
	}
}

// B09: the executor of an operation that must not be cached was cached.
func TestB09(t *testing.T) {
	for _, policy := range policies {
		b := newBed(t, atb.WithPolicy(policy))
		g := atb.BuildGraph("Uncached", []string{"x"}, []string{"y"}).
			AddSpec(muls(2), []string{"x"}, []string{"twice"}).
			AddSpec(probe{Add: 1, Uncached: true}, []string{"twice"}, []string{"y"})
		op, err := g.Build()
		require.NoError(t, err)
		b.Cleanup(func() { require.NoError(t, op.Close()) })
		c := b.on(op, f32([]float64{3, 4}, 2))
		c.ws = b.setup(op, c.pack)
		for range 3 {
			assert.Equal(t, []float64{7, 9}, c.again())
		}
		st := b.c.Stats()
		if policy == "device-sink" {
			assert.EqualValues(t, 2, st.HostTilings, "both are part of the captured graph")
			continue
		}
		assert.EqualValues(t, 1, st.Misses, "the cached kernel alone is looked up and missed")
		assert.EqualValues(t, 1, st.Global.Entries, "and stored")
		assert.EqualValues(t, 2, st.LocalHits)
		assert.EqualValues(t, 1+3, st.HostTilings, "the uncached one is computed for each launch")
	}
}

// B11: a product that needed another kernel graph for a long axis kept the nodes
// of the short one, and changed the stored parameters.
func TestB11(t *testing.T) {
	rng := random(11)
	for _, p := range []linear.Linear{{}, {TransposeA: true}, {TransposeB: true}, {TransposeA: true, TransposeB: true}} {
		b := newBed(t)
		op := b.op(p)
		shape := func(rows, cols int64, swap bool) []int64 {
			if swap {
				return []int64{cols, rows}
			}
			return []int64{rows, cols}
		}
		short := []operand{draw(rng, shape(4, 3, p.TransposeA)...), draw(rng, shape(3, 5, p.TransposeB)...)}
		long := []operand{draw(rng, shape(4, 70000, p.TransposeA)...), draw(rng, shape(70000, 5, p.TransposeB)...)}
		want := map[int][]float64{}
		for i, in := range [][]operand{short, long, short, long, short} {
			x := b.on(op, in...)
			x.ws = b.setup(op, x.pack)
			assert.Equal(t, p, op.Params(), "the parameters after setup")
			got := x.again()
			if want[i%2] == nil {
				want[i%2] = got
				k := []int64{3, 70000}[i%2]
				a := transposedIf(p.TransposeA, in[0].values(), k, 4)
				w := transposedIf(!p.TransposeB, in[1].values(), k, 5)
				// Sums of 70000 products of up to 16 in float32, in blocks.
				assert.InDeltaSlice(t, product(a, w, k), got, 0.02, "%+v", p)
			}
			assert.Equal(t, want[i%2], got, "%+v, call %d", p, i)
		}
	}
}

// transposedIf returns [cols,rows] of a matrix [rows,cols] when there is need.
func transposedIf(need bool, m []float64, rows, cols int64) []float64 {
	if !need {
		return m
	}
	out := make([]float64, len(m))
	for r := range rows {
		for c := range cols {
			out[c*rows+r] = m[r*cols+c]
		}
	}
	return out
}

// B13: cleaning up after a launch gave away what the operation needs for the
// next one.
func TestB13(t *testing.T) {
	each(t, func(t *testing.T, s *sample) {
		in := s.in(random(13), 3)
		want := cold(t, s.spec, in...)
		for _, policy := range policies {
			b := newBed(t, atb.WithPolicy(policy))
			c := b.ready(s.spec, in...)
			for range 3 {
				c.refill(in)
				c.execute(c.op, c.pack, c.ws)
				assert.Equal(t, want, c.images(), policy)
			}
		}
	})
}

// B43: inputs that a graph needs no more were given to other tensors, though
// the caller still reads them.
func TestB43(t *testing.T) {
	rng := random(43)
	for _, solver := range []string{"0", "1", "2", "3", "4"} {
		for _, global := range []string{"0", "1"} {
			b := newBed(t, atb.WithVariable("ATB_WORKSPACE_MEM_ALLOC_ALG_TYPE", solver), atb.WithVariable("ATB_WORKSPACE_MEM_ALLOC_GLOBAL", global))
			op, err := atb.BuildGraph("Chain", []string{"x", "gamma"}, []string{"y"}).
				AddSpec(muls(2), []string{"x"}, []string{"a"}).
				AddSpec(norm.RMS(norm.Plain, 1e-5), []string{"a", "gamma"}, []string{"b"}).
				AddSpec(muls(3), []string{"b"}, []string{"c"}).
				AddSpec(add(), []string{"c", "b"}, []string{"y"}).Build()
			require.NoError(t, err)
			b.Cleanup(func() { require.NoError(t, op.Close()) })
			x, gamma := draw(rng, 3, 8), draw(rng, 8)
			c := b.on(op, x, gamma)
			c.ws = b.setup(op, c.pack)
			want := rmsOf(x.values(), gamma.values(), 1e-5/4)
			for i := range want {
				want[i] *= 4
			}
			for range 3 {
				assert.InDeltaSlice(t, want, c.again(), 1e-5)
				assert.Equal(t, x.data, c.pack.In[0].Data.Bytes(), "solver %s", solver)
				assert.Equal(t, gamma.data, c.pack.In[1].Data.Bytes(), "solver %s", solver)
			}
		}
	}
}
