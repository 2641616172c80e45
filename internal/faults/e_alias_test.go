package faults_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/kernelgraph"
	"goatb/operation/elementwise"
	"goatb/operation/linear"
	"goatb/operation/rope"
	"goatb/operation/shape"
	"goatb/status"
	"goatb/tensor"
)

// underEveryPlan runs f under each solver, with one plan for the whole tree and
// with one per operation.
func underEveryPlan(t *testing.T, f func(t *testing.T, b *bed)) {
	for solver := range 5 {
		for _, global := range []string{"1", "0"} {
			t.Run(fmt.Sprintf("solver=%d/global=%s", solver, global), func(t *testing.T) {
				f(t, newBed(t, atb.WithStreams(2), atb.WithVariable("ATB_WORKSPACE_MEM_ALLOC_ALG_TYPE", fmt.Sprint(solver)),
					atb.WithVariable("ATB_WORKSPACE_MEM_ALLOC_GLOBAL", global)))
			})
		}
	}
}

// graph builds a graph and sets it up.
func (b *bed) graph(g *atb.GraphBuilder, in ...operand) *call {
	b.Helper()
	op, err := g.Build()
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, op.Close()) })
	c := b.on(op, in...)
	c.ws = b.setup(op, c.pack)
	return c
}

// placed returns the offset and size of a temporary of a graph by its name.
func (c *call) placed(name string) (at, size int64) {
	c.Helper()
	g, w := c.op.Graph(), c.op.Workspace()
	for r := range g.Tensors {
		if x := &g.Tensors[r]; x.Kind == kernelgraph.Temp && x.Name == name {
			return w.Offset[r], x.Desc.Bytes()
		}
	}
	require.FailNow(c, "no temporary "+name)
	return 0, 0
}

// overlap reports whether two temporaries share bytes.
func (c *call) overlap(a, b string) bool {
	c.Helper()
	x, n := c.placed(a)
	y, m := c.placed(b)
	return x < y+m && y < x+n
}

func tanh() elementwise.Elewise { return elementwise.Of(elementwise.Tanh) }

func mapped(v []float64, f func(float64) float64) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = f(x)
	}
	return out
}

// oneRow makes a tensor one row.
func oneRow(s tensor.Shape) tensor.Shape { return tensor.ShapeOf(s.Numel()) }

// twoRows makes a tensor of 2n elements two rows.
func twoRows(s tensor.Shape) tensor.Shape { return tensor.ShapeOf(2, s.Numel()/2) }

// E01: an operation worked in place on what was read once more afterwards.
func TestE01(t *testing.T) {
	underEveryPlan(t, func(t *testing.T, b *bed) {
		x := f32([]float64{0.5, -1, 2, 3}, 4)
		one := f32(repeat(1, 4), 4)
		c := b.graph(atb.BuildGraph("G", []string{"x", "one"}, []string{"y", "z"}).
			AddSpec(add(), []string{"x", "one"}, []string{"a"}).
			AddSpec(tanh(), []string{"a"}, []string{"b"}).
			AddSpec(muls(2), []string{"a"}, []string{"c"}).
			AddSpec(muls(1), []string{"b"}, []string{"y"}).
			AddSpec(muls(1), []string{"c"}, []string{"z"}), x, one)
		assert.False(t, c.overlap("a", "b"), "a is read after b is written")
		for range 2 {
			c.again()
			assert.InDeltaSlice(t, mapped([]float64{1.5, 0, 3, 4}, math.Tanh), c.out(0), 1e-6)
			assert.Equal(t, []float64{3, 0, 6, 8}, c.out(1))
		}
	})
	// Without the second reader it does work in place.
	c := newBed(t).graph(atb.BuildGraph("G", []string{"x", "one"}, []string{"y"}).
		AddSpec(add(), []string{"x", "one"}, []string{"a"}).
		AddSpec(tanh(), []string{"a"}, []string{"b"}).
		AddSpec(muls(2), []string{"b"}, []string{"y"}), f32([]float64{0.5, -1}, 2), f32([]float64{1, 1}, 2))
	assert.True(t, c.overlap("a", "b"))
	assert.InDeltaSlice(t, []float64{2 * math.Tanh(1.5), 0}, c.again(), 1e-6)
}

