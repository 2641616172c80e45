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

// TestLayers puts the layer around itself.
func TestLayers(t *testing.T) {
	devicetest.Run(t, func(t *testing.T) device.Device {
		d, err := cpu.New(cpu.WithSpin(0))
		require.NoError(t, err)
		return checked.New(checked.New(d))
	})
}
