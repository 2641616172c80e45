package operation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/operation/elementwise"
	"goatb/operation/shape"
	"goatb/status"
	"goatb/tensor"
)

// mulAdd is (a*b)+c over f16.
func mulAdd(t testing.TB, infer operation.InferShapeFunc) operation.GraphParam {
	return operation.GraphParam{Name: "MulAdd", Inputs: 3, Outputs: 1, Internals: 1, InferShape: infer, Nodes: []operation.Node{
		{Op: newOp(t, mul()), In: []int{0, 1}, Out: []int{4}},
		{Op: newOp(t, add()), In: []int{4, 2}, Out: []int{3}},
	}}
}

func TestGraphRun(t *testing.T) {
	for name, infer := range map[string]operation.InferShapeFunc{
		"nodes": nil, "user": func(in []tensor.Desc) ([]tensor.Desc, error) { return in[:1], nil },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			g := b.graph(mulAdd(t, infer))
			half := func(v ...float32) device.Tensor {
				x, err := atbctx.FromFloats(b.c, tensor.Float16, v, 2, 2)
				require.NoError(t, err)
				return x
			}
			in := []device.Tensor{half(1, 2, 3, 4), half(5, 6, 7, 8), half(1, 1, 1, 1)}
			p := b.pack(g, in...)
			ws := b.setup(g, p)
			b.execute(g, p, ws)
			got, err := atbctx.ToFloats(t.Context(), b.c, p.Out[0])
			require.NoError(t, err)
			assert.Equal(t, []float32{6, 13, 22, 33}, got)

			_, err = g.Setup(operation.VariantPack{In: append(in, in[0]), Out: p.Out}, b.c)
			assert.ErrorIs(t, err, status.ErrInvalidInTensorNum, "4 inputs")
			mixed := append([]device.Tensor{b.f32([]float32{1, 2, 3, 4}, 2, 2)}, in[1:]...)
			_, err = g.Setup(operation.VariantPack{In: mixed, Out: p.Out}, b.c)
			assert.ErrorIs(t, err, status.ErrInvalidTensorIniMatch, "mixed dtypes")
			assert.ErrorContains(t, err, "MulAdd: setup: 0_ElewiseOperation: ")
		})
	}
}

func TestGraphWritesATensorTwice(t *testing.T) {
	b := newBed(t)
	g := b.graph(operation.GraphParam{Inputs: 1, Outputs: 1, Nodes: []operation.Node{
		{Op: newOp(t, muls(2)), In: []int{0}, Out: []int{1}},
		{Op: newOp(t, muls(5)), In: []int{0}, Out: []int{1}},
	}})
	assert.Equal(t, []float32{5, 10}, b.run(g, b.f32([]float32{1, 2})))
}

// a = x+1; b = 10a in place; c = 2a, which now is b: the graph says so.
func TestGraphInPlace(t *testing.T) {
	b := newBed(t)
	one := b.f32([]float32{1})
	g := b.graph(operation.GraphParam{Inputs: 2, Outputs: 1, Internals: 1, Nodes: []operation.Node{
		{Op: newOp(t, add()), In: []int{0, 1}, Out: []int{3}},
		{Op: newOp(t, muls(10)), In: []int{3}, Out: []int{3}},
		{Op: newOp(t, muls(2)), In: []int{3}, Out: []int{2}},
	}})
	assert.Equal(t, []float32{40, 60}, b.run(g, b.f32([]float32{1, 2}), one))
}

// rereads is 30x + x, by a graph that writes its output before it reads its
// input for the last time.
func rereads(t testing.TB) *operation.Op {
	t.Helper()
	g, err := operation.NewGraph(operation.GraphParam{Name: "Rereads", Inputs: 1, Outputs: 1, Internals: 1, Nodes: []operation.Node{
		{Op: newOp(t, muls(3)), In: []int{0}, Out: []int{1}},
		{Op: newOp(t, muls(10)), In: []int{1}, Out: []int{2}},
		{Op: newOp(t, add()), In: []int{2, 0}, Out: []int{1}},
	}})
	require.NoError(t, err)
	return g
}