// E03: a view that passed through two graphs was taken for a tensor of their
// own. Here an inner graph works in place on what it made itself.
func TestE03(t *testing.T) {
	underEveryPlan(t, func(t *testing.T, b *bed) {
		inner, err := atb.BuildGraph("Inner", []string{"v"}, []string{"w"}).
			AddSpec(tanh(), []string{"v"}, []string{"t"}).
			AddSpec(muls(2), []string{"t"}, []string{"w"}).Build()
		require.NoError(t, err)
		v := []float64{0.5, -1, 2, 3}
		c := b.graph(atb.BuildGraph("Outer", []string{"x"}, []string{"y"}).
			AddSpec(muls(3), []string{"x"}, []string{"a"}).
			Reshape("a", oneRow, "view").
			Reshape("view", twoRows, "again").
			AddNamed("inner", inner, []string{"again"}, []string{"b"}).
			AddSpec(add(), []string{"a", "b"}, []string{"y"}), f32(v, 2, 2))
		want := mapped(v, func(x float64) float64 { return 3*x + 2*math.Tanh(3*x) })
		for range 2 {
			assert.InDeltaSlice(t, want, c.again(), 1e-5)
		}
	})
}

// E17: a tensor was recycled while a reshape of it was still to be read.
func TestE17(t *testing.T) {
	underEveryPlan(t, func(t *testing.T, b *bed) {
		v := []float64{1, 2, 3, 4}
		c := b.graph(atb.BuildGraph("G", []string{"x"}, []string{"y"}).
			AddSpec(muls(2), []string{"x"}, []string{"a"}).
			Reshape("a", oneRow, "r").
			AddSpec(tanh(), []string{"r"}, []string{"early"}).
			AddSpec(muls(5), []string{"early"}, []string{"t"}).
			AddSpec(muls(7), []string{"t"}, []string{"u"}).
			AddSpec(add(), []string{"u", "r"}, []string{"y"}), f32(v, 2, 2))
		for _, name := range []string{"early", "t", "u"} {
			assert.False(t, c.overlap("a", name), name)
		}
		assert.InDeltaSlice(t, mapped(v, func(x float64) float64 { return 35*math.Tanh(2*x) + 2*x }), c.again(), 1e-4)
	})
}

// E23: two names of one storage were planned twice, and the second place won.
func TestE23(t *testing.T) {
	underEveryPlan(t, func(t *testing.T, b *bed) {
		c := b.graph(atb.BuildGraph("G", []string{"x"}, []string{"y"}).
			AddSpec(muls(2), []string{"x"}, []string{"a"}).
			Reshape("a", oneRow, "first").
			Reshape("a", oneRow, "second").
			AddSpec(add(), []string{"first", "second"}, []string{"s"}).
			AddSpec(add(), []string{"s", "second"}, []string{"y"}), f32([]float64{1, 2, 3, 4}, 2, 2))
		temps := 0
		for _, x := range c.op.Graph().Tensors {
			if x.Kind == kernelgraph.Temp {
				temps++
			}
		}
		assert.Equal(t, 2, temps, "a and s")
		assert.Equal(t, []float64{6, 12, 18, 24}, c.again())
	})
}

// E25: a tensor that is read early and once more much later lives all the way.
func TestE25(t *testing.T) {
	underEveryPlan(t, func(t *testing.T, b *bed) {
		g := atb.BuildGraph("G", []string{"x"}, []string{"y"}).
			AddSpec(muls(2), []string{"x"}, []string{"a"}).
			Reshape("a", oneRow, "late").
			AddSpec(muls(3), []string{"a"}, []string{"t0"})
		for i := range 8 {
			g.AddSpec(muls(-1), []string{fmt.Sprint("t", i)}, []string{fmt.Sprint("t", i+1)})
		}
		c := b.graph(g.Reshape("t8", oneRow, "r").AddSpec(add(), []string{"r", "late"}, []string{"y"}), f32([]float64{1, 2, 3, 4}, 2, 2))
		lives := c.op.Graph().Lives()
		assert.Equal(t, [2]int{0, 10}, [2]int{lives[0].First, lives[0].Last})
		for i := range 9 {
			assert.False(t, c.overlap("a", fmt.Sprint("t", i)))
		}
		assert.Equal(t, []float64{8, 16, 24, 32}, c.again())
	})
}

