package operation_test

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/device/cpu"
	"goatb/kernel"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
	"goatb/tiling/sink"
)

// sunk is y = x + the sum of n, plus 1000 where the sum is odd, which is its
// tiling key. Its tiling runs on the device where Host is not set, and does what
// some first values of n ask for.
type sunk struct{ Host bool }

type sunkTiling struct{ n, sum int64 }

// First values of n that make a tiling go wrong.
const (
	tileFails = -1 - iota
	tilePanics
	tileHangs
	tileUnknownKey
)

// hang ends a tiling that hangs; hung counts those that do.
var (
	hang = make(chan struct{})
	hung atomic.Int64
)

// release ends the tilings that hang.
func release() {
	for range hung.Swap(0) {
		hang <- struct{}{}
	}
}

func sunkDef(name string, on kernel.Placement) kernel.Def[sunk, sunkTiling] {
	return kernel.Def[sunk, sunkTiling]{
		Name: name, TileOn: on, Keys: 2,
		Tile: func(p *kernel.Problem, _ sunk, t *sunkTiling, _ []int64) (kernel.Grid, error) {
			t.n = p.In[0].Numel()
			for _, v := range p.Values[0] {
				t.sum += v
			}
			switch p.Values[0][0] {
			case tileFails:
				return kernel.Grid{}, status.Errorf(status.ErrInvalidParam, "no tiling for %d", t.sum)
			case tilePanics:
				panic("the tiling panics")
			case tileHangs:
				hung.Add(1)
				<-hang
			case tileUnknownKey:
				return kernel.Grid{Blocks: 1, Key: 77}, nil
			}
			return kernel.Grid{Blocks: 1, Key: uint64(t.sum & 1)}, nil
		},
		Run: func(a *kernel.Args, _ int, t *sunkTiling, _ []int64) error {
			x, y := device.View[float32](a.Mem(0)), device.View[float32](a.Mem(1))
			for i := range t.n {
				y[i] = x[i] + float32(t.sum) + 1000*float32(a.Key)
			}
			return nil
		},
	}
}

var (
	sunkKernel   = kernel.Table{kernel.Define(sunkDef("test/sunk", kernel.OnHost|kernel.OnAICPU))}
	hostedKernel = kernel.Table{kernel.Define(sunkDef("test/hosted", kernel.OnHost))}
)

func (s sunk) Signature() operation.Signature {
	return operation.Signature{Name: "SunkOperation", In: operation.Ports("x", "n!"), Out: operation.Ports("y"), Variant: "Sunk", Native: "f32,int32->f32"}
}
func (s sunk) Validate() error                                 { return nil }
func (s sunk) Check(*operation.Query) error                    { return nil }
func (s sunk) Infer(q *operation.Query) ([]tensor.Desc, error) { return []tensor.Desc{q.In[0]}, nil }
func (s sunk) Lower(b *kernelgraph.Builder, _ *operation.Query) error {
	table := sunkKernel
	if s.Host {
		table = hostedKernel
	}
	return b.Kernel(kernelgraph.Call{Table: table, Params: s, In: []kernelgraph.Ref{b.In(0)}, Val: []kernelgraph.Ref{b.In(1)}, Out: []kernelgraph.Ref{b.Out(0)}})
}

// expect is what sunk adds.
func expect(n ...int32) float32 {
	sum := int32(0)
	for _, v := range n {
		sum += v
	}
	return float32(sum) + 1000*float32(sum&1)
}

// sunkGraph is y = sunk(2*x, n) + x, in three kernels with temporaries.
func sunkGraph(b *bed, s sunk) *operation.Op {
	return b.graph(operation.GraphParam{Name: "g", Inputs: 2, Outputs: 1, Internals: 2, Nodes: []operation.Node{
		{Op: newOp(b, muls(2)), In: []int{0}, Out: []int{3}},
		{Op: newOp(b, s), In: []int{3, 1}, Out: []int{4}},
		{Op: newOp(b, add()), In: []int{4, 0}, Out: []int{2}},
	}})
}

