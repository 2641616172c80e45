package operation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/operation"
	"goatb/operation/activation"
	"goatb/operation/linear"
	"goatb/operation/shape"
	"goatb/status"
	"goatb/tensor"
)

// says checks an error's code and its whole text but for the code's name.
func says(t testing.TB, err error, code status.Code, want string) {
	t.Helper()
	require.Error(t, err)
	assert.Equal(t, code, status.CodeOf(err), "%v", err)
	assert.EqualError(t, err, want+" ("+code.String()+")")
}

// What the caller does to the parameters that he made an operation from, with a
// pointer or without, does not reach the operation.
func TestParametersAreCopied(t *testing.T) {
	b := newBed(t)
	p := &shape.Transpose{Perm: []int64{1, 0}}
	o := b.op(p)
	p.Perm[0], p.Perm[1] = 0, 1
	p.Perm = nil
	assert.Equal(t, shape.Transpose{Perm: []int64{1, 0}}, o.Params())
	assert.Equal(t, []float32{1, 3, 2, 4}, b.run(o, b.f32([]float32{1, 2, 3, 4}, 2, 2)))

	q := &shape.Transpose{Perm: []int64{0, 1}}
	require.NoError(t, o.Update(q))
	q.Perm[0] = 7
	assert.Equal(t, []float32{1, 2, 3, 4}, b.run(o, b.f32([]float32{1, 2, 3, 4}, 2, 2)))

	f := &operation.If{Cond: func() (bool, error) { return true, nil }, Then: b.op(muls(2)), Else: b.op(muls(3))}
	choice := b.op(f)
	f.Cond, f.Then = nil, nil
	assert.Equal(t, []float32{2}, b.run(choice, b.f32([]float32{1})))
}

func TestUpdateOfAGraphNamesNoInternals(t *testing.T) {
	b := newBed(t)
	g := b.shifted()
	const want = "a graph's nodes belong to it and its parameters are not taken: make another graph with BuildGraph or NewGraph, or update the operations of its nodes"
	says(t, g.Update(muls(2)), status.ErrInvalidParam, "Shifted: update: "+want)
	says(t, g.Update(g.Params()), status.ErrInvalidParam, "Shifted: update: "+want)
	says(t, b.op(muls(2)).Update(g.Params()), status.ErrInvalidParam, "ElewiseOperation: update: "+want)
	says(t, b.op(muls(2)).Update(softmax()), status.ErrInvalidParam, "ElewiseOperation: update: want parameters of type elementwise.Elewise, got shape.Softmax")
}

// A second PreLaunch before the Launch replaces the first.
func TestPreLaunchTwice(t *testing.T) {
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			b := newBed(t, atbctx.WithPolicy(policy))
			o := b.op(muls(2))
			first, second := b.pack(o, b.f32([]float32{1, 2})), b.pack(o, b.f32([]float32{3, 4}))
			ws := b.setup(o, first)
			for range 200 { // more than a ring has blocks
				require.NoError(t, o.PreLaunch(first, ws, b.c))
				require.NoError(t, o.PreLaunch(second, ws, b.c))
				require.NoError(t, o.Launch(b.c))
			}
			b.sync()
			assert.Equal(t, []float32{6, 8}, b.values(second.Out[0]))
			assert.Equal(t, []float32{0, 0}, b.values(first.Out[0]), "never launched")
			says(t, o.Launch(b.c), status.ErrInvalidParam, "ElewiseOperation: execute: launch wants a pre-launch before it")
		})
	}
}

func TestHostTensorOfAnotherSize(t *testing.T) {
	b := newBed(t)
	o := b.op(shift{})
	x := b.f32([]float32{1})
	p := b.pack(o, x, host(1, 2))
	ws := b.setup(o, p)
	for n, values := range map[string][]int32{"3": {1, 2, 3}, "1": {1}} {
		p.In[1] = atbctx.Host(values, 2)
		want := "input 1 (n): want host data of 2 values for int32[2], got " + n + " values"
		says(t, o.Execute(p, ws, b.c), status.ErrInvalidTensorAddr, "ShiftOperation: execute: "+want)
		_, err := o.Setup(p, b.c)
		says(t, err, status.ErrInvalidTensorAddr, "ShiftOperation: setup: "+want)
		p.In[1] = host(1, 2)
		ws = b.setup(o, p)
	}
}

