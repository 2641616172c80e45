package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/checked"
	"goatb/device/devicetest"
	"goatb/device/sim"
	"goatb/device/sim/profile"
)

func open(t *testing.T, opts ...sim.Option) *sim.Device {
	t.Helper()
	p, err := profile.ByName("ascend910b")
	require.NoError(t, err)
	p, err = p.With("queue_depth", 64)
	require.NoError(t, err)
	d, err := sim.New(p, opts...)
	require.NoError(t, err)
	return d
}

func TestConformance(t *testing.T) {
	devicetest.Run(t, func(t *testing.T) device.Device { return open(t) })
}

func TestConformanceChecked(t *testing.T) {
	devicetest.Run(t, func(t *testing.T) device.Device { return checked.New(open(t)) })
}
