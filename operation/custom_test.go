package operation_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// plugin is a user's own operation: one input, one output like it, and lengths
// on the host where it has two inputs. It runs another operation inside.
type plugin struct {
	inner   *operation.Op
	inputs  int
	stream  int
	onGraph int
	setups  int
	host    []int32
	scratch []device.Buffer
	setup   error
	execute error
	size    int64 // 0: what the inner operation needs
	closed  int
}

func (p *plugin) Name() string   { return "PluginOperation" }
func (p *plugin) InputNum() int  { return p.inputs }
func (p *plugin) OutputNum() int { return 1 }

func (p *plugin) InferShape(in []tensor.Desc) ([]tensor.Desc, error) { return in[:1], nil }

func (p *plugin) Setup(pack operation.VariantPack, c *atbctx.Context) (int64, error) {
	p.setups++
	if p.setup != nil {
		return 0, p.setup
	}
	if p.inputs > 1 {
		p.host = append([]int32(nil), device.View[int32](pack.In[1].Host)...)
	}
	n, err := p.inner.Setup(operation.VariantPack{In: pack.In[:1], Out: pack.Out}, c)
	if p.size != 0 {
		n = p.size
	}
	return n, err
}

func (p *plugin) Execute(pack operation.VariantPack, ws device.Buffer, c *atbctx.Context) error {
	p.scratch = append(p.scratch, ws)
	if p.inputs > 1 {
		p.host = append([]int32(nil), device.View[int32](pack.In[1].Host)...)
	}
	if p.execute != nil {
		return p.execute
	}
	return p.inner.Execute(operation.VariantPack{In: pack.In[:1], Out: pack.Out}, ws, c)
}

func (p *plugin) Close() error { p.closed++; return nil }

// streamed is a plugin that runs where the graph runs, or on a stream of its own.
type streamed struct{ plugin }

func (p *streamed) OnStream(graph int) int {
	p.onGraph = graph
	if p.stream < 0 {
		return graph
	}
	return p.stream
}

func (b *bed) plugin(s operation.Spec) *plugin { return &plugin{inner: b.op(s), inputs: 1} }

// around is a graph that doubles, calls an operation, and doubles.
func around(t testing.TB, op operation.Operation) operation.GraphParam {
	return operation.GraphParam{Name: "Around", Inputs: 1, Outputs: 1, Internals: 2, Nodes: []operation.Node{
		{Op: newOp(t, muls(2)), In: []int{0}, Out: []int{2}},
		{Name: "mine", Op: op, In: []int{2}, Out: []int{3}},
		{Op: newOp(t, muls(2)), In: []int{3}, Out: []int{1}},
	}}
}

func TestPluginInAGraph(t *testing.T) {
	for _, policy := range []string{"kernel-follow", "overall", "multi-stream"} {
		t.Run(policy, func(t *testing.T) {
			b := newBed(t, atbctx.WithPolicy(policy))
			p := b.plugin(muls(5))
			inner, err := operation.NewGraph(around(t, p))
			require.NoError(t, err)
			g := b.graph(operation.GraphParam{Inputs: 1, Outputs: 1, Nodes: []operation.Node{{Op: inner, In: []int{0}, Out: []int{1}}}})
			x := b.f32([]float32{1, -2})
			for range 3 {
				assert.Equal(t, []float32{20, -40}, b.run(g, x))
			}
			assert.Equal(t, 3, p.setups, "set up with every Setup of the graph")
			assert.Equal(t, int64(2), b.c.Stats().SetupHits-b.innerHits(p), "and yet the graph's plan was reused")
			w := g.Workspace()
			for _, s := range p.scratch {
				assert.LessOrEqual(t, s.Size(), w.ScratchOf[0], "its workspace is scratch of the stream")
			}
			require.NoError(t, g.Close())
			assert.Equal(t, 1, p.closed, "closed with the graph")
		})
	}
}

// innerHits is the number of hits that the operation inside a plugin had.
func (b *bed) innerHits(p *plugin) int64 { return int64(p.setups) - 1 }

func TestPluginReadsHostData(t *testing.T) {
	b := newBed(t)
	p := b.plugin(muls(1))
	p.inputs = 2
	inner, err := operation.NewGraph(operation.GraphParam{Inputs: 2, Outputs: 1, Nodes: []operation.Node{
		{Op: p, In: []int{0, 1}, Out: []int{2}, Reshape: []operation.ReshapeFunc{nil, reshape(2, 1)}},
	}})
	require.NoError(t, err)
	g := b.graph(operation.GraphParam{Inputs: 2, Outputs: 1, Nodes: []operation.Node{
		{Op: inner, In: []int{0, 1}, Out: []int{2}, Chunk: []operation.Chunk{{}, {Num: 2, Index: 1}}},
	}})
	x := b.f32([]float32{1})
	pack := b.pack(g, x, host(1, 2, 3, 4))
	ws := b.setup(g, pack)
	assert.Equal(t, []int32{3, 4}, p.host)
	pack.In[1] = host(5, 6, 7, 8)
	b.execute(g, pack, ws)
	assert.Equal(t, []int32{7, 8}, p.host, "the values of this Execute")
	pack.In[1] = host(9, 10, 11, 12)
	b.setup(g, pack)
	assert.Equal(t, []int32{11, 12}, p.host, "and of this Setup, which reused the plan")
	b.sync()
}

