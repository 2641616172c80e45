package operation_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/kernel"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
	"goatb/tiling/sink"
)

// odd is sunk with something about its kernel that is out of the ordinary.
type odd struct{ Kind oddity }

type oddity int

const (
	ordinary oddity = iota
	// packaged comes with another package and needs scratch memory, less than the
	// other kernels of the graph.
	packaged
	// endless may run for ever.
	endless
	// growing wants more scratch memory for some values.
	growing
	// overrunning writes more tiling data than it has room for, for some values.
	overrunning
	// wide has more inputs than a tiling can depend on.
	wide
	// heavy has more parameters than a tiling context holds.
	heavy
	// deviceOnly is never tiled on the host.
	deviceOnly
)

// tooMuch is the first value for which growing and overrunning go wrong.
const tooMuch = 77

type weight struct{ Bytes [70000]byte }

var oddKernels = map[oddity]*kernel.Kernel{
	ordinary: define("test/ordinary", func(*kernel.Def[sunk, sunkTiling]) {}),
	packaged: define("test/packaged", func(d *kernel.Def[sunk, sunkTiling]) {
		d.Package = "mine"
		d.Scratch = func(*kernel.Problem, sunk) int64 { return 512 }
	}),
	endless: define("test/endless", func(*kernel.Def[sunk, sunkTiling]) {}),
	growing: define("test/growing", func(d *kernel.Def[sunk, sunkTiling]) {
		d.Scratch = func(p *kernel.Problem, _ sunk) int64 {
			if p.Values != nil && p.Values[0][0] == tooMuch {
				return 4096
			}
			return 64
		}
	}),
	overrunning: define("test/overrunning", func(d *kernel.Def[sunk, sunkTiling]) {
		tile := d.Tile
		d.Tile = func(p *kernel.Problem, a sunk, t *sunkTiling, tail []int64) (kernel.Grid, error) {
			if p.Values[0][0] == tooMuch {
				tail[len(tail)] = 1
			}
			return tile(p, a, t, tail)
		}
	}),
	wide: define("test/wide", func(*kernel.Def[sunk, sunkTiling]) {}),
	heavy: kernel.Define(kernel.Def[weight, sunkTiling]{
		Name: "test/heavy", TileOn: kernel.OnHost | kernel.OnAICPU, Keys: 2,
		Tile: func(p *kernel.Problem, _ weight, t *sunkTiling, tail []int64) (kernel.Grid, error) {
			return sunkDef("", 0).Tile(p, sunk{}, t, tail)
		},
		Run: sunkDef("", 0).Run,
	}),
	deviceOnly: define("test/device-only", func(d *kernel.Def[sunk, sunkTiling]) { d.TileOn = kernel.OnAICPU }),
}

func define(name string, change func(*kernel.Def[sunk, sunkTiling])) *kernel.Kernel {
	d := sunkDef(name, kernel.OnHost|kernel.OnAICPU)
	change(&d)
	return kernel.Define(d)
}

func (o odd) Signature() operation.Signature {
	s := sunk{}.Signature()
	s.Name = "OddOperation"
	return s
}
func (o odd) Validate() error              { return nil }
func (o odd) Check(*operation.Query) error { return nil }
func (o odd) Infer(q *operation.Query) ([]tensor.Desc, error) {
	return []tensor.Desc{q.In[0]}, nil
}

func (o odd) Lower(b *kernelgraph.Builder, _ *operation.Query) error {
	c := kernelgraph.Call{
		Table: kernel.Table{oddKernels[o.Kind]}, Params: sunk{}, NeverTimeout: o.Kind == endless,
		In: []kernelgraph.Ref{b.In(0)}, Val: []kernelgraph.Ref{b.In(1)}, Out: []kernelgraph.Ref{b.Out(0)},
	}
	switch o.Kind {
	case heavy:
		c.Params = weight{}
	case wide:
		for len(c.In) < 64 {
			c.In = append(c.In, b.In(0))
		}
	}
	return b.Kernel(c)
}

