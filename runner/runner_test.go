package runner

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/cpu"
	"goatb/kernel"
	"goatb/kernel/move"
	"goatb/kernelgraph"
	"goatb/mempool"
	"goatb/status"
	"goatb/tensor"
	"goatb/tiling"
)

// plus is y = x + N + the values, over bytes.
type plus struct{ N int64 }

type plusTiling struct{ n, add int64 }

var plusTable = kernel.Table{kernel.Define(kernel.Def[plus, plusTiling]{
	Name: "test/plus", InPlace: true,
	Tile: func(p *kernel.Problem, a plus, t *plusTiling, _ []int64) (kernel.Grid, error) {
		t.n, t.add = p.In[0].Numel(), a.N
		for _, v := range p.Values {
			for _, x := range v {
				t.add += x
			}
		}
		if t.add > 100 {
			return kernel.Grid{}, status.Errorf(status.ErrInvalidParam, "want at most 100, got %d", t.add)
		}
		return kernel.Grid{Blocks: 1}, nil
	},
	Run: func(a *kernel.Args, _ int, t *plusTiling, _ []int64) error {
		for i := range t.n {
			a.Mem(1)[i] = a.Mem(0)[i] + byte(t.add)
		}
		return nil
	},
})}

// flaky is a device whose events run out.
type flaky struct {
	device.Device
	events int
}

func (d *flaky) NewEvent() (device.Event, error) {
	if d.events == 0 {
		return nil, errors.New("no more events")
	}
	d.events--
	return d.Device.NewEvent()
}

// bed is an Env by hand.
type bed struct {
	*testing.T
	env *Env
	dev *flaky
	ws  device.Buffer
}

func newBed(t *testing.T, p tiling.Policy) *bed {
	d, err := cpu.New(cpu.WithInline())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	b := &bed{T: t, dev: &flaky{d, 1 << 30}}
	b.env = &Env{Device: b.dev, Policy: p, BlockSize: 4096, LocalOn: true, LocalSlots: 1, SlotBytes: 1024, Counters: new(Counters)}
	stream := func() device.Stream {
		s, err := d.NewStream()
		require.NoError(t, err)
		return s
	}
	b.env.Streams, b.env.Copy = []device.Stream{stream(), stream()}, stream()
	b.env.Events, err = tiling.NewEventRing(d, tiling.CopyEvents)
	require.NoError(t, err)
	ring := func() *mempool.Ring {
		m, err := d.Alloc(2 * 4096)
		require.NoError(t, err)
		r, err := mempool.NewRing(d, m, 2, 4096)
		require.NoError(t, err)
		return r
	}
	b.env.HostRing, b.env.DeviceRing = ring(), ring()
	b.ws, err = d.Alloc(1 << 16)
	require.NoError(t, err)
	return b
}

var four = tensor.Of(tensor.Uint8, 4)

// plan lowers a graph of one input x, one of host values, and one output.
func (b *bed) plan(build func(g *kernelgraph.Builder)) *Plan {
	p, err := b.tryPlan(build)
	require.NoError(b, err)
	return p
}

func (b *bed) tryPlan(build func(g *kernelgraph.Builder)) (*Plan, error) {
	g := kernelgraph.New(&kernelgraph.Env{Copy: move.Copy}, "Test", []tensor.Desc{four, tensor.Of(tensor.Int32, 2)}, []tensor.Desc{four})
	build(g)
	graph, err := g.Build()
	require.NoError(b, err)
	w, err := graph.PlanWorkspace(new(mempool.Planner), kernelgraph.WorkspaceOptions{Solver: mempool.Optimal})
	require.NoError(b, err)
	return NewPlan(graph, w, "root", 0, b.env.BlockSize, b.env.SlotBytes)
}

func call(b *bed, g *kernelgraph.Builder, n int64, in, out kernelgraph.Ref, val ...kernelgraph.Ref) {
	require.NoError(b, g.Kernel(kernelgraph.Call{Name: "k", Table: plusTable, Params: plus{n}, In: []kernelgraph.Ref{in}, Val: val, Out: []kernelgraph.Ref{out}}))
}

// twice adds 1 by a temporary, then 2 and the values, on two streams or one.
func twice(b *bed, second int) func(g *kernelgraph.Builder) {
	return func(g *kernelgraph.Builder) {
		t := g.Temp("t", four)
		call(b, g, 1, g.In(0), t)
		g.Record(eventSlot{b.newEvent()})
		g.SetStream(second)
		call(b, g, 2, t, g.Out(0), g.In(1))
	}
}

type eventSlot struct{ e device.Event }

func (s eventSlot) Event() device.Event { return s.e }

func (b *bed) newEvent() device.Event {
	e, err := b.dev.Device.NewEvent()
	require.NoError(b, err)
	return e
}

