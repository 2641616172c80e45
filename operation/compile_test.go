package operation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/device/cpu"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
	"goatb/tiling/sink"
	"goatb/tiling/sink/compiled"
)

// compileSunk compiles sunkGraph for tensors of n elements, without memory, for a
// context with options.
func compileSunk(t testing.TB, n int64, s sunk, o operation.CompileOptions, opts ...atbctx.Option) *compiled.File {
	t.Helper()
	b := newBed(t, opts...)
	op := sunkGraph(b, s)
	d := tensor.Of(tensor.Float32, n)
	_, err := op.Setup(operation.VariantPack{In: []device.Tensor{{Desc: d}, host(0, 0)}, Out: []device.Tensor{{Desc: d}}}, b.c)
	require.NoError(t, err)
	return b.compile(op, o)
}

// compile compiles an operation that is set up, through bytes.
func (b *bed) compile(op *operation.Op, o operation.CompileOptions) *compiled.File {
	b.Helper()
	x, err := operation.NewCompiler(b.c, o)
	require.NoError(b, err)
	require.NoError(b, x.Add(op))
	data, err := x.File().Encode()
	require.NoError(b, err)
	f, err := compiled.Decode(data)
	require.NoError(b, err)
	return f
}

// A compiled graph runs as one that is captured, and the host tiles nothing: in
// form v2 only what reads values.
func TestCompiledGraphRuns(t *testing.T) {
	for _, form := range append(patched, "v2") {
		f := compileSunk(t, 2, sunk{}, operation.CompileOptions{}, atbctx.WithSinkForm(form))
		b := newBed(t, atbctx.WithCompiled(f))
		assert.Equal(t, "device-sink", b.c.Policy())
		o := sunkGraph(b, sunk{})
		p := b.pack(o, b.f32([]float32{1, 2}), host(3, 4))
		ws := b.setup(o, p)
		for i := range int32(4) {
			p.In[1] = host(i, 10)
			b.execute(o, p, ws)
			assert.Equal(t, []float32{3 + expect(i, 10), 6 + expect(i, 10)}, b.values(p.Out[0]), form)
		}
		s := b.c.Stats()
		assert.Equal(t, [2]int64{1, 1}, [2]int64{s.Captures, s.Compiled}, form)
		want := [2]int64{0, 4}
		if form == "v2" {
			want = [2]int64{4, 0}
		}
		assert.Equal(t, want, [2]int64{s.HostTilings, s.DeviceTilings}, form)
	}
}

// Values that a kernel of the graph makes, also on another stream, reach the
// compiled tilings.
func TestCompiledTilingReadsWhatAKernelMakes(t *testing.T) {
	for _, form := range append(patched, "v2") {
		for stream := range 2 {
			b := newBed(t, atbctx.WithSinkForm(form), atbctx.WithStreams(2))
			o := madeGraph(b, sunk{}, stream)
			p := b.pack(o, b.f32([]float32{1, 2}), b.i32(3, 4), b.i32(1, 1))
			b.setup(o, p)
			f := b.compile(o, operation.CompileOptions{})
			b = &bed{TB: t, dev: b.dev}
			b.c = b.context(atbctx.WithCompiled(f), atbctx.WithStreams(2))
			o = madeGraph(b, sunk{}, stream)
			ws := b.setup(o, p)
			for i := range int32(4) {
				copy(device.View[int32](p.In[1].Data.Bytes()), []int32{i, i * i})
				b.execute(o, p, ws)
				assert.Equal(t, 3+expect(i, i*i, 1, 1), b.values(p.Out[0])[0], "%s on stream %d, step %d", form, stream, i)
			}
			s := b.c.Stats()
			assert.Equal(t, int64(1), s.Compiled)
			if form != "v2" {
				assert.Zero(t, s.HostTilings, form)
				assert.Equal(t, int64(4), s.DeviceTilings, form)
			}
		}
	}
}

