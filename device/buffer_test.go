package device_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
)

func TestBuffersOfOneMemory(t *testing.T) {
	mem := device.BytesOf(make([]uint64, 32))
	a, b := device.Wrap(mem), device.Wrap(mem[64:128]) // the same memory, wrapped twice
	other := device.Wrap(device.BytesOf(make([]uint64, 32)))
	hidden := device.Whole(device.NewAllocation(device.DeviceSpace, 256, nil))
	none := device.Buffer{}
	for _, tt := range []struct {
		name           string
		x, y           device.Buffer
		overlaps, same bool
	}{
		{"itself", a, a, true, true},
		{"a window", a, a.At(8, 8), true, false},
		{"windows apart", a.At(0, 8), a.At(8, 8), false, false},
		{"windows with one byte in common", a.At(0, 8), a.At(7, 8), true, false},
		{"an empty window inside", a, a.At(8, 0), false, false},
		{"wrapped twice", a, b, true, false},
		{"wrapped twice, the same bytes", a.At(64, 64), b, true, true},
		{"wrapped twice, apart", a.At(0, 64), b, false, false},
		{"other memory", a, other, false, false},
		{"memory that the processor cannot address", hidden, hidden.At(0, 8), true, false},
		{"addressable and not", a, hidden, false, false},
		{"no memory", a, none, false, false},
		{"no memory at all", none, none, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.overlaps, tt.x.Overlaps(tt.y))
			assert.Equal(t, tt.overlaps, tt.y.Overlaps(tt.x))
			assert.Equal(t, tt.same, tt.x.Same(tt.y))
			assert.Equal(t, tt.same, tt.y.Same(tt.x))
		})
	}
}

func TestAligned(t *testing.T) {
	mem := device.BytesOf(make([]uint64, 32))
	start := 0
	for !device.Wrap(mem[start:]).Aligned(64) {
		start += 8
	}
	require.Less(t, start, 64)
	b := device.Wrap(mem[start:])
	assert.True(t, b.At(64, 8).Aligned(64))
	assert.False(t, b.At(63, 8).Aligned(64))
	assert.False(t, device.Wrap(mem[start+8:]).Aligned(64), "the address counts, not the offset")
	hidden := device.Whole(device.NewAllocation(device.DeviceSpace, 256, nil))
	assert.True(t, hidden.At(128, 8).Aligned(64))
	assert.False(t, hidden.At(8, 8).Aligned(64))
	assert.True(t, device.Buffer{}.Aligned(64))
}
