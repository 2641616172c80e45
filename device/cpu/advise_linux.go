package cpu

import (
	"math"
	"syscall"
)

const (
	madvDontNeed = 4
	madvHugePage = 14
)

// spanBytes is the size of a span of large regions, where there are 64-bit addresses.
const spanBytes = (math.MaxInt >> 62) * (256 << 20)

// adviseHuge asks for huge pages. The advice is a wish: kernels without huge
// pages refuse it and nothing is lost.
func adviseHuge(mem []byte) { _ = syscall.Madvise(mem, madvHugePage) }

// leavePages gives the memory of a part of a mapping back. Its addresses stay taken:
// whoever comes there faults.
func leavePages(mem []byte) error {
	if err := syscall.Madvise(mem, madvDontNeed); err != nil {
		return err
	}
	return syscall.Mprotect(mem, syscall.PROT_NONE)
}
