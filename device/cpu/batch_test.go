package cpu_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/cpu"
	"goatb/status"
)

// A batch runs in order whether the queue holds all of it or one task at a
// time, and one bad launch leaves those before it enqueued.
func TestLaunchAll(t *testing.T) {
	for _, m := range modes {
		for _, depth := range []int{1, 3, 64} {
			d := open(t, append([]cpu.Option{cpu.WithQueueDepth(depth)}, m.opts...)...)
			s := newStream(t, d).(device.BatchStream)
			var got []int
			var ls []device.Launch
			for i := range 20 {
				ls = append(ls, *call(func() { got = append(got, i) }))
			}
			n, err := s.LaunchAll(ls)
			require.NoError(t, err)
			require.Equal(t, 20, n)
			require.NoError(t, s.Synchronize(t.Context()))
			for i := range 20 {
				require.Equal(t, i, got[i], "%s, depth %d", m.name, depth)
			}

			got = nil
			ls[7].Blocks = 0
			n, err = s.LaunchAll(ls)
			require.ErrorIs(t, err, status.ErrInvalidParam)
			require.Equal(t, 7, n)
			require.NoError(t, s.Synchronize(t.Context()))
			require.Len(t, got, 7)
			assert.EqualValues(t, 27, s.Stats().Launches)

			n, err = s.LaunchAll(nil)
			require.NoError(t, err)
			require.Zero(t, n)
			require.NoError(t, s.Close())
			n, err = s.LaunchAll(ls)
			require.ErrorIs(t, err, status.ErrInvalidStream)
			require.Zero(t, n)
		}
	}
}

// A batch larger than a queue that a wait holds is counted as a stall and goes
// on when the wait ends.
func TestLaunchAllWaitsForRoom(t *testing.T) {
	d := open(t, cpu.WithQueueDepth(4))
	s, opener, gate := newStream(t, d).(device.BatchStream), newStream(t, d), newEvent(t, d)
	require.NoError(t, s.Wait(gate))
	require.NoError(t, s.Reset(gate))
	ran := 0
	ls := make([]device.Launch, 9)
	for i := range ls {
		ls[i] = *call(func() { ran++ })
	}
	done := make(chan error)
	go func() {
		_, err := s.LaunchAll(ls)
		done <- err
	}()
	require.NoError(t, opener.Record(gate))
	require.NoError(t, <-done)
	require.NoError(t, s.Synchronize(t.Context()))
	assert.Equal(t, 9, ran)
}