// E27: an output that was another name of an internal tensor was freed early. A
// graph's output is written by a node; one that is only a name is refused.
func TestE27(t *testing.T) {
	_, err := atb.BuildGraph("G", []string{"x"}, []string{"y"}).
		AddSpec(muls(2), []string{"x"}, []string{"a"}).
		Reshape("a", oneRow, "y").
		AddSpec(muls(3), []string{"a"}, []string{"b"}).Build()
	require.ErrorIs(t, err, status.ErrInvalidGraph)
	assert.ErrorContains(t, err, `the name "y" is an output already`)

	underEveryPlan(t, func(t *testing.T, b *bed) {
		inner, err := atb.BuildGraph("Inner", []string{"x"}, []string{"kept"}).
			AddSpec(muls(2), []string{"x"}, []string{"kept"}).
			Reshape("kept", oneRow, "v").
			AddSpec(tanh(), []string{"v"}, []string{"unread"}).Build()
		require.NoError(t, err)
		c := b.graph(atb.BuildGraph("G", []string{"x"}, []string{"y", "z"}).
			AddNamed("inner", inner, []string{"x"}, []string{"a"}).
			Reshape("a", oneRow, "view").
			AddSpec(muls(10), []string{"x"}, []string{"t"}).
			AddSpec(muls(10), []string{"t"}, []string{"z"}).
			AddSpec(muls(1), []string{"view"}, []string{"y"}), f32([]float64{1, 2, 3, 4}, 2, 2))
		for range 2 {
			assert.Equal(t, []float64{2, 4, 6, 8}, c.again())
			assert.Equal(t, []float64{100, 200, 300, 400}, c.out(1))
		}
	})
}

// E29: a shifted update in place read what it had written.
func TestE29(t *testing.T) {
	underEveryPlan(t, func(t *testing.T, b *bed) {
		for _, chunk := range []int64{1, 16} { // 16 floats are a window that can be shared
			var x, want []float64
			for i := range 4 * chunk {
				x = append(x, float64(i))
				if i < chunk {
					want = append(want, float64(i)+1)
				} else {
					want = append(want, float64(i-chunk)+1)
				}
			}
			c := b.graph(atb.BuildGraph("G", []string{"x", "one"}, []string{"y"}).
				AddSpec(add(), []string{"x", "one"}, []string{"base"}).
				AddSpec(shape.Slice{Offsets: []int64{0}, Size: []int64{chunk}}, []string{"base"}, []string{"head"}).
				AddSpec(shape.Slice{Offsets: []int64{0}, Size: []int64{3 * chunk}}, []string{"base"}, []string{"tail"}).
				AddSpec(shape.Concat{}, []string{"head", "tail"}, []string{"out"}).
				AddSpec(muls(1), []string{"out"}, []string{"y"}), f32(x, 4*chunk), f32([]float64{1}, 1))
			for range 2 {
				assert.Equal(t, want, c.again(), "x of %d", 4*chunk)
			}
		}
	})
}

// E31: an operation was believed to work in place on other memory than it did.
func TestE31(t *testing.T) {
	b := newBed(t)
	// Caches in other memory than before are copied, then updated.
	s := cacheSamples()[0]
	in := s.in(random(31), 3)
	c := b.ready(s.spec, in...)
	c.again()
	for i := range 2 {
		kept := in[2+i]
		assert.Equal(t, kept.data, c.pack.In[2+i].Data.Bytes(), "the caller's cache")
		assert.NotEqual(t, kept.data, c.pack.Out[i].Data.Bytes(), "the updated one")
	}
	// One head, so that queries, cosines and results are of one size: a result
	// over the queries is right, one over the cosines, which every head reads,
	// is refused.
	turn := []operand{draw(random(1), 3, 4), draw(random(2), 3, 4), draw(random(3), 3, 4), draw(random(4), 3, 4), ints([]int32{3})}
	want := cold(t, rope.Rope{RotaryCoeff: 2}, turn...)
	for at, ok := range []bool{true, false, false, false} {
		c := b.ready(rope.Rope{RotaryCoeff: 2}, turn...)
		c.pack.Out[0] = c.pack.In[at]
		err := c.op.Execute(c.pack, c.ws, b.c)
		if !ok {
			require.ErrorIs(t, err, status.ErrInvalidTensorAddr)
			assert.ErrorContains(t, err, fmt.Sprintf("it overlaps input %d, which the operation still reads", at))
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, want[:2], c.images()[:2])
	}
	// A sum of products of square matrices: in place on the sum only.
	sum := linear.Linear{EnAccum: true}
	factors := []operand{draw(random(5), 4, 4), draw(random(6), 4, 4), draw(random(7), 4, 4)}
	want = cold(t, sum, factors...)
	for at, ok := range []bool{false, false, true} {
		c := b.ready(sum, factors...)
		c.pack.Out[0] = c.pack.In[at]
		err := c.op.Execute(c.pack, c.ws, b.c)
		if !ok {
			require.ErrorIs(t, err, status.ErrInvalidTensorAddr, "input %d", at)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, want[0], c.images()[0])
	}
}
