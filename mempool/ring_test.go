package mempool

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/status"
)

func newTestRing(t *testing.T, blocks int) (*Ring, *fakeDevice) {
	t.Helper()
	d := &fakeDevice{}
	r, err := NewRing(d, device.Wrap(make([]byte, blocks*SlotAlign)), blocks, SlotAlign)
	require.NoError(t, err)
	return r, d
}

func TestNewRingRefuses(t *testing.T) {
	freed := device.NewAllocation(device.DeviceSpace, 1024, make([]byte, 1024))
	freed.Release()
	mem := device.Wrap(make([]byte, 1024))
	for _, c := range []struct {
		name   string
		dev    device.Device
		mem    device.Buffer
		blocks int
		size   int64
		want   string
	}{
		{"no device", nil, mem, 1, 64, "want a device"},
		{"no blocks", &fakeDevice{}, mem, 0, 64, "at least 1 block, got 0"},
		{"negative blocks", &fakeDevice{}, mem, -1, 64, "at least 1 block, got -1"},
		{"size 0", &fakeDevice{}, mem, 1, 0, "positive multiple of 64, got 0"},
		{"odd size", &fakeDevice{}, mem, 1, 100, "positive multiple of 64, got 100"},
		{"no memory", &fakeDevice{}, device.Buffer{}, 1, 64, "nil or freed"},
		{"freed memory", &fakeDevice{}, device.Whole(freed), 1, 64, "nil or freed"},
		{"misaligned memory", &fakeDevice{}, mem.At(8, 512), 1, 64, "got offset 8"},
		{"too small", &fakeDevice{}, mem, 17, 64, "17 blocks of 64 bytes, got 1024"},
		{"product overflows", &fakeDevice{}, mem, 1 << 30, 1 << 62, "got 1024 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := NewRing(c.dev, c.mem, c.blocks, c.size)
			assert.Nil(t, r)
			require.ErrorIs(t, err, status.ErrInvalidParam)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

// Ten thousand launches against a stream that another goroutine lets run only
// when the taker is stuck: each launch must find its own bytes when it runs.
func TestRingNeverOverwrites(t *testing.T) {
	const blocks, takes = 32, 10000
	synctest.Test(t, func(t *testing.T) {
		r, d := newTestRing(t, blocks)
		s := newFakeStream(4 * blocks)
		ran := 0
		stop := make(chan struct{})
		released := make(chan struct{})
		go func() {
			defer close(released)
			for {
				select {
				case <-stop:
					s.step(len(s.tasks))
					return
				case <-time.After(time.Microsecond):
					s.step(min(5, len(s.tasks)))
				}
			}
		}()
		for i := range takes {
			b, err := r.Take(t.Context())
			require.NoError(t, err)
			require.Equal(t, i%blocks, b.Index())
			bytes := b.Buffer().Bytes()
			binary.LittleEndian.PutUint64(bytes, uint64(i))
			s.do(func() {
				assert.Equal(t, uint64(i), binary.LittleEndian.Uint64(bytes), "launch %d reads a block of another launch", i)
				ran++
			})
			require.NoError(t, r.Release(b, s))
		}
		close(stop)
		<-released
		assert.Equal(t, takes, ran)
		st := r.Stats()
		assert.Equal(t, int64(takes), st.Taken)
		assert.Equal(t, 0, st.InUse)
		assert.Greater(t, st.Stalls, int64(takes)/10)
		assert.GreaterOrEqual(t, st.StallNanos, st.Stalls)
		assert.Equal(t, blocks, d.events, "one event per block")
		require.NoError(t, r.Close())
	})
}

func TestRingStallIsCountedExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newTestRing(t, 2)
		s := newFakeStream(8)
		for range 2 {
			b, err := r.Take(t.Context())
			require.NoError(t, err)
			require.NoError(t, r.Release(b, s))
		}
		assert.Equal(t, 2, r.Stats().InUse)
		go func() {
			<-time.After(70 * time.Microsecond) // virtual: the device's working time
			s.step(1)
		}()
		b, err := r.Take(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 0, b.Index())
		st := r.Stats()
		assert.Equal(t, RingStats{Blocks: 2, BlockSize: SlotAlign, InUse: 2, Taken: 3, Stalls: 1, StallNanos: 70_000}, st)
		s.step(1)
		b2, err := r.Take(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1, b2.Index())
		assert.Equal(t, int64(1), r.Stats().Stalls, "a finished block is no stall")
	})
}

