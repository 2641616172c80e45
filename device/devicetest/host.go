package devicetest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"goatb/device"
)

var hostChecks = []check{
	{"query", checkQuery},
	{"synchronize waits", checkSynchronize},
	{"synchronize gives up with its context", checkSynchronizeContext},
	{"event synchronize", checkEventSynchronize},
	{"properties", checkProps},
	{"statistics", checkStats},
}

func checkQuery(b *bed) {
	s, release := b.stalled()
	e := b.event()
	require.True(b, e.Query(), "never recorded")
	s.record(e)
	b.settle()
	require.False(b, s.Query())
	require.False(b, e.Query())
	release()
	s.sync()
	require.True(b, s.Query())
	require.True(b, e.Query())
	require.True(b, b.stream().Query(), "an empty stream")
}

func checkSynchronize(b *bed) {
	s, release := b.stalled()
	var done atomic.Int64
	var synced [3]atomic.Bool
	for i := range synced {
		s.do(func() { done.Add(1) })
		go func() {
			if s.Synchronize(context.Background()) == nil {
				synced[i].Store(done.Load() >= int64(i+1))
			}
		}()
		b.settle()
	}
	for i := range synced {
		require.False(b, synced[i].Load(), "goroutine %d", i)
	}
	release()
	b.settle()
	for i := range synced {
		require.True(b, synced[i].Load(), "goroutine %d", i)
	}
}

func checkSynchronizeContext(b *bed) {
	s, release := b.stalled()
	x := b.alloc(16)
	s.launch(fill(x, 5))
	ctx, cancel := context.WithTimeout(b.Context(), time.Second)
	defer cancel()
	start := time.Now()
	require.ErrorIs(b, s.Synchronize(ctx), context.DeadlineExceeded)
	require.Equal(b, time.Second, time.Since(start))
	cause := errors.New("the user went away")
	gone, leave := context.WithCancelCause(b.Context())
	leave(cause)
	err := s.Synchronize(gone)
	require.True(b, errors.Is(err, cause) || errors.Is(err, context.Canceled), "got %v", err)
	require.False(b, s.Query())
	release()
	s.sync()
	require.Equal(b, repeat(5, 16), x.Bytes())
	require.NoError(b, s.Synchronize(gone), "nothing to wait for")
}

func checkEventSynchronize(b *bed) {
	s, release := b.stalled()
	e := b.event()
	require.NoError(b, e.Synchronize(b.Context()), "never recorded")
	s.record(e)
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	require.ErrorIs(b, e.Synchronize(ctx), context.DeadlineExceeded)
	var fired, later atomic.Bool
	go func() { fired.Store(e.Synchronize(context.Background()) == nil) }()
	b.settle()
	require.False(b, fired.Load())
	other, releaseOther := b.stalled()
	other.record(e)
	go func() { later.Store(e.Synchronize(context.Background()) == nil) }()
	b.settle()
	release()
	b.settle()
	require.True(b, fired.Load(), "its record has fired")
	require.False(b, later.Load(), "a record enqueued before it has not fired")
	releaseOther()
	b.settle()
	require.True(b, later.Load())
}

func checkProps(b *bed) {
	p := b.dev.Props()
	require.NotEmpty(b, p.Name)
	require.NotEmpty(b, p.Kind)
	require.Positive(b, p.Cores)
	require.Positive(b, p.L1)
	require.Positive(b, p.L2)
	require.Positive(b, p.QueueDepth)
	require.True(b, p.Addressable, "the suite's kernels are Go code")
	require.Equal(b, p, b.dev.Props())
}

func checkStats(b *bed) {
	s, release := b.stalled()
	x := b.alloc(8)
	require.Equal(b, device.StreamStats{DepthMax: s.Stats().DepthMax}, s.Stats())
	for range 3 {
		s.launch(fill(x, 1))
		s.copy(x, device.WrapHost(make([]byte, 8)))
	}
	b.settle()
	require.EqualValues(b, 7, s.Stats().DepthMax, "the wait and six tasks")
	release()
	s.sync()
	got := s.Stats()
	require.EqualValues(b, 3, got.Launches)
	require.EqualValues(b, 3, got.Copies)
	require.EqualValues(b, 24, got.CopiedBytes)
	require.Zero(b, got.QueueStalls)
	require.EqualValues(b, 7, got.DepthMax)
}