// An operation of a user's own may be absent of anything but the methods: the
// graph's inputs for it may be absent too.
func TestPluginWithAbsentInput(t *testing.T) {
	b := newBed(t)
	p := b.plugin(muls(3))
	p.inputs = 2
	g := b.graph(operation.GraphParam{Inputs: 2, Outputs: 1, Nodes: []operation.Node{{Op: p, In: []int{0, 1}, Out: []int{2}}}})
	assert.Equal(t, []float32{6}, b.run(g, b.f32([]float32{2}), device.Tensor{}))
}

func TestPluginStreams(t *testing.T) {
	for _, tt := range []struct{ graph, own, want int }{{0, -1, 0}, {1, -1, 1}, {0, 1, 1}, {1, 0, 0}} {
		b := newBed(t, atbctx.WithStreams(2))
		p := &streamed{plugin{inner: b.op(muls(5)), inputs: 1, stream: tt.own}}
		require.NoError(t, p.inner.SetStream(tt.want))
		g := b.graph(operation.GraphParam{Inputs: 1, Outputs: 1, Nodes: []operation.Node{{Op: p, In: []int{0}, Out: []int{1}}}})
		require.NoError(t, g.SetStream(tt.graph))
		assert.Equal(t, []float32{5}, b.run(g, b.f32([]float32{1})))
		assert.Equal(t, tt.graph, p.onGraph)
		assert.Equal(t, tt.want, g.Graph().Nodes[0].Stream)
	}
	b := newBed(t)
	p := &streamed{plugin{inner: b.op(muls(5)), inputs: 1, stream: 1}}
	g := b.graph(operation.GraphParam{Inputs: 1, Outputs: 1, Nodes: []operation.Node{{Op: p, In: []int{0}, Out: []int{1}}}})
	x := b.f32([]float32{1})
	_, err := g.Setup(b.pack(g, x), b.c)
	assert.ErrorIs(t, err, status.ErrInvalidStream)
}

func TestPluginErrors(t *testing.T) {
	b := newBed(t)
	x := b.f32([]float32{1})
	p := b.plugin(muls(5))
	g := b.graph(around(t, p))
	pack := b.pack(g, x)

	p.setup = errors.New("not today")
	_, err := g.Setup(pack, b.c)
	require.Error(t, err)
	assert.ErrorContains(t, err, "Around: setup: mine (PluginOperation): not today")
	p.setup = status.Errorf(status.ErrInvalidTensorDim, "too wide")
	_, err = g.Setup(pack, b.c)
	require.ErrorIs(t, err, status.ErrInvalidTensorDim)
	p.setup = nil
	p.size = -1
	_, err = g.Setup(pack, b.c)
	require.ErrorIs(t, err, status.ErrInvalidWorkspaceSize)
	p.size = 0
	ws := b.setup(g, pack)
	p.execute = errors.New("no luck")
	err = g.Execute(pack, ws, b.c)
	require.ErrorIs(t, err, status.ErrRuntimeFail)
	assert.ErrorContains(t, err, "Around: execute: mine/foreign: no luck")
	p.execute = nil
	p.setup = errors.New("not again")
	_, err = g.Setup(pack, b.c)
	require.ErrorContains(t, err, "mine: not again", "also where the plan could be reused")
	p.setup = nil
	assert.Equal(t, []float32{20}, b.run(g, x), "usable after errors")

	p.size = 1 << 20
	n, err := g.Setup(pack, b.c)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, n, int64(1<<20), "a plugin that needs more gets a new plan")
}

// Errors of an operation inside a plugin name both.
func TestErrorOfTheInnerOperation(t *testing.T) {
	b := newBed(t)
	p := b.plugin(shift{}) // wants two inputs and is given one
	g := b.graph(around(t, p))
	x := b.f32([]float32{1})
	_, err := g.Setup(operation.VariantPack{In: []device.Tensor{x}, Out: []device.Tensor{b.empty(x.Desc)}}, b.c)
	require.ErrorIs(t, err, status.ErrInvalidInTensorNum)
	assert.ErrorContains(t, err, "Around: setup: mine (PluginOperation): ShiftOperation: setup: want 2 inputs, got 1")
}

// Operations of a value type, and of a type that cannot be compared.
type valuePlugin struct {
	*plugin
	list []int
}

func TestPluginTypes(t *testing.T) {
	b := newBed(t)
	node := func(i, o int) operation.Node {
		return operation.Node{Op: valuePlugin{b.plugin(muls(3)), []int{1}}, In: []int{i}, Out: []int{o}}
	}
	g := b.graph(operation.GraphParam{Inputs: 1, Outputs: 1, Internals: 1, Nodes: []operation.Node{node(0, 2), node(2, 1)}})
	assert.Equal(t, []float32{9}, b.run(g, b.f32([]float32{1})))
	var none *plugin
	_, err := operation.NewGraph(operation.GraphParam{Inputs: 1, Outputs: 1, Nodes: []operation.Node{{Op: none, In: []int{0}, Out: []int{1}}}})
	assert.ErrorIs(t, err, status.ErrInvalidGraph)
}

// A plugin inside a graph cannot be lowered without a context, and says so.
func TestPluginWithoutContext(t *testing.T) {
	b := newBed(t)
	g := b.graph(around(t, b.plugin(muls(3))))
	_, err := operation.Lower(g.Params(), operation.Native(), &kernelgraph.Env{}, []tensor.Desc{f32x2}, []tensor.Desc{f32x2}, nil)
	assert.Error(t, err)
}