// A node in place whose kernels read the input after they began to write the
// output: the output goes through a temporary.
func TestGraphInPlaceNodeOfSeveralKernels(t *testing.T) {
	b := newBed(t)
	g := b.graph(operation.GraphParam{Inputs: 1, Outputs: 1, Internals: 1, Nodes: []operation.Node{
		{Op: newOp(t, muls(1)), In: []int{0}, Out: []int{2}},
		{Op: rereads(t), In: []int{2}, Out: []int{2}},
		{Op: newOp(t, muls(1)), In: []int{2}, Out: []int{1}},
	}})
	assert.Equal(t, []float32{31, 62}, b.run(g, b.f32([]float32{1, 2})))
}

// The caller binds the output to the memory of an input: allowed where nothing
// reads the input after the output's first write, else refused.
func TestOutputBoundToInput(t *testing.T) {
	bind := func(b *bed, o *operation.Op, in []device.Tensor, out device.Tensor) error {
		p := operation.VariantPack{In: in, Out: []device.Tensor{out}}
		ws := b.setup(o, p)
		err := o.Execute(p, ws, b.c)
		b.sync()
		return err
	}
	t.Run("allowed", func(t *testing.T) {
		b := newBed(t)
		x, y := b.f32([]float32{1, 2}), b.f32([]float32{10, 20})
		require.NoError(t, bind(b, b.op(add()), []device.Tensor{x, y}, x))
		assert.Equal(t, []float32{11, 22}, b.values(x))
		require.NoError(t, bind(b, b.op(add()), []device.Tensor{x, x}, x), "both inputs and the output")
		assert.Equal(t, []float32{22, 44}, b.values(x))
	})
	t.Run("refused", func(t *testing.T) {
		b := newBed(t)
		x := b.f32([]float32{1, 2})
		o := rereads(t)
		t.Cleanup(func() { require.NoError(t, o.Close()) })
		err := bind(b, o, []device.Tensor{x}, x)
		require.ErrorIs(t, err, status.ErrInvalidTensorAddr)
		assert.ErrorContains(t, err, "Rereads: execute: output 0: it overlaps input 0, which the operation still reads")
		assert.Equal(t, []float32{1, 2}, b.values(x), "nothing was enqueued")
	})
	t.Run("in part", func(t *testing.T) {
		b := newBed(t)
		x := b.f32([]float32{1, 2, 3})
		at := func(i int64) device.Tensor { return device.Tensor{Desc: f32x2, Data: x.Data.At(4*i, 8)} }
		err := bind(b, b.op(muls(2)), []device.Tensor{at(0)}, at(1))
		assert.ErrorIs(t, err, status.ErrInvalidTensorAddr)
	})
	t.Run("one memory wrapped twice", func(t *testing.T) {
		b := newBed(t)
		mem := []float32{1, 2}
		wrap := func() device.Tensor {
			x, err := atbctx.Wrap(mem, 2)
			require.NoError(t, err)
			return x
		}
		require.NoError(t, bind(b, b.op(muls(2)), []device.Tensor{wrap()}, wrap()))
		assert.Equal(t, []float32{2, 4}, mem)
		o := rereads(t)
		t.Cleanup(func() { require.NoError(t, o.Close()) })
		assert.ErrorIs(t, bind(b, o, []device.Tensor{wrap()}, wrap()), status.ErrInvalidTensorAddr)
	})
	t.Run("two outputs", func(t *testing.T) {
		b := newBed(t)
		o := b.op(shape.Split{SplitNum: 2})
		p := b.pack(o, b.f32([]float32{1, 2, 3, 4}))
		p.Out[1] = p.Out[0]
		ws := b.setup(o, p)
		err := o.Execute(p, ws, b.c)
		require.ErrorIs(t, err, status.ErrInvalidTensorAddr)
		assert.ErrorContains(t, err, "output 1: it overlaps output 0")
	})
}

func TestGraphsNest(t *testing.T) {
	b := newBed(t)
	add4 := func(inner func() operation.Operation) operation.Operation {
		g, err := operation.NewGraph(operation.GraphParam{Inputs: 4, Outputs: 1, Internals: 2, Nodes: []operation.Node{
			{Op: inner(), In: []int{0, 1}, Out: []int{5}}, {Op: inner(), In: []int{2, 3}, Out: []int{6}}, {Op: inner(), In: []int{5, 6}, Out: []int{4}},
		}})
		require.NoError(t, err)
		return g
	}
	plain := func() operation.Operation { return newOp(t, add()) }
	var nodes []operation.Node
	for i := range 4 {
		nodes = append(nodes, operation.Node{Op: add4(plain), In: []int{0, 0, 0, 0}, Out: []int{2 + i}})
	}
	nodes = append(nodes, operation.Node{Op: add4(plain), In: []int{2, 3, 4, 5}, Out: []int{1}})
	g := b.graph(operation.GraphParam{Inputs: 1, Outputs: 1, Internals: 4, Nodes: nodes})
	for i := range 5 {
		v := float32(i + 1)
		assert.Equal(t, []float32{16 * v, -16 * v}, b.run(g, b.f32([]float32{v, -v})))
	}
	assert.Equal(t, int64(4), b.c.Stats().SetupHits)
}