// A graph whose name was compiled runs as it was, or not at all; other operations
// are not the compilation's business.
func TestCompiledGraphMustMatch(t *testing.T) {
	f := compileSunk(t, 2, sunk{}, operation.CompileOptions{})
	b := newBed(t, atbctx.WithCompiled(f))
	other := sunkGraph(b, sunk{})
	for name, x := range map[string]struct {
		op   *operation.Op
		n    int
		says string
	}{
		"shape":  {other, 3, `g: capture: 0_ElewiseOperation: compiled from another graph: none of 1 compiled for it fits; the closest differs: inputs: want "f32[2]", got "f32[3]"; compile it again as it is now`},
		"kernel": {sunkGraph(b, sunk{Host: true}), 2, `kernel: want "test/sunk", got "test/hosted"`},
	} {
		p := b.pack(x.op, b.f32(make([]float32, x.n)), host(3, 4))
		ws := b.setup(x.op, p)
		err := x.op.Execute(p, ws, b.c)
		require.ErrorIs(t, err, compiled.OtherGraph, name)
		assert.ErrorIs(t, err, status.ErrInvalidGraph, name)
		assert.ErrorContains(t, err, x.says, name)
	}
	p := b.pack(other, b.f32([]float32{1, 2}), host(3, 4))
	ws := b.setup(other, p)
	b.execute(other, p, ws)
	assert.Equal(t, 3+expect(3, 4), b.values(p.Out[0])[0], "the right shape after a wrong one")
	alone := b.op(sunk{})
	p = b.pack(alone, b.f32([]float32{1, 2, 3}), host(3, 4))
	ws = b.setup(alone, p)
	b.execute(alone, p, ws)
	assert.Equal(t, 1+expect(3, 4), b.values(p.Out[0])[0])
	assert.Equal(t, int64(1), b.c.Stats().Compiled)
}

// Contexts for something else than the compilation are not made.
func TestCompilationMustFitTheContext(t *testing.T) {
	f := compileSunk(t, 2, sunk{}, operation.CompileOptions{})
	ffts := compileSunk(t, 2, sunk{}, operation.CompileOptions{}, atbctx.WithSinkForm("ffts"))
	one, err := cpu.New(cpu.WithWorkers(1))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, one.Close()) })
	for name, x := range map[string]struct {
		dev  device.Device
		opts []atbctx.Option
		want error
		says string
	}{
		"SoC":     {cpuDevice(t), []atbctx.Option{atbctx.WithCompiled(f), atbctx.WithSoc("310P3")}, compiled.OtherTarget, "it is for SoC 910B (prefetch 8), the context has 310P3 (prefetch 10)"},
		"form":    {cpuDevice(t), []atbctx.Option{atbctx.WithCompiled(ffts), atbctx.WithSinkForm("update")}, compiled.OtherTarget, "it is of form ffts, the context has update"},
		"machine": {one, []atbctx.Option{atbctx.WithCompiled(f)}, compiled.OtherTarget, "with as many workers"},
		"waits":   {cpuDevice(t), []atbctx.Option{atbctx.WithCompiled(f), atbctx.WithVariable("ATB_STREAM_SYNC_EVERY_RUNNER_ENABLE", "1")}, status.ErrInvalidParam, "ATB_STREAM_SYNC_EVERY_RUNNER_ENABLE=1 waits after single operations"},
		"policy":  {cpuDevice(t), []atbctx.Option{atbctx.WithPolicy("overall"), atbctx.WithCompiled(f)}, status.ErrInvalidParam, "compiled graphs want policy device-sink, got overall"},
	} {
		_, err := atbctx.New(x.dev, append(x.opts, atbctx.WithEnv(noEnv))...)
		require.ErrorIs(t, err, x.want, name)
		assert.ErrorContains(t, err, x.says, name)
	}
	c, err := atbctx.New(cpuDevice(t), atbctx.WithEnv(func(name string) (string, bool) { return "overall", name == "ATB_TILING_POLICY" }), atbctx.WithCompiled(ffts), nil)
	require.NoError(t, err, "an option beats the environment")
	assert.Equal(t, "ffts", c.Config().SinkForm)
	require.NoError(t, c.Close())
	c, err = atbctx.New(cpuDevice(t), atbctx.WithEnv(noEnv), atbctx.WithCompiled(nil))
	require.NoError(t, err)
	assert.Equal(t, "kernel-follow", c.Policy(), "no compilation, no change")
	require.NoError(t, c.Close())
}

