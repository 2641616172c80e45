package operation_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/kernel"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/operation/shape"
	"goatb/status"
	"goatb/tensor"
)

// codeCase is a row of the specification's table of checks.
type codeCase struct {
	name string
	err  func(b *bed) error
	code status.Code
	// also says that ATB's plain invalid parameter matches too.
	also bool
	text string
}

func runCodes(t *testing.T, cases []codeCase, opts ...atbctx.Option) {
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.err(newBed(t, opts...))
			require.Error(t, err)
			assert.Equal(t, tt.code, status.CodeOf(err), "%v", err)
			assert.Equal(t, tt.also, errors.Is(err, status.ErrInvalidParam) && tt.code != status.ErrInvalidParam)
			assert.ErrorContains(t, err, tt.text)
		})
	}
}

var f32x2 = tensor.Of(tensor.Float32, 2)

func TestCodesOfInferShape(t *testing.T) {
	infer := func(s operation.Spec, in ...tensor.Desc) func(*bed) error {
		return func(b *bed) error {
			_, err := b.op(s).InferShape(in)
			return err
		}
	}
	runCodes(t, []codeCase{
		{"number of inputs", infer(add(), f32x2), status.ErrInvalidInTensorNum, false, "want 2 inputs, got 1"},
		{"rank 0", infer(add(), f32x2, tensor.Desc{DType: tensor.Float32}), status.ErrInvalidTensorDim, false, "input 1 (y): want rank 1 to 8, got 0"},
		{"rank 9", infer(add(), f32x2, tensor.Of(tensor.Float32, 1, 1, 1, 1, 1, 1, 1, 1, 1)), status.ErrInvalidTensorDim, false, "got 9"},
		{"dimension 0", infer(add(), tensor.Of(tensor.Float32, 0), f32x2), status.ErrInvalidTensorSize, false, "input 0 (x)"},
		{"dimension -1", infer(add(), tensor.Of(tensor.Float32, -1), f32x2), status.ErrInvalidTensorSize, false, "[-1]"},
		{"overflow", infer(add(), tensor.Of(tensor.Float32, 1<<40, 1<<40), f32x2), status.ErrInvalidTensorSize, false, "int64"},
		{"unknown dtype", infer(add(), tensor.Of(tensor.Undefined, 2), f32x2), status.ErrInvalidTensorSize, false, "no size"},
		{"above 256 GiB", infer(add(), tensor.Of(tensor.Float32, 64<<30+1), f32x2), status.ErrInvalidTensorSize, false, "at most 274877906944 bytes"},
		{"table", infer(add(), f32x2, tensor.Of(tensor.Int8, 2)), status.ErrInvalidTensorIniMatch, false, "int8"},
		{"the operation's own", infer(shape.Softmax{Axes: []int64{5}}, f32x2), status.ErrInvalidParam, false, "SoftmaxOperation: infer shape: axes[0]"},
	})
	_, err := newOp(t, add()).InferShape([]tensor.Desc{tensor.Of(tensor.Float32, 64<<30), tensor.Of(tensor.Float32, 64<<30)})
	assert.NoError(t, err, "256 GiB are allowed")
}

// bigTiling wants a tiling of more bytes than a block has.
type bigTiling struct{ shift }

func (bigTiling) Lower(b *kernelgraph.Builder, _ *operation.Query) error {
	type params struct{}
	big := kernel.Table{kernel.Define(kernel.Def[params, struct{}]{
		Name: "test/big",
		Tail: func(*kernel.Problem, params) int { return atbctx.BlockSize/8 + 1 },
		Tile: func(*kernel.Problem, params, *struct{}, []int64) (kernel.Grid, error) {
			return kernel.Grid{Blocks: 1}, nil
		},
		Run: func(*kernel.Args, int, *struct{}, []int64) error { return nil },
	})}
	return b.Kernel(kernelgraph.Call{Table: big, Params: params{}, In: []kernelgraph.Ref{b.In(0)}, Out: []kernelgraph.Ref{b.Out(0)}})
}

// noKernel finds no kernel for what it wants.
type noKernel struct{ shift }

func (noKernel) Lower(b *kernelgraph.Builder, _ *operation.Query) error {
	refuse := func(name string) *kernel.Kernel {
		return kernel.Define(kernel.Def[struct{}, struct{}]{
			Name:     name,
			Supports: func(*kernel.Problem, struct{}) error { return errors.New("no") },
			Tile:     func(*kernel.Problem, struct{}, *struct{}, []int64) (kernel.Grid, error) { return kernel.Grid{}, nil },
			Run:      func(*kernel.Args, int, *struct{}, []int64) error { return nil },
		})
	}
	return b.Kernel(kernelgraph.Call{Table: kernel.Table{refuse("test/a"), refuse("test/b")}, Params: struct{}{}, Out: []kernelgraph.Ref{b.Out(0)}})
}

