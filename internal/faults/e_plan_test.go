package faults_test

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	atbctx "goatb/context"
	"goatb/operation/shape"
	"goatb/tensor"
)

// E05: the size of a tensor whose rows lie apart was counted too small. Tensors
// here are contiguous or in fractal layout; a window of wider rows is copied out.
func TestE05(t *testing.T) {
	nz := tensor.Of(tensor.Float16, 1, 1, 16, 16)
	nz.Format = tensor.FractalNZ
	assert.Equal(t, int64(512), nz.Bytes())
	underEveryPlan(t, func(t *testing.T, b *bed) {
		x := f32(counting(16), 2, 8)
		c := b.graph(atb.BuildGraph("G", []string{"x"}, []string{"y", "z"}).
			AddSpec(muls(2), []string{"x"}, []string{"wide"}).
			AddSpec(shape.Slice{Offsets: []int64{0, 0}, Size: []int64{2, 3}}, []string{"wide"}, []string{"rows"}).
			AddSpec(muls(10), []string{"rows"}, []string{"ten"}).
			AddSpec(muls(1), []string{"ten"}, []string{"y"}).
			AddSpec(muls(1), []string{"wide"}, []string{"z"}), x)
		_, size := c.placed("rows")
		assert.Equal(t, int64(2*3*4), size)
		assert.Equal(t, []float64{0, 20, 40, 160, 180, 200}, c.again())
		assert.Equal(t, mapped(counting(16), func(v float64) float64 { return 2 * v }), c.out(1))
	})
}

// E07: memory was given back although the next operation ran at the same time.
func TestE07(t *testing.T) {
	underEveryPlan(t, func(t *testing.T, b *bed) {
		for _, ordered := range []bool{false, true} {
			first, second := b.op(muls(3)), b.op(muls(5))
			other := b.op(tanh())
			for _, op := range []*atb.Op{second, other} {
				require.NoError(t, op.SetStream(1))
			}
			g, in := atb.BuildGraph("G", []string{"x"}, []string{"y", "z"}), "x"
			if ordered {
				g, in = g.OrderStreams(b.event), "y" // an event puts stream 1 behind stream 0
			}
			c := b.graph(g.
				AddSpec(muls(2), []string{"x"}, []string{"a"}).
				Add(first, []string{"a"}, []string{"y"}).
				Add(second, []string{in}, []string{"b"}).
				Add(other, []string{"b"}, []string{"z"}), f32([]float64{1, 2, -1, 4}, 4))
			if !ordered {
				assert.False(t, c.overlap("a", "b"), "nothing puts them in order")
			}
			for _, held := range []int{0, 1} {
				release := b.hold(held)
				c.execute(c.op, c.pack, c.ws)
				release()
				assert.Equal(t, []float64{6, 12, -6, 24}, c.out(0))
				from := []float64{1, 2, -1, 4}
				if ordered {
					from = []float64{6, 12, -6, 24}
				}
				assert.InDeltaSlice(t, mapped(from, func(v float64) float64 { return math.Tanh(5 * v) }), c.out(1), 1e-6)
			}
		}
	})
}

// chain is y = (tanh(2x) + 2x) * x.
func chain() *atb.GraphBuilder {
	return atb.BuildGraph("Chain", []string{"x", "w"}, []string{"y"}).
		AddSpec(muls(2), []string{"x"}, []string{"a"}).
		AddSpec(tanh(), []string{"a"}, []string{"b"}).
		AddSpec(add(), []string{"a", "b"}, []string{"c"}).
		AddSpec(mul(), []string{"c", "w"}, []string{"y"})
}

func chainOf(v []float64) []float64 {
	return mapped(v, func(x float64) float64 { return (math.Tanh(2*x) + 2*x) * x })
}

