//go:build linux && (amd64 || arm64)

package workpool

import (
	"runtime"
	"syscall"
	"unsafe"
)

// processor returns the number of the processor that the caller runs on, -1
// when it is unknown.
func processor() int32 {
	number := uintptr(309)
	if runtime.GOARCH == "arm64" {
		number = 168
	}
	var cpu uint32
	if _, _, errno := syscall.RawSyscall(number, uintptr(unsafe.Pointer(&cpu)), 0, 0); errno != 0 {
		return -1
	}
	return int32(cpu)
}