// The compilation's option is nearer than those of graph and session; offline no
// device is asked, and one that cannot do what was compiled refuses it.
func TestCompileOptions(t *testing.T) {
	off := compileSunk(t, 2, sunk{}, operation.CompileOptions{TilingScheduleOptimize: "0"})
	assert.Equal(t, sink.OptionGate, off.Units[0].Marks[1].Gate)
	b := newBed(t, atbctx.WithCompiled(off), atbctx.WithTilingScheduleOptimize("1"))
	o := sunkGraph(b, sunk{})
	require.NoError(t, o.SetOption(sink.OptionName, "1"))
	assert.Equal(t, []float32{3 + expect(3, 4), 6 + expect(3, 4)}, b.run(o, b.f32([]float32{1, 2}), host(3, 4)))
	s := b.c.Stats()
	assert.Zero(t, s.DeviceTilings)
	assert.Equal(t, int64(1), s.HostTilings, "the one that reads values")
	require.Len(t, s.FallbackReasons, 1)
	assert.Equal(t, "ge.tiling_schedule_optimize is off (compile)", s.FallbackReasons[0].Reason)

	on := compileSunk(t, 2, sunk{}, operation.CompileOptions{TilingScheduleOptimize: "1"}, atbctx.WithTilingScheduleOptimize("0"))
	assert.True(t, on.Units[0].Marks[1].Sunk)
	assert.True(t, on.Offline)
	b = &bed{TB: t, dev: cpuDevice(t, cpu.WithTaskUpdate(false))}
	b.c = b.context(atbctx.WithCompiled(on))
	o = sunkGraph(b, sunk{})
	p := b.pack(o, b.f32([]float32{1, 2}), host(3, 4))
	ws := b.setup(o, p)
	err := o.Execute(p, ws, b.c)
	require.ErrorIs(t, err, compiled.OtherTarget)
	assert.ErrorContains(t, err, "it tiles on the device, and the device cannot update queued tasks")
	for online, want := range map[bool]sink.Gate{false: sink.NoGate, true: sink.ChipGate} {
		x, err := operation.NewCompiler(b.c, operation.CompileOptions{Online: online})
		require.NoError(t, err)
		require.NoError(t, x.Add(o))
		assert.Equal(t, want, x.File().Units[0].Marks[1].Gate)
		assert.Equal(t, !online, x.File().Offline)
	}
}

func TestCompilerRefuses(t *testing.T) {
	b := newBed(t)
	_, err := operation.NewCompiler(nil, operation.CompileOptions{})
	assert.ErrorIs(t, err, status.ErrInvalidContextAddr)
	_, err = operation.NewCompiler(b.c, operation.CompileOptions{TilingScheduleOptimize: "on"})
	assert.ErrorIs(t, err, status.ErrInvalidParam)
	assert.ErrorContains(t, err, `option ge.tiling_schedule_optimize: want "", "0" or "1", got "on"`)
	x, err := operation.NewCompiler(b.c, operation.CompileOptions{})
	require.NoError(t, err)
	o := sunkGraph(b, sunk{})
	assert.ErrorContains(t, x.Add(o), "want a successful setup first")
	p := b.pack(o, b.f32([]float32{1, 2}), host(3, 4))
	elsewhere := b.context()
	_, err = o.Setup(p, elsewhere)
	require.NoError(t, err)
	assert.ErrorIs(t, x.Add(o), status.ErrInvalidContextAddr)
	b.setup(o, p)
	require.NoError(t, x.Add(o))
	require.NoError(t, x.Add(o))
	assert.Len(t, x.File().Units, 1, "equal graphs are kept once")
}

// kept is y = x, a copy where they are not one memory.
type kept struct{}

func (kept) Signature() operation.Signature {
	return operation.Signature{Name: "KeptOperation", In: operation.Ports("x"), Out: operation.Ports("y"), Variant: "Kept", Native: "f32->f32"}
}
func (kept) Validate() error                                 { return nil }
func (kept) Check(*operation.Query) error                    { return nil }
func (kept) Infer(q *operation.Query) ([]tensor.Desc, error) { return []tensor.Desc{q.In[0]}, nil }
func (kept) Lower(b *kernelgraph.Builder, _ *operation.Query) error {
	return b.Copy(b.In(0), b.Out(0))
}

// A copy to itself is left out, at compilation as at run time: so a graph that is
// updated in place is compiled with its tensors bound that way.
func TestCompileCopiesInPlace(t *testing.T) {
	b := newBed(t)
	o := b.graph(operation.GraphParam{Name: "g", Inputs: 1, Outputs: 1, Internals: 1, Nodes: []operation.Node{
		{Op: newOp(b, muls(3)), In: []int{0}, Out: []int{2}},
		{Op: newOp(b, kept{}), In: []int{0}, Out: []int{1}},
	}})
	x := b.f32([]float32{1, 2})
	for inPlace, nodes := range map[bool]int{false: 2, true: 1} {
		p := operation.VariantPack{In: []device.Tensor{x}, Out: []device.Tensor{b.empty(x.Desc)}}
		if inPlace {
			p.Out[0] = x
		}
		b.setup(o, p)
		plan, err := o.PlanCapture("", true)
		require.NoError(t, err)
		assert.Len(t, plan.Nodes, nodes, "in place: %v", inPlace)
	}
}