func TestRingCancelledTakeLeavesTheRing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newTestRing(t, 2)
		s := newFakeStream(8)
		for range 2 {
			b, err := r.Take(t.Context())
			require.NoError(t, err)
			require.NoError(t, r.Release(b, s))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := r.Take(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, int64(2), r.Stats().Taken)
		s.step(2)
		b, err := r.Take(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 0, b.Index())
	})
}

func TestRingHeldByTheHost(t *testing.T) {
	for _, c := range []struct {
		name string
		mem  device.Buffer
		code status.Code
	}{
		{"device", device.Wrap(make([]byte, 192)), status.ErrOutOfDeviceMemory},
		{"host", device.WrapHost(make([]byte, 192)), status.ErrOutOfHostMemory},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := NewRing(&fakeDevice{}, c.mem, 3, 64)
			require.NoError(t, err)
			var held []Block
			for range 3 {
				b, err := r.Take(t.Context())
				require.NoError(t, err)
				held = append(held, b)
			}
			_, err = r.Take(t.Context())
			require.ErrorIs(t, err, c.code)
			assert.ErrorContains(t, err, "all 3 blocks of 64 bytes are taken and not given back")
			for range 5 {
				require.NoError(t, r.Return(held[1]))
				held[1], err = r.Take(t.Context())
				require.NoError(t, err, "the blocks that are held are passed over")
				assert.Equal(t, 1, held[1].Index())
			}
			require.NoError(t, r.Return(held[0]))
			b, err := r.Take(t.Context())
			require.NoError(t, err)
			assert.Equal(t, 0, b.Index())
		})
	}
}

func TestRingOwnershipErrors(t *testing.T) {
	r, d := newTestRing(t, 2)
	other, _ := newTestRing(t, 2)
	b, err := r.Take(t.Context())
	require.NoError(t, err)
	assert.ErrorIs(t, r.Release(b, nil), status.ErrInvalidStream)
	assert.ErrorIs(t, other.Return(b), status.ErrInvalidParam)
	assert.ErrorIs(t, r.Return(Block{}), status.ErrInvalidParam)

	d.failEvents = true
	assert.ErrorIs(t, r.Release(b, idleStream{}), status.ErrDeviceFail)
	d.failEvents = false
	broken := errors.New("stream is broken")
	assert.ErrorIs(t, r.Release(b, &fakeStream{failRecord: broken}), broken)
	assert.Equal(t, 1, r.Stats().InUse, "a failed release leaves the block with the caller")

	require.NoError(t, r.Release(b, idleStream{}))
	assert.ErrorContains(t, r.Release(b, idleStream{}), "given back already")
	assert.ErrorContains(t, r.Return(b), "given back already")

	c, err := r.Take(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.Return(c))
	again, err := r.Take(t.Context())
	require.NoError(t, err)
	require.Equal(t, b.Index(), again.Index())
	assert.ErrorContains(t, r.Return(b), "given back already", "a stale block of an earlier turn")
	assert.Equal(t, 1, d.events, "blocks that were never released cost no event")

	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	assert.ErrorContains(t, r.Return(again), "closed ring")
	_, err = r.Take(t.Context())
	assert.ErrorContains(t, err, "closed ring")
}

func TestRingClosedWhileATakeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newTestRing(t, 1)
		s := newFakeStream(2)
		b, err := r.Take(t.Context())
		require.NoError(t, err)
		require.NoError(t, r.Release(b, s))
		failed := make(chan error)
		go func() {
			_, err := r.Take(t.Context())
			failed <- err
		}()
		synctest.Wait()
		require.NoError(t, r.Close())
		s.step(1)
		assert.ErrorContains(t, <-failed, "closed ring")
		assert.Equal(t, 0, r.Stats().InUse)
	})
}

func TestRingAllocatesNothing(t *testing.T) {
	r, _ := newTestRing(t, 4)
	var s device.Stream = idleStream{}
	ctx := t.Context()
	turn := func() {
		b, err := r.Take(ctx)
		if err == nil {
			err = r.Release(b, s)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		turn()
	}
	assert.Zero(t, testing.AllocsPerRun(100, turn))
}

func BenchmarkRing(b *testing.B) {
	r, err := NewRing(&fakeDevice{}, device.Wrap(make([]byte, 32*SlotAlign)), 32, SlotAlign)
	require.NoError(b, err)
	var s device.Stream = idleStream{}
	b.ReportAllocs()
	for b.Loop() {
		block, err := r.Take(b.Context())
		if err == nil {
			err = r.Release(block, s)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
