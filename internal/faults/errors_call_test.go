package faults_test

import (
	stdctx "context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device"
	"goatb/device/cpu"
	"goatb/operation"
	"goatb/operation/elementwise"
	"goatb/operation/linear"
	"goatb/operation/shape"
	"goatb/status"
	"goatb/tensor"
)

// TestNilOperation calls everything on an operation that is nil.
func TestNilOperation(t *testing.T) {
	b := newBed(t)
	var o *atb.Op
	p := atb.VariantPack{}
	_, infer := o.InferShape(nil)
	_, setup := o.Setup(p, b.c)
	for _, err := range []error{infer, setup, o.Execute(p, atb.Buffer{}, b.c), o.PreLaunch(p, atb.Buffer{}, b.c), o.Launch(b.c), o.Update(muls(2)), o.SetStream(1)} {
		require.ErrorIs(t, err, status.ErrInvalidOperationAddr)
		require.ErrorIs(t, err, status.ErrInvalidParam)
		assert.ErrorContains(t, err, "the operation is nil")
	}
	require.NoError(t, o.Close())
	assert.Zero(t, o.Stream())
	assert.Nil(t, o.Graph())
	assert.Nil(t, o.Workspace())
	assert.NotPanics(t, func() {
		assert.Empty(t, o.Name())
		assert.Zero(t, o.InputNum())
		assert.Zero(t, o.OutputNum())
		assert.Nil(t, o.Params())
		assert.Empty(t, o.Signature())
	})
}

// TestClosedOperation calls everything on an operation that is closed.
func TestClosedOperation(t *testing.T) {
	b := newBed(t)
	other := b.ready(muls(3), f32([]float64{1}, 1))
	c := b.ready(muls(2), f32([]float64{1}, 1))
	require.NoError(t, c.op.Close())
	require.NoError(t, c.op.Close(), "twice is legal")
	_, infer := c.op.InferShape(descsOf(c.pack.In))
	_, setup := c.op.Setup(c.pack, b.c)
	for _, err := range []error{infer, setup, c.op.Execute(c.pack, c.ws, b.c), c.op.PreLaunch(c.pack, c.ws, b.c), c.op.Launch(b.c), c.op.Update(muls(4)), c.op.SetStream(0)} {
		require.ErrorIs(t, err, status.ErrInvalidOperationAddr)
		assert.ErrorContains(t, err, "ElewiseOperation: the operation is closed")
	}
	assert.Equal(t, "ElewiseOperation", c.op.Name())
	assert.Equal(t, []float64{3}, other.again())
}

// deadContexts are contexts that no call can use.
func deadContexts(t testing.TB, d device.Device) map[string]*atb.Context {
	c, err := atb.NewContext(d, atb.WithEnv(noEnv))
	require.NoError(t, err)
	require.NoError(t, c.Close())
	return map[string]*atb.Context{"nil": nil, "closed": c}
}

// TestDeadContext calls everything with a context that is nil or closed.
func TestDeadContext(t *testing.T) {
	b := newBed(t)
	live := b.ready(muls(2), f32([]float64{1}, 1))
	for name, c := range deadContexts(t, b.dev) {
		_, setup := live.op.Setup(live.pack, c)
		for _, err := range []error{setup, live.op.Execute(live.pack, live.ws, c), live.op.PreLaunch(live.pack, live.ws, c), live.op.Launch(c)} {
			require.ErrorIs(t, err, status.ErrInvalidContextAddr, name)
			require.ErrorIs(t, err, status.ErrInvalidParam, name)
			assert.ErrorContains(t, err, "ElewiseOperation: ")
			assert.ErrorContains(t, err, "the context is "+name)
		}
		x := live.pack.In[0]
		_, alloc := c.Alloc(8)
		_, workspace := c.Workspace(8)
		_, workspaceOn := c.WorkspaceOn(0, 8)
		_, made := atb.NewTensor(c, x.Desc)
		_, sliced := atb.FromSlice(c, []float32{1}, 1)
		_, floats := atb.FromFloats(c, tensor.Float16, []float32{1}, 1)
		_, values := atb.ToSlice[float32](t.Context(), c, x)
		_, singles := atb.ToFloats(t.Context(), c, x)
		for _, err := range []error{
			alloc, workspace, workspaceOn, made, sliced, floats, values, singles, c.Synchronize(t.Context()), c.SetPolicy("overall"),
			atb.Write(t.Context(), c, &x, make([]byte, 4)), atb.Read(t.Context(), c, make([]byte, 4), &x),
		} {
			require.ErrorIs(t, err, status.ErrInvalidContextAddr, name)
		}
		_, stream := c.Stream(9)
		require.Error(t, stream, name)
		require.NoError(t, c.Close(), name)
	}
	var none *atb.Context
	assert.NotPanics(t, func() {
		assert.Empty(t, none.Policy())
		assert.Zero(t, none.Streams())
		assert.Empty(t, none.Checks())
		assert.Zero(t, none.Stats())
		assert.Zero(t, none.ID())
		assert.Nil(t, none.Device())
		assert.NotNil(t, none.Logger())
		assert.Zero(t, none.Config())
		assert.Error(t, none.Free(live.pack.In[0].Data))
		assert.Error(t, none.SetStreams(nil))
	})
	_, err := live.op.Setup(live.pack, b.c)
	require.NoError(t, err)
	assert.Equal(t, []float64{2}, live.again())
}

