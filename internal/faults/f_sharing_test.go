package faults_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device/cpu"
	"goatb/operation/linear"
	"goatb/operation/norm"
	"goatb/operation/shape"
	"goatb/status"
)

// F09: with stale descriptors the results of one and the same call differed.
func TestF09(t *testing.T) {
	b := newBed(t)
	rng := random(9)
	op := b.op(norm.RMS(norm.Pre, 1e-5))
	var ws atb.Buffer
	for i := range 100 {
		in := []operand{draw(rng, 3, 8), draw(rng, 3, 8), draw(rng, 8)}
		c := b.on(op, in...)
		if i%3 == 0 {
			ws = b.setup(op, c.pack)
		}
		c.execute(op, c.pack, b.areaLike(ws))
		x, residual := in[0].values(), in[1].values()
		sum := make([]float64, len(x))
		for j := range x {
			sum[j] = x[j] + residual[j]
		}
		require.Equal(t, sum, c.out(1), "call %d", i)
		require.InDeltaSlice(t, rmsOf(sum, in[2].values(), 1e-5), c.out(0), 1e-5, "call %d", i)
	}
}

// F11: a cached product kept what it had made of the weights; their new content
// at the old address had no effect.
func TestF11(t *testing.T) {
	rng := random(11)
	for _, rows := range []int64{1, 4, 40} {
		x, w := draw(rng, rows, 16), draw(rng, 24, 16)
		c := newBed(t).ready(linear.Linear{TransposeB: true}, x, w)
		for range 3 {
			assert.InDeltaSlice(t, product(x.values(), w.values(), 16), c.again(), 1e-4)
			w = draw(rng, 24, 16)
			copy(c.pack.In[1].Data.Bytes(), w.data)
		}
	}
}

// product is x·wᵀ of rows of k.
func product(x, w []float64, k int64) []float64 {
	var out []float64
	for _, row := range rowsOf(x, k) {
		for _, col := range rowsOf(w, k) {
			sum := 0.0
			for i := range k {
				sum += row[i] * col[i]
			}
			out = append(out, sum)
		}
	}
	return out
}

// F13: one operation was executed by two threads at once. A call that overlaps
// another is refused; one that is accepted is right.
func TestF13(t *testing.T) {
	b := newBed(t)
	op := b.op(muls(2))
	packs := []atb.VariantPack{b.pack(op, b.put(f32([]float64{1, 2}, 2))), b.pack(op, b.put(f32([]float64{5, 7}, 2)))}
	ws := []atb.Buffer{b.setup(op, packs[0]), b.setup(op, packs[1])}
	var wg sync.WaitGroup
	var accepted [2]atomic.Int64
	for i, p := range packs {
		wg.Go(func() {
			for accepted[i].Load() < 20 && !t.Failed() {
				_, err := op.Setup(p, b.c)
				if err == nil {
					err = op.Execute(p, ws[i], b.c)
				}
				switch {
				case err == nil:
					accepted[i].Add(1)
				case errors.Is(err, status.ErrInvalidParam):
					runtime.Gosched()
				default:
					assert.NoError(t, err)
				}
			}
		})
	}
	wg.Wait()
	b.sync()
	for i, want := range [][]float64{{2, 4}, {10, 14}} {
		assert.Equal(t, want, valuesOf(packs[i].Out[0]))
	}

	var self *atb.Op
	var inside []error
	self = b.op(&atb.If{Cond: func() (bool, error) {
		_, err := self.Setup(packs[0], b.c)
		inside = append(inside, err, self.Execute(packs[0], ws[0], b.c), self.Launch(b.c), self.Update(muls(1)), self.SetStream(0), self.Close())
		return true, nil
	}, Then: op, Else: b.op(muls(3))})
	_, err := self.Setup(packs[0], b.c)
	require.NoError(t, err)
	for _, err := range inside {
		require.ErrorIs(t, err, status.ErrInvalidParam, "a call inside another call")
		assert.ErrorContains(t, err, "IfOperation: the operation is in use by another goroutine")
	}
}

