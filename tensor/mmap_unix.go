//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package tensor

import (
	"os"
	"syscall"
)

// canMap says whether mapFile can work.
const canMap = true

// mapFile maps the first size bytes of a file for reading.
func mapFile(f *os.File, size int) ([]byte, error) {
	return syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
}

func unmapFile(mem []byte) error { return syscall.Munmap(mem) }
