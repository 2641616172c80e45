package vec

import "goatb/internal/asm/vecmath"

// CopyAround copies src to dst, where there is assembly with stores that go around
// the caches: lines of dst are not read first, and nothing else is evicted.
func CopyAround(dst, src []byte) {
	if !vecmath.CopyAround(dst, src) {
		copy(dst, src)
	}
}