// patched are the forms that tile on the device.
var patched = []string{"update", "ffts", "superkernel"}

func sinkBed(t testing.TB, form string, opts ...atbctx.Option) *bed {
	return newBed(t, append([]atbctx.Option{atbctx.WithPolicy("device-sink"), atbctx.WithSinkForm(form)}, opts...)...)
}

// A replay reads the host's values, and tensors and workspace wherever they are
// now, without a capture or a tiling on the host.
func TestReplayFollowsValuesAndAddresses(t *testing.T) {
	for _, form := range append(patched, "v2") {
		b := sinkBed(t, form)
		o := sunkGraph(b, sunk{})
		p := b.pack(o, b.f32([]float32{1, 2}), host(3, 4))
		size, err := o.Setup(p, b.c)
		require.NoError(t, err)
		memory := b.empty(tensor.Of(tensor.Uint8, 8*size)).Data
		check := func(ws device.Buffer, x0 float32, n ...int32) {
			t.Helper()
			require.NoError(t, o.Execute(p, ws, b.c))
			assert.Equal(t, 3*x0+expect(n...), b.values(p.Out[0])[0], form)
		}
		check(memory.At(2*size, size), 1, 3, 4)
		first := b.c.Stats()
		for i := range int32(6) {
			p.In[1] = host(i, 10)
			check(memory.At(int64(i)%4*size, size), 1, i, 10)
		}
		device.View[int32](p.In[1].Host)[0] = 40
		check(memory.At(size, size), 1, 40, 10)
		p.In[0], p.Out[0] = b.f32([]float32{7, 8}), b.empty(p.Out[0].Desc)
		check(memory.At(3*size, size), 7, 40, 10)
		last := b.c.Stats()
		assert.Equal(t, first.Captures, last.Captures, form)
		if form != "v2" {
			assert.Equal(t, first.HostTilings, last.HostTilings, form)
			assert.Equal(t, int64(8), last.DeviceTilings-first.DeviceTilings, form)
			assert.Equal(t, int64(8), last.Replays-first.Replays, form)
		}
	}
}

// A tiling that goes wrong on the device ends the execution with its error, which
// names the operation; the next replay works.
func TestTilingFailsOnTheDevice(t *testing.T) {
	t.Cleanup(release)
	for _, form := range patched {
		b := sinkBed(t, form, atbctx.WithSinkDeadline(20*time.Millisecond))
		o := sunkGraph(b, sunk{})
		p := b.pack(o, b.f32([]float32{1, 2}), host(3, 4))
		ws := b.setup(o, p)
		b.execute(o, p, ws)
		b.sync()
		for value, want := range map[int32]string{tileFails: "no tiling for 3", tilePanics: "the tiling panics", tileHangs: "deadline", tileUnknownKey: "77"} {
			p.In[1] = host(value, 4)
			b.execute(o, p, ws)
			err := b.c.Synchronize(t.Context())
			require.ErrorContains(t, err, want, form)
			assert.ErrorContains(t, err, "1_SunkOperation", "%s: %s names the node", form, want)
			if value == tileHangs {
				assert.ErrorIs(t, err, device.FaultDeadline)
			}
			p.In[1] = host(6, 5)
			b.execute(o, p, ws)
			assert.Equal(t, 3+expect(6, 5), b.values(p.Out[0])[0], "%s after %s", form, want)
		}
	}
}

