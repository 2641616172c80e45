package operation_test

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/operation"
	"goatb/operation/elementwise"
	"goatb/operation/shape"
	"goatb/status"
	"goatb/tensor"
)

func TestNew(t *testing.T) {
	for name, s := range map[string]operation.Spec{"nil": nil, "typed nil": (*operation.If)(nil), "invalid": shift{Bias: -1}} {
		_, err := operation.New(s)
		assert.ErrorIs(t, err, status.ErrInvalidParam, name)
	}
	_, err := operation.New(shift{Bias: -1})
	assert.EqualError(t, err, "ShiftOperation: create: bias: want at least 0, got -1 (ERROR_INVALID_PARAM)")
	o := newOp(t, add())
	assert.Equal(t, "ElewiseOperation", o.Name())
	assert.Equal(t, 2, o.InputNum())
	assert.Equal(t, 1, o.OutputNum())
	require.NoError(t, o.Close())
	require.NoError(t, o.Close())
}

func TestNilAndClosedOperations(t *testing.T) {
	b := newBed(t)
	closed := newOp(t, add())
	require.NoError(t, closed.Close())
	for name, o := range map[string]*operation.Op{"nil": nil, "closed": closed} {
		_, setup := o.Setup(operation.VariantPack{}, b.c)
		_, infer := o.InferShape(nil)
		for what, err := range map[string]error{
			"setup": setup, "infer shape": infer, "update": o.Update(add()), "set stream": o.SetStream(1),
			"execute": o.Execute(operation.VariantPack{}, device.Buffer{}, b.c), "launch": o.Launch(b.c),
			"pre-launch": o.PreLaunch(operation.VariantPack{}, device.Buffer{}, b.c),
		} {
			require.ErrorIs(t, err, status.ErrInvalidOperationAddr, "%s: %s", name, what)
			assert.ErrorIs(t, err, status.ErrInvalidParam)
		}
	}
	var none *operation.Op
	assert.NoError(t, none.Close())
	assert.Zero(t, none.Stream())
	assert.Nil(t, none.Graph())
	assert.Nil(t, none.Workspace())
	_, err := none.Launches()
	assert.ErrorIs(t, err, status.ErrInvalidOperationAddr)
}

// Launches tells what was launched, with tilings for the values of the last Execute.
func TestLaunches(t *testing.T) {
	b := newBed(t)
	o := b.op(muls(2))
	_, err := o.Launches()
	require.ErrorIs(t, err, status.ErrInvalidParam)
	assert.Equal(t, []float32{2, 4}, b.run(o, b.f32([]float32{1, 2})))
	got, err := o.Launches()
	require.NoError(t, err)
	require.Len(t, got, 1)
	n := &o.Graph().Nodes[0]
	assert.Same(t, n.Kernel, got[0].Kernel)
	want := device.BytesOf(make([]uint64, n.TilingSize/8))
	grid, err := n.Kernel.Tile(&n.Problem, want)
	require.NoError(t, err)
	assert.Equal(t, grid, got[0].Grid)
	assert.Equal(t, want, got[0].Tiling)
}

func TestParamsAndUpdate(t *testing.T) {
	b := newBed(t)
	o := b.op(muls(2))
	x := b.f32([]float32{1, 2})
	assert.Equal(t, muls(2), o.Params())
	assert.Equal(t, []float32{2, 4}, b.run(o, x))
	require.NoError(t, o.Update(muls(3)))
	assert.Equal(t, muls(3), o.Params())
	p := b.pack(o, x)
	err := o.Execute(p, device.Buffer{}, b.c)
	require.ErrorIs(t, err, status.ErrInvalidParam, "set up for other parameters")
	assert.ErrorContains(t, err, "set up again")
	assert.Equal(t, []float32{3, 6}, b.run(o, x))

	for name, s := range map[string]operation.Spec{
		"nil": nil, "another type": softmax(), "invalid": elementwise.Elewise{Type: 99},
	} {
		require.ErrorIs(t, o.Update(s), status.ErrInvalidParam, name)
		assert.Equal(t, muls(3), o.Params(), "the old ones stay")
	}
	assert.Equal(t, []float32{3, 6}, b.run(o, x))
}

// Equal parameters change nothing: the next Setup is a hit.
func TestUpdateWithEqualParams(t *testing.T) {
	b := newBed(t)
	o := b.op(shape.Transpose{Perm: []int64{1, 0}})
	x := b.f32([]float32{1, 2, 3, 4}, 2, 2)
	p := b.pack(o, x)
	b.setup(o, p)
	require.NoError(t, o.Update(shape.Transpose{Perm: []int64{1, 0}}))
	b.setup(o, p)
	assert.Equal(t, int64(1), b.c.Stats().SetupHits)
	require.NoError(t, o.Update(shape.Transpose{Perm: []int64{0, 1}}))
	b.setup(o, p)
	assert.Equal(t, int64(1), b.c.Stats().SetupHits)
}