func TestHostTensorWhereKernelsRead(t *testing.T) {
	b := newBed(t)
	o := b.op(muls(2))
	p := b.pack(o, b.f32([]float32{1, 2}))
	p.In[0] = atbctx.Host([]float32{1, 2})
	ws := b.setup(o, p)
	says(t, o.Execute(p, ws, b.c), status.ErrInvalidTensorAddr,
		"ElewiseOperation: execute: input 0 (x): want memory on the device, got a host tensor: kernels read this operand; make it with FromSlice or NewTensor instead of Host")
}

func TestStreamBeyondTheContext(t *testing.T) {
	b := newBed(t)
	node := newOp(b, muls(2))
	require.NoError(t, node.SetStream(5))
	x := b.f32([]float32{1})
	g := b.graph(operation.GraphParam{Name: "G", Inputs: 1, Outputs: 1, Nodes: []operation.Node{{Name: "twice", Op: node, In: []int{0}, Out: []int{1}}}})
	_, err := g.Setup(b.pack(g, x), b.c)
	says(t, err, status.ErrInvalidStream, "G: setup: twice: SetStream id 5: the context's streams are 0 to 0: use one of them, or make the context with WithStreams(6)")
	_, err = g.Setup(b.pack(g, x), b.context(atbctx.WithStreams(6)))
	require.NoError(t, err)
}

func TestTypesOutsideTheTable(t *testing.T) {
	infer := func(s operation.Spec, in ...tensor.Desc) error {
		_, err := operation.InferShape(s, operation.Native(), in)
		return err
	}
	f16, f32 := tensor.Of(tensor.Float16, 2, 2), tensor.Of(tensor.Float32, 2, 2)
	nchw := f16
	nchw.Format = tensor.NCHW
	l := linear.DefaultLinear()
	l.HasBias = false
	says(t, infer(add(), tensor.Of(tensor.Bool, 2), f32), status.ErrInvalidTensorIniMatch,
		"ElewiseOperation: infer shape: input 0 (x): want f32, f16, bf16, int8, int16, int32, int64, uint8, uint16, uint32 or uint64, got bool[2]")
	says(t, infer(add(), f16, f32), status.ErrInvalidTensorIniMatch, "ElewiseOperation: infer shape: input 1 (y): want f16 beside x f16, got f32[2,2]")
	err := infer(l, nchw, f16)
	require.ErrorIs(t, err, status.ErrInvalidTensorIniMatch)
	assert.ErrorContains(t, err, "LinearOperation: infer shape: input 0 (x): want ")
	assert.ErrorContains(t, err, "got f16@nchw[2,2]")
	assert.NotContains(t, err.Error(), "...")
}

