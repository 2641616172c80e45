package operation_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/operation"
	"goatb/operation/elementwise"
	"goatb/operation/shape"
	"goatb/status"
	"goatb/tensor"
)

// branch is a condition that tests switch.
type branch struct {
	holds bool
	err   error
	calls int
}

func (c *branch) eval() (bool, error) { c.calls++; return c.holds, c.err }

func (b *bed) cond(c *branch, then, other operation.Spec) *operation.If {
	return &operation.If{Cond: c.eval, Then: b.op(then), Else: b.op(other)}
}

func TestIfCreate(t *testing.T) {
	b := newBed(t)
	yes := func() (bool, error) { return true, nil }
	one, two := b.op(muls(2)), b.op(add())
	split := b.op(shape.Split{SplitNum: 2})
	for name, f := range map[string]*operation.If{
		"nothing": {}, "no condition": {Then: one, Else: one}, "no then": {Cond: yes, Else: one}, "no else": {Cond: yes, Then: one},
		"other inputs": {Cond: yes, Then: one, Else: two}, "other outputs": {Cond: yes, Then: one, Else: split},
	} {
		_, err := operation.New(f)
		assert.ErrorIs(t, err, status.ErrInvalidParam, name)
	}
}

// The condition is evaluated once at every Setup; Execute goes to the chosen
// branch.
func TestIfAlone(t *testing.T) {
	b := newBed(t)
	c := &branch{holds: true}
	o := b.op(b.cond(c, muls(2), muls(3)))
	x := b.f32([]float32{1, 2})
	for i, holds := range []bool{true, false, false, true} {
		c.holds = holds
		want := []float32{2, 4}
		if !holds {
			want = []float32{3, 6}
		}
		assert.Equal(t, want, b.run(o, x))
		assert.Equal(t, i+1, c.calls)
	}
	assert.Equal(t, int64(1), b.c.Stats().SetupHits, "one Setup found the branch of before")

	p := b.pack(o, x)
	ws := b.setup(o, p)
	c.holds = !c.holds
	b.execute(o, p, ws)
	assert.Equal(t, []float32{2, 4}, b.values(p.Out[0]), "the branch that Setup chose")

	for name, err := range map[string]error{"an error": errors.New("no idea"), "a panic": nil} {
		c.err = err
		o := o
		if err == nil {
			o = b.op(&operation.If{Cond: func() (bool, error) { panic("no idea") }, Then: b.op(muls(2)), Else: b.op(muls(3))})
		}
		_, err := o.Setup(p, b.c)
		require.ErrorIs(t, err, status.ErrInvalidParam, name)
		assert.ErrorContains(t, err, "no idea")
		assert.ErrorIs(t, o.Execute(p, ws, b.c), status.ErrInvalidParam, "not with the branch of before")
	}
}

func TestIfInsideGraphs(t *testing.T) {
	for _, stream := range []int{0, 1} {
		b := newBed(t, atbctx.WithStreams(2))
		c, d := &branch{}, &branch{}
		first := newOp(t, b.cond(c, muls(2), muls(3)))
		second := newOp(t, b.cond(d, muls(5), muls(7)))
		inner, err := operation.NewGraph(operation.GraphParam{Inputs: 1, Outputs: 1, Nodes: []operation.Node{{Op: second, In: []int{0}, Out: []int{1}}}})
		require.NoError(t, err)
		require.NoError(t, inner.SetStream(stream))
		require.NoError(t, first.SetStream(stream))
		g := b.graph(operation.GraphParam{Inputs: 1, Outputs: 1, Internals: 1, Nodes: []operation.Node{
			{Op: first, In: []int{0}, Out: []int{2}}, {Op: inner, In: []int{2}, Out: []int{1}},
		}})
		x := b.f32([]float32{1})
		for i := range 8 {
			c.holds, d.holds = i&1 != 0, i&2 != 0
			want := map[bool]float32{true: 2, false: 3}[c.holds] * map[bool]float32{true: 5, false: 7}[d.holds]
			assert.Equal(t, []float32{want}, b.run(g, x), "stream %d, %v %v", stream, c.holds, d.holds)
			assert.Equal(t, i+1, c.calls)
			for _, n := range g.Graph().Nodes {
				assert.Equal(t, stream, n.Stream, "the branch runs where the If is")
			}
		}
	}
}