// TestOrderOfCalls calls things too early, and with another context.
func TestOrderOfCalls(t *testing.T) {
	each(t, func(t *testing.T, s *sample) {
		v := newVictim(t, s)
		early := v.bed.op(s.spec)
		for _, err := range []error{early.Execute(v.pack, v.ws, v.c), early.PreLaunch(v.pack, v.ws, v.c), early.Launch(v.c), early.Execute(atb.VariantPack{}, atb.Buffer{}, v.c)} {
			refused(t, err, status.ErrInvalidParam, early.Name(), "execute", "want a successful setup first")
		}
		other := bedOn(t, v.dev)
		for _, err := range []error{v.op.Execute(v.pack, v.ws, other.c), v.op.PreLaunch(v.pack, v.ws, other.c), v.op.Launch(other.c)} {
			refused(t, err, status.ErrInvalidContextAddr, v.op.Name(), "execute", "the context is another than setup's")
		}
		refused(t, v.op.Launch(v.c), status.ErrInvalidParam, v.op.Name(), "execute", "launch wants a pre-launch before it")
		require.NoError(t, v.op.PreLaunch(v.pack, v.ws, v.c))
		require.NoError(t, v.op.Launch(v.c))
		refused(t, v.op.Launch(v.c), status.ErrInvalidParam, v.op.Name(), "execute", "launch wants a pre-launch before it")
		v.sync()
		require.NoError(t, v.op.PreLaunch(v.pack, v.ws, v.c))
		v.works("a pre-launch that was dropped")
		_, err := v.op.Setup(v.pack, other.c)
		require.NoError(t, err, "a setup moves the operation to the other context")
		refused(t, v.op.Execute(v.pack, v.ws, v.c), status.ErrInvalidContextAddr, v.op.Name(), "execute")
		v.works("another context")
	})
}

