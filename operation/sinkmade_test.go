package operation_test

import (
	"errors"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/device/sim"
	"goatb/device/sim/profile"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/operation/attention"
	"goatb/operation/elementwise"
	"goatb/status"
	"goatb/tensor"
	"goatb/tiling/sink"
)

func simDevice(t testing.TB) device.Device {
	p, err := profile.ByName("ascend910b")
	require.NoError(t, err)
	d, err := sim.New(p)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// setting is a way to bring tilings to the device.
type setting struct {
	name    string
	options []atbctx.Option
	patches bool
}

// settings are the policies, and the forms of device-sink.
func settings() []setting {
	var out []setting
	for _, p := range []string{"kernel-follow", "overall", "multi-stream"} {
		out = append(out, setting{p, []atbctx.Option{atbctx.WithPolicy(p)}, false})
	}
	for _, f := range sink.Forms() {
		out = append(out, setting{f.String(), []atbctx.Option{atbctx.WithPolicy("device-sink"), atbctx.WithSinkForm(f.String())}, f != sink.V2Form})
	}
	return out
}

// onDevices runs a test on both devices under every setting.
func onDevices(t *testing.T, f func(b *bed, s setting)) {
	for name, open := range map[string]func(testing.TB) device.Device{"cpu": func(t testing.TB) device.Device { return cpuDevice(t) }, "sim": simDevice} {
		for _, s := range settings() {
			t.Run(name+"/"+s.name, func(t *testing.T) {
				b := &bed{TB: t, dev: open(t)}
				b.c = b.context(append(s.options, atbctx.WithStreams(2))...)
				f(b, s)
			})
		}
	}
}

func (b *bed) i32(v ...int32) device.Tensor {
	b.Helper()
	x, err := atbctx.FromSlice(b.c, v, int64(len(v)))
	require.NoError(b, err)
	return x
}

// madeGraph is y = sunk(2*x, n+m) + x: the device adds up the values that the
// tiling reads. A node may change a device tensor between two Executes only.
func madeGraph(b *bed, s sunk, stream int) *operation.Op {
	count := newOp(b, add())
	if stream > 0 {
		require.NoError(b, count.SetStream(stream))
	}
	nodes := []operation.Node{
		{Op: count, In: []int{1, 2}, Out: []int{4}},
		{Op: newOp(b, muls(2)), In: []int{0}, Out: []int{5}},
	}
	if stream > 0 {
		e, err := b.dev.NewEvent()
		require.NoError(b, err)
		record, wait := newOp(b, operation.Event{Event: e, Action: operation.EventRecord}), newOp(b, operation.Event{Event: e, Action: operation.EventWait})
		require.NoError(b, record.SetStream(stream))
		nodes = append(nodes, operation.Node{Op: record}, operation.Node{Op: wait})
	}
	return b.graph(operation.GraphParam{Name: "made", Inputs: 3, Outputs: 1, Internals: 3, Nodes: append(nodes,
		operation.Node{Op: newOp(b, s), In: []int{5, 4}, Out: []int{6}},
		operation.Node{Op: newOp(b, add()), In: []int{6, 0}, Out: []int{3}},
	)})
}

// A tiling reads what a kernel before it has made, under every policy: on the
// device without the host, else the host waits for that kernel.
func TestTilingReadsWhatAKernelMakes(t *testing.T) {
	onDevices(t, func(b *bed, s setting) {
		o := madeGraph(b, sunk{}, 0)
		p := b.pack(o, b.f32([]float32{1, 2}), b.i32(3, 4), b.i32(1, 1))
		size, err := o.Setup(p, b.c)
		require.NoError(t, err)
		memory := b.empty(tensor.Of(tensor.Uint8, 4*size)).Data
		var first atbctx.Stats
		for i := range int32(6) {
			x := float32(1 + i)
			p.In[0] = b.f32([]float32{x, 2})
			p.In[1], p.In[2] = b.i32(i, 4), b.i32(1, i%2)
			p.Out[0] = b.empty(p.Out[0].Desc)
			require.NoError(t, o.Execute(p, memory.At(int64(i)%4*size, size), b.c))
			assert.Equal(t, 3*x+expect(i, 4, 1, i%2), b.values(p.Out[0])[0], "step %d", i)
			if i == 0 {
				first = b.c.Stats()
			}
		}
		last := b.c.Stats()
		assert.Empty(t, last.FallbackReasons)
		assert.Equal(t, first.Captures, last.Captures)
		if s.patches {
			assert.Equal(t, first.HostTilings, last.HostTilings)
			assert.Equal(t, int64(5), last.DeviceTilings-first.DeviceTilings)
		} else {
			assert.Greater(t, last.HostTilings, first.HostTilings)
			assert.Zero(t, last.DeviceTilings)
		}
	})
}

// The values may come from another stream: the tiling waits for the kernel itself.
func TestMadeValuesFromAnotherStream(t *testing.T) {
	onDevices(t, func(b *bed, s setting) {
		o := madeGraph(b, sunk{}, 1)
		p := b.pack(o, b.f32([]float32{1, 2}), b.i32(3, 4), b.i32(1, 1))
		ws := b.setup(o, p)
		for i := range int32(5) {
			copy(device.View[int32](p.In[1].Data.Bytes()), []int32{i, i * i})
			b.execute(o, p, ws)
			assert.Equal(t, 3+expect(i, i*i, 1, 1), b.values(p.Out[0])[0], "step %d", i)
		}
		assert.Equal(t, s.patches, b.c.Stats().DeviceTilings == 5)
		assert.Empty(t, b.c.Stats().FallbackReasons)
	})
}

// The list lets the tiling wait for the kernel that makes its values, and for
// nothing else.
func TestMadeValuesInTheList(t *testing.T) {
	b := sinkBed(t, "update")
	o := madeGraph(b, sunk{}, 0)
	p := b.pack(o, b.f32([]float32{1, 2}), b.i32(3, 4), b.i32(1, 1))
	b.execute(o, p, b.setup(o, p))
	b.sync()
	list := o.Capture().Plan.Segments[0].List
	require.Equal(t, []string{"main", "tiling"}, list.Streams)
	var attached, main []string
	for i := range list.Tasks {
		k := &list.Tasks[i]
		word := k.Kind.String()
		switch k.Kind {
		case sink.WaitTask, sink.RecordTask:
			word += " " + strconv.Itoa(k.Event)
		case sink.NopTask:
			continue
		}
		if k.Stream == 1 {
			attached = append(attached, word)
		} else {
			main = append(main, word)
		}
	}
	assert.Equal(t, []string{"EVENT_WAIT 1", "PREPROCESS_KERNEL", "UPDATE", "EVENT_RECORD 0", "EVENT_RECORD 2"}, attached)
	assert.Equal(t, []string{"VECTOR_ALL_KERNEL", "EVENT_RECORD 1", "VECTOR_ALL_KERNEL", "EVENT_WAIT 0", "VECTOR_ALL_KERNEL", "VECTOR_ALL_KERNEL", "EVENT_WAIT 2"}, main)
}

// A tiling that fails on values that the device has made ends the execution with
// its error; the next one works.
func TestMadeValuesThatCannotBeTiled(t *testing.T) {
	for _, s := range settings() {
		b := newBed(t, s.options...)
		o := madeGraph(b, sunk{}, 0)
		p := b.pack(o, b.f32([]float32{1, 2}), b.i32(3, 4), b.i32(0, 0))
		ws := b.setup(o, p)
		b.execute(o, p, ws)
		b.sync()
		values := device.View[int32](p.In[1].Data.Bytes())
		values[0] = tileFails
		err := o.Execute(p, ws, b.c)
		if err == nil {
			err = b.c.Synchronize(t.Context())
		}
		require.ErrorIs(t, err, status.ErrInvalidParam, s.name)
		assert.ErrorContains(t, err, "no tiling for 3", s.name)
		assert.ErrorContains(t, err, "2_SunkOperation", s.name)
		values[0] = 9
		b.execute(o, p, ws)
		assert.Equal(t, 3+expect(9, 4), b.values(p.Out[0])[0], s.name)
	}
}

// A tiling of made values that stays on the host splits the graph; such a launch
// has no halves.
func TestMadeValuesOnTheHost(t *testing.T) {
	b := sinkBed(t, "update")
	o := madeGraph(b, sunk{Host: true}, 0)
	p := b.pack(o, b.f32([]float32{1, 2}), b.i32(3, 4), b.i32(0, 0))
	ws := b.setup(o, p)
	for i := range int32(3) {
		device.View[int32](p.In[1].Data.Bytes())[0] = i
		b.execute(o, p, ws)
		assert.Equal(t, 3+expect(i, 4), b.values(p.Out[0])[0])
	}
	s := b.c.Stats()
	assert.Equal(t, int64(3), s.Replays)
	require.Len(t, s.FallbackReasons, 1)
	assert.Len(t, o.Capture().Plan.Segments, 3)
	err := o.PreLaunch(p, ws, b.c)
	require.ErrorIs(t, err, status.ErrInvalidParam)
	assert.ErrorContains(t, err, "the halves of the launch cannot be apart")
	b.execute(o, p, ws)
	b.sync()

	for _, s := range settings() {
		b := newBed(t, s.options...)
		o := madeGraph(b, sunk{}, 0)
		p := b.pack(o, b.f32([]float32{1, 2}), b.i32(3, 4), b.i32(0, 0))
		ws := b.setup(o, p)
		err := o.PreLaunch(p, ws, b.c)
		if !s.patches {
			require.ErrorIs(t, err, status.ErrInvalidParam, s.name)
			continue
		}
		require.NoError(t, err, s.name)
		require.NoError(t, o.Launch(b.c))
		assert.Equal(t, 3+expect(3, 4), b.values(p.Out[0])[0], s.name)
	}
}

// updating counts in place: l2 = l, plus 1 where it bumps, and y is sunk's of x and
// l2. Where l2 lies in l's memory the copy is left out.
type updating struct{ Bump bool }

func (u updating) Signature() operation.Signature {
	return operation.Signature{Name: "UpdatingOperation", In: operation.Ports("x", "l"), Out: operation.Ports("y", "l2"), Variant: "Updating", Native: "f32,int32->f32,int32"}
}
func (u updating) Validate() error              { return nil }
func (u updating) Check(*operation.Query) error { return nil }
func (u updating) Infer(q *operation.Query) ([]tensor.Desc, error) {
	return []tensor.Desc{q.In[0], q.In[1]}, nil
}

func (u updating) Lower(b *kernelgraph.Builder, q *operation.Query) error {
	l := b.Out(1)
	if err := b.Copy(b.In(1), l); err != nil {
		return err
	}
	if u.Bump {
		twice := *q
		twice.In, twice.Out = []tensor.Desc{b.Desc(l), b.Desc(l)}, []tensor.Desc{b.Desc(l)}
		if err := add().Lower(b.Scope("bump", "ElewiseOperation", []kernelgraph.Ref{l, l}, []kernelgraph.Ref{l}, b.Stream()), &twice); err != nil {
			return err
		}
	}
	return b.Kernel(kernelgraph.Call{Table: sunkKernel, Params: sunk{}, In: []kernelgraph.Ref{b.In(0)}, Val: []kernelgraph.Ref{l}, Out: []kernelgraph.Ref{b.Out(0)}})
}

// A copy that is left out makes nothing: the tiling waits for who wrote before it,
// or for nobody.
func TestMadeValuesBehindACopy(t *testing.T) {
	for _, bump := range []bool{false, true} {
		for _, s := range settings() {
			b := newBed(t, s.options...)
			o := b.op(updating{bump})
			p := b.pack(o, b.f32([]float32{1, 2}), b.i32(3, 4))
			ws := b.setup(o, p)
			for step, inPlace := range []bool{true, true, false, true} {
				values := device.View[int32](p.In[1].Data.Bytes())
				copy(values, []int32{int32(step), 5})
				q := operation.VariantPack{In: p.In, Out: []device.Tensor{p.Out[0], p.Out[1]}}
				if inPlace {
					q.Out[1] = p.In[1]
				}
				b.execute(o, q, ws)
				want := []int32{int32(step), 5}
				if bump {
					want = []int32{2 * want[0], 2 * want[1]}
				}
				assert.Equal(t, 1+expect(want...), b.values(p.Out[0])[0], "%s bump %v step %d", s.name, bump, step)
				assert.Equal(t, want, device.View[int32](q.Out[1].Data.Bytes()))
			}
		}
	}
}

// What cannot be tiled from made values is refused by Setup.
func TestMadeValuesRefused(t *testing.T) {
	b := sinkBed(t, "update")
	x := b.f32([]float32{1})
	setup := func(nodes ...operation.Node) error {
		g := b.graph(operation.GraphParam{Inputs: 1, Outputs: 1, Internals: 1, Nodes: nodes})
		_, err := g.Setup(operation.VariantPack{In: []device.Tensor{x}, Out: []device.Tensor{b.empty(x.Desc)}}, b.c)
		return err
	}
	cast := elementwise.Of(elementwise.Cast)
	cast.OutTensorType = tensor.Int32
	err := setup(operation.Node{Op: newOp(b, cast), In: []int{0}, Out: []int{2}}, operation.Node{Op: newOp(b, shift{}), In: []int{0, 2}, Out: []int{1}})
	require.ErrorIs(t, err, status.ErrInvalidTensorAddr)
	assert.ErrorContains(t, err, "input 1 (n): its kernels depend on the values, which another node of the graph makes")
	err = setup(operation.Node{Op: newOp(b, floatValues{}), In: []int{0}, Out: []int{1}}, operation.Node{Op: newOp(b, muls(1)), In: []int{1}, Out: []int{2}})
	require.ErrorIs(t, err, status.ErrInvalidTensorDType)
	assert.ErrorContains(t, err, "want int32, uint32 or int64, got f32")
}

// floatValues is an operation whose tiling would read floats.
type floatValues struct{}

func (floatValues) Signature() operation.Signature {
	return operation.Signature{Name: "FloatValuesOperation", In: operation.Ports("x"), Out: operation.Ports("y"), Variant: "FloatValues", Native: "f32->f32"}
}
func (floatValues) Validate() error                                 { return nil }
func (floatValues) Check(*operation.Query) error                    { return nil }
func (floatValues) Infer(q *operation.Query) ([]tensor.Desc, error) { return q.In[:1], nil }
func (floatValues) Lower(b *kernelgraph.Builder, _ *operation.Query) error {
	t := b.Temp("t", b.Desc(b.In(0)))
	if err := b.Copy(b.In(0), t); err != nil {
		return err
	}
	return b.Kernel(kernelgraph.Call{Table: sunkKernel, Params: sunk{}, In: []kernelgraph.Ref{b.In(0)}, Val: []kernelgraph.Ref{t}, Out: []kernelgraph.Ref{b.Out(0)}})
}

// Paged attention decodes over lengths that only the device knows: a node counts
// them up.
func TestPagedAttentionOverMadeLengths(t *testing.T) {
	paged := attention.DefaultPagedAttention()
	paged.HeadNum, paged.QKScale = 1, 1/math.Sqrt2
	want := [][]float32{{1, 2}, {1.6604769, 2.6604769}, {3, 4}}
	onDevices(t, func(b *bed, s setting) {
		g := b.graph(operation.GraphParam{Name: "decode", Inputs: 6, Outputs: 1, Internals: 1, Nodes: []operation.Node{
			{Op: newOp(t, add()), In: []int{4, 5}, Out: []int{7}},
			{Op: newOp(t, paged), In: []int{0, 1, 2, 3, 7}, Out: []int{6}},
		}})
		tables, err := atbctx.FromSlice(b.c, []int32{0}, 1, 1)
		require.NoError(t, err)
		p := b.pack(g, b.f32([]float32{1, 0}, 1, 1, 2), b.f32([]float32{1, 0, 0, 1, 1, 1, 9, 9}, 1, 4, 1, 2), b.f32([]float32{1, 2, 3, 4, 5, 6, 9, 9}, 1, 4, 1, 2), tables, b.i32(0), b.i32(1))
		ws := b.setup(g, p)
		for _, n := range []int32{0, 1, 2, 1, 0} {
			device.View[int32](p.In[4].Data.Bytes())[0] = n
			b.execute(g, p, ws)
			assert.InDeltaSlice(t, want[n], b.values(p.Out[0]), 1e-6)
		}
		assert.Equal(t, s.patches, b.c.Stats().DeviceTilings == 5)
	})
}

// A steady launch allocates nothing, also where the host waits for the values.
func TestMadeValuesAllocateNothing(t *testing.T) {
	for _, s := range settings() {
		b := newBed(t, s.options...)
		o := madeGraph(b, sunk{}, 0)
		p := b.pack(o, b.f32([]float32{1, 2}), b.i32(3, 4), b.i32(1, 1))
		ws := b.setup(o, p)
		values, n := device.View[int32](p.In[1].Data.Bytes()), int32(0)
		ctx := t.Context()
		launch := func() {
			n++
			values[0] = n % 3
			if errors.Join(o.Execute(operation.VariantPack{}, ws, b.c), b.c.Synchronize(ctx)) != nil {
				panic("launch failed")
			}
		}
		for range 200 { // every block of the rings
			launch()
		}
		assert.Zero(t, testing.AllocsPerRun(50, launch), s.name)
	}
}