// An operation that misses a gate splits the graph: what stays on the host is
// right, counted with its reason, and an error where it must not be.
func TestGatesSplitTheGraph(t *testing.T) {
	prefetching := func(n int) func(testing.TB) device.Device {
		return func(t testing.TB) device.Device { return cpuDevice(t, cpu.WithPrefetch(n)) }
	}
	plain := func(t testing.TB) device.Device { return cpuDevice(t) }
	for name, x := range map[string]struct {
		dev     func(testing.TB) device.Device
		opts    []atbctx.Option
		option  string
		host    bool
		reason  string
		replays int64
	}{
		"session":   {plain, []atbctx.Option{atbctx.WithTilingScheduleOptimize("0")}, "", false, "option: ge.tiling_schedule_optimize is off (session)", 1},
		"graph":     {plain, nil, "0", false, "option: ge.tiling_schedule_optimize is off (graph)", 1},
		"nearer":    {plain, []atbctx.Option{atbctx.WithTilingScheduleOptimize("0")}, "1", false, "", 1},
		"placement": {plain, nil, "", true, "operator: want placement TILING_ON_AICPU, got TILING_ON_HOST", 1},
		"chip":      {plain, []atbctx.Option{atbctx.WithSoc("310B1")}, "", false, "chip: SoC 310B1 cannot update queued tasks", 1},
		"prefetch":  {prefetching(10), nil, "", false, "chip: the device fetches 10 queue entries past a wait, SoC 910B has 8", 1},
		"enough":    {prefetching(10), []atbctx.Option{atbctx.WithSoc("Ascend310P3")}, "", false, "", 1},
		"no update": {func(t testing.TB) device.Device { return cpuDevice(t, cpu.WithTaskUpdate(false)) }, nil, "", false, "chip: the device cannot update queued tasks", 1},
		"layered":   {func(t testing.TB) device.Device { return struct{ device.Device }{cpuDevice(t)} }, nil, "", false, "graph: the device ", 0},
		"checks":    {plain, []atbctx.Option{atbctx.WithVariable("ATB_STREAM_SYNC_EVERY_KERNEL_ENABLE", "1")}, "", false, "graph: ATB_STREAM_SYNC_EVERY_KERNEL_ENABLE=1 waits after single kernels", 0},
	} {
		for _, require1 := range []bool{false, true} {
			opts := append([]atbctx.Option{atbctx.WithPolicy("device-sink")}, x.opts...)
			if require1 {
				opts = append(opts, atbctx.WithRequireSink())
			}
			b := &bed{TB: t, dev: x.dev(t)}
			b.c = b.context(opts...)
			o := sunkGraph(b, sunk{Host: x.host})
			require.NoError(t, o.SetOption(sink.OptionName, x.option))
			p := b.pack(o, b.f32([]float32{1, 2}), host(3, 4))
			ws := b.setup(o, p)
			err := o.Execute(p, ws, b.c)
			if require1 && x.reason != "" {
				require.ErrorIs(t, err, status.ErrInvalidParam, name)
				assert.ErrorContains(t, err, "must run on the device", name)
				continue
			}
			require.NoError(t, err, name)
			assert.Equal(t, 3+expect(3, 4), b.values(p.Out[0])[0], name)
			p.In[1] = host(5, 5)
			b.execute(o, p, ws)
			assert.Equal(t, 3+expect(5, 5), b.values(p.Out[0])[0], name)
			s := b.c.Stats()
			assert.Equal(t, 2*x.replays, s.Replays, name)
			if x.reason == "" {
				assert.Empty(t, s.FallbackReasons, name)
				assert.Equal(t, int64(2), s.DeviceTilings, name)
				continue
			}
			assert.Zero(t, s.DeviceTilings, name)
			if assert.Len(t, s.FallbackReasons, 1, name) {
				f := s.FallbackReasons[0]
				assert.Contains(t, f.Gate+": "+f.Reason, x.reason, name)
			}
		}
	}
}