// TestStreamIDs uses stream ids that a context does not have.
func TestStreamIDs(t *testing.T) {
	b := newBed(t, atb.WithStreams(2))
	c := b.ready(muls(2), f32([]float64{1}, 1))
	refused(t, c.op.SetStream(-1), status.ErrInvalidStream, "ElewiseOperation", "set stream", "want a stream id of 0 to 1023, got -1")
	require.ErrorIs(t, c.op.SetStream(math.MaxInt), status.ErrInvalidStream)
	for _, id := range []int{2, 1023} {
		require.NoError(t, c.op.SetStream(id))
		_, err := c.op.Setup(c.pack, b.c)
		refused(t, err, status.ErrInvalidStream, "ElewiseOperation", "setup", "the context's streams are 0 to 1: use one of them, or make the context with WithStreams(")
		require.ErrorIs(t, err, status.ErrInvalidParam)
		require.Error(t, c.op.Execute(c.pack, c.ws, b.c))
	}
	require.NoError(t, c.op.SetStream(1))
	_, err := c.op.Setup(c.pack, b.c)
	require.NoError(t, err)
	assert.Equal(t, []float64{2}, c.again())

	one, err := b.c.Stream(0)
	require.NoError(t, err)
	require.NoError(t, b.c.SetStreams(one))
	refused(t, c.op.Execute(c.pack, c.ws, b.c), status.ErrInvalidStream, "ElewiseOperation", "execute", "SetStream id 1: the context's streams are 0 to 0: use one of them, or make the context with WithStreams(2)")
	require.ErrorIs(t, b.c.SetStreams(), status.ErrInvalidParam)
	require.ErrorIs(t, b.c.SetStreams(one, nil), status.ErrInvalidStream)
	for _, id := range []int{-1, 1, 99} {
		_, err := b.c.Stream(id)
		require.ErrorIs(t, err, status.ErrInvalidStream)
		_, err = b.c.WorkspaceOn(id, 8)
		require.ErrorIs(t, err, status.ErrInvalidStream)
	}
	require.NoError(t, c.op.SetStream(0))
	_, err = c.op.Setup(c.pack, b.c)
	require.NoError(t, err)
	assert.Equal(t, []float64{2}, c.again())

	closed, err := b.dev.NewStream()
	require.NoError(t, err)
	require.NoError(t, b.c.SetStreams(closed))
	require.NoError(t, closed.Close())
	require.ErrorIs(t, b.c.SetStreams(closed), status.ErrInvalidStream)
	_, err = c.op.Setup(c.pack, b.c)
	require.NoError(t, err)
	refused(t, c.op.Execute(c.pack, c.ws, b.c), status.ErrInvalidStream, "ElewiseOperation", "execute")
	require.NoError(t, b.c.SetStreams(one))
	_, err = c.op.Setup(c.pack, b.c)
	require.NoError(t, err)
	assert.Equal(t, []float64{2}, c.again())
}

// TestBadParameters makes and updates operations with parameters that cannot be.
func TestBadParameters(t *testing.T) {
	var noSpec atb.Spec
	var noIf *atb.If
	var noLinear *linear.Linear
	for _, s := range []atb.Spec{noSpec, noIf, noLinear} {
		_, err := atb.New(s)
		require.ErrorIs(t, err, status.ErrInvalidParam)
		assert.ErrorContains(t, err, "want argument parameters, got nil")
	}
	for _, s := range []atb.Spec{
		elementwise.Of(0), elementwise.Of(21), linear.Linear{MatmulType: 9}, linear.Linear{QuantMode: -1}, shape.Split{SplitNum: 4}, shape.Gather{Axis: 1, BatchDims: 2},
		&atb.If{}, atb.Event{Action: 7},
	} {
		_, err := atb.New(s)
		require.ErrorIs(t, err, status.ErrInvalidParam, "%+v", s)
		assert.ErrorContains(t, err, "Operation: create: ")
		assert.ErrorContains(t, err, "want")
	}
	c := newBed(t).ready(muls(2), f32([]float64{1}, 1))
	for _, s := range []atb.Spec{noSpec, noLinear, shape.Split{SplitNum: 2}, elementwise.Of(99)} {
		err := c.op.Update(s)
		refused(t, err, status.ErrInvalidParam, "ElewiseOperation", "update", "want")
	}
	assert.Equal(t, muls(2), c.op.Params())
	assert.Equal(t, []float64{2}, c.again(), "the old parameters stay")
}