func reshape(dims ...int64) operation.ReshapeFunc {
	return func(tensor.Shape) tensor.Shape { return tensor.ShapeOf(dims...) }
}

func TestReshapesAndChunks(t *testing.T) {
	b := newBed(t)
	flat := func(s tensor.Shape) tensor.Shape { return tensor.ShapeOf(s.Numel()) }
	g := b.graph(operation.GraphParam{Inputs: 2, Outputs: 1, Internals: 2, Nodes: []operation.Node{
		// the middle third of x, as a row
		{Op: newOp(t, muls(10)), In: []int{0}, Out: []int{3}, Chunk: []operation.Chunk{{Num: 3, Index: 1}}},
		{Op: newOp(t, add()), In: []int{3, 1}, Out: []int{4}, Reshape: []operation.ReshapeFunc{flat, nil}},
		// the second half of what was computed, reshaped first
		{Op: newOp(t, muls(1)), In: []int{4}, Out: []int{2}, Reshape: []operation.ReshapeFunc{reshape(2, 1)}, Chunk: []operation.Chunk{{Num: 2, Index: 1}}},
	}})
	x := b.f32([]float32{1, 2, 3, 4, 5, 6}, 3, 2)
	p := b.pack(g, x, b.f32([]float32{100, 200}))
	assert.Equal(t, tensor.Of(tensor.Float32, 1, 1), p.Out[0].Desc, "infer applies reshapes and chunks")
	ws := b.setup(g, p)
	b.execute(g, p, ws)
	assert.Equal(t, []float32{240}, b.values(p.Out[0]))
}

// A chunk of a host tensor: each node reads its own part of the values.
func TestChunksOfHostTensors(t *testing.T) {
	b := newBed(t)
	part := func(i int) operation.Node {
		return operation.Node{Op: newOp(t, shift{}), In: []int{0, 1}, Out: []int{2 + i}, Chunk: []operation.Chunk{{}, {Num: 2, Index: i}}}
	}
	inner, err := operation.NewGraph(operation.GraphParam{Inputs: 2, Outputs: 2, Nodes: []operation.Node{part(0), part(1)}})
	require.NoError(t, err)
	g := b.graph(operation.GraphParam{Inputs: 2, Outputs: 2, Nodes: []operation.Node{
		{Op: inner, In: []int{0, 1}, Out: []int{2, 3}, Chunk: []operation.Chunk{{}, {Num: 2, Index: 1}}},
	}})
	x := b.f32([]float32{0})
	p := b.pack(g, x, host(1, 2, 3, 4, 5, 6, 7, 8))
	ws := b.setup(g, p)
	b.execute(g, p, ws)
	assert.Equal(t, []float32{11}, b.values(p.Out[0]), "5 and 6")
	assert.Equal(t, []float32{15}, b.values(p.Out[1]), "7 and 8")
	p.In[1] = host(0, 0, 0, 0, 0, 1, 2, 0)
	b.execute(g, p, ws)
	assert.Equal(t, []float32{1}, b.values(p.Out[0]))
	assert.Equal(t, []float32{2}, b.values(p.Out[1]))
	_, err = g.Setup(operation.VariantPack{In: []device.Tensor{x, host(0, 0, 0, 0, 0, 0, 0, 101)}, Out: p.Out}, b.c)
	assert.ErrorIs(t, err, status.ErrInvalidParam, "values are checked where they are read")
	_, err = g.Setup(operation.VariantPack{In: []device.Tensor{x, host(101, 0, 0, 0, 0, 0, 0, 0)}, Out: p.Out}, b.c)
	assert.NoError(t, err, "and nowhere else")
}

