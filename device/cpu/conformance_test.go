package cpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/cpu"
	"goatb/device/devicetest"
)

func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name string
		opts []cpu.Option
	}{
		{"async", nil},
		{"no spin", []cpu.Option{cpu.WithSpin(0)}},
		{"one worker", []cpu.Option{cpu.WithWorkers(1)}},
		{"more workers than processors", []cpu.Option{cpu.WithWorkers(5)}},
		{"short queue", []cpu.Option{cpu.WithQueueDepth(17), cpu.WithSpin(0)}},
		{"inline", []cpu.Option{cpu.WithInline()}},
		{"inline with a short queue", []cpu.Option{cpu.WithInline(), cpu.WithQueueDepth(16), cpu.WithWorkers(3)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			devicetest.Run(t, func(t *testing.T) device.Device {
				d, err := cpu.New(c.opts...)
				require.NoError(t, err)
				return d
			})
		})
	}
}
