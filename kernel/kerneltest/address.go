package kerneltest

import "unsafe"

// addr returns the address of b's first byte, for alignment only.
func addr(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
