package cpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/cpu"
	"goatb/device/devicetest"
)

func TestTaskLists(t *testing.T) {
	for _, c := range []struct {
		name string
		opts []cpu.Option
	}{
		{"async", nil},
		{"no spin", []cpu.Option{cpu.WithSpin(0)}},
		{"one worker", []cpu.Option{cpu.WithWorkers(1)}},
		{"more workers than processors", []cpu.Option{cpu.WithWorkers(5)}},
		{"inline", []cpu.Option{cpu.WithInline()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			devicetest.RunTaskLists(t, func(t *testing.T, o devicetest.ListOptions) device.ModelDevice {
				opts := append([]cpu.Option{cpu.WithPrefetch(o.Prefetch), cpu.WithTaskUpdate(!o.NoTaskUpdate), cpu.WithDeadline(o.Deadline)}, c.opts...)
				d, err := cpu.New(opts...)
				require.NoError(t, err)
				return d
			})
		})
	}
}
