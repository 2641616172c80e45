package image

import (
	"sync/atomic"

	"goatb/device"
	"goatb/status"
)

// storeFlag stores 1 in a flag of 8 bytes for whoever polls it with atomic
// loads. Memory that is not aligned is ErrInternal.
func storeFlag(b []byte) error {
	if !device.Wrap(b).Aligned(wordBytes) {
		return status.Errorf(status.ErrInternal, "tiling: want a flag that is aligned to %d bytes", wordBytes)
	}
	atomic.StoreUint64(&device.View[uint64](b)[0], 1)
	return nil
}