func (b *bed) tensors(x ...byte) ([]device.Tensor, []device.Tensor) {
	return []device.Tensor{{Desc: four, Data: device.Wrap(x)}, {Desc: tensor.Of(tensor.Int32, 2)}},
		[]device.Tensor{{Desc: four, Data: device.Wrap(make([]byte, 4))}}
}

func (b *bed) sync() {
	for _, s := range b.env.Streams {
		require.NoError(b, s.Synchronize(b.Context()))
	}
}

func TestExecute(t *testing.T) {
	for _, p := range tiling.Policies() {
		for streams := range 2 {
			b := newBed(t, p)
			r := &Runner{}
			r.SetPlan(b.plan(twice(b, streams)), Key{}, b.env)
			for i := range 10 {
				in, out := b.tensors(byte(i), 0, 1, 2)
				require.NoError(t, r.Execute(in, out, b.ws, [][]int64{nil, {int64(i % 3), 4}}))
				b.sync()
				add := byte(3 + i%3 + 4)
				assert.Equal(t, []byte{byte(i) + add, add, 1 + add, 2 + add}, out[0].Data.Bytes(), "%s, %d streams", p.Name(), streams+1)
			}
			require.NoError(t, r.Close())
			require.NoError(t, r.Close())
			assert.Equal(t, int64(20), b.env.Counters.Kernels.Load())
			assert.Equal(t, int64(10), b.env.Counters.Executes.Load())
		}
	}
}

// Whatever fails, the rings get their blocks back and the next launch is right.
func TestFailures(t *testing.T) {
	for _, p := range tiling.Policies() {
		b := newBed(t, p)
		r := &Runner{}
		r.SetPlan(b.plan(twice(b, 1)), Key{}, b.env)
		in, out := b.tensors(1, 2, 3, 4)
		values := [][]int64{nil, {1, 1}}
		fails := func(code status.Code, text string) {
			t.Helper()
			err := r.Execute(in, out, b.ws, values)
			require.ErrorContains(t, err, text, p.Name())
			assert.Equal(t, code, status.CodeOf(status.Place(err, status.ErrRuntimeFail, "", "", "")))
			assert.Zero(t, b.env.HostRing.Stats().InUse, p.Name())
			assert.Zero(t, b.env.DeviceRing.Stats().InUse, p.Name())
		}
		for events := range 2 {
			b.dev.events = events
			fails(status.ErrRuntimeFail, "no more events")
		}
		b.dev.events = 100
		values[1][0] = 200
		fails(status.ErrInvalidParam, "root: execute: k (test/plus): want at most 100, got 203")
		values[1] = values[1][:1]
		fails(status.ErrInvalidTensorAddr, "input 1: want host data")
		values = nil
		fails(status.ErrInvalidTensorAddr, "input 1: want host data")
		in[0].Data = b.ws.At(0, 4)
		fails(status.ErrInvalidTensorAddr, "input 0: it overlaps the workspace")
		in, out = b.tensors(1, 2, 3, 4)
		require.NoError(t, r.Execute(in, out, b.ws, [][]int64{nil, {1, 1}}))
		b.sync()
		assert.Equal(t, []byte{6, 7, 8, 9}, out[0].Data.Bytes())
		require.NoError(t, r.Close())
	}
}

func TestPlanRefuses(t *testing.T) {
	b := newBed(t, tiling.KernelFollow{})
	_, err := b.tryPlan(func(g *kernelgraph.Builder) {
		tmp := g.Temp("t", tensor.Of(tensor.Float32, 2))
		call(b, g, 1, g.In(0), tmp)
		call(b, g, 1, g.In(0), g.Out(0), tmp)
	})
	require.ErrorIs(t, err, status.ErrInvalidTensorDType)
	assert.ErrorContains(t, err, "the tiling of k reads the values of t: want int32, uint32 or int64, got f32")
	_, err = b.tryPlan(func(g *kernelgraph.Builder) {
		tmp := g.Temp("t", tensor.Of(tensor.Uint8, 16))
		call(b, g, 1, g.In(0), tmp)
		v, err := g.View(tmp, tensor.Of(tensor.Int32, 2), 2)
		require.NoError(t, err)
		call(b, g, 1, g.In(0), g.Out(0), v)
	})
	require.ErrorIs(t, err, status.ErrInvalidTensorAddr)
	assert.ErrorContains(t, err, "at byte 2: want a multiple of 4")
	b.env.BlockSize = 512
	_, err = b.tryPlan(func(g *kernelgraph.Builder) {
		for range 9 {
			call(b, g, 1, g.In(0), g.Out(0))
		}
	})
	require.ErrorIs(t, err, status.ErrOutOfHostMemory)
	assert.ErrorContains(t, err, "tilings of 9 kernels need 1024 bytes, a tiling block has 512")
}