// TestBadTensors makes and reads tensors in wrong ways.
func TestBadTensors(t *testing.T) {
	b := newBed(t)
	x, err := atb.FromSlice(b.c, []float32{1, 2}, 2)
	require.NoError(t, err)
	_, negative := atb.NewTensor(b.c, tensor.Of(tensor.Float32, -1))
	_, short := atb.FromSlice(b.c, []float32{1}, 2)
	_, overflow := atb.FromSlice(b.c, []float32{1}, 1<<62, 4)
	_, ints := atb.FromFloats(b.c, tensor.Int8, []float32{1}, 1)
	_, doubles := atb.FromFloats(b.c, tensor.Float64, []float32{1}, 1)
	_, wrapped := atb.Wrap([]float32{1, 2}, 3)
	_, empty := atb.Wrap([]float32{}, 0)
	_, other := atb.ToSlice[int32](t.Context(), b.c, x)
	_, bits := atb.ToFloats(t.Context(), b.c, atb.Tensor{Desc: tensor.Of(tensor.Int32, 2), Data: x.Data})
	_, nothing := atb.ToSlice[float32](t.Context(), b.c, atb.Tensor{Desc: x.Desc})
	_, undefined := atb.ToSlice[float32](t.Context(), b.c, atb.Tensor{Desc: tensor.Of(tensor.Float32, -4), Data: x.Data})
	for i, err := range []error{
		negative, short, overflow, ints, doubles, wrapped, empty, other, bits, nothing, undefined,
		atb.Write(t.Context(), b.c, &x, make([]byte, 7)), atb.Read(t.Context(), b.c, make([]byte, 9), &x), atb.Read(t.Context(), b.c, nil, &x),
		b.c.Free(x.Data.At(0, 1)), b.c.Free(atb.Buffer{}), b.c.Free(device.Wrap(make([]byte, 8))),
	} {
		require.Error(t, err, "case %d", i)
		assert.NotEqual(t, status.ErrInternal, status.CodeOf(err), "%v", err)
	}
	got, err := atb.ToSlice[float32](t.Context(), b.c, x)
	require.NoError(t, err)
	assert.Equal(t, []float32{1, 2}, got)
	require.NoError(t, b.c.Free(x.Data))
	require.Error(t, b.c.Free(x.Data), "freed twice")
	_, err = atb.ToSlice[float32](t.Context(), b.c, x)
	require.ErrorIs(t, err, status.ErrInvalidTensorAddr)
	_, err = b.c.Alloc(-1)
	require.ErrorIs(t, err, status.ErrInvalidParam)
	_, err = b.c.Alloc(1 << 62)
	require.ErrorIs(t, err, status.ErrOutOfDeviceMemory)
	_, err = b.c.Workspace(-1)
	require.ErrorIs(t, err, status.ErrInvalidWorkspaceSize)
}

// TestClosedDevice uses a context whose device has gone.
func TestClosedDevice(t *testing.T) {
	for _, policy := range policies {
		d, err := cpu.New(cpu.WithWorkers(2))
		require.NoError(t, err)
		c, err := atb.NewContext(d, atb.WithEnv(noEnv), atb.WithPolicy(policy))
		require.NoError(t, err)
		b := &bed{TB: t, dev: d, c: c}
		live := b.ready(muls(2), f32([]float64{1}, 1))
		assert.Equal(t, []float64{2}, live.again())
		require.NoError(t, d.Close())
		require.NoError(t, d.Close())
		_, err = live.op.Setup(live.pack, c)
		require.NoError(t, err, "setup uses no device")
		err = live.op.Execute(live.pack, live.ws, c)
		require.Error(t, err, policy)
		assert.ErrorContains(t, err, "ElewiseOperation: execute: ")
		_, err = c.Alloc(8)
		require.ErrorIs(t, err, status.ErrDeviceFail)
		_, err = atb.FromSlice(c, []float32{1}, 1)
		require.Error(t, err)
		_, err = c.Workspace(1 << 20)
		require.Error(t, err)
		assert.NotPanics(t, func() { _ = c.Synchronize(t.Context()) })
		c.Stats()
		require.NoError(t, live.op.Close())
		require.NoError(t, c.Close(), "a context may be closed after its device")
		require.NoError(t, c.Close())
		_, err = atb.NewContext(d, atb.WithEnv(noEnv))
		require.Error(t, err)
	}
}