// Branches may give other shapes; a condition inside a branch is evaluated too.
func TestIfInsideIf(t *testing.T) {
	b := newBed(t)
	c, d := &branch{}, &branch{}
	row, column := shape.Transpose{Perm: []int64{0, 1}}, shape.Transpose{Perm: []int64{1, 0}}
	inner := b.cond(d, row, column)
	outer := &operation.If{Cond: c.eval, Then: b.op(row), Else: b.op(inner)}
	g := b.graph(operation.GraphParam{Inputs: 1, Outputs: 1, Internals: 1, Nodes: []operation.Node{
		{Op: newOp(t, outer), In: []int{0}, Out: []int{2}}, {Op: newOp(t, muls(2)), In: []int{2}, Out: []int{1}},
	}})
	x := b.f32([]float32{1, 2, 3}, 1, 3)
	for i := range 4 {
		c.holds, d.holds = i&1 != 0, i&2 != 0
		want := tensor.Of(tensor.Float32, 1, 3)
		if !c.holds && !d.holds {
			want = tensor.Of(tensor.Float32, 3, 1)
		}
		p := operation.VariantPack{In: []device.Tensor{x}, Out: []device.Tensor{b.empty(want)}}
		ws := b.setup(g, p)
		b.execute(g, p, ws)
		assert.Equal(t, []float32{2, 4, 6}, b.values(p.Out[0]))
	}
}

// An If does not own its branches: they outlive it, their updates count, and a
// branch that its owner has closed is an error.
func TestIfBranches(t *testing.T) {
	b := newBed(t)
	then, other := b.op(muls(2)), newOp(t, muls(3))
	c := &branch{holds: true}
	g := b.graph(operation.GraphParam{Inputs: 1, Outputs: 1, Nodes: []operation.Node{
		{Op: newOp(t, &operation.If{Cond: c.eval, Then: then, Else: other}), In: []int{0}, Out: []int{1}},
	}})
	x := b.f32([]float32{1})
	assert.Equal(t, []float32{2}, b.run(g, x))
	require.NoError(t, then.Update(muls(20)))
	assert.Equal(t, []float32{20}, b.run(g, x))
	require.NoError(t, other.Close())
	assert.Equal(t, []float32{20}, b.run(g, x))
	c.holds = false
	_, err := g.Setup(operation.VariantPack{In: []device.Tensor{x}, Out: []device.Tensor{b.empty(x.Desc)}}, b.c)
	require.ErrorIs(t, err, status.ErrInvalidOperationAddr)
	require.NoError(t, g.Close())
	assert.Equal(t, []float32{20}, b.run(then, x), "still open")
}

// Another If for a node: the new condition counts.
func TestUpdateOfAnIf(t *testing.T) {
	b := newBed(t)
	c, d := &branch{holds: true}, &branch{}
	first, second := b.cond(c, muls(2), muls(3)), b.cond(d, muls(5), elementwise.Of(elementwise.Neg))
	node := newOp(t, first)
	g := b.graph(operation.GraphParam{Inputs: 1, Outputs: 1, Nodes: []operation.Node{{Op: node, In: []int{0}, Out: []int{1}}}})
	x := b.f32([]float32{1})
	assert.Equal(t, []float32{2}, b.run(g, x))
	require.NoError(t, node.Update(second))
	assert.Equal(t, []float32{-1}, b.run(g, x))
	assert.Equal(t, 1, c.calls)
	assert.Equal(t, 1, d.calls)
}
