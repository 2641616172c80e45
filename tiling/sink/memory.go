package sink

import (
	"goatb/device"
	"goatb/kernel"
)

// alignedBytes makes memory for a tiling, aligned as tilings are on the device.
func alignedBytes(n int) []byte {
	m := device.BytesOf(make([]uint64, (n+kernel.Align)/8+1))
	for !device.Wrap(m).Aligned(kernel.Align) {
		m = m[8:]
	}
	return m[:n:n]
}