func cpuDevice(t testing.TB, opts ...cpu.Option) device.Device {
	d, err := cpu.New(append([]cpu.Option{cpu.WithWorkers(2)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// A chip without a number of nops cannot sink: that is an error, not stale runs.
func TestNoPrefetchNumber(t *testing.T) {
	b := sinkBed(t, "update", atbctx.WithSoc("910B4-1"))
	o := sunkGraph(b, sunk{})
	p := b.pack(o, b.f32([]float32{1, 2}), host(3, 4))
	ws := b.setup(o, p)
	err := o.Execute(p, ws, b.c)
	require.ErrorIs(t, err, status.ErrInvalidParam)
	assert.ErrorContains(t, err, "910B4-1: want a prefetch number")
}

func TestSinkOptionsRefused(t *testing.T) {
	for _, value := range []string{"2", "true", " 1", "on"} {
		_, err := atbctx.New(cpuDevice(t), atbctx.WithEnv(noEnv), atbctx.WithTilingScheduleOptimize(value))
		require.ErrorIs(t, err, status.ErrInvalidParam)
		assert.ErrorContains(t, err, "ge.tiling_schedule_optimize")
		assert.ErrorContains(t, err, value)
		b := newBed(t)
		err = b.op(sunk{}).SetOption(sink.OptionName, value)
		require.ErrorIs(t, err, status.ErrInvalidParam)
		assert.ErrorContains(t, err, "ge.tiling_schedule_optimize")
	}
	_, err := atbctx.New(cpuDevice(t), atbctx.WithEnv(noEnv), atbctx.WithSinkForm("v2"), atbctx.WithRequireSink())
	require.ErrorIs(t, err, status.ErrInvalidParam)
}

// Memory that was freed is an error of the replay; memory that nobody refers to
// any more is kept by the graph.
func TestReplayAndLifetimes(t *testing.T) {
	b := sinkBed(t, "update")
	o := sunkGraph(b, sunk{})
	p := b.pack(o, b.f32([]float32{1, 2}), host(3, 4))
	ws := b.setup(o, p)
	again := func() error { return o.Execute(operation.VariantPack{}, ws, b.c) }
	require.NoError(t, again())
	require.NoError(t, again())
	for range 3 {
		runtime.GC()
	}
	require.NoError(t, again())
	assert.Equal(t, 3+expect(3, 4), b.values(p.Out[0])[0])
	assert.Zero(t, testing.AllocsPerRun(20, func() {
		if errors.Join(again(), b.c.Synchronize(t.Context())) != nil {
			panic("replay failed")
		}
	}))
	require.NoError(t, b.c.Free(p.In[0].Data))
	require.ErrorIs(t, again(), status.ErrInvalidTensorAddr)
}

// A captured graph that is out of date is given up without waiting for it, also
// while its stream is held; both launches are right.
func TestRecaptureDoesNotWait(t *testing.T) {
	b := sinkBed(t, "update")
	o := sunkGraph(b, sunk{})
	gate, err := b.dev.NewEvent()
	require.NoError(t, err)
	s, err := b.c.Stream(0)
	require.NoError(t, err)
	small, large := b.pack(o, b.f32([]float32{1, 2}), host(3, 4)), b.pack(o, b.f32([]float32{5, 6, 7}), host(1, 1))
	require.NoError(t, s.Wait(gate))
	b.execute(o, small, b.setup(o, small))
	b.execute(o, large, b.setup(o, large))
	opener, err := b.dev.NewStream()
	require.NoError(t, err)
	require.NoError(t, opener.Record(gate))
	assert.Equal(t, 3+expect(3, 4), b.values(small.Out[0])[0])
	assert.Equal(t, 15+expect(1, 1), b.values(large.Out[0])[0])
	assert.Equal(t, int64(2), b.c.Stats().Captures)
}

// Both halves of a launch: the values are those of the first half.
func TestPreLaunchKeepsValues(t *testing.T) {
	for _, h := range []bool{false, true} {
		b := sinkBed(t, "update")
		o := sunkGraph(b, sunk{Host: h})
		p := b.pack(o, b.f32([]float32{1, 2}), host(3, 4))
		ws := b.setup(o, p)
		for i := range int32(3) {
			p.In[1] = host(i, 4)
			require.NoError(t, o.PreLaunch(p, ws, b.c))
			device.View[int32](p.In[1].Host)[0] = 90
			require.NoError(t, o.Launch(b.c))
			assert.Equal(t, 3+expect(i, 4), b.values(p.Out[0])[0], "host %v", h)
		}
	}
}
