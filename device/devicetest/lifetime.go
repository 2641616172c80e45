package devicetest

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/status"
)

var lifetimeChecks = []check{
	{"free while in use", checkFreeInUse},
	{"free while a copy reads", checkFreeUnderCopy},
	{"closed stream", checkClosedStream},
	{"stream close waits", checkStreamCloseWaits},
	{"closed event", checkClosedEvent},
	{"device close waits", checkDeviceCloseWaits},
	{"device close aborts endless waits", checkCloseAborts},
	{"device close aborts a circle of waits", checkCloseCircle},
	{"closed device", checkClosedDevice},
	{"close in any order", checkCloseOrders},
	{"close from many goroutines", checkCloseMany},
}

func checkFreeInUse(b *bed) {
	for _, size := range []int64{64, 1 << 20} {
		s, release := b.stalled()
		o, releaseOther := b.stalled()
		x, y := b.alloc(size), b.alloc(size)
		copy(x.Bytes(), repeat(3, int(size)))
		s.launch(add(y, x, 1))
		o.launch(add(x, x, 2))
		require.NoError(b, b.dev.Free(x))
		require.False(b, x.Live())
		require.ErrorIs(b, s.Launch(add(y, x, 1)), status.ErrInvalidTensorAddr)
		require.ErrorIs(b, b.dev.Free(x), status.ErrInvalidParam)
		z := b.alloc(size)
		copy(z.Bytes(), repeat(0xFF, int(size)))
		release()
		s.sync()
		require.Equal(b, repeat(4, int(size)), y.Bytes())
		releaseOther()
		o.sync()
		require.Equal(b, repeat(0xFF, int(size)), z.Bytes())
	}
}

func checkFreeUnderCopy(b *bed) {
	s, release := b.stalled()
	src, dst := b.host(8192), b.alloc(8192)
	copy(src.Bytes(), pattern(8192, 2))
	s.copy(dst, src)
	require.NoError(b, b.dev.Free(src))
	release()
	s.sync()
	require.Equal(b, pattern(8192, 2), dst.Bytes())
}

func checkClosedStream(b *bed) {
	s, e, x := b.stream(), b.event(), b.alloc(8)
	require.NoError(b, s.Close())
	require.NoError(b, s.Close())
	for name, err := range map[string]error{
		"launch": s.Launch(fill(x, 1)), "copy": s.Copy(x, x), "record": s.Record(e), "wait": s.Wait(e), "reset": s.Reset(e),
		"synchronize": s.Synchronize(b.Context()),
	} {
		assert.ErrorIs(b, err, status.ErrInvalidStream, name)
	}
	require.True(b, s.Query())
	require.Zero(b, s.Stats().Launches)
	require.True(b, e.Query(), "nothing was recorded")
}

func checkStreamCloseWaits(b *bed) {
	s, release := b.stalled()
	x := b.alloc(8)
	s.launch(fill(x, 6))
	var closed atomic.Bool
	go func() { closed.Store(s.Close() == nil) }()
	b.settle()
	require.False(b, closed.Load())
	require.ErrorIs(b, s.Launch(fill(x, 7)), status.ErrInvalidStream)
	release()
	b.settle()
	require.True(b, closed.Load())
	require.Equal(b, repeat(6, 8), x.Bytes())
}

func checkClosedEvent(b *bed) {
	held, release := b.stalled()
	s, e := b.stream(), b.event()
	held.record(e)
	s.wait(e)
	var ran atomic.Bool
	s.do(func() { ran.Store(true) })
	require.NoError(b, e.Close())
	require.NoError(b, e.Close())
	require.ErrorIs(b, s.Record(e), status.ErrInvalidParam)
	require.ErrorIs(b, s.Wait(e), status.ErrInvalidParam)
	require.ErrorIs(b, s.Reset(e), status.ErrInvalidParam)
	b.settle()
	require.False(b, ran.Load(), "the record of the closed event still orders")
	release()
	s.sync()
	require.True(b, ran.Load())
}

func checkDeviceCloseWaits(b *bed) {
	d := b.open(b.T)
	s, err := d.NewStream()
	require.NoError(b, err)
	var count atomic.Int64
	for range 300 {
		require.NoError(b, s.Launch(call(func() { count.Add(1) })))
	}
	require.NoError(b, d.Close())
	require.EqualValues(b, 300, count.Load())
}

