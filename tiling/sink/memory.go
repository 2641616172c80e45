package sink

import (
	"goatb/device"
	"goatb/kernel"
)

// TilingBytes makes zeroed memory for a tiling, aligned as tilings are on the
// device.
func TilingBytes(n int) []byte {
	m := device.BytesOf(make([]uint64, (n+kernel.Align)/8+1))
	for !device.Wrap(m).Aligned(kernel.Align) {
		m = m[8:]
	}
	return m[:n:n]
}