// F15: scratch memory was tied to what had made it, so two executions at once
// shared it. Here each has the workspace that it is given.
func TestF15(t *testing.T) {
	d := newDevice(t, cpu.WithWorkers(2))
	rng := random(15)
	spec := shape.Softmax{Axes: []int64{0}}
	var calls []*call
	var want [][]byte
	for range 4 {
		x := draw(rng, 40000)
		want = append(want, cold(t, spec, x)[0])
		calls = append(calls, bedOn(t, d).ready(spec, x))
	}
	for range 5 {
		var wg sync.WaitGroup
		for _, c := range calls {
			wg.Go(func() { assert.NoError(t, c.op.Execute(c.pack, c.ws, c.c)) })
		}
		wg.Wait()
		for i, c := range calls {
			assert.Equal(t, want[i], c.images()[0])
		}
	}
}

// F17: scratch memory was sized by a number of threads that nobody has: a few
// small calls wanted gigabytes. Here a worker packs into less than the half of a
// second-level cache.
func TestF17(t *testing.T) {
	for _, workers := range []int{1, 16, 512} {
		d := newDevice(t, cpu.WithWorkers(workers), cpu.WithInline())
		for _, s := range samples() {
			c := bedOn(t, d).ready(s.spec, s.in(random(17), 3)...)
			w := c.op.Workspace()
			assert.LessOrEqual(t, w.Scratch, int64(workers)*(512<<10), "%s with %d workers", s.name, workers)
			c.execute(c.op, c.pack, c.ws)
			c.sync()
		}
	}
}

// F19: a cache of the whole process had no lock.
func TestF19(t *testing.T) {
	g, err := atb.NewGlobalCache(5)
	require.NoError(t, err)
	d := newDevice(t, cpu.WithWorkers(2))
	var wg sync.WaitGroup
	for i := range 8 {
		b := bedOn(t, d, atb.WithGlobalCache(g))
		type step struct {
			*call
			want []float64
		}
		var steps []step
		for n := range int64(100) {
			x := f32(counting(n+1), n+1)
			c := b.on(b.op(muls(float32(i+1))), x)
			want := make([]float64, n+1)
			for j := range want {
				want[j] = float64(j * (i + 1))
			}
			steps = append(steps, step{c, want})
		}
		wg.Go(func() {
			for _, s := range steps {
				n, err := s.op.Setup(s.pack, b.c)
				assert.NoError(t, err)
				ws, err := b.c.Workspace(n)
				assert.NoError(t, err)
				assert.NoError(t, s.op.Execute(s.pack, ws, b.c))
			}
			assert.NoError(t, b.c.Synchronize(t.Context()))
			for _, s := range steps {
				if got := valuesOf(s.pack.Out[0]); !slices.Equal(s.want, got) {
					assert.Equal(t, s.want, got)
				}
			}
		})
	}
	wg.Wait()
	assert.Positive(t, g.Stats().Entries)
}

// F21: a plan was never used again, since a comparison could not succeed.
func TestF21(t *testing.T) {
	each(t, func(t *testing.T, s *sample) {
		b := newBed(t)
		op := b.op(s.spec)
		rng := random(21)
		same := s.in(rng, 3)
		for range 10 {
			x := b.on(op, s.in(rng, 3)...)
			for i, o := range same {
				if o.host {
					x.pack.In[i] = b.put(o)
				}
			}
			x.ws = b.setup(op, x.pack)
			x.execute(op, x.pack, x.ws)
			b.sync()
		}
		st := b.c.Stats()
		assert.EqualValues(t, 9, st.SetupHits, "of %d setups", st.Setups)
		kernels := int64(len(op.Graph().Nodes))
		assert.LessOrEqual(t, st.HostTilings, kernels, "tilings of %d kernels", kernels)
	})
	// A stream of growing lengths is a hit too: only tilings depend on them.
	b := newBed(t)
	op := b.op(t3Paged())
	for _, n := range []int32{1, 2, 3, 2, 1, 3, 1, 2, 3, 1} {
		x := b.on(op, t3Pages(2, n)...)
		x.ws = b.setup(op, x.pack)
		require.InDeltaSlice(t, t3Over[n], x.again(), tight, fmt.Sprint(n))
	}
	assert.EqualValues(t, 9, b.c.Stats().SetupHits)
}
