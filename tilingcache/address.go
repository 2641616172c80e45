package tilingcache

import "unsafe"

// address is where b starts, for alignment.
func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