func TestCodesOfSetup(t *testing.T) {
	setup := func(s operation.Spec, in, out []device.Tensor) func(*bed) error {
		return func(b *bed) error {
			_, err := b.op(s).Setup(operation.VariantPack{In: in, Out: out}, b.c)
			return err
		}
	}
	desc := func(ds ...tensor.Desc) []device.Tensor {
		ts := make([]device.Tensor, len(ds))
		for i, d := range ds {
			ts[i].Desc = d
		}
		return ts
	}
	graph := func(n operation.Node, infer operation.InferShapeFunc) func(*bed) error {
		return func(b *bed) error {
			n.Op = newOp(b, muls(2))
			g := b.graph(operation.GraphParam{Name: "G", Inputs: 1, Outputs: 1, Nodes: []operation.Node{n}, InferShape: infer})
			_, err := g.Setup(operation.VariantPack{In: desc(f32x2), Out: desc(f32x2)}, b.c)
			return err
		}
	}
	x, lengths := desc(f32x2)[0], host(1, 2)
	short := lengths
	short.Host = short.Host[:4]
	bad := lengths
	bad.Desc = tensor.Of(tensor.Int32, 0)
	runCodes(t, []codeCase{
		{"context nil", func(b *bed) error { _, err := b.op(add()).Setup(operation.VariantPack{}, nil); return err }, status.ErrInvalidContextAddr, true, "the context is nil: make one with NewContext"},
		{"context closed", func(b *bed) error {
			c := b.context()
			require.NoError(b, c.Close())
			_, err := b.op(add()).Setup(operation.VariantPack{}, c)
			return err
		}, status.ErrInvalidContextAddr, true, "ElewiseOperation: setup"},
		{"number of inputs", setup(add(), desc(f32x2), desc(f32x2)), status.ErrInvalidInTensorNum, false, "want 2 inputs, got 1"},
		{"number of outputs", setup(add(), desc(f32x2, f32x2), nil), status.ErrInvalidTensorNum, false, "want 1 outputs, got 0"},
		{"inputs before outputs", setup(add(), nil, nil), status.ErrInvalidInTensorNum, false, "inputs"},
		{"rank of an input", setup(add(), desc(f32x2, tensor.Desc{DType: tensor.Float32}), desc(f32x2)), status.ErrInvalidTensorDim, false, "input 1 (y)"},
		{"size of an output", setup(add(), desc(f32x2, f32x2), desc(tensor.Of(tensor.Float32, 0))), status.ErrInvalidTensorSize, false, "output 0 (z)"},
		{"table with outputs", setup(add(), desc(f32x2, f32x2), desc(tensor.Of(tensor.Int32, 2))), status.ErrInvalidTensorIniMatch, false, "output 0 (z): want f32 beside x f32, y f32, got int32[2]"},
		{"another output shape", setup(add(), desc(f32x2, f32x2), desc(tensor.Of(tensor.Float32, 3))), status.ErrInvalidTensorDim, false, "want f32[2], got f32[3]"},
		{"the operation's own", setup(shift{}, []device.Tensor{x, host(101)}, desc(f32x2)), status.ErrInvalidParam, false, "got 101"},
		{"host data missing", setup(shift{}, []device.Tensor{x, {Desc: lengths.Desc}}, desc(f32x2)), status.ErrInvalidTensorAddr, true, "input 1 (n): want host data"},
		{"host data short", setup(shift{}, []device.Tensor{x, short}, desc(f32x2)), status.ErrInvalidTensorAddr, true, "input 1 (n): want host data of 2 values for int32[2], got 1 values"},
		{"host tensor with a bad descriptor", setup(shift{}, []device.Tensor{x, bad}, desc(f32x2)), status.ErrInvalidTensorSize, false, "input 1 (n)"},
		{"host tensor of another dtype", setup(shift{}, []device.Tensor{x, atbctx.Host([]float32{1})}, desc(f32x2)), status.ErrInvalidTensorIniMatch, false, "f32"},
		{"tiling above the block", setup(bigTiling{}, []device.Tensor{x, lengths}, desc(f32x2)), status.ErrOutOfHostMemory, false, "need 3146240 bytes, a tiling block has 3145728"},
		{"no matching kernel", setup(noKernel{}, []device.Tensor{x, lengths}, desc(f32x2)), status.ErrInvalidParam, false, "none of 2 kernels takes this; the last, test/b: no"},
		{"stream id", func(b *bed) error {
			o := b.op(muls(2))
			require.NoError(b, o.SetStream(1))
			_, err := o.Setup(operation.VariantPack{In: desc(f32x2), Out: desc(f32x2)}, b.c)
			return err
		}, status.ErrInvalidStream, true, "SetStream id 1: the context's streams are 0 to 0: use one of them, or make the context with WithStreams(2)"},
		{"graph: number of tensors", func(b *bed) error {
			g := b.graph(operation.GraphParam{Inputs: 1, Outputs: 1, Nodes: []operation.Node{{Op: newOp(b, muls(2)), In: []int{0}, Out: []int{1}}}})
			_, err := g.Setup(operation.VariantPack{In: desc(f32x2, f32x2), Out: desc(f32x2)}, b.c)
			return err
		}, status.ErrInvalidInTensorNum, false, "want 1 inputs, got 2"},
		{"graph: chunk does not divide", graph(operation.Node{In: []int{0}, Out: []int{1}, Chunk: []operation.Chunk{{Num: 3}}}, nil), status.ErrInvalidGraphNodeChunk, true, "chunk 0 of 3"},
		{"graph: chunk index", graph(operation.Node{In: []int{0}, Out: []int{1}, Chunk: []operation.Chunk{{Num: 2, Index: 2}}}, nil), status.ErrInvalidGraphNodeChunk, true, "chunk 2 of 2"},
		{"graph: chunk number 0", graph(operation.Node{In: []int{0}, Out: []int{1}, Chunk: []operation.Chunk{{Index: 1}}}, nil), status.ErrInvalidGraphNodeChunk, true, "chunk 1 of 0"},
		{"graph: reshape changes the count", graph(operation.Node{In: []int{0}, Out: []int{1}, Reshape: []operation.ReshapeFunc{func(tensor.Shape) tensor.Shape { return tensor.ShapeOf(3) }}}, nil), status.ErrGraphNodeReshapeFail, true, "G: setup: 0_ElewiseOperation: the reshape function of input 0 gives [3] for [2]"},
		{"graph: reshape panics", graph(operation.Node{In: []int{0}, Out: []int{1}, Reshape: []operation.ReshapeFunc{func(s tensor.Shape) tensor.Shape { panic("no such dimension") }}}, nil), status.ErrGraphNodeReshapeFail, true, "panicked"},
		{"graph: reshape of too many dimensions", graph(operation.Node{In: []int{0}, Out: []int{1}, Reshape: []operation.ReshapeFunc{func(tensor.Shape) tensor.Shape { return tensor.ShapeOf(1, 1, 1, 1, 1, 1, 1, 1, 2) }}}, nil), status.ErrGraphNodeReshapeFail, true, "reshape"},
		{"graph: user infer fails", graph(operation.Node{In: []int{0}, Out: []int{1}}, func([]tensor.Desc) ([]tensor.Desc, error) { return nil, fmt.Errorf("not today") }), status.ErrGraphInferShapeFail, false, "not today"},
		{"graph: user infer's own code", graph(operation.Node{In: []int{0}, Out: []int{1}}, func([]tensor.Desc) ([]tensor.Desc, error) {
			return nil, status.Errorf(status.ErrInvalidTensorDim, "too large")
		}), status.ErrInvalidTensorDim, false, "too large"},
		{"graph: user infer panics", graph(operation.Node{In: []int{0}, Out: []int{1}}, func(in []tensor.Desc) ([]tensor.Desc, error) { return in[3:], nil }), status.ErrGraphInferShapeFail, false, "panicked"},
		{"graph: user infer leaves undefined", graph(operation.Node{In: []int{0}, Out: []int{1}}, func([]tensor.Desc) ([]tensor.Desc, error) { return make([]tensor.Desc, 1), nil }), status.ErrGraphInferShapeFail, false, "undefined"},
		{"graph: user infer of another count", graph(operation.Node{In: []int{0}, Out: []int{1}}, func([]tensor.Desc) ([]tensor.Desc, error) { return nil, nil }), status.ErrGraphInferShapeFail, false, "gives 0 outputs, want 1"},
		{"graph: user infer contradicts the nodes", graph(operation.Node{In: []int{0}, Out: []int{1}}, func([]tensor.Desc) ([]tensor.Desc, error) { return []tensor.Desc{tensor.Of(tensor.Float32, 1, 2)}, nil }), status.ErrGraphInferShapeFail, false, "gives f32[1,2], its nodes give f32[2]"},
	})
}

