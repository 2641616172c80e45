package roofline

import "unsafe"

// sumWords reads memory in plain Go, for processors without a loop of their
// own; bytes is a multiple of 32.
func sumWords(p *byte, bytes int) {
	words := unsafe.Slice((*uint64)(unsafe.Pointer(p)), bytes/8)
	var a, b, c, d uint64
	for i := 0; i+4 <= len(words); i += 4 {
		a += words[i]
		b += words[i+1]
		c += words[i+2]
		d += words[i+3]
	}
	sink(a + b + c + d)
}

//go:noinline
func sink(uint64) {}
