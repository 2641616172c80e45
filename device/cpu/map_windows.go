package cpu

import (
	"syscall"
	"unsafe"
)

const (
	memCommitReserve = 0x3000
	memRelease       = 0x8000
	pageReadWrite    = 0x04
)

// mapPages reserves size bytes of zeroed, page-aligned memory that becomes
// resident when it is touched.
func mapPages(size int) ([]byte, error) {
	alloc := syscall.NewLazyDLL("kernel32.dll").NewProc("VirtualAlloc")
	addr, _, err := alloc.Call(0, uintptr(size), memCommitReserve, pageReadWrite)
	if addr == 0 {
		return nil, err
	}
	// The address is not Go memory, so it is reinterpreted, not converted.
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))), size), nil
}

// unmapPages gives back what mapPages returned.
func unmapPages(mem []byte) error {
	free := syscall.NewLazyDLL("kernel32.dll").NewProc("VirtualFree")
	if ok, _, err := free.Call(uintptr(unsafe.Pointer(unsafe.SliceData(mem))), 0, memRelease); ok == 0 {
		return err
	}
	return nil
}