func TestOutputsOfAnotherKind(t *testing.T) {
	b := newBed(t)
	o := b.op(shape.Transpose{Perm: []int64{1, 0}})
	x := b.f32([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	out := func(ds ...tensor.Desc) error {
		p := operation.VariantPack{In: []device.Tensor{x}}
		for _, d := range ds {
			p.Out = append(p.Out, device.Tensor{Desc: d})
		}
		_, err := o.Setup(p, b.c)
		return err
	}
	d := tensor.Of(tensor.Float32, 3, 2)
	const place = "TransposeOperation: setup: "
	says(t, out(d, d), status.ErrInvalidTensorNum, place+"want 1 outputs, got 2")
	says(t, out(tensor.Of(tensor.Float16, 3, 2)), status.ErrInvalidTensorIniMatch, place+"output 0 (y): want f32 beside x f32, got f16[3,2]")
	says(t, out(tensor.Of(tensor.Float32, 2, 3)), status.ErrInvalidTensorDim, place+"output 0 (y): want f32[3,2], got f32[2,3]")

	// A graph has no table: its nodes say what its outputs are.
	g := b.graph(operation.GraphParam{Name: "G", Inputs: 1, Outputs: 1, Nodes: []operation.Node{{Op: newOp(b, muls(2)), In: []int{0}, Out: []int{1}}}})
	for got, code := range map[tensor.Desc]status.Code{
		tensor.Of(tensor.Int32, 2, 3):                                     status.ErrInvalidTensorDType,
		{Format: tensor.NCHW, DType: tensor.Float32, Shape: x.Desc.Shape}: status.ErrInvalidTensorFormat,
		tensor.Of(tensor.Float32, 6):                                      status.ErrInvalidTensorDimNum,
		tensor.Of(tensor.Float32, 3, 2):                                   status.ErrInvalidTensorDim,
	} {
		_, err := g.Setup(operation.VariantPack{In: []device.Tensor{x}, Out: []device.Tensor{{Desc: got}}}, b.c)
		says(t, err, code, "G: setup: output 0: want f32[2,3], got "+got.String())
	}
}

func TestOddSwiGLUInAGraph(t *testing.T) {
	b := newBed(t)
	for name, want := range map[string]string{"": "1_ActivationOperation", "gate": "gate (ActivationOperation)"} {
		g := b.graph(operation.GraphParam{Name: "Mlp", Inputs: 1, Outputs: 1, Internals: 2, Nodes: []operation.Node{
			{Op: newOp(b, muls(2)), In: []int{0}, Out: []int{2}},
			{Name: name, Op: newOp(b, activation.Of(activation.SwiGLUForward)), In: []int{2}, Out: []int{3}},
			{Op: newOp(b, muls(2)), In: []int{3}, Out: []int{1}},
		}})
		text := want + ": input 0 (x): want an even number of columns, at least 2, to split in halves, got 5 in [2,5]"
		_, err := g.InferShape([]tensor.Desc{tensor.Of(tensor.Float32, 2, 5)})
		says(t, err, status.ErrInvalidTensorDim, "Mlp: infer shape: "+text)
		x := b.f32(make([]float32, 10), 2, 5)
		_, err = g.Setup(operation.VariantPack{In: []device.Tensor{x}, Out: []device.Tensor{b.empty(tensor.Of(tensor.Float32, 2, 2))}}, b.c)
		says(t, err, status.ErrInvalidTensorDim, "Mlp: setup: "+text)
	}
}

func TestChunksSayWhatIsAllowed(t *testing.T) {
	build := func(num, index int) error {
		_, err := operation.BuildGraph("g", []string{"x"}, []string{"y"}).AddSpec(muls(2), []string{"x"}, []string{"y"}).Chunk("x", num, index).Build()
		return err
	}
	for want, err := range map[string]error{
		"chunk 3 of 3: want a part of 0 to 2": build(3, 3), "chunk -1 of 2: want a part of 0 to 1": build(2, -1), "chunk 0 of 0: want at least 1 part": build(0, 0),
	} {
		require.ErrorIs(t, err, status.ErrInvalidGraphNodeChunk)
		assert.ErrorContains(t, err, want)
	}
	b := newBed(t)
	g := b.graph(operation.GraphParam{Name: "G", Inputs: 1, Outputs: 1, Nodes: []operation.Node{{Op: newOp(b, muls(2)), In: []int{0}, Out: []int{1}, Chunk: []operation.Chunk{{Num: 2, Index: 5}}}}})
	_, err := g.InferShape([]tensor.Desc{tensor.Of(tensor.Float32, 4)})
	says(t, err, status.ErrInvalidGraphNodeChunk, "G: infer shape: 0_ElewiseOperation: input 0 (x): chunk 5 of 2: want a part of 0 to 1")
	odd := b.graph(operation.GraphParam{Name: "G", Inputs: 1, Outputs: 1, Nodes: []operation.Node{{Op: newOp(b, muls(2)), In: []int{0}, Out: []int{1}, Chunk: []operation.Chunk{{Num: 2}}}}})
	_, err = odd.InferShape([]tensor.Desc{tensor.Of(tensor.Float32, 3)})
	says(t, err, status.ErrInvalidGraphNodeChunk, "G: infer shape: 0_ElewiseOperation: input 0 (x): chunk 0 of 2: want a number of parts that divides dimension 0 of [3], which is 3")
}

func TestZeroAndNilBuilders(t *testing.T) {
	var none *operation.GraphBuilder
	for _, b := range []*operation.GraphBuilder{none, {}} {
		_, err := b.AddSpec(muls(2), []string{"x"}, []string{"y"}).Reshape("x", nil, "z").Chunk("x", 2, 0).OrderStreams(nil).InferShape(nil).Build()
		require.ErrorIs(t, err, status.ErrInvalidGraph)
		assert.ErrorContains(t, err, "the builder is nil or zero: start a graph with BuildGraph")
	}
	var o operation.Op
	_, err := o.Setup(operation.VariantPack{}, nil)
	require.ErrorIs(t, err, status.ErrInvalidOperationAddr)
	assert.ErrorContains(t, err, "the operation is a zero Op: make one with New or NewGraph")
	assert.NoError(t, o.Close())
}
