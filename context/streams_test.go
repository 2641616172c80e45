package context_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/device/checked"
	"goatb/device/cpu"
	"goatb/device/sim"
	"goatb/device/sim/profile"
	"goatb/status"
	"goatb/tiling/sink/compiled"
)

func TestStreamsThatCannotRunAreRefused(t *testing.T) {
	simulated := func(t *testing.T) device.Device {
		p, err := profile.ByName("ascend910b")
		require.NoError(t, err)
		d, err := sim.New(p)
		require.NoError(t, err)
		return d
	}
	layered := func(t *testing.T) device.Device {
		d, err := cpu.New()
		require.NoError(t, err)
		return checked.New(d)
	}
	plain := func(t *testing.T) device.Device {
		d, err := cpu.New()
		require.NoError(t, err)
		return d
	}
	for name, make := range map[string]func(*testing.T) device.Device{"cpu": plain, "sim": simulated, "checked": layered} {
		t.Run(name, func(t *testing.T) {
			stream := func(d device.Device) device.Stream {
				s, err := d.NewStream()
				require.NoError(t, err)
				return s
			}
			dev, other := make(t), make(t)
			defer func() { require.NoError(t, other.Close()); require.NoError(t, dev.Close()) }()
			c, err := atbctx.New(dev, atbctx.WithEnv(env()))
			require.NoError(t, err)
			defer func() { require.NoError(t, c.Close()) }()
			good, closed := stream(dev), stream(dev)
			require.NoError(t, closed.Close())
			require.NoError(t, c.SetStreams(good))
			for what, bad := range map[string]device.Stream{
				"zero cpu": &cpu.Stream{}, "zero sim": &sim.Stream{}, "zero checked": &checked.Stream{},
				"nil": (*cpu.Stream)(nil), "closed": closed, "another device's": stream(other),
			} {
				err := c.SetStreams(good, bad)
				require.ErrorIs(t, err, status.ErrInvalidStream, what)
				require.ErrorContains(t, err, "stream 1", what)
				require.Equal(t, 1, c.Streams(), what)
			}
			require.NoError(t, c.SetStreams(good, good))
		})
	}
}

func TestPanicOfALookupIsAnError(t *testing.T) {
	blow := func(string) (string, bool) { panic("boom") }
	_, err := atbctx.New(openDevice(t), atbctx.WithEnv(blow))
	require.ErrorIs(t, err, status.ErrInvalidParam)
	require.ErrorContains(t, err, "the lookup function panicked: boom")
	cfg, err := atbctx.ConfigFromEnv(blow)
	require.ErrorIs(t, err, status.ErrInvalidParam)
	require.Equal(t, atbctx.DefaultConfig(), cfg)
}

func TestSinkDeadlineOutOfRange(t *testing.T) {
	dev := openDevice(t)
	for _, d := range []time.Duration{-1, math.MinInt64, math.MaxInt64} {
		_, err := atbctx.New(dev, atbctx.WithEnv(env()), atbctx.WithSinkDeadline(d))
		require.ErrorIs(t, err, status.ErrInvalidParam)
		require.ErrorContains(t, err, "sink deadline: want 0 to")
	}
}

func TestZeroCompilationIsNamed(t *testing.T) {
	_, err := atbctx.New(openDevice(t), atbctx.WithEnv(env()), atbctx.WithCompiled(&compiled.File{}))
	require.ErrorIs(t, err, status.ErrInvalidParam)
	require.ErrorContains(t, err, "the compilation is zero")
}

func TestClosedContextReservesNothing(t *testing.T) {
	c, err := atbctx.New(openDevice(t), atbctx.WithEnv(env()))
	require.NoError(t, err)
	require.Positive(t, c.Stats().RingBytes)
	require.NoError(t, c.Close())
	require.Zero(t, c.Stats().RingBytes)
}

func TestZeroDevicesAreRefused(t *testing.T) {
	for _, dev := range []device.Device{&cpu.Device{}, &sim.Device{}, &checked.Device{}, checked.New(nil)} {
		c, err := atbctx.New(dev, atbctx.WithEnv(env()))
		require.Nil(t, c)
		require.ErrorIs(t, err, status.ErrInvalidParam)
		require.ErrorContains(t, err, "zero Device")
		require.NoError(t, dev.Close())
	}
	_, err := sim.New(&profile.Profile{})
	require.ErrorIs(t, err, status.ErrInvalidParam)
	require.ErrorContains(t, err, "zero Profile")
	d, err := cpu.New(nil)
	require.NoError(t, err)
	require.NoError(t, d.Close())
}
