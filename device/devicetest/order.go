package devicetest

import (
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/status"
)

var orderChecks = []check{
	{"one stream", checkStreamOrder},
	{"event across streams", checkPingPong},
	{"wait before record", checkWaitBeforeRecord},
	{"wait for the latest record", checkLatestRecord},
	{"meaning of a wait is fixed at enqueue", checkFixedTarget},
	{"reset", checkReset},
	{"wait then reset again and again", checkWaitReset},
	{"waits with resets before their records", checkWaitsAhead},
	{"several waiters", checkSeveralWaiters},
	{"refused events", checkRefusedEvents},
}

func checkStreamOrder(b *bed) {
	s := b.stream()
	var order []int
	for i := range 500 {
		s.do(func() { order = append(order, i) })
	}
	s.sync()
	require.Len(b, order, 500)
	for i, v := range order {
		require.Equal(b, i, v)
	}
}

func checkPingPong(b *bed) {
	s, o := b.stream(), b.stream()
	e, f := b.event(), b.event()
	var order []int
	for i := range 200 {
		s.do(func() { order = append(order, 2*i) })
		s.record(e)
		o.wait(e)
		o.do(func() { order = append(order, 2*i+1) })
		o.record(f)
		s.wait(f)
	}
	s.sync()
	require.Len(b, order, 400)
	for i, v := range order {
		require.Equal(b, i, v)
	}
}

func checkWaitBeforeRecord(b *bed) {
	s, o, e := b.stream(), b.stream(), b.event()
	var ran, recorded atomic.Bool
	s.wait(e)
	s.do(func() { ran.Store(recorded.Load()) })
	b.settle()
	require.False(b, s.Query())
	require.True(b, e.Query(), "no record is enqueued")
	o.do(func() { recorded.Store(true) })
	o.record(e)
	s.sync()
	require.True(b, ran.Load())
	s.wait(e)
	s.sync()
}

func checkLatestRecord(b *bed) {
	held, release := b.stalled()
	o, s, e := b.stream(), b.stream(), b.event()
	held.record(e)
	o.record(e)
	o.sync()
	require.False(b, e.Query(), "the first record has not fired")
	s.wait(e)
	s.sync()
	release()
	held.sync()
	require.True(b, e.Query())

	again, releaseAgain := b.stalled()
	o.record(e)
	again.record(e)
	s.wait(e)
	b.settle()
	require.False(b, s.Query(), "the second record has not fired")
	releaseAgain()
	s.sync()
}

func checkFixedTarget(b *bed) {
	s, release := b.stalled()
	never, releaseNever := b.stalled()
	o, e := b.stream(), b.event()
	o.record(e)
	s.wait(e)
	never.record(e)
	release()
	s.sync()
	require.False(b, e.Query())
	releaseNever()
	never.sync()
}

func checkReset(b *bed) {
	s, o, e := b.stream(), b.stream(), b.event()
	require.NoError(b, o.Reset(e), "an event without records")
	o.record(e)
	s.wait(e)
	s.sync()
	require.NoError(b, s.Reset(e))
	s.wait(e)
	b.settle()
	require.False(b, s.Query(), "the record was forgotten")
	o.record(e)
	s.sync()
}

func checkWaitReset(b *bed) {
	s, o, e := b.stream(), b.stream(), b.event()
	x := b.alloc(4)
	for i := range 100 {
		if i%2 == 0 {
			o.launch(fill(x, byte(i)))
			o.record(e)
		}
		s.wait(e)
		require.NoError(b, s.Reset(e))
		if i%2 == 1 {
			b.settle()
			require.False(b, s.Query(), "round %d", i)
			o.launch(fill(x, byte(i)))
			o.record(e)
		}
		s.sync()
		require.Equal(b, byte(i), x.Bytes()[0])
	}
}

// Waits with a reset behind each take the records to come in turn.
func checkWaitsAhead(b *bed) {
	s, o, e := b.stream(), b.stream(), b.event()
	var done atomic.Int64
	for range 3 {
		s.wait(e)
		require.NoError(b, s.Reset(e))
		s.do(func() { done.Add(1) })
	}
	for i := range 3 {
		b.settle()
		require.EqualValues(b, i, done.Load())
		o.record(e)
		o.sync()
	}
	s.sync()
	require.EqualValues(b, 3, done.Load())
	s.wait(e)
	b.settle()
	require.False(b, s.Query(), "every record is taken")
	o.record(e)
	s.sync()
}

func checkSeveralWaiters(b *bed) {
	held, release := b.stalled()
	e := b.event()
	held.record(e)
	var streams []stream
	var ran atomic.Int64
	for range 5 {
		s := b.stream()
		s.wait(e)
		s.wait(e)
		s.do(func() { ran.Add(1) })
		streams = append(streams, s)
	}
	b.settle()
	require.Zero(b, ran.Load())
	release()
	for _, s := range streams {
		s.sync()
	}
	require.EqualValues(b, 5, ran.Load())
}

func checkRefusedEvents(b *bed) {
	s := b.stream()
	other := b.open(b.T)
	theirs, err := other.NewEvent()
	require.NoError(b, err)
	for name, e := range map[string]device.Event{"nil": nil, "event of another device": theirs} {
		require.ErrorIs(b, s.Record(e), status.ErrInvalidParam, name)
		require.ErrorIs(b, s.Wait(e), status.ErrInvalidParam, name)
		require.ErrorIs(b, s.Reset(e), status.ErrInvalidParam, name)
	}
	s.sync()
	require.NoError(b, other.Close())
}
