package operation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/device/cpu"
	"goatb/kernel"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/operation/elementwise"
	"goatb/operation/shape"
	"goatb/status"
	"goatb/tensor"
)

// bed is a context on a device, with short forms that fail the test.
type bed struct {
	testing.TB
	dev device.Device
	c   *atbctx.Context
}

func noEnv(string) (string, bool) { return "", false }

func newBed(t testing.TB, opts ...atbctx.Option) *bed {
	t.Helper()
	d, err := cpu.New(cpu.WithWorkers(2))
	require.NoError(t, err)
	b := &bed{TB: t, dev: d}
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	b.c = b.context(opts...)
	return b
}

// context makes another context on the device.
func (b *bed) context(opts ...atbctx.Option) *atbctx.Context {
	b.Helper()
	c, err := atbctx.New(b.dev, append([]atbctx.Option{atbctx.WithEnv(noEnv)}, opts...)...)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, c.Close()) })
	return c
}

func (b *bed) f32(v []float32, dims ...int64) device.Tensor {
	b.Helper()
	if dims == nil {
		dims = []int64{int64(len(v))}
	}
	x, err := atbctx.FromSlice(b.c, v, dims...)
	require.NoError(b, err)
	return x
}

func (b *bed) empty(d tensor.Desc) device.Tensor {
	b.Helper()
	x, err := atbctx.NewTensor(b.c, d)
	require.NoError(b, err)
	return x
}

func (b *bed) op(s operation.Spec) *operation.Op {
	b.Helper()
	o, err := operation.New(s)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, o.Close()) })
	return o
}

func (b *bed) graph(p operation.GraphParam) *operation.Op {
	b.Helper()
	o, err := operation.NewGraph(p)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, o.Close()) })
	return o
}

// pack makes the tensors of a call: outputs as the operation infers them.
func (b *bed) pack(o *operation.Op, in ...device.Tensor) operation.VariantPack {
	b.Helper()
	descs := make([]tensor.Desc, len(in))
	for i := range in {
		descs[i] = in[i].Desc
	}
	outs, err := o.InferShape(descs)
	require.NoError(b, err)
	p := operation.VariantPack{In: in}
	for _, d := range outs {
		p.Out = append(p.Out, b.empty(d))
	}
	return p
}

// setup sets up and returns a workspace full of NaN.
func (b *bed) setup(o *operation.Op, p operation.VariantPack) device.Buffer {
	b.Helper()
	n, err := o.Setup(p, b.c)
	require.NoError(b, err)
	if n == 0 {
		return device.Buffer{}
	}
	ws, err := b.c.Alloc(n)
	require.NoError(b, err)
	for i := range ws.Bytes() {
		ws.Bytes()[i] = 0xff
	}
	return ws
}

func (b *bed) sync() {
	b.Helper()
	require.NoError(b, b.c.Synchronize(b.Context()))
}

// values returns the elements of an f32 tensor.
func (b *bed) values(x device.Tensor) []float32 {
	b.Helper()
	b.sync()
	v, err := atbctx.ToSlice[float32](b.Context(), b.c, x)
	require.NoError(b, err)
	return v
}

// execute runs what was set up.
func (b *bed) execute(o *operation.Op, p operation.VariantPack, ws device.Buffer) {
	b.Helper()
	require.NoError(b, o.Execute(p, ws, b.c))
}

// run sets up, executes and returns the first output.
func (b *bed) run(o *operation.Op, in ...device.Tensor) []float32 {
	b.Helper()
	p := b.pack(o, in...)
	ws := b.setup(o, p)
	b.execute(o, p, ws)
	return b.values(p.Out[0])
}

// Short forms of operations.
func add() elementwise.Elewise { return elementwise.Of(elementwise.Add) }
func mul() elementwise.Elewise { return elementwise.Of(elementwise.Mul) }

func muls(by float32) elementwise.Elewise {
	e := elementwise.Of(elementwise.Muls)
	e.Muls.VarAttr = by
	return e
}

func softmax() shape.Softmax { return shape.Softmax{Axes: []int64{-1}} }

// newOp makes an operation for a graph, which owns it.
func newOp(t testing.TB, s operation.Spec) *operation.Op {
	t.Helper()
	o, err := operation.New(s)
	require.NoError(t, err)
	return o
}

// shift is an operation that reads host values: y = x + Bias + the sum of n. Its
// values are at most 100, and their number of tens is part of the plan: for each
// there is a copy more.
type shift struct {
	Bias int64
	// Split makes it two kernels with a temporary.
	Split bool
}

type shiftTiling struct{ n, sum int64 }

var shiftKernel = kernel.Table{kernel.Define(kernel.Def[shift, shiftTiling]{
	Name: "test/shift", InPlace: true,
	Tile: func(p *kernel.Problem, a shift, t *shiftTiling, _ []int64) (kernel.Grid, error) {
		t.n, t.sum = p.In[0].Numel(), a.Bias
		for _, v := range p.Values[0] {
			if v < 0 {
				return kernel.Grid{}, status.Errorf(status.ErrInvalidParam, "want values of at least 0, got %d", v)
			}
			t.sum += v
		}
		return kernel.Grid{Blocks: 1}, nil
	},
	Run: func(a *kernel.Args, _ int, t *shiftTiling, _ []int64) error {
		x, y := device.View[float32](a.Mem(0)), device.View[float32](a.Mem(1))
		for i := range t.n {
			y[i] = x[i] + float32(t.sum)
		}
		return nil
	},
	Cost: func(t *shiftTiling, _ []int64) (int64, int64) { return t.n, 8 * t.n },
})}

func (s shift) Signature() operation.Signature {
	return operation.Signature{Name: "ShiftOperation", In: operation.Ports("x", "n!"), Out: operation.Ports("y"), Variant: "Shift", Native: "f32,int32->f32"}
}

func (s shift) Validate() error {
	if s.Bias < 0 {
		return status.Errorf(status.ErrInvalidParam, "bias: want at least 0, got %d", s.Bias)
	}
	return nil
}

func (s shift) Check(*operation.Query) error { return nil }

func (s shift) Infer(q *operation.Query) ([]tensor.Desc, error) { return []tensor.Desc{q.In[0]}, nil }

func (s shift) CheckValues(q *operation.Query) error {
	values, _ := q.Values(1)
	for i, v := range values {
		if v > 100 {
			return q.BadIn(status.ErrInvalidParam, 1, "value %d: want at most 100, got %d", i, v)
		}
	}
	return nil
}

func (s shift) tens(q *operation.Query) int64 {
	values, _ := q.Values(1)
	n := int64(0)
	for _, v := range values {
		n += v / 10
	}
	return n
}

func (s shift) PlanKey(dst []uint64, q *operation.Query) ([]uint64, error) {
	return append(dst, uint64(s.tens(q))), nil
}

func (s shift) Lower(b *kernelgraph.Builder, q *operation.Query) error {
	x := b.In(0)
	for range s.tens(q) {
		tmp := b.Temp("copy", b.Desc(x))
		if err := b.Copy(x, tmp); err != nil {
			return err
		}
		x = tmp
	}
	return b.Kernel(kernelgraph.Call{Table: shiftKernel, Params: s, In: []kernelgraph.Ref{x}, Val: []kernelgraph.Ref{b.In(1)}, Out: []kernelgraph.Ref{b.Out(0)}})
}

// host makes a host tensor of lengths.
func host(v ...int32) device.Tensor { return atbctx.Host(v) }