// TestBadContexts makes contexts that cannot be.
func TestBadContexts(t *testing.T) {
	d := newDevice(t)
	var noDevice *cpu.Device
	for _, dev := range []device.Device{nil, noDevice} {
		c, err := atb.NewContext(dev)
		require.ErrorIs(t, err, status.ErrInvalidParam)
		assert.Nil(t, c)
	}
	alloc, free := d.Reserve, d.Free
	small := func(int64) (atb.Buffer, error) { return d.Reserve(4096) }
	none := func(int64) (atb.Buffer, error) { return atb.Buffer{}, nil }
	fails := func(int64) (atb.Buffer, error) { return atb.Buffer{}, errors.New("none left") }
	cfg := atb.Config{}
	for name, o := range map[string]atb.Option{
		"no stream": atb.WithStreams(0), "streams below 0": atb.WithStreams(-3), "too many streams": atb.WithStreams(1025),
		"policy": atb.WithPolicy("fast"), "checks": atb.WithChecks("310p"), "no such variable": atb.WithVariable("ATB_NOTHING", "1"),
		"solver": atb.WithSolver(9), "largest solver": atb.WithSolver(255), "caches": atb.WithTilingCaches(4), "caches below 0": atb.WithTilingCaches(-1),
		"empty configuration": atb.WithConfig(cfg), "no environment": atb.WithEnv(nil), "no logger": atb.WithLogger(nil),
		"allocator without free": atb.WithTilingAllocator(alloc, nil), "allocator without alloc": atb.WithHostTilingAllocator(nil, free),
		"allocator of too little": atb.WithTilingAllocator(small, free), "allocator of nothing": atb.WithTilingAllocator(none, free),
		"allocator that fails": atb.WithHostTilingAllocator(fails, free), "filter": atb.WithKernelFilter("[bad"),
		"ring below": atb.WithVariable("ATB_HOST_TILING_BUFFER_BLOCK_NUM", "127"), "ring above": atb.WithVariable("ATB_DEVICE_TILING_BUFFER_BLOCK_NUM", "1025"),
	} {
		c, err := atb.NewContext(d, atb.WithEnv(noEnv), o)
		require.Error(t, err, name)
		assert.Nil(t, c, name)
		assert.NotEqual(t, status.ErrInternal, status.CodeOf(err), "%s: %v", name, err)
	}
	c, err := atb.NewContext(d, atb.WithEnv(noEnv), nil)
	require.NoError(t, err, "a nil option is none")
	require.NoError(t, c.Close())
	_, err = atb.NewGlobalCache(0)
	require.ErrorIs(t, err, status.ErrInvalidParam)
	assert.Equal(t, []float64{2}, bedOn(t, d).run(muls(2), f32([]float64{1}, 1)), "the device is as good as before")
}

// TestDeviceMemoryRunsOut asks for more than a device has.
func TestDeviceMemoryRunsOut(t *testing.T) {
	d := newDevice(t, cpu.WithMemoryLimit(97<<20))
	b := bedOn(t, d)
	c := b.ready(muls(2), f32([]float64{1}, 1))
	_, err := b.c.Alloc(2 << 20)
	require.ErrorIs(t, err, status.ErrOutOfDeviceMemory)
	_, err = atb.NewTensor(b.c, tensor.Of(tensor.Float32, 1<<20))
	require.ErrorIs(t, err, status.ErrOutOfDeviceMemory)
	_, err = b.c.Workspace(2 << 20)
	require.ErrorIs(t, err, status.ErrOutOfDeviceMemory)
	_, err = atb.NewContext(d, atb.WithEnv(noEnv))
	require.ErrorIs(t, err, status.ErrOutOfDeviceMemory, "no room for another ring")
	assert.Equal(t, []float64{2}, c.again())
}

// TestSynchronizeThatIsCancelled gives up waiting; the work goes on.
func TestSynchronizeThatIsCancelled(t *testing.T) {
	b := newBed(t)
	c := b.ready(shape.Gather{}, f32(counting(4), 4), ints([]int32{9}))
	release := b.hold(0)
	c.execute(c.op, c.pack, c.ws)
	ctx, cancel := stdctx.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, b.c.Synchronize(ctx), stdctx.Canceled)
	release()
	err := b.c.Synchronize(t.Context())
	refused(t, err, status.ErrRuntimeFail, "GatherOperation", "execute", "index 9")
	b.sync()
}

