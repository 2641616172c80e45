package faults_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device/checked"
	"goatb/device/cpu"
	"goatb/operation/shape"
	"goatb/status"
	"goatb/tensor"
)

// G01: a repetition overwrote the output that the caller had kept. Here an
// output is memory of the caller: the same memory is written again, other memory
// leaves the first alone.
func TestG01(t *testing.T) {
	b := newBed(t)
	c := b.ready(t3Paged(), t3Pages(2, 1)...)
	kept := c.pack.Out[0]
	assert.InDeltaSlice(t, t3Over[1], c.again(), tight)
	c.pack.In[4], c.pack.Out = b.put(lengths(3)), []atb.Tensor{b.blank(kept.Desc)}
	assert.InDeltaSlice(t, t3Over[3], c.again(), tight)
	assert.InDeltaSlice(t, t3Over[1], valuesOf(kept), tight)
	c.pack.Out[0] = kept
	assert.InDeltaSlice(t, t3Over[3], c.again(), tight)
}

// G03: an input was freed before the launch was repeated.
func TestG03(t *testing.T) {
	b := newBed(t)
	x := f32([]float64{1, 2}, 2)
	c := b.ready(muls(2), x)
	m, err := b.c.Alloc(x.desc.Bytes())
	require.NoError(t, err)
	copy(m.Bytes(), x.data)
	c.pack.In[0].Data = m
	assert.Equal(t, []float64{2, 4}, c.again())
	require.NoError(t, b.c.Free(m))
	for range 2 {
		err = c.op.Execute(c.pack, c.ws, b.c)
		require.ErrorIs(t, err, status.ErrInvalidTensorAddr)
		assert.ErrorContains(t, err, "ElewiseOperation: execute: input 0 (x): its memory was freed")
	}
	err = c.op.Execute(atb.VariantPack{}, c.ws, b.c)
	require.NoError(t, err, "a pack without tensors stands for setup's, which live")
	c.pack.In[0] = b.put(f32([]float64{5, 6}, 2))
	assert.Equal(t, []float64{10, 12}, c.again())
}

// G07: what ran between two launches used memory that the second had been
// bound to.
func TestG07(t *testing.T) {
	for _, policy := range policies {
		b := newBed(t, atb.WithPolicy(policy))
		spec := shape.Softmax{Axes: []int64{0}}
		in := draw(random(7), 40000)
		want := cold(t, spec, in)[0]
		op := b.op(spec)
		x := b.on(op, in)
		size, err := op.Setup(x.pack, b.c)
		require.NoError(t, err)
		x.ws, err = b.c.Workspace(size)
		require.NoError(t, err)
		for range 2 {
			fill(x.pack.Out[0].Data, poison)
			x.execute(op, x.pack, x.ws)
			assert.Equal(t, want, x.images()[0], policy)
			for i := range 50 {
				y := b.on(b.op(spec), draw(random(uint64(i)), 33000+int64(i)))
				n, err := y.op.Setup(y.pack, b.c)
				require.NoError(t, err)
				y.ws, err = b.c.Workspace(n)
				require.NoError(t, err)
				y.execute(y.op, y.pack, y.ws)
			}
			x.ws, err = b.c.Workspace(size)
			require.NoError(t, err)
		}
	}
}

// G09: the stream to use was a state of a handle that two threads shared. Here
// it belongs to the operation, and a context that two goroutines use at once
// refuses one of them.
func TestG09(t *testing.T) {
	b := newBed(t, atb.WithStreams(2))
	inner, outer := b.ready(muls(2), f32([]float64{1}, 1)), b.ready(muls(3), f32([]float64{1}, 1))
	stream, err := b.c.Stream(0)
	require.NoError(t, err)
	refused := make(chan []error, 1)
	held := b.op(&atb.If{Cond: func() (bool, error) {
		go func() {
			_, setup := inner.op.Setup(inner.pack, b.c)
			refused <- []error{setup, inner.op.Execute(inner.pack, inner.ws, b.c), inner.op.PreLaunch(inner.pack, inner.ws, b.c), b.c.SetPolicy("overall"), b.c.SetStreams(stream)}
		}()
		for _, err := range <-refused {
			assert.ErrorIs(t, err, status.ErrInvalidParam)
			assert.ErrorContains(t, err, "the context is in use by another goroutine")
		}
		return true, nil
	}, Then: b.op(muls(3)), Else: b.op(muls(4))})
	_, err = held.Setup(outer.pack, b.c)
	require.NoError(t, err, "the call that was there first goes on")
	assert.Equal(t, []float64{3}, outer.again())
	_, err = inner.op.Setup(inner.pack, b.c)
	require.NoError(t, err)
	assert.Equal(t, []float64{2}, inner.again(), "and so does the one that was refused")
}