func TestCodesOfExecute(t *testing.T) {
	// ready sets up x + y over the lengths of a shift and returns the call.
	type call struct {
		o  *operation.Op
		p  operation.VariantPack
		ws device.Buffer
	}
	ready := func(b *bed) call {
		o := b.op(shift{})
		p := b.pack(o, b.f32([]float32{1, 2}), host(10, 3))
		ws := b.setup(o, p)
		return call{o, p, ws}
	}
	execute := func(change func(b *bed, x *call)) func(*bed) error {
		return func(b *bed) error {
			x := ready(b)
			c := b.c
			change(b, &x)
			return x.o.Execute(x.p, x.ws, c)
		}
	}
	runCodes(t, []codeCase{
		{"without setup", func(b *bed) error { return b.op(add()).Execute(operation.VariantPack{}, device.Buffer{}, b.c) }, status.ErrInvalidParam, false, "ElewiseOperation: execute: want a successful setup first"},
		{"pre-launch without setup", func(b *bed) error { return b.op(add()).PreLaunch(operation.VariantPack{}, device.Buffer{}, b.c) }, status.ErrInvalidParam, false, "setup first"},
		{"launch without setup", func(b *bed) error { return b.op(add()).Launch(b.c) }, status.ErrInvalidParam, false, "setup first"},
		{"launch without pre-launch", func(b *bed) error { return ready(b).o.Launch(b.c) }, status.ErrInvalidParam, false, "pre-launch"},
		{"after a failed setup", execute(func(b *bed, x *call) {
			_, err := x.o.Setup(operation.VariantPack{In: x.p.In[:1]}, b.c)
			require.Error(b, err)
		}), status.ErrInvalidParam, false, "setup first"},
		{"context nil", func(b *bed) error { return ready(b).o.Execute(operation.VariantPack{}, device.Buffer{}, nil) }, status.ErrInvalidContextAddr, true, "the context is nil: make one with NewContext"},
		{"another context", func(b *bed) error {
			x := ready(b)
			return x.o.Execute(x.p, x.ws, b.context())
		}, status.ErrInvalidContextAddr, true, "another than setup's"},
		{"fewer streams", func(b *bed) error {
			c := b.context(atbctx.WithStreams(2))
			o := b.op(muls(2))
			require.NoError(b, o.SetStream(1))
			p := b.pack(o, b.f32([]float32{1}))
			_, err := o.Setup(p, c)
			require.NoError(b, err)
			s, err := c.Stream(0)
			require.NoError(b, err)
			require.NoError(b, c.SetStreams(s))
			return o.Execute(p, device.Buffer{}, c)
		}, status.ErrInvalidStream, true, "SetStream id 1: the context's streams are 0 to 0: use one of them, or make the context with WithStreams(2)"},
		{"other streams", execute(func(b *bed, x *call) {
			s, err := b.c.Stream(0)
			require.NoError(b, err)
			require.NoError(b, b.c.SetStreams(s, s))
		}), status.ErrInvalidParam, false, "set up again"},
		{"closed stream", execute(func(b *bed, x *call) {
			s, err := b.c.Stream(0)
			require.NoError(b, err)
			require.NoError(b, s.Close())
		}), status.ErrInvalidStream, true, "open stream"},
		{"workspace short", execute(func(_ *bed, x *call) { x.ws = x.ws.At(0, x.ws.Size()-1) }), status.ErrInvalidWorkspaceSize, true, "want a workspace of 512 bytes, got 511"},
		{"workspace nil", execute(func(_ *bed, x *call) { x.ws = device.Buffer{} }), status.ErrInvalidWorkspaceAddr, true, "want a workspace of 512 bytes, got none"},
		{"workspace freed", execute(func(b *bed, x *call) { require.NoError(b, b.c.Free(x.ws)) }), status.ErrInvalidWorkspaceAddr, true, "freed"},
		{"workspace misaligned", execute(func(b *bed, x *call) {
			ws, err := b.c.Alloc(4096)
			require.NoError(b, err)
			x.ws = ws.At(4, 4000)
		}), status.ErrInvalidWorkspaceAddr, true, "multiple of 64"},
		{"number of inputs", execute(func(_ *bed, x *call) { x.p.In = x.p.In[:1] }), status.ErrInvalidTensorNum, true, "want 2 inputs and 1 outputs, got 1 and 1"},
		{"number of outputs", execute(func(_ *bed, x *call) { x.p.Out = nil }), status.ErrInvalidTensorNum, true, "got 2 and 0"},
		{"another descriptor", execute(func(b *bed, x *call) { x.p.In[0] = b.f32([]float32{1, 2}, 1, 2) }), status.ErrInvalidTensorSize, true, "input 0 (x): want setup's f32[2], got f32[1,2]"},
		{"another size", execute(func(_ *bed, x *call) { x.p.Out[0].Data = x.p.Out[0].Data.At(0, 4) }), status.ErrInvalidTensorSize, true, "output 0 (y): want 8 bytes for f32[2], got 4"},
		{"no data", execute(func(_ *bed, x *call) { x.p.In[0].Data = device.Buffer{} }), status.ErrInvalidTensorAddr, true, "input 0 (x): want memory on the device, got"},
		{"no output", execute(func(_ *bed, x *call) { x.p.Out[0].Data = device.Buffer{} }), status.ErrInvalidTensorAddr, true, "output 0 (y): want memory on the device, got"},
		{"data freed", execute(func(b *bed, x *call) {
			m, err := b.c.Alloc(8)
			require.NoError(b, err)
			require.NoError(b, b.c.Free(m))
			x.p.In[0].Data = m
		}), status.ErrInvalidTensorAddr, true, "freed"},
		{"no host data", execute(func(b *bed, x *call) {
			x.p.In[1].Host = nil
			x.p.In[1].Data = b.empty(x.p.In[1].Desc).Data
		}), status.ErrInvalidTensorAddr, true, "input 1 (n): want host data"},
		{"short host data", execute(func(_ *bed, x *call) { x.p.In[1].Host = x.p.In[1].Host[:4] }), status.ErrInvalidTensorAddr, true, "input 1 (n): want host data of 2 values"},
		{"host values that the operation refuses", execute(func(_ *bed, x *call) { x.p.In[1] = host(10, 101) }), status.ErrInvalidParam, false, "execute: input 1 (n): value 1: want at most 100, got 101"},
		{"host values of another plan", execute(func(_ *bed, x *call) { x.p.In[1] = host(20, 3) }), status.ErrInvalidParam, false, "set up again"},
		{"host values that the tiling refuses", execute(func(_ *bed, x *call) { x.p.In[1] = host(18, -8) }), status.ErrInvalidParam, false, "execute: test/shift: want values of at least 0, got -8"},
		{"output in the workspace", execute(func(b *bed, x *call) { x.p.Out[0].Data = x.ws.At(64, 8) }), status.ErrInvalidTensorAddr, true, "output 0: it overlaps the workspace"},
		{"input in the workspace", execute(func(b *bed, x *call) { x.p.In[0].Data = x.ws.At(64, 8) }), status.ErrInvalidTensorAddr, true, "input 0: it overlaps the workspace"},
	})
}

