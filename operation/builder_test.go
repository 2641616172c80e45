package operation_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/operation"
	"goatb/operation/shape"
	"goatb/status"
	"goatb/tensor"
)

type names = []string

func (b *bed) build(g *operation.GraphBuilder) *operation.Op {
	b.Helper()
	o, err := g.Build()
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, o.Close()) })
	return o
}

// Nodes given in any order run in one that is right: y = ((2x)+(3x))*(2x).
func TestBuilderTakesAnyOrder(t *testing.T) {
	steps := []func(g *operation.GraphBuilder){
		func(g *operation.GraphBuilder) { g.AddSpec(muls(2), names{"x"}, names{"a"}) },
		func(g *operation.GraphBuilder) { g.AddSpec(muls(3), names{"x"}, names{"b"}) },
		func(g *operation.GraphBuilder) { g.AddSpec(add(), names{"a", "b"}, names{"c"}) },
		func(g *operation.GraphBuilder) { g.AddSpec(mul(), names{"c", "a"}, names{"y"}) },
		func(g *operation.GraphBuilder) {
			g.Reshape("a", func(s tensor.Shape) tensor.Shape { return tensor.ShapeOf(s.Numel(), 1) }, "a column")
		},
		func(g *operation.GraphBuilder) { g.AddSpec(softmax(), names{"a column"}, names{"ones"}) },
	}
	for seed := range uint64(20) {
		b := newBed(t)
		g := operation.BuildGraph("Any", names{"x"}, names{"y", "ones"})
		for _, i := range rand.New(rand.NewPCG(3, seed)).Perm(len(steps)) {
			steps[i](g)
		}
		o := b.build(g)
		x := b.f32([]float32{1, 2})
		p := b.pack(o, x)
		assert.Equal(t, tensor.Of(tensor.Float32, 2, 1), p.Out[1].Desc)
		ws := b.setup(o, p)
		b.execute(o, p, ws)
		assert.Equal(t, []float32{10, 40}, b.values(p.Out[0]))
		assert.Equal(t, []float32{1, 1}, b.values(p.Out[1]))
	}
}

// The order of the list is kept where it can be.
func TestBuilderKeepsTheOrder(t *testing.T) {
	b := newBed(t)
	g := operation.BuildGraph("", names{"x"}, names{"y"})
	g.AddNamed("late", newOp(t, add()), names{"a", "b"}, names{"y"})
	g.AddNamed("first", newOp(t, muls(2)), names{"x"}, names{"a"})
	g.AddNamed("second", newOp(t, muls(3)), names{"x"}, names{"b"})
	o := b.build(g)
	x := b.f32([]float32{1})
	b.setup(o, b.pack(o, x))
	var order []string
	for _, n := range o.Graph().Nodes {
		order = append(order, n.Path)
	}
	assert.Equal(t, []string{"first", "second", "late"}, order)
}

// A tensor that several nodes write, or that a node updates in place: the order
// of the list decides who comes first.
func TestBuilderUpdatesInPlace(t *testing.T) {
	b := newBed(t)
	g := operation.BuildGraph("", names{"x"}, names{"y", "old"})
	g.AddSpec(muls(2), names{"x"}, names{"t"})
	g.AddSpec(muls(1), names{"t"}, names{"old"})
	g.AddSpec(muls(10), names{"t"}, names{"t"})
	g.AddSpec(muls(1), names{"t"}, names{"y"})
	o := b.build(g)
	p := b.pack(o, b.f32([]float32{1, 2}))
	ws := b.setup(o, p)
	b.execute(o, p, ws)
	assert.Equal(t, []float32{20, 40}, b.values(p.Out[0]))
	assert.Equal(t, []float32{2, 4}, b.values(p.Out[1]))

	g = operation.BuildGraph("", names{"x"}, names{"y"})
	g.AddSpec(muls(10), names{"x"}, names{"x"})
	g.AddSpec(muls(1), names{"x"}, names{"y"})
	o = b.build(g)
	x := b.f32([]float32{1, 2})
	assert.Equal(t, []float32{10, 20}, b.run(o, x))
	assert.Equal(t, []float32{10, 20}, b.values(x), "the graph updates its input, as it says")
}

func TestViewsOfViews(t *testing.T) {
	b := newBed(t)
	column := func(s tensor.Shape) tensor.Shape { return tensor.ShapeOf(s.Numel(), 1) }
	wrap := func(s tensor.Shape) tensor.Shape { return tensor.ShapeOf(append([]int64{1}, s.Dims()...)...) }
	g := operation.BuildGraph("", names{"x"}, names{"y"})
	g.Reshape("x", column, "v").Reshape("v", wrap, "w")
	g.AddSpec(muls(2), names{"w"}, names{"y"})
	o := b.build(g)
	p := b.pack(o, b.f32([]float32{1, 2, 3}))
	assert.Equal(t, tensor.Of(tensor.Float32, 1, 3, 1), p.Out[0].Desc, "the functions compose")
	ws := b.setup(o, p)
	b.execute(o, p, ws)
	assert.Equal(t, []float32{2, 4, 6}, b.values(p.Out[0]))
}

func TestBuilderChunks(t *testing.T) {
	b := newBed(t)
	g := operation.BuildGraph("", names{"x"}, names{"y"})
	g.AddSpec(muls(2), names{"x"}, names{"y"}).Chunk("x", 3, 2)
	assert.Equal(t, []float32{10, 12}, b.run(b.build(g), b.f32([]float32{1, 2, 3, 4, 5, 6})))
}