// oddGraph is y = odd(2*x, n) + x.
func oddGraph(b *bed, kind oddity) (*operation.Op, operation.VariantPack) {
	o := b.graph(operation.GraphParam{Name: "g", Inputs: 2, Outputs: 1, Internals: 2, Nodes: []operation.Node{
		{Op: newOp(b, muls(2)), In: []int{0}, Out: []int{3}},
		{Op: newOp(b, odd{kind}), In: []int{3, 1}, Out: []int{4}},
		{Op: newOp(b, add()), In: []int{4, 0}, Out: []int{2}},
	}})
	return o, b.pack(o, b.f32([]float32{1, 2}), host(3, 4))
}

// An operation with a kernel of another package is captured like others: its tiling
// runs as a custom function and has 20480 bytes of workspace for its log.
func TestCustomKernelIsCaptured(t *testing.T) {
	for _, form := range append(patched, "v2") {
		var mu sync.Mutex
		logs := 0
		var warned bytes.Buffer
		b := sinkBed(t, form, atbctx.WithLogger(slog.New(slog.NewTextHandler(&warned, nil))), atbctx.WithTilingLog(func(w []byte) error {
			mu.Lock()
			defer mu.Unlock()
			logs++
			assert.Len(t, w, kernel.LogBytes)
			for i := range w {
				w[i] = 0xa5
			}
			if logs == 3 {
				return errors.New("the log is full")
			}
			return nil
		}))
		plain, p := oddGraph(b, ordinary)
		without, err := plain.Setup(p, b.c)
		require.NoError(t, err)
		o, p := oddGraph(b, packaged)
		size, err := o.Setup(p, b.c)
		require.NoError(t, err)
		assert.Equal(t, without+kernel.LogBytes, size)
		memory := b.empty(tensor.Of(tensor.Uint8, size)).Data
		for i := range int32(6) {
			p.In[1] = host(i, 4)
			require.NoError(t, o.Execute(p, memory, b.c))
			assert.Equal(t, 3+expect(i, 4), b.values(p.Out[0])[0], form)
		}
		switch form {
		case "v2": // on the host
			assert.Zero(t, logs)
		case "superkernel": // where the log has no place in the arguments
			assert.Zero(t, logs)
			assert.Equal(t, int64(6), b.c.Stats().DeviceTilings)
		default:
			assert.Equal(t, 6, logs)
			assert.Contains(t, warned.String(), "the log is full")
			assert.GreaterOrEqual(t, bytes.Count(memory.Bytes(), bytes.Repeat([]byte{0xa5}, 1024)), 20)
			var text strings.Builder
			require.NoError(t, o.Capture().Plan.Segments[0].List.WriteText(&text))
			assert.Contains(t, text.String(), "CUST_AI_CPU test/packaged RunAicpuRpcSrvLaunch {tiling_context}{*op_type}{}{ws1*}", "the log is the last workspace")
		}
	}
}

// The log is in use from the start of the launch: no other memory may be laid over
// it before the tiling is done, whatever plans the workspace.
func TestLogIsNobodyElses(t *testing.T) {
	for _, global := range []string{"0", "1"} {
		b := sinkBed(t, "update", atbctx.WithVariable("ATB_WORKSPACE_MEM_ALLOC_GLOBAL", global), atbctx.WithTilingLog(func(w []byte) error {
			clear(w)
			return nil
		}))
		nodes := []operation.Node{{Op: newOp(b, muls(2)), In: []int{0}, Out: []int{3}}}
		for i := range 6 { // temporaries that come and go
			nodes = append(nodes, operation.Node{Op: newOp(b, muls(1)), In: []int{3 + i}, Out: []int{4 + i}})
		}
		nodes = append(nodes,
			operation.Node{Op: newOp(b, odd{packaged}), In: []int{9, 1}, Out: []int{10}},
			operation.Node{Op: newOp(b, muls(1)), In: []int{10}, Out: []int{2}})
		o := b.graph(operation.GraphParam{Inputs: 2, Outputs: 1, Internals: 8, Nodes: nodes})
		x := make([]float32, 6000)
		for i := range x {
			x[i] = float32(i)
		}
		p := b.pack(o, b.f32(x), host(3, 4))
		ws := b.setup(o, p)
		require.NoError(t, o.Workspace().Validate(o.Graph()))
		for range 20 {
			b.execute(o, p, ws)
		}
		got := b.values(p.Out[0])
		for i := range x {
			require.Equal(t, 2*x[i]+expect(3, 4), got[i])
		}
	}
}

