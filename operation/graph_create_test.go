package operation_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/operation"
	"goatb/operation/shape"
	"goatb/status"
	"goatb/tensor"
)

// chain is a graph of n nodes, each of which doubles.
func chain(t testing.TB, n int) operation.GraphParam {
	p := operation.GraphParam{Inputs: 1, Outputs: 1, Internals: n - 1}
	for i := range n {
		in, out := i+1, i+2
		if i == 0 {
			in = 0
		}
		if i == n-1 {
			out = 1
		}
		p.Nodes = append(p.Nodes, operation.Node{Op: newOp(t, muls(2)), In: []int{in}, Out: []int{out}})
	}
	return p
}

func TestGraphCreate(t *testing.T) {
	node := func(in, out []int) operation.Node { return operation.Node{Op: newOp(t, add()), In: in, Out: out} }
	good := func() operation.GraphParam {
		return operation.GraphParam{Inputs: 3, Outputs: 1, Internals: 1, Nodes: []operation.Node{node([]int{0, 1}, []int{4}), node([]int{4, 2}, []int{3})}}
	}
	o := newOp(t, add())
	closed := newOp(t, add())
	require.NoError(t, closed.Close())
	var none *operation.Op
	for _, tt := range []struct {
		name, want string
		change     func(p *operation.GraphParam)
	}{
		{"name with signs", "&@!!1123", func(p *operation.GraphParam) { p.Name = "&@!!1123" }},
		{"name with a path", "../atb", func(p *operation.GraphParam) { p.Name = "../atb" }},
		{"long name", "at most 128", func(p *operation.GraphParam) { p.Name = strings.Repeat("x", 129) }},
		{"inputs below 0", "0 to 256 inputs, got -1", func(p *operation.GraphParam) { p.Inputs = -1 }},
		{"too many inputs", "got 257", func(p *operation.GraphParam) { p.Inputs = 257 }},
		{"too many outputs", "outputs, got 257", func(p *operation.GraphParam) { p.Outputs = 257 }},
		{"too many internals", "internal tensors, got 257", func(p *operation.GraphParam) { p.Internals = 257 }},
		{"too many nodes", "want 1 to 1024 nodes, got 1025", func(p *operation.GraphParam) { *p = chain(t, 2); p.Nodes = make([]operation.Node, 1025) }},
		{"no nodes", "want 1 to 1024 nodes, got 0", func(p *operation.GraphParam) { p.Nodes = p.Nodes[:0] }},
		{"node without operation", "node 1: the node has no operation", func(p *operation.GraphParam) { p.Nodes[1].Op = nil }},
		{"node with a nil operation", "no operation", func(p *operation.GraphParam) { p.Nodes[1].Op = none }},
		{"too many input ids", "want 2 inputs and 1 outputs, got 3 and 1", func(p *operation.GraphParam) { p.Nodes[1].In = []int{4, 2, 2} }},
		{"no input ids", "got 0 and 1", func(p *operation.GraphParam) { p.Nodes[1].In = nil }},
		{"too many output ids", "got 2 and 2", func(p *operation.GraphParam) { p.Nodes[1].Out = []int{3, 3} }},
		{"input id out of range", "input id 10: want 0 to 4, the graph's tensors, or -1 for none", func(p *operation.GraphParam) { p.Nodes[0].In[1] = 10 }},
		{"input id below 0", "input id -2", func(p *operation.GraphParam) { p.Nodes[0].In[1] = -2 }},
		{"output id out of range", "output id 5", func(p *operation.GraphParam) { p.Nodes[1].Out[0] = 5 }},
		{"output id below 0", "output id -1", func(p *operation.GraphParam) { p.Nodes[1].Out[0] = -1 }},
		{"internal read before written", "0_ElewiseOperation: internal tensor 4 is read before any node writes it", func(p *operation.GraphParam) { p.Nodes[0].In[0] = 4 }},
		{"output read before written", "output 0 is read before", func(p *operation.GraphParam) { p.Nodes[0].In[0] = 3 }},
		{"output not written", "no node writes output 0", func(p *operation.GraphParam) { p.Nodes[1].Out[0] = 2 }},
		{"internal not written", "no node writes internal tensor 5", func(p *operation.GraphParam) { p.Internals = 2 }},
		{"one operation twice", "is node 0_ElewiseOperation already", func(p *operation.GraphParam) { p.Nodes[0].Op, p.Nodes[1].Op = o, o }},
		{"closed operation", "closed or belongs to another graph", func(p *operation.GraphParam) { p.Nodes[0].Op = closed }},
		{"one tensor written twice by a node", "writes output 0 with two of its outputs", func(p *operation.GraphParam) {
			p.Nodes[1] = operation.Node{Op: newOp(t, shape.Split{SplitNum: 2}), In: []int{4}, Out: []int{3, 3}}
		}},
		{"too few reshape functions", "a reshape function for each of 2", func(p *operation.GraphParam) { p.Nodes[0].Reshape = make([]operation.ReshapeFunc, 1) }},
		{"too many chunks", "a chunk for each of 2", func(p *operation.GraphParam) { p.Nodes[0].Chunk = make([]operation.Chunk, 3) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := good()
			tt.change(&p)
			var ops []operation.Operation
			for i := range p.Nodes {
				ops = append(ops, p.Nodes[i].Op)
			}
			_, err := operation.NewGraph(p)
			require.ErrorIs(t, err, status.ErrInvalidGraph)
			assert.ErrorContains(t, err, tt.want)
			assert.ErrorContains(t, err, ": create: ")
			for _, op := range ops {
				if x, ok := op.(*operation.Op); ok && x != nil && x != closed {
					_, err := x.InferShape([]tensor.Desc{f32x2, f32x2})
					assert.NotErrorIs(t, err, status.ErrInvalidOperationAddr, "the caller keeps the operations")
				}
			}
		})
	}
	p := good()
	p.Nodes[0].Chunk = make([]operation.Chunk, 3)
	_, err := operation.NewGraph(p)
	assert.ErrorIs(t, err, status.ErrInvalidGraphNodeChunk)
	assert.ErrorIs(t, err, status.ErrInvalidParam)

	g, err := operation.NewGraph(good())
	require.NoError(t, err)
	assert.Equal(t, "GraphOperation", g.Name())
	_, err = operation.NewGraph(operation.GraphParam{Inputs: 1, Outputs: 1, Nodes: []operation.Node{{Op: p.Nodes[0].Op, In: []int{0, 0}, Out: []int{1}}}})
	require.NoError(t, err, "after a failure the caller may use the operations elsewhere")
}