// sized sets a graph up anew for another x, and runs it.
func sized(t *testing.T, c *call, x operand) []float64 {
	t.Helper()
	c.pack = c.bed.pack(c.op, c.put(x), c.put(x))
	c.ws = c.setup(c.op, c.pack)
	c.again()
	for i := range c.pack.In {
		assert.True(t, bytes.Equal(x.data, c.pack.In[i].Data.Bytes()), "the caller's input %d", i)
	}
	return c.out(0)
}

// E09: an output shared an input's memory, and the next run had another shape.
func TestE09(t *testing.T) {
	underEveryPlan(t, func(t *testing.T, b *bed) {
		long, short := f32([]float64{1, -2, 3}, 3), f32([]float64{0.5}, 1)
		c := b.graph(chain(), long, long)
		assert.InDeltaSlice(t, chainOf(long.values()), sized(t, c, long), 1e-5)
		kept := c.pack.Out[0]
		assert.InDeltaSlice(t, chainOf(short.values()), sized(t, c, short), 1e-5)
		assert.InDeltaSlice(t, chainOf(long.values()), valuesOf(kept), 1e-5)
	})
}

// E11: two dimensions of one name were believed equal. Sizes are looked at in
// every Setup: of equal sizes a result may take the place of either operand, of
// others only of the large one.
func TestE11(t *testing.T) {
	underEveryPlan(t, func(t *testing.T, b *bed) {
		op, err := atb.BuildGraph("G", []string{"x", "y"}, []string{"z"}).
			AddSpec(muls(2), []string{"x"}, []string{"a"}).
			AddSpec(muls(3), []string{"y"}, []string{"b"}).
			AddSpec(add(), []string{"a", "b"}, []string{"s"}).
			AddSpec(muls(1), []string{"s"}, []string{"z"}).Build()
		require.NoError(t, err)
		b.Cleanup(func() { require.NoError(t, op.Close()) })
		const n = 9999
		for _, dims := range [][2]int64{{n, n}, {n, 1}, {1, n}, {1, 1}, {n, n}} {
			c := b.on(op, f32(counting(dims[0]), 1, dims[0]), f32(repeat(2, dims[1]), 1, dims[1]))
			c.ws = b.setup(op, c.pack)
			rows := max(dims[0], dims[1])
			want := mapped(counting(rows), func(v float64) float64 { return 2*math.Min(v, float64(dims[0]-1)) + 6 })
			assert.Equal(t, want, c.again(), "%v", dims)
		}
	})
}

// E13: a scalar was an unresolved shape, and one such shape stopped all
// planning. A scalar is one element here, and rank 0 is refused.
func TestE13(t *testing.T) {
	underEveryPlan(t, func(t *testing.T, b *bed) {
		c := b.graph(atb.BuildGraph("G", []string{"x", "s"}, []string{"y"}).
			AddSpec(muls(2), []string{"s"}, []string{"one"}).
			AddSpec(tanh(), []string{"one"}, []string{"t"}).
			AddSpec(add(), []string{"x", "t"}, []string{"y"}), f32([]float64{1, 2, 3}, 3), f32([]float64{0.25}, 1))
		_, size := c.placed("one")
		assert.Equal(t, int64(4), size)
		want := math.Tanh(0.5)
		assert.InDeltaSlice(t, []float64{1 + want, 2 + want, 3 + want}, c.again(), 1e-6)
	})
	b := newBed(t)
	op := b.op(muls(2))
	_, err := op.Setup(atb.VariantPack{In: []atb.Tensor{{Desc: tensor.Of(tensor.Float32)}}, Out: []atb.Tensor{{Desc: tensor.Of(tensor.Float32)}}}, b.c)
	require.Error(t, err)
}