// A kernel that may run for ever cannot be tiled on the device; it can be where it
// is tiled on the host.
func TestNeverTimeoutIsRefused(t *testing.T) {
	for _, form := range patched {
		b := sinkBed(t, form)
		o, p := oddGraph(b, endless)
		ws := b.setup(o, p)
		err := o.Execute(p, ws, b.c)
		require.ErrorIs(t, err, status.ErrInvalidParam, form)
		assert.ErrorContains(t, err, "its kernel never times out: it cannot be tiled on the device")
		assert.ErrorContains(t, err, "1_OddOperation")
	}
	for _, opts := range [][]atbctx.Option{
		{atbctx.WithPolicy("kernel-follow")}, {atbctx.WithPolicy("device-sink"), atbctx.WithTilingScheduleOptimize("0")},
		{atbctx.WithPolicy("device-sink"), atbctx.WithSinkForm("v2")},
	} {
		b := newBed(t, opts...)
		o, p := oddGraph(b, endless)
		b.execute(o, p, b.setup(o, p))
		assert.Equal(t, 3+expect(3, 4), b.values(p.Out[0])[0])
	}
}

// A user's own operation in a graph is called by the host between captured
// segments.
func TestPluginSplitsTheGraph(t *testing.T) {
	for _, form := range append(patched, "v2") {
		b := sinkBed(t, form)
		mine := b.plugin(muls(5))
		o := b.graph(operation.GraphParam{Inputs: 2, Outputs: 1, Internals: 2, Nodes: []operation.Node{
			{Op: newOp(b, sunk{}), In: []int{0, 1}, Out: []int{3}},
			{Name: "mine", Op: mine, In: []int{3}, Out: []int{4}},
			{Op: newOp(b, sunk{}), In: []int{4, 1}, Out: []int{2}},
		}})
		p := b.pack(o, b.f32([]float32{1, 2}), host(3, 4))
		ws := b.setup(o, p)
		for i := range int32(4) {
			p.In[1] = host(i, 4)
			b.execute(o, p, ws)
			assert.Equal(t, 5*(1+expect(i, 4))+expect(i, 4), b.values(p.Out[0])[0], form)
		}
		if form == "v2" {
			continue
		}
		c := o.Capture()
		require.Len(t, c.Plan.Segments, 3)
		assert.Equal(t, sink.Segment{First: 1, Last: 1, Host: true}, c.Plan.Segments[1].Segment)
		assert.Equal(t, "it calls a user's own operation", c.Plan.Marks[1].Reason)
		assert.Equal(t, int64(8), b.c.Stats().DeviceTilings)
	}
}

