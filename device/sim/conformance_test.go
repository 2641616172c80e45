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

func TestTaskLists(t *testing.T) {
	devicetest.RunTaskLists(t, func(t *testing.T, o devicetest.ListOptions) device.ModelDevice {
		p, err := profile.ByName("ascend910b")
		require.NoError(t, err)
		update := 1.0
		if o.NoTaskUpdate {
			update = 0
		}
		for name, v := range map[string]float64{"prefetch": float64(o.Prefetch), "task_update": update} {
			p, err = p.With(name, v)
			require.NoError(t, err)
		}
		d, err := sim.New(p, sim.WithDeadline(o.Deadline))
		require.NoError(t, err)
		return d
	})
}