// An optional input of a node makes the graph's input optional; an absent one
// stays absent.
func TestAbsentTensors(t *testing.T) {
	b := newBed(t)
	quant := elementwise.Of(elementwise.QuantPerChannel)
	build := func(id int) *operation.Op {
		return b.graph(operation.GraphParam{Inputs: 3, Outputs: 1, Nodes: []operation.Node{{Op: newOp(t, quant), In: []int{0, 1, id}, Out: []int{3}}}})
	}
	x, scale := b.f32([]float32{1, 2}), b.f32([]float32{0.5})
	for _, tt := range []struct {
		g     *operation.Op
		third device.Tensor
	}{{build(2), device.Tensor{}}, {build(operation.Absent), x}} {
		g := tt.g
		assert.Equal(t, tt.third.Empty(), g.Signature().In[2].Optional, "an input that no node reads has to be there")
		p := b.pack(g, x, scale, tt.third)
		ws := b.setup(g, p)
		b.execute(g, p, ws)
		b.sync()
		assert.Equal(t, []byte{2, 4}, p.Out[0].Data.Bytes())
	}
}

func TestUpdateOfANode(t *testing.T) {
	b := newBed(t)
	node, other := newOp(t, muls(2)), newOp(t, muls(1))
	inner, err := operation.NewGraph(operation.GraphParam{Inputs: 1, Outputs: 1, Nodes: []operation.Node{{Op: node, In: []int{0}, Out: []int{1}}}})
	require.NoError(t, err)
	g := b.graph(operation.GraphParam{Inputs: 1, Outputs: 1, Internals: 1, Nodes: []operation.Node{
		{Op: inner, In: []int{0}, Out: []int{2}}, {Op: other, In: []int{2}, Out: []int{1}},
	}})
	x := b.f32([]float32{1, 2})
	p := b.pack(g, x)
	ws := b.setup(g, p)
	require.NoError(t, node.Update(muls(7)))
	require.ErrorIs(t, g.Execute(p, ws, b.c), status.ErrInvalidParam)
	ws = b.setup(g, p)
	b.execute(g, p, ws)
	assert.Equal(t, []float32{7, 14}, b.values(p.Out[0]))
	require.ErrorIs(t, node.Update(add()), status.ErrInvalidParam, "another number of operands")
	require.NoError(t, other.Update(elementwise.Of(elementwise.Neg)))
	ws = b.setup(g, p)
	b.execute(g, p, ws)
	assert.Equal(t, []float32{-7, -14}, b.values(p.Out[0]))
}

// An update may change what a node wants of its operands: the graphs around it
// learn of it.
func TestUpdateChangesPorts(t *testing.T) {
	b := newBed(t)
	node := newOp(t, ported{})
	inner, err := operation.NewGraph(operation.GraphParam{Inputs: 2, Outputs: 1, Nodes: []operation.Node{{Op: node, In: []int{0, 1}, Out: []int{2}}}})
	require.NoError(t, err)
	g := b.graph(operation.GraphParam{Inputs: 2, Outputs: 1, Nodes: []operation.Node{{Op: inner, In: []int{0, 1}, Out: []int{2}}}})
	assert.False(t, g.Signature().In[1].Host)
	require.NoError(t, node.Update(ported{HostPort: true}))
	assert.True(t, g.Signature().In[1].Host)
	assert.Equal(t, []float32{4}, b.run(g, b.f32([]float32{1}), host(3)))
}

// ported is a shift that reads its values on the host when it is told so.
type ported struct{ HostPort bool }

func (p ported) Signature() operation.Signature {
	s := shift{}.Signature()
	s.In[1].Host = p.HostPort
	return s
}
func (p ported) Validate() error                                        { return nil }
func (p ported) Check(*operation.Query) error                           { return nil }
func (p ported) Infer(q *operation.Query) ([]tensor.Desc, error)        { return []tensor.Desc{q.In[0]}, nil }
func (p ported) Lower(b *kernelgraph.Builder, q *operation.Query) error { return shift{}.Lower(b, q) }

// The number of Setups that infer a node anew depends on what changed.
func TestInferShapeReuse(t *testing.T) {
	b := newBed(t)
	g := b.graph(chain(t, 3))
	x := b.f32([]float32{1, 2})
	p := b.pack(g, x)
	b.setup(g, p)
	first := b.c.Stats()
	require.NoError(t, g.SetStream(0))
	b.setup(g, p)
	second := b.c.Stats()
	assert.Zero(t, second.SetupHits, "the stream was set: a new plan")
	assert.Equal(t, second.InferShapes-first.InferShapes, second.InferHits-first.InferHits, "with the shapes of before")
}