func checkCloseAborts(b *bed) {
	d := b.open(b.T)
	var counts [3]atomic.Int64
	for i := range counts {
		s, err := d.NewStream()
		require.NoError(b, err)
		e, err := d.NewEvent()
		require.NoError(b, err)
		require.NoError(b, s.Launch(call(func() { counts[i].Add(1) })))
		require.NoError(b, s.Wait(e))
		require.NoError(b, s.Launch(call(func() { counts[i].Add(1) })))
		if i == 2 {
			go func() { _ = s.Synchronize(context.Background()) }()
		}
	}
	b.settle()
	_ = d.Close()
	for i := range counts {
		require.EqualValues(b, 1, counts[i].Load(), "work behind an aborted wait is skipped")
	}
}

func checkCloseCircle(b *bed) {
	d := b.open(b.T)
	s, err := d.NewStream()
	require.NoError(b, err)
	o, err := d.NewStream()
	require.NoError(b, err)
	e, err := d.NewEvent()
	require.NoError(b, err)
	f, err := d.NewEvent()
	require.NoError(b, err)
	require.NoError(b, s.Wait(e))
	require.NoError(b, o.Wait(f))
	require.NoError(b, s.Record(f))
	require.NoError(b, o.Record(e))
	b.settle()
	require.False(b, s.Query())
	require.False(b, o.Query())
	_ = d.Close()
	require.True(b, s.Query())
	require.True(b, o.Query())
}

func checkClosedDevice(b *bed) {
	d := b.open(b.T)
	s, err := d.NewStream()
	require.NoError(b, err)
	e, err := d.NewEvent()
	require.NoError(b, err)
	x, err := d.Alloc(64)
	require.NoError(b, err)
	require.NoError(b, d.Close())
	require.NoError(b, d.Close())
	require.False(b, x.Live())
	_, err = d.Alloc(1)
	assert.ErrorIs(b, err, status.ErrDeviceFail, "alloc")
	_, err = d.AllocHost(1)
	assert.ErrorIs(b, err, status.ErrDeviceFail, "alloc host")
	_, err = d.NewStream()
	assert.ErrorIs(b, err, status.ErrDeviceFail, "new stream")
	_, err = d.NewEvent()
	assert.ErrorIs(b, err, status.ErrDeviceFail, "new event")
	assert.Error(b, d.Free(x), "free")
	for name, err := range map[string]error{
		"launch": s.Launch(call(func() {})), "copy": s.Copy(x, x), "record": s.Record(e), "wait": s.Wait(e), "reset": s.Reset(e),
		"synchronize": s.Synchronize(b.Context()),
	} {
		assert.ErrorIs(b, err, status.ErrInvalidStream, name)
	}
	assert.True(b, e.Query())
	assert.NoError(b, s.Close())
	assert.NoError(b, e.Close())
	assert.Positive(b, d.Props().Cores)
}

func checkCloseOrders(b *bed) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		d := b.open(b.T)
		s, err := d.NewStream()
		require.NoError(b, err)
		e, err := d.NewEvent()
		require.NoError(b, err)
		require.NoError(b, s.Launch(call(func() {})))
		require.NoError(b, s.Record(e))
		closers := []func() error{d.Close, s.Close, e.Close}
		for range 2 {
			for _, i := range order {
				require.NoError(b, closers[i](), "order %v, closer %d", order, i)
			}
		}
	}
}

func checkCloseMany(b *bed) {
	d := b.open(b.T)
	var streams []device.Stream
	for range 4 {
		s, err := d.NewStream()
		require.NoError(b, err)
		streams = append(streams, s)
	}
	var wg sync.WaitGroup
	for i, s := range streams {
		wg.Go(func() {
			for s.Launch(call(func() {})) == nil {
				if i == 0 {
					_ = s.Synchronize(context.Background())
				}
			}
		})
		wg.Go(func() { _ = s.Close() })
		wg.Go(func() { _ = d.Close() })
	}
	wg.Wait()
	for _, s := range streams {
		require.ErrorIs(b, s.Synchronize(b.Context()), status.ErrInvalidStream)
	}
}