func TestGraphLimitsAreInclusive(t *testing.T) {
	p := chain(t, 257)
	p.Name = strings.Repeat("x", 128)
	g, err := operation.NewGraph(p)
	require.NoError(t, err)
	require.NoError(t, g.Close())
	p = operation.GraphParam{Inputs: 1, Outputs: 1}
	for range operation.MaxGraphNodes {
		p.Nodes = append(p.Nodes, operation.Node{Op: newOp(t, muls(1)), In: []int{0}, Out: []int{1}})
	}
	g, err = operation.NewGraph(p)
	require.NoError(t, err)
	require.NoError(t, g.Close())
}

// An input that no node uses is let be, and named.
func TestUnusedInputs(t *testing.T) {
	p := chain(t, 2)
	assert.Empty(t, newBed(t).graph(p).UnusedInputs())
	g, err := operation.NewGraph(operation.GraphParam{Inputs: 3, Outputs: 1, Nodes: []operation.Node{{Op: newOp(t, add()), In: []int{0, 0}, Out: []int{3}}}})
	require.NoError(t, err)
	assert.Equal(t, []string{"input 1", "input 2"}, g.UnusedInputs())
	require.NoError(t, g.Close())
	g, err = operation.BuildGraph("g", []string{"x", "cache", "spare"}, []string{"y"}).
		AddSpec(add(), []string{"x", "x"}, []string{"y"}).AddSpec(muls(2), []string{"x"}, []string{"cache"}).Build()
	require.NoError(t, err)
	assert.Equal(t, []string{`"spare"`}, g.UnusedInputs(), "an input that a node writes is used")
	require.NoError(t, g.Close())
	assert.Empty(t, newOp(t, add()).UnusedInputs())
	_, err = operation.BuildGraph("g", []string{"x"}, nil).Build()
	require.ErrorIs(t, err, status.ErrInvalidGraph)
	assert.ErrorContains(t, err, "g: create: want 1 to 1024 nodes, got 0")
}

// A graph owns its nodes, and its description is a copy.
func TestGraphOwnsItsNodes(t *testing.T) {
	b := newBed(t)
	p := chain(t, 2)
	g := b.graph(p)
	_, err := operation.NewGraph(chain2(p))
	require.ErrorIs(t, err, status.ErrInvalidGraph)
	assert.ErrorContains(t, err, "belongs to another graph")
	p.Nodes[0].In[0], p.Nodes[1].Out[0] = 99, 99
	p.Nodes[0].Op = nil
	assert.Equal(t, []float32{4}, b.run(g, b.f32([]float32{1})))
	first, ok := p.Nodes[1].Op.(*operation.Op)
	require.True(t, ok)
	require.NoError(t, g.Close())
	assert.ErrorIs(t, first.SetStream(0), status.ErrInvalidOperationAddr, "closed with the graph")
}

func chain2(p operation.GraphParam) operation.GraphParam {
	p.Nodes = append([]operation.Node(nil), p.Nodes...)
	return p
}

func TestGraphJSON(t *testing.T) {
	p := chain(t, 2)
	p.Name = "Doubler"
	p.Nodes[1].Name = "second"
	g := newBed(t).graph(p)
	text, err := json.Marshal(g.Params())
	require.NoError(t, err)
	var got struct {
		Name  string `json:"opName"`
		In    int    `json:"inTensorNum"`
		Out   int    `json:"outTensorNum"`
		Inner int    `json:"internalTensorNum"`
		Nodes []struct {
			Name  string                     `json:"name"`
			Op    string                     `json:"opType"`
			Param map[string]json.RawMessage `json:"param"`
			In    []int                      `json:"inTensorIds"`
			Out   []int                      `json:"outTensorIds"`
		} `json:"nodes"`
	}
	require.NoError(t, json.Unmarshal(text, &got))
	assert.Equal(t, "Doubler", got.Name)
	assert.Equal(t, []int{1, 1, 1}, []int{got.In, got.Out, got.Inner})
	require.Len(t, got.Nodes, 2)
	assert.Equal(t, "ElewiseOperation", got.Nodes[0].Op)
	assert.Equal(t, "second", got.Nodes[1].Name)
	assert.Equal(t, []int{2}, got.Nodes[1].In)
	assert.Equal(t, []int{1}, got.Nodes[1].Out)
	assert.Contains(t, got.Nodes[0].Param, "mulsParam")
}