// An error of a kernel comes out of Synchronize with operation, node and kernel,
// and the operation goes on.
func TestKernelErrors(t *testing.T) {
	b := newBed(t)
	fail := false
	failing := kernel.Table{kernel.Define(kernel.Def[struct{}, struct{}]{
		Name: "test/failing",
		Tile: func(*kernel.Problem, struct{}, *struct{}, []int64) (kernel.Grid, error) {
			return kernel.Grid{Blocks: 1}, nil
		},
		Run: func(*kernel.Args, int, *struct{}, []int64) error {
			if fail {
				return errors.New("no luck")
			}
			return nil
		},
	})}
	o := b.op(custom{lower: func(g *kernelgraph.Builder) error {
		return g.Kernel(kernelgraph.Call{Name: "step", Table: failing, Params: struct{}{}, In: []kernelgraph.Ref{g.In(0)}, Out: []kernelgraph.Ref{g.Out(0)}})
	}})
	p := b.pack(o, b.f32([]float32{1}))
	ws := b.setup(o, p)
	fail = true
	require.NoError(t, o.Execute(p, ws, b.c))
	err := b.c.Synchronize(t.Context())
	require.ErrorIs(t, err, status.ErrRuntimeFail)
	assert.EqualError(t, err, "CustomOperation: execute: step (test/failing): no luck (ERROR_RT_FAIL)")
	fail = false
	b.execute(o, p, ws)
	b.sync()
}

// custom is an operation of one input and one output that lowers as it is told.
type custom struct {
	lower func(*kernelgraph.Builder) error
}

func (custom) Signature() operation.Signature {
	return operation.Signature{Name: "CustomOperation", In: operation.Ports("x"), Out: operation.Ports("y"), Variant: "Custom", Native: "f32->f32"}
}
func (custom) Validate() error                                          { return nil }
func (custom) Check(*operation.Query) error                             { return nil }
func (custom) Infer(q *operation.Query) ([]tensor.Desc, error)          { return []tensor.Desc{q.In[0]}, nil }
func (c custom) Lower(b *kernelgraph.Builder, _ *operation.Query) error { return c.lower(b) }