// E15: one option was read from the field of another.
func TestE15(t *testing.T) {
	other := map[string]string{
		"ATB_TILING_POLICY": "overall", "ATB_LAUNCH_KERNEL_WITH_TILING": "0", "ATB_USE_TILING_COPY_STREAM": "1",
		"ATB_OPSRUNNER_KERNEL_CACHE_TYPE": "1", "ATB_OPSRUNNER_KERNEL_CACHE_LOCAL_COUNT": "7", "ATB_OPSRUNNER_KERNEL_CACHE_GLOBAL_COUNT": "8",
		"ATB_OPSRUNNER_KERNEL_CACHE_TILING_SIZE": "4096", "ATB_OPSRUNNER_SETUP_CACHE_ENABLE": "0", "ATB_RUNNER_POOL_SIZE": "9",
		"ATB_HOST_TILING_BUFFER_BLOCK_NUM": "200", "ATB_DEVICE_TILING_BUFFER_BLOCK_NUM": "100",
		"ATB_WORKSPACE_MEM_ALLOC_GLOBAL": "0", "ATB_WORKSPACE_MEM_ALLOC_ALG_TYPE": "2",
		"ATB_SHARE_MEMORY_NAME_SUFFIX": "s", "ATB_HOME_PATH": "/h", "LCAL_COMM_ID": "10.0.0.1:5",
		"ATB_DEVICE_SINK_FORM": "ffts", "ATB_TILING_SCHEDULE_OPTIMIZE": "0", "ATB_DEVICE_SINK_SOC": "310P", "ATB_DEVICE_SINK_DEADLINE_MS": "5",
	}
	values := func(name string) map[string]string {
		c, err := atbctx.ConfigFromEnv(func(v string) (string, bool) { return other[v], v == name })
		require.NoError(t, err, name)
		got := map[string]string{}
		for _, v := range c.Variables() {
			got[v.Name] = v.Value
		}
		return got
	}
	def := values("")
	for name, v := range def {
		if _, ok := other[name]; !ok { // a switch
			other[name] = map[string]string{"0": "1", "1": "0"}[v]
		}
	}
	policy := []string{"ATB_TILING_POLICY", "ATB_LAUNCH_KERNEL_WITH_TILING", "ATB_USE_TILING_COPY_STREAM"}
	for _, name := range slices.Sorted(maps.Keys(def)) {
		changed := []string{}
		for k, v := range values(name) {
			if v != def[k] {
				changed = append(changed, k)
			}
		}
		if slices.Contains(policy, name) {
			assert.Subset(t, policy, changed, "three spellings of the policy")
			assert.Contains(t, changed, "ATB_TILING_POLICY")
			continue
		}
		assert.Equal(t, []string{name}, changed)
		assert.Equal(t, other[name], values(name)[name])
	}
}

// E19: an arena was not planned anew when sizes changed at run time.
func TestE19(t *testing.T) {
	underEveryPlan(t, func(t *testing.T, b *bed) {
		x := f32([]float64{1}, 1)
		c := b.graph(chain(), x, x)
		for _, n := range []int64{5, 3000, 2, 1, 3000} {
			x := draw(random(uint64(n)), n)
			assert.InDeltaSlice(t, chainOf(x.values()), sized(t, c, x), 1e-4, "%d elements", n)
		}
	})
}

// E21: a result that nobody reads had no lifetime and no room.
func TestE21(t *testing.T) {
	underEveryPlan(t, func(t *testing.T, b *bed) {
		c := b.graph(atb.BuildGraph("G", []string{"x"}, []string{"y"}).
			AddSpec(muls(2), []string{"x"}, []string{"a"}).
			AddSpec(shape.Split{SplitDim: 1, SplitNum: 3}, []string{"a"}, []string{"p", "unread", "q"}).
			AddSpec(add(), []string{"p", "q"}, []string{"s"}).
			AddSpec(tanh(), []string{"s"}, []string{"unread2"}).
			AddSpec(muls(1), []string{"s"}, []string{"y"}), f32(counting(12), 2, 6))
		for _, name := range []string{"a", "p", "q"} {
			assert.False(t, c.overlap("unread", name), fmt.Sprint("unread and ", name))
		}
		assert.False(t, c.overlap("unread2", "s"))
		assert.Equal(t, []float64{8, 12, 32, 36}, c.again())
	})
}
