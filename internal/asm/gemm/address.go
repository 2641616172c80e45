package gemm

import "unsafe"

// Address is where memory lies, to fetch it: not to reach it.
func Address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