// G11: work without elements gave up its share of the workspace, and others
// shared it. Here sequences without positions stand beside others, and every
// stream of a graph has scratch memory of its own.
func TestG11(t *testing.T) {
	assert.InDeltaSlice(t, t3Rows(2, 0, 3), newBed(t).run(t3Paged(), t3Pages(2, 2, 0, 3)...), tight)

	b := newBed(t, atb.WithStreams(2))
	rng := random(11)
	x, gamma := draw(rng, 8), draw(rng, 8)
	left, right := b.op(muls(2)), b.op(muls(3))
	require.NoError(t, right.SetStream(1))
	op, err := atb.NewGraph(atb.GraphParam{Name: "Beside", Inputs: 2, Outputs: 2, Nodes: []atb.Node{
		{Op: left, In: []int{0}, Out: []int{2}},
		{Op: right, In: []int{1}, Out: []int{3}},
	}})
	require.NoError(t, err)
	b.Cleanup(func() { require.NoError(t, op.Close()) })
	c := b.on(op, x, gamma)
	c.ws = b.setup(op, c.pack)
	w := op.Workspace()
	require.Len(t, w.ScratchAt, 2)
	require.Positive(t, w.ScratchOf[0], "scratch memory is at stake")
	require.Positive(t, w.ScratchOf[1])
	assert.GreaterOrEqual(t, w.ScratchAt[1], w.ScratchAt[0]+w.ScratchOf[0], "the sections are apart")
	for range 3 {
		c.again()
		assert.Equal(t, scaled(x, 2), c.out(0))
		assert.Equal(t, scaled(gamma, 3), c.out(1))
	}
}

func scaled(o operand, by float64) []float64 {
	v := o.values()
	for i := range v {
		v[i] *= by
	}
	return v
}

// G13: one handle on many streams used one workspace, and results differed from
// run to run.
func TestG13(t *testing.T) {
	d := checked.New(newDevice(t, cpu.WithWorkers(2)))
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	for _, policy := range policies {
		b := bedOn(t, d, atb.WithStreams(2), atb.WithPolicy(policy))
		op := b.op(shape.Softmax{Axes: []int64{0}})
		rng := random(13)
		in := [2]operand{draw(rng, 40000), draw(rng, 40000)}
		want := [2][]byte{cold(t, shape.Softmax{Axes: []int64{0}}, in[0])[0], cold(t, shape.Softmax{Axes: []int64{0}}, in[1])[0]}
		calls := [2]*call{b.on(op, in[0]), b.on(op, in[1])}
		for range 4 {
			for i, c := range calls {
				require.NoError(t, op.SetStream(i))
				n, err := op.Setup(c.pack, b.c)
				require.NoError(t, err)
				c.ws, err = b.c.WorkspaceOn(i, n)
				require.NoError(t, err)
				c.execute(op, c.pack, c.ws)
			}
		}
		assert.False(t, calls[0].ws.Overlaps(calls[1].ws), "a workspace for each stream")
		for i, c := range calls {
			assert.Equal(t, want[i], c.images()[0], policy)
		}
	}
}

// G15: memory that was given back while a stream still worked on it went to
// other streams, which did not wait.
func TestG15(t *testing.T) {
	for _, policy := range policies {
		b := newBed(t, atb.WithStreams(3), atb.WithPolicy(policy))
		const n = 4096
		x := f32(counting(n), n)
		busy := b.ready(muls(2), x)
		m, err := b.c.Alloc(x.desc.Bytes())
		require.NoError(t, err)
		copy(m.Bytes(), x.data)
		busy.pack.In[0].Data = m
		release := b.hold(0)
		busy.execute(busy.op, busy.pack, busy.ws)
		require.NoError(t, b.c.Free(m))
		var later []*call
		for stream := 1; stream < 3; stream++ {
			op := b.op(muls(float32(-stream)))
			require.NoError(t, op.SetStream(stream))
			c := b.on(op, f32(counting(n), n))
			out, err := b.c.Alloc(x.desc.Bytes())
			require.NoError(t, err)
			c.pack.Out[0].Data = out
			c.ws = b.setup(op, c.pack)
			c.execute(op, c.pack, c.ws)
			s, err := b.c.Stream(stream)
			require.NoError(t, err)
			require.NoError(t, s.Synchronize(t.Context()), "the other streams do not wait")
			later = append(later, c)
		}
		release()
		assert.Equal(t, scaled(x, 2), busy.out(0), policy)
		for i, c := range later {
			assert.Equal(t, scaled(x, float64(-i-1)), c.out(0), policy)
		}
	}
}