// An operation has parameters of its own: what the caller does with the slices
// in them later changes nothing.
func TestParamsAreCopied(t *testing.T) {
	b := newBed(t)
	perm := []int64{1, 0}
	o := b.op(shape.Transpose{Perm: perm})
	x := b.f32([]float32{1, 2, 3, 4}, 2, 2)
	perm[0], perm[1] = 0, 1
	assert.Equal(t, []float32{1, 3, 2, 4}, b.run(o, x))
	require.NoError(t, o.Update(shape.Transpose{Perm: perm}))
	assert.Equal(t, []float32{1, 2, 3, 4}, b.run(o, x), "the same slice with other contents is another parameter")
	got, ok := o.Params().(shape.Transpose)
	require.True(t, ok)
	got.Perm[0] = 7
	assert.Equal(t, shape.Transpose{Perm: []int64{0, 1}}, o.Params())
}

func TestStreamIDs(t *testing.T) {
	var nodes [4]*operation.Op
	for i := range nodes {
		nodes[i] = newOp(t, muls(float32(i+1)))
	}
	inner, err := operation.NewGraph(operation.GraphParam{Inputs: 1, Outputs: 1, Nodes: []operation.Node{{Op: nodes[2], In: []int{0}, Out: []int{1}}}})
	require.NoError(t, err)
	outer, err := operation.NewGraph(operation.GraphParam{Inputs: 1, Outputs: 1, Internals: 3, Nodes: []operation.Node{
		{Op: nodes[0], In: []int{0}, Out: []int{2}}, {Op: nodes[1], In: []int{2}, Out: []int{3}},
		{Op: inner, In: []int{3}, Out: []int{4}}, {Op: nodes[3], In: []int{4}, Out: []int{1}},
	}})
	require.NoError(t, err)
	ids := func() []int {
		return []int{outer.Stream(), nodes[0].Stream(), nodes[1].Stream(), inner.Stream(), nodes[2].Stream(), nodes[3].Stream()}
	}
	assert.Equal(t, []int{0, 0, 0, 0, 0, 0}, ids())
	for _, o := range []*operation.Op{nodes[1], inner, nodes[3]} {
		require.NoError(t, o.SetStream(1))
	}
	assert.Equal(t, []int{0, 0, 1, 1, 1, 1}, ids(), "nodes inside a graph follow it")
	require.NoError(t, outer.SetStream(2))
	assert.Equal(t, []int{2, 2, 1, 1, 1, 1}, ids(), "ids of their own win")
	require.NoError(t, nodes[1].SetStream(0))
	assert.Equal(t, []int{2, 2, 0, 1, 1, 1}, ids(), "0 is an id like others")
	for _, id := range []int{-1, 1024, math.MaxInt} {
		assert.ErrorIs(t, outer.SetStream(id), status.ErrInvalidStream, "%d", id)
	}
	require.NoError(t, outer.Close())
}

func TestInferShape(t *testing.T) {
	o := newOp(t, add())
	x := tensor.Of(tensor.Float32, 2, 3)
	out, err := o.InferShape([]tensor.Desc{x, tensor.Of(tensor.Float32, 3)})
	require.NoError(t, err)
	assert.Equal(t, []tensor.Desc{x}, out)
	_, err = o.InferShapeUnder(operation.Board910B(), []tensor.Desc{x, tensor.Of(tensor.Int8, 2, 3)})
	assert.ErrorIs(t, err, status.ErrInvalidTensorIniMatch)
	require.NoError(t, o.Close())
}

// A graph is updated through its nodes, and its nodes are its own.
func TestGraphsAreNotParameters(t *testing.T) {
	make := func() *operation.Op {
		g, err := operation.NewGraph(operation.GraphParam{Inputs: 1, Outputs: 1, Nodes: []operation.Node{{Op: newOp(t, muls(2)), In: []int{0}, Out: []int{1}}}})
		require.NoError(t, err)
		return g
	}
	a, b := make(), make()
	assert.ErrorIs(t, a.Update(b.Params()), status.ErrInvalidParam)
	_, err := operation.New(b.Params())
	assert.ErrorIs(t, err, status.ErrInvalidParam)
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
}

// Errors name the operation, the call and the tensor, and say what was wanted.
func TestErrorText(t *testing.T) {
	b := newBed(t)
	o := b.op(shift{})
	x := b.f32([]float32{1})
	_, err := o.Setup(operation.VariantPack{In: []device.Tensor{x, host(101)}, Out: []device.Tensor{x}}, b.c)
	assert.EqualError(t, err, "ShiftOperation: setup: input 1 (n): value 0: want at most 100, got 101 (ERROR_INVALID_PARAM)")
	e, ok := errors.AsType[*status.OpError](err)
	require.True(t, ok)
	assert.Equal(t, "input 1 (n)", e.Tensor)
}