// TestBadGraphs makes graphs that cannot be.
func TestBadGraphs(t *testing.T) {
	node := func(in, out int) atb.Node {
		o, err := atb.New(muls(2))
		require.NoError(t, err)
		return atb.Node{Op: o, In: []int{in}, Out: []int{out}}
	}
	shared := node(0, 1)
	owner, err := atb.NewGraph(atb.GraphParam{Inputs: 1, Outputs: 1, Nodes: []atb.Node{shared}})
	require.NoError(t, err)
	var none *atb.Op
	for name, p := range map[string]atb.GraphParam{
		"unwritten output":    {Inputs: 1, Outputs: 1},
		"id out of range":     {Inputs: 1, Outputs: 1, Nodes: []atb.Node{node(0, 7)}},
		"id below absent":     {Inputs: 1, Outputs: 1, Nodes: []atb.Node{node(-2, 1)}},
		"read before written": {Inputs: 1, Outputs: 1, Internals: 1, Nodes: []atb.Node{node(2, 1), node(0, 2)}},
		"no operation":        {Inputs: 1, Outputs: 1, Nodes: []atb.Node{{In: []int{0}, Out: []int{1}}}},
		"nil operation":       {Inputs: 1, Outputs: 1, Nodes: []atb.Node{{Op: none, In: []int{0}, Out: []int{1}}}},
		"node of two graphs":  {Inputs: 1, Outputs: 1, Nodes: []atb.Node{shared}},
		"inputs below 0":      {Inputs: -1, Outputs: 1},
		"too many inputs":     {Inputs: math.MaxInt},
	} {
		_, err := atb.NewGraph(p)
		require.ErrorIs(t, err, status.ErrInvalidGraph, name)
		assert.ErrorContains(t, err, "GraphOperation: create: ", name)
	}
	require.NoError(t, owner.Close())

	for name, g := range map[string]*atb.GraphBuilder{
		"unknown name": atb.BuildGraph("G", []string{"x"}, []string{"y"}).AddSpec(muls(2), []string{"z"}, []string{"y"}),
		"cycle":        atb.BuildGraph("G", []string{"x"}, []string{"y"}).AddSpec(add(), []string{"x", "b"}, []string{"a"}).AddSpec(muls(2), []string{"a"}, []string{"b"}).AddSpec(muls(2), []string{"b"}, []string{"y"}),
		"bad spec":     atb.BuildGraph("G", []string{"x"}, []string{"y"}).AddSpec(elementwise.Of(0), []string{"x"}, []string{"y"}),
		"nil spec":     atb.BuildGraph("G", []string{"x"}, []string{"y"}).AddSpec(nil, []string{"x"}, []string{"y"}),
		"nil node":     atb.BuildGraph("G", []string{"x"}, []string{"y"}).Add(nil, []string{"x"}, []string{"y"}),
		"counts":       atb.BuildGraph("G", []string{"x"}, []string{"y"}).AddSpec(add(), []string{"x"}, []string{"y"}),
		"same name":    atb.BuildGraph("G", []string{"x", "x"}, []string{"y"}).AddSpec(add(), []string{"x", "x"}, []string{"y"}),
		"no function":  atb.BuildGraph("G", []string{"x"}, []string{"y"}).Reshape("x", nil, "v").AddSpec(muls(2), []string{"v"}, []string{"y"}),
	} {
		_, err := g.Build()
		require.ErrorIs(t, err, status.ErrInvalidGraph, name)
		assert.ErrorContains(t, err, "G: create: ", name)
	}
}

// TestErrorsOfNodes names the node of a graph, however deep, in its errors.
func TestErrorsOfNodes(t *testing.T) {
	b := newBed(t)
	inner, err := atb.BuildGraph("Inner", []string{"x", "i"}, []string{"y"}).
		Add(b.node(muls(2)), []string{"x"}, []string{"twice"}).
		AddNamed("pick", b.node(shape.Gather{}), []string{"twice", "i"}, []string{"y"}).Build()
	require.NoError(t, err)
	op, err := atb.BuildGraph("Outer", []string{"x", "i"}, []string{"y"}).AddNamed("layer", inner, []string{"x", "i"}, []string{"y"}).Build()
	require.NoError(t, err)
	b.Cleanup(func() { require.NoError(t, op.Close()) })

	_, err = op.InferShape([]atb.Desc{tensor.Of(tensor.Float32, 4), tensor.Of(tensor.Float32, 2)})
	refused(t, err, status.ErrInvalidTensorIniMatch, "Outer", "infer shape", "layer (Inner)/pick (GatherOperation)")
	c := b.on(op, f32(counting(4), 4), ints([]int32{1, 4}))
	c.ws = b.setup(op, c.pack)
	c.execute(op, c.pack, c.ws)
	refused(t, b.c.Synchronize(t.Context()), status.ErrRuntimeFail, "Outer", "execute", "layer", "pick", "index 4")
	c.pack.In[1] = b.put(ints([]int32{1, 3}))
	assert.Equal(t, []float64{2, 6}, c.again())
	c.pack.In[0].Data = atb.Buffer{}
	refused(t, op.Execute(c.pack, c.ws, b.c), status.ErrInvalidTensorAddr, "Outer", "execute", "input 0 (x)")
}

// node makes an operation that a graph will own.
func (b *bed) node(s atb.Spec) *atb.Op {
	b.Helper()
	o, err := operation.New(s)
	require.NoError(b, err)
	return o
}
