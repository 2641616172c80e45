package checked_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/checked"
	"goatb/device/cpu"
	"goatb/device/devicetest"
)

func TestConformance(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			devicetest.Run(t, func(t *testing.T) device.Device {
				d, err := cpu.New(m.opts...)
				require.NoError(t, err)
				return checked.New(d)
			})
		})
	}
}

// openLists opens devices for the checks of task lists, some of which run stale on
// purpose.
func openLists(opts []cpu.Option, layers int) func(*testing.T, devicetest.ListOptions) device.ModelDevice {
	return func(t *testing.T, o devicetest.ListOptions) device.ModelDevice {
		d, err := cpu.New(append(opts, cpu.WithPrefetch(o.Prefetch), cpu.WithTaskUpdate(!o.NoTaskUpdate), cpu.WithDeadline(o.Deadline))...)
		require.NoError(t, err)
		var models device.ModelDevice = d
		for range layers {
			models = checked.New(models, checked.WithStale())
		}
		return models
	}
}

func TestTaskLists(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) { devicetest.RunTaskLists(t, openLists(m.opts, 1)) })
	}
	t.Run("two layers", func(t *testing.T) { devicetest.RunTaskLists(t, openLists(nil, 2)) })
}

// TestLayers puts the layer around itself.
func TestLayers(t *testing.T) {
	devicetest.Run(t, func(t *testing.T) device.Device {
		d, err := cpu.New(cpu.WithSpin(0))
		require.NoError(t, err)
		return checked.New(checked.New(d))
	})
}
