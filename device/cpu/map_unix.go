//go:build linux || darwin

package cpu

import "syscall"

// mapPages reserves size bytes of zeroed, page-aligned memory that becomes
// resident when it is touched.
func mapPages(size int) ([]byte, error) {
	return syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
}

// unmapPages gives back what mapPages returned.
func unmapPages(mem []byte) error { return syscall.Munmap(mem) }
