package cpu

import "syscall"

const madvHugePage = 14

// adviseHuge asks for huge pages. The advice is a wish: kernels without huge
// pages refuse it and nothing is lost.
func adviseHuge(mem []byte) { _ = syscall.Madvise(mem, madvHugePage) }