// G17: a checker finds memory that one stream fills again while another still
// reads it, and names both places.
func TestG17(t *testing.T) {
	for _, ordered := range []bool{true, false} {
		d := checked.New(newDevice(t, cpu.WithWorkers(2)))
		t.Cleanup(func() { require.NoError(t, d.Close()) })
		b := bedOn(t, d, atb.WithStreams(2))
		shared := b.put(f32([]float64{1, 2}, 2))
		reader, writer := b.op(shape.Softmax{Axes: []int64{0}}), b.op(muls(2))
		require.NoError(t, writer.SetStream(1))
		read := b.pack(reader, shared)
		write := b.pack(writer, b.put(f32([]float64{3, 4}, 2)))
		write.Out[0] = shared
		readWS, writeWS := b.setup(reader, read), b.setup(writer, write)
		b.execute(reader, read, readWS)
		if ordered {
			e, err := d.NewEvent()
			require.NoError(t, err)
			record, wait := b.op(atb.Event{Event: e, Action: atb.EventRecord}), b.op(atb.Event{Event: e, Action: atb.EventWait})
			require.NoError(t, wait.SetStream(1))
			for _, o := range []*atb.Op{record, wait} {
				_, err := o.Setup(atb.VariantPack{}, b.c)
				require.NoError(t, err)
				b.execute(o, atb.VariantPack{}, atb.Buffer{})
			}
		}
		b.execute(writer, write, writeWS)
		err := b.c.Synchronize(t.Context())
		if ordered {
			require.NoError(t, err)
			assert.Equal(t, []float64{6, 8}, valuesOf(shared))
			continue
		}
		f, ok := errors.AsType[*checked.Finding](err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, checked.Race, f.Kind)
		assert.ErrorContains(t, err, "ElewiseOperation")
		assert.ErrorContains(t, err, "SoftmaxOperation")
		require.NoError(t, b.c.Synchronize(t.Context()), "reported once")
	}
}

// The checker finds nothing in any operation, whatever the policy.
func TestG17FindsNothingInOperations(t *testing.T) {
	for _, policy := range policies {
		d := checked.New(newDevice(t, cpu.WithWorkers(2)))
		for _, s := range samples() {
			b := bedOn(t, d, atb.WithPolicy(policy))
			c := b.ready(s.spec, s.in(random(17), 3)...)
			for range 3 {
				c.execute(c.op, c.pack, c.ws)
			}
			assert.NoError(t, b.c.Synchronize(t.Context()), "%s, %s", s.name, policy)
		}
		t.Cleanup(func() { require.NoError(t, d.Close()) })
	}
}

// Nor does it in a graph on several streams between operations on one: the
// graph's streams start behind what was enqueued before it, and what comes later
// waits for all of them.
func TestG17FindsNothingAroundAGraph(t *testing.T) {
	for _, policy := range policies {
		d := checked.New(newDevice(t, cpu.WithWorkers(2)))
		t.Cleanup(func() { require.NoError(t, d.Close()) })
		b := bedOn(t, d, atb.WithStreams(2), atb.WithPolicy(policy))
		beside := b.node(muls(3))
		require.NoError(t, beside.SetStream(1))
		graph, err := atb.NewGraph(atb.GraphParam{Name: "Beside", Inputs: 1, Outputs: 2, Nodes: []atb.Node{
			{Op: b.node(muls(2)), In: []int{0}, Out: []int{1}},
			{Op: beside, In: []int{0}, Out: []int{2}},
		}})
		require.NoError(t, err)
		b.Cleanup(func() { require.NoError(t, graph.Close()) })
		before, after := b.op(muls(5)), b.op(add())
		x := b.on(before, f32([]float64{1, 2}, 2))
		y := call{bed: b, op: graph, pack: b.pack(graph, x.pack.Out[0])}
		z := call{bed: b, op: after, pack: b.pack(after, y.pack.Out...)}
		for range 3 {
			for _, c := range []*call{x, &y, &z} {
				c.ws = b.setup(c.op, c.pack)
				c.execute(c.op, c.pack, c.ws)
			}
		}
		assert.Equal(t, []float64{25, 50}, z.out(0), policy)
	}
}

// G19: the collector took memory while a call still used it. A tensor over a
// slice holds it until the work is done.
func TestG19(t *testing.T) {
	for _, policy := range policies {
		b := newBed(t, atb.WithPolicy(policy))
		const n = 1 << 16
		var collected atomic.Int64
		out := b.blank(tensor.Of(tensor.Float32, n))
		release := b.hold(0)
		func() {
			x := new([n]float32)
			for i := range x {
				x[i] = float32(i % 100)
			}
			runtime.AddCleanup(x, func(int) { collected.Add(1) }, 0)
			in, err := atb.Wrap(x[:], n)
			require.NoError(t, err)
			op, err := atb.New(muls(2))
			require.NoError(t, err)
			p := atb.VariantPack{In: []atb.Tensor{in}, Out: []atb.Tensor{out}}
			ws := b.setup(op, p)
			require.NoError(t, op.Execute(p, ws, b.c))
			require.NoError(t, op.Close())
		}()
		for i := range 10 {
			runtime.GC()
			junk := make([]float32, n)
			for j := range junk {
				junk[j] = float32(i)
			}
		}
		assert.Zero(t, collected.Load(), "work in flight holds the slice")
		release()
		b.sync()
		got := valuesOf(out)
		for i := range got {
			require.Equal(t, float64(2*(i%100)), got[i], fmt.Sprint(policy, i))
		}
		for collected.Load() == 0 { // what is done lets go of it
			runtime.GC()
			runtime.Gosched()
		}
	}
}
