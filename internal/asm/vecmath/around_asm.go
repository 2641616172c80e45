//go:build amd64 && !noasm

package vecmath

import "unsafe"

// CopyAround copies src to dst with stores that go around the caches, for a dst
// that nobody reads soon.
func CopyAround(dst, src []byte) bool {
	const line, turn = 64, 128
	if active() == none {
		return false
	}
	head := min(int(-uintptr(unsafe.Pointer(unsafe.SliceData(dst)))%line), len(src))
	n := (len(src) - head) &^ (turn - 1)
	copy(dst[:head], src)
	if n > 0 {
		copyAroundAVX2(&dst[head:][:n][0], &src[head], n)
	}
	copy(dst[head+n:], src[head+n:])
	return true
}
