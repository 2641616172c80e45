package trace_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/checked"
	"goatb/device/cpu"
	"goatb/device/trace"
)

func TestAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := trace.New("host", 0)
		dev, err := cpu.New(cpu.WithInline(), cpu.WithHost(trace.NewAccount(r)))
		require.NoError(t, err)
		defer dev.Close()
		h := device.HostOf(checked.New(dev))
		require.NotNil(t, h, "through a layer")
		start := h.Now()
		h.Begin(device.SetupWork, nil)
		<-time.After(time.Microsecond)
		h.Begin(device.TilingWork, &device.Program{Name: "matmul/go"})
		<-time.After(2 * time.Microsecond)
		h.End(device.TilingWork)
		h.End(device.SetupWork)
		at := func(us int) time.Time { return start.Add(time.Duration(us) * time.Microsecond) }
		assert.Equal(t, []trace.Span{
			{Category: "tiling", Name: "matmul/go", Start: at(1), End: at(3)},
			{Category: "setup", Start: at(0), End: at(3)},
		}, r.Spans())
		assert.Equal(t, at(3), device.Clock(h)())
		e, err := dev.NewEvent()
		require.NoError(t, err)
		assert.True(t, h.Fired(e))
		r.Reset()
		assert.Empty(t, r.Spans())
	})
}

func TestNobodyKeepsAccount(t *testing.T) {
	dev, err := cpu.New(cpu.WithInline())
	require.NoError(t, err)
	defer dev.Close()
	require.Nil(t, device.HostOf(dev))
	require.Nil(t, device.HostOf(checked.New(dev)))
	require.NotZero(t, device.Clock(nil)())
}