func TestBuilderRefuses(t *testing.T) {
	same := func(s tensor.Shape) tensor.Shape { return s }
	two := func(g *operation.GraphBuilder, in, out string) { g.AddSpec(muls(2), names{in}, names{out}) }
	for _, tt := range []struct {
		name, want string
		make       func(g *operation.GraphBuilder)
	}{
		{"unknown name", `0_ElewiseOperation: it reads "z", which is no input and which no node writes`, func(g *operation.GraphBuilder) { two(g, "z", "y") }},
		{"unknown name behind a view", `reads "z"`, func(g *operation.GraphBuilder) { g.Reshape("z", same, "v"); two(g, "v", "y") }},
		{"cycle", "the nodes form a cycle: 0_ElewiseOperation -> 1_ElewiseOperation -> 0_ElewiseOperation", func(g *operation.GraphBuilder) { two(g, "b", "a"); two(g, "a", "b"); two(g, "a", "y") }},
		{"cycle by name", "loop -> 1_ElewiseOperation -> loop", func(g *operation.GraphBuilder) {
			g.AddNamed("loop", newOp(t, muls(2)), names{"b"}, names{"a"})
			two(g, "a", "b")
			two(g, "a", "y")
		}},
		{"cycle through a view", "cycle", func(g *operation.GraphBuilder) {
			g.Reshape("b", same, "v")
			two(g, "v", "a")
			two(g, "a", "b")
			two(g, "a", "y")
		}},
		{"reads what only it writes", "before any node writes it", func(g *operation.GraphBuilder) { two(g, "y", "y") }},
		{"output not written", `no node writes "y"`, func(g *operation.GraphBuilder) { two(g, "x", "a") }},
		{"nil operation", "node 0: want an operation, got nil", func(g *operation.GraphBuilder) { g.Add(nil, names{"x"}, names{"y"}) }},
		{"bad parameters", "bias", func(g *operation.GraphBuilder) { g.AddSpec(shift{Bias: -1}, names{"x", "x"}, names{"y"}) }},
		{"view without function", "reshape v: want a function", func(g *operation.GraphBuilder) { g.Reshape("x", nil, "v") }},
		{"view of itself", "reshape x: want a new name", func(g *operation.GraphBuilder) { g.Reshape("x", same, "x") }},
		{"views of each other", "it is a view of itself", func(g *operation.GraphBuilder) { g.Reshape("v", same, "w").Reshape("w", same, "v"); two(g, "v", "y") }},
		{"view named as an input", `the name "x" is an input already`, func(g *operation.GraphBuilder) { g.Reshape("x", same, "v").Reshape("v", same, "x") }},
		{"view written", `an output wants the name of a tensor, got "v"`, func(g *operation.GraphBuilder) { g.Reshape("x", same, "v"); two(g, "x", "v") }},
		{"written, then a view", `got "v"`, func(g *operation.GraphBuilder) { two(g, "x", "v"); g.Reshape("x", same, "v"); two(g, "v", "y") }},
		{"output without name", `got ""`, func(g *operation.GraphBuilder) { two(g, "x", "") }},
		{"chunk without node", "want a node first", func(g *operation.GraphBuilder) { g.Chunk("x", 2, 0) }},
		{"chunk of an unknown input", "no input of that name", func(g *operation.GraphBuilder) { two(g, "x", "y"); g.Chunk("z", 2, 0) }},
		{"chunk of no parts", "chunk 0 of 0", func(g *operation.GraphBuilder) { two(g, "x", "y"); g.Chunk("x", 0, 0) }},
		{"wrong number of inputs", "want 1 inputs and 1 outputs, got 2 and 1", func(g *operation.GraphBuilder) { g.AddSpec(muls(2), names{"x", "x"}, names{"y"}) }},
		{"first error wins", "want a node first", func(g *operation.GraphBuilder) { g.Chunk("x", 2, 0); g.Reshape("x", nil, "v") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := operation.BuildGraph("Bad", names{"x"}, names{"y"})
			tt.make(g)
			_, err := g.Build()
			require.ErrorIs(t, err, status.ErrInvalidGraph)
			assert.ErrorContains(t, err, tt.want)
			assert.ErrorContains(t, err, "Bad: create: ")
		})
	}
	_, err := operation.BuildGraph("Bad", names{"x", "x"}, names{"y"}).Build()
	assert.ErrorContains(t, err, `the name "x" is an input already`)
	_, err = operation.BuildGraph("Bad", names{""}, nil).Build()
	assert.ErrorContains(t, err, "want a name")
	_, err = operation.BuildGraph("Bad", names{"x"}, names{"y"}).AddSpec(shift{Bias: -1}, names{"x"}, names{"y"}).Build()
	assert.ErrorIs(t, err, status.ErrInvalidParam, "the cause is kept")
}

func TestBuilderInferShape(t *testing.T) {
	b := newBed(t)
	called := false
	g := operation.BuildGraph("", names{"x"}, names{"y"}).InferShape(func(in []tensor.Desc) ([]tensor.Desc, error) {
		called = true
		return []tensor.Desc{in[0].WithShape(2, 1)}, nil
	})
	g.AddSpec(shape.Transpose{Perm: []int64{1, 0}}, names{"x"}, names{"y"})
	assert.Equal(t, []float32{1, 2}, b.run(b.build(g), b.f32([]float32{1, 2}, 1, 2)))
	assert.True(t, called)
}
