package operation_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/operation"
	"goatb/status"
)

func (b *bed) event() device.Event {
	b.Helper()
	e, err := b.dev.NewEvent()
	require.NoError(b, err)
	return e
}

func record(e device.Event) operation.Event {
	return operation.Event{Event: e, Action: operation.EventRecord}
}
func wait(e device.Event) operation.Event {
	return operation.Event{Event: e, Action: operation.EventWait}
}

// fire sets an operation without operands up and executes it.
func (b *bed) fire(o *operation.Op, c *atbctx.Context) error {
	b.Helper()
	n, err := o.Setup(operation.VariantPack{}, c)
	require.NoError(b, err)
	require.Zero(b, n)
	return o.Execute(operation.VariantPack{}, device.Buffer{}, c)
}

func TestEventOperation(t *testing.T) {
	b := newBed(t)
	e := b.event()
	_, err := operation.New(operation.Event{Action: 7})
	require.ErrorIs(t, err, status.ErrInvalidParam)
	o := b.op(record(nil))
	err = b.fire(o, b.c)
	require.ErrorIs(t, err, status.ErrInvalidParam, "a null event fails at Execute")
	assert.ErrorContains(t, err, "EventOperation: execute: record: the event is nil")
	require.NoError(t, o.Update(record(e)))
	require.NoError(t, b.fire(o, b.c))
	require.NoError(t, o.Update(wait(e)))
	assert.Equal(t, wait(e), o.Params())
	require.NoError(t, b.fire(o, b.c), "a wait after its record")
	b.sync()
	require.NoError(t, o.Update(wait(nil)))
	assert.ErrorIs(t, b.fire(o, b.c), status.ErrInvalidParam)
	require.NoError(t, o.Update(operation.Event{}))
	require.NoError(t, b.fire(o, b.c), "undefined does nothing")
	b.sync()
}

// Two fresh events are alike in all that they hold, and two events still.
func TestUpdateToAnotherEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		first, second := b.event(), b.event()
		o := b.op(record(first))
		require.NoError(t, o.Update(record(second)))
		other := b.context()
		waiting := b.op(wait(second))
		require.NoError(t, b.fire(waiting, other))
		synctest.Wait()
		require.NoError(t, b.fire(o, b.c))
		require.NoError(t, other.Synchronize(t.Context()), "the second event was recorded")
	})
}

// Graphs of two contexts, ordered by an event whichever of them is enqueued
// first: b = 2x in one, y = 3b in the other.
func TestEventsAcrossContexts(t *testing.T) {
	for name, waitFirst := range map[string]bool{"record, wait": false, "wait, record": true} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			other := b.context()
			e := b.event()
			producer := b.build(operation.BuildGraph("Producer", names{"x"}, names{"b"}).
				AddSpec(muls(2), names{"x"}, names{"b"}).AddSpec(record(e), nil, nil))
			consumer := b.build(operation.BuildGraph("Consumer", names{"b"}, names{"y"}).
				AddSpec(wait(e), nil, nil).AddSpec(muls(3), names{"b"}, names{"y"}))
			mid, y := b.empty(f32x2), b.empty(f32x2)
			for i := range 50 {
				x := b.f32([]float32{float32(i), -float32(i)})
				steps := []func(){
					func() {
						p := operation.VariantPack{In: []device.Tensor{x}, Out: []device.Tensor{mid}}
						b.execute(producer, p, b.setup(producer, p))
					},
					func() {
						p := operation.VariantPack{In: []device.Tensor{mid}, Out: []device.Tensor{y}}
						n, err := consumer.Setup(p, other)
						require.NoError(t, err)
						ws, err := other.Workspace(n)
						require.NoError(t, err)
						require.NoError(t, consumer.Execute(p, ws, other))
					},
				}
				if waitFirst {
					steps[0], steps[1] = steps[1], steps[0]
				}
				steps[0]()
				steps[1]()
				require.NoError(t, other.Synchronize(t.Context()))
				assert.Equal(t, []float32{6 * float32(i), -6 * float32(i)}, b.values(y))
			}
		})
	}
}

// A graph on two streams, with events that order it: y = (2x * 3) + (2x * 5).
func TestGraphOnTwoStreams(t *testing.T) {
	for _, policy := range []string{"kernel-follow", "overall", "multi-stream"} {
		t.Run(policy, func(t *testing.T) {
			b := newBed(t, atbctx.WithStreams(2), atbctx.WithPolicy(policy))
			start, end := b.event(), b.event()
			on1 := func(s operation.Spec) *operation.Op {
				o := newOp(t, s)
				require.NoError(t, o.SetStream(1))
				return o
			}
			g := b.build(operation.BuildGraph("Two", names{"x"}, names{"y"}).
				AddSpec(muls(2), names{"x"}, names{"a"}).
				AddSpec(record(start), nil, nil).
				Add(on1(wait(start)), nil, nil).
				Add(on1(muls(5)), names{"a"}, names{"c"}).
				Add(on1(record(end)), nil, nil).
				AddSpec(muls(3), names{"a"}, names{"b"}).
				AddSpec(wait(end), nil, nil).
				AddSpec(add(), names{"b", "c"}, names{"y"}))
			x := b.f32([]float32{1, 2})
			p := b.pack(g, x)
			ws := b.setup(g, p)
			for range 100 {
				b.execute(g, p, ws)
			}
			assert.Equal(t, []float32{16, 32}, b.values(p.Out[0]))
			require.NoError(t, b.c.SetPolicy("kernel-follow"))
			err := b.context().Synchronize(t.Context())
			require.NoError(t, err)
			_, err = g.Setup(p, b.context())
			assert.ErrorIs(t, err, status.ErrInvalidStream, "a context with one stream")
		})
	}
}

// Many waits before their records take no block of a ring: nothing is moved.
func TestWaitsTakeNoRingBlocks(t *testing.T) {
	for _, policy := range []string{"overall", "multi-stream"} {
		b := newBed(t, atbctx.WithPolicy(policy))
		other := b.context()
		e := b.event()
		o, r := b.op(wait(e)), b.op(record(e))
		for range 200 {
			require.NoError(t, b.fire(o, b.c))
		}
		assert.Zero(t, b.c.Stats().HostRing.Taken)
		for range 200 {
			require.NoError(t, b.fire(r, other))
		}
		require.NoError(t, other.Synchronize(t.Context()))
		b.sync()
	}
}