// A tiling may read part of the values of an input.
func TestWindowsOfValues(t *testing.T) {
	b := newBed(t, tiling.KernelFollow{})
	r := &Runner{}
	r.SetPlan(b.plan(func(g *kernelgraph.Builder) {
		v, err := g.View(g.In(1), tensor.Of(tensor.Int32, 1), 4)
		require.NoError(t, err)
		call(b, g, 0, g.In(0), g.Out(0), v)
	}), Key{}, b.env)
	for _, n := range []int64{5, 6} {
		in, out := b.tensors(0, 0, 0, 0)
		require.NoError(t, r.Execute(in, out, b.ws, [][]int64{nil, {50, n}}))
		b.sync()
		assert.Equal(t, byte(n), out[0].Data.Bytes()[0])
	}
}

// Tilings that are not cached take one entry, however many launches there are.
func TestUncachedTilings(t *testing.T) {
	for _, change := range []func(*Env){func(e *Env) { e.LocalOn = false }, func(e *Env) { e.SlotBytes = 1 }} {
		b := newBed(t, tiling.KernelFollow{})
		b.env.LocalSlots = 1024
		change(b.env)
		r := &Runner{}
		r.SetPlan(b.plan(twice(b, 0)), Key{}, b.env)
		in, out := b.tensors(0, 0, 0, 0)
		values := [][]int64{nil, {1, 1}}
		step := func() {
			if err := r.Execute(in, out, b.ws, values); err != nil {
				t.Error(err)
			}
		}
		step()
		before := b.env.Counters.Tilings.Load()
		for range 10 {
			step()
		}
		assert.Equal(t, int64(20), b.env.Counters.Tilings.Load()-before)
		assert.Zero(t, b.env.Counters.CacheMisses.Load())
		assert.Zero(t, testing.AllocsPerRun(50, step))
	}
}

func TestPool(t *testing.T) {
	b := newBed(t, tiling.Overall{})
	p := NewPool(2)
	owner := func(want any) func(any) bool { return func(o any) bool { return o == want } }
	assert.Nil(t, p.Take("op", owner(1)))
	runners := make([]*Runner, 3)
	in, out := b.tensors(1, 2, 3, 4)
	for i := range runners {
		r := &Runner{Owner: i}
		r.SetPlan(b.plan(twice(b, 1)), NewKey(in, out, []uint64{7}), b.env)
		require.NoError(t, r.PreLaunch(in, out, b.ws, [][]int64{nil, {1, 1}}))
		runners[i] = r
		if i > 0 {
			runners[i-1].Discard()
		}
	}
	for _, r := range runners {
		require.NoError(t, p.Put("op", r))
	}
	assert.Equal(t, 2, p.Idle(), "the third was closed")
	assert.Zero(t, b.env.HostRing.Stats().InUse, "what was prepared is given up")
	assert.Nil(t, p.Take("other", owner(0)))
	assert.Nil(t, p.Take("op", owner(9)))
	r := p.Take("op", owner(1))
	require.Same(t, runners[1], r)
	assert.False(t, r.Planned([]uint64{7}), "no plan of before is found under a key that is equal by chance")
	assert.False(t, r.MatchesDescs(in, out))
	for _, x := range append(append(r.in, r.out...), append(r.buffers, r.workspace)...) {
		assert.True(t, x.IsNil(), "an idle runner keeps no memory alive")
	}
	require.NoError(t, p.Close())
	require.NoError(t, p.Close())
	require.NoError(t, p.Put("op", r), "a closed pool closes")
	assert.Zero(t, p.Idle())
}

func TestKeys(t *testing.T) {
	b := newBed(t, tiling.KernelFollow{})
	in, out := b.tensors(1, 2, 3, 4)
	r := &Runner{}
	assert.False(t, r.Planned(nil), "no plan yet")
	r.SetPlan(b.plan(twice(b, 0)), NewKey(in, out, []uint64{1, 2, 3}), b.env)
	assert.True(t, r.Planned([]uint64{1, 2}))
	assert.False(t, r.Matches([]uint64{1, 2}))
	assert.True(t, r.Matches([]uint64{1, 2, 3}))
	assert.False(t, r.Planned([]uint64{1, 2, 3, 4}))
	assert.False(t, r.Planned([]uint64{2}))
	assert.True(t, r.MatchesDescs(in, out))
	assert.False(t, r.MatchesDescs(in[:1], out))
	in[0].Desc = tensor.Of(tensor.Uint8, 2, 2)
	assert.False(t, r.MatchesDescs(in, out))
	r.Forget()
	assert.False(t, r.Matches([]uint64{1, 2, 3}))
}