// What a tiling on the device must not do ends the execution with an error that
// names the operation; the next one works.
func TestTilingLeavesItsBounds(t *testing.T) {
	for _, form := range patched {
		for kind, want := range map[oddity]struct {
			code status.Code
			text string
		}{
			growing:     {status.ErrInvalidWorkspaceSize, "want at most the 64 bytes that the host planned for workspace 0, got 4096"},
			overrunning: {status.ErrRuntimeFail, "index out of range"},
		} {
			b := sinkBed(t, form)
			o, p := oddGraph(b, kind)
			ws := b.setup(o, p)
			b.execute(o, p, ws)
			b.sync()
			p.In[1] = host(tooMuch, 4)
			b.execute(o, p, ws)
			err := b.c.Synchronize(t.Context())
			require.ErrorIs(t, err, want.code, "%s %d", form, kind)
			assert.ErrorContains(t, err, want.text)
			assert.ErrorContains(t, err, "1_OddOperation")
			p.In[1] = host(6, 5)
			b.execute(o, p, ws)
			assert.Equal(t, 3+expect(6, 5), b.values(p.Out[0])[0], "%s %d", form, kind)
		}
	}
}

// What cannot be captured is refused by the first Execute, which names the
// operation.
func TestCaptureRefuses(t *testing.T) {
	for kind, want := range map[oddity]string{
		wide:       "tiling depends on the value of input 64: want an input from 0 to 63",
		heavy:      "want at most 65536 bytes of parameters, got 70000",
		deviceOnly: "its tiling reads values: want placement TILING_ON_HOST, got TILING_ON_AICPU",
	} {
		b := sinkBed(t, "update")
		o, p := oddGraph(b, kind)
		ws := b.setup(o, p)
		for range 2 {
			err := o.Execute(p, ws, b.c)
			require.ErrorIs(t, err, status.ErrInvalidParam)
			assert.ErrorContains(t, err, want)
			assert.ErrorContains(t, err, "1_OddOperation")
		}
		assert.Zero(t, b.c.Stats().Captures)
	}
}

// mute is a device that does not answer what it can do.
type mute struct{ device.ModelDevice }

var errMute = errors.New("the firmware does not answer")

// Capability fails.
func (mute) Capability(device.Capability) (int64, error) { return 0, errMute }

// A device that does not answer is an error, not a reason to tile on the host; a
// graph that has nothing to ask for is captured all the same.
func TestCapabilityThatFails(t *testing.T) {
	inner, err := device.Models(cpuDevice(t))
	require.NoError(t, err)
	b := &bed{TB: t, dev: mute{inner}}
	b.c = b.context(atbctx.WithPolicy("device-sink"))
	o, p := oddGraph(b, ordinary)
	ws := b.setup(o, p)
	err = o.Execute(p, ws, b.c)
	require.ErrorIs(t, err, errMute)
	assert.ErrorContains(t, err, "1_OddOperation")
	require.NoError(t, o.SetOption(sink.OptionName, "0"))
	ws = b.setup(o, p)
	b.execute(o, p, ws)
	assert.Equal(t, 3+expect(3, 4), b.values(p.Out[0])[0], "nobody asked")
	fixed := b.graph(operation.GraphParam{Inputs: 1, Outputs: 1, Nodes: []operation.Node{{Op: newOp(b, muls(2)), In: []int{0}, Out: []int{1}}}})
	assert.Equal(t, []float32{6}, b.run(fixed, b.f32([]float32{3})))
	assert.Equal(t, int64(2), b.c.Stats().Replays)
}

// A tiling on the host that fails while a graph is captured is an error of the
// Execute; the next one captures.
func TestTilingFailsAtTheCapture(t *testing.T) {
	for _, form := range append(patched, "v2") {
		b := sinkBed(t, form)
		for value, want := range map[int32]string{tileFails: "no tiling for 3", tilePanics: "the tiling panics"} {
			o := sunkGraph(b, sunk{})
			p := b.pack(o, b.f32([]float32{1, 2}), host(value, 4))
			ws := b.setup(o, p)
			err := o.Execute(p, ws, b.c)
			require.ErrorContains(t, err, want, form)
			assert.ErrorContains(t, err, "1_SunkOperation", form)
			p.In[1] = host(6, 5)
			b.execute(o, p, ws)
			assert.Equal(t, 3+expect(6, 5), b.values(p.Out[0])[0], form)
		}
	}
}
