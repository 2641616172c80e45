//go:build !linux && !darwin && !windows

package cpu

import (
	"os"
	"unsafe"
)

// mapPages returns zeroed, page-aligned memory of the Go heap.
func mapPages(size int) ([]byte, error) {
	page := os.Getpagesize()
	mem := make([]byte, size+page)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) & (page - 1)
	return mem[skip : skip+size : skip+size], nil
}

// unmapPages leaves the memory to the garbage collector.
func unmapPages([]byte) error { return nil }
