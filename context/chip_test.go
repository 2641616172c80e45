package context_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/device/cpu"
)

// standing is a device that stands for a chip.
type standing struct {
	device.Device
	props device.Props
}

func (s *standing) Props() *device.Props { return &s.props }

// TestChipOfDevice: task lists are made for the chip that the device stands for,
// unless an option or a variable names another.
func TestChipOfDevice(t *testing.T) {
	dev, err := cpu.New()
	require.NoError(t, err)
	defer dev.Close()
	s := &standing{Device: dev, props: *dev.Props()}
	for _, x := range []struct {
		device, variable, want string
		opts                   []atbctx.Option
	}{
		{"", "", "910B", nil},
		{"310P3", "", "310P3", nil},
		{"310P3", "910B3", "910B3", nil},
		{"310P3", "910B3", "910B4", []atbctx.Option{atbctx.WithSoc("910B4")}},
		{"310P3", "910B3", "910B", []atbctx.Option{atbctx.WithConfig(atbctx.DefaultConfig())}},
	} {
		s.props.Chip = x.device
		lookup := func(name string) (string, bool) { return x.variable, name == "ATB_DEVICE_SINK_SOC" && x.variable != "" }
		c, err := atbctx.New(s, append([]atbctx.Option{atbctx.WithEnv(lookup)}, x.opts...)...)
		require.NoError(t, err)
		cfg := c.Config()
		require.Equal(t, x.want, cfg.SinkSoc)
		require.NoError(t, c.Close())
	}
}
