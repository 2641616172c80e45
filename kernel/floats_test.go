package kernel_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"goatb/device"
	"goatb/kernel"
	"goatb/tensor"
)

func TestRoomAndFlush(t *testing.T) {
	values := []float32{1, -2.5, 0x1p-3}
	for _, d := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
		dst := device.BytesOf(make([]uint64, 2))[:4*d.Size()]
		buf := make([]float32, 4)
		room := kernel.Room(buf, dst, d, 3)
		assert.Equal(t, 3, cap(room))
		copy(room, values)
		kernel.Flush(dst[:3*d.Size()], room, d)
		back := make([]float32, 3)
		kernel.LoadFloats(back, dst, d)
		assert.Equal(t, values, back, "%s", d)
		assert.Equal(t, make([]byte, d.Size()), dst[3*d.Size():], "%s: behind the elements", d)
		assert.Equal(t, d == tensor.Float32, buf[0] == 0, "%s: f32 is computed in place", d)
	}
}
