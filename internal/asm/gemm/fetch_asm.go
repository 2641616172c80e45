//go:build amd64 && !noasm

package gemm

// Fetch brings memory from an address on into L2 and does not wait for it: lines of 64
// bytes, at least one. It may be any memory, also what is not there.
func Fetch(at uintptr, lines int) { fetch(at, lines) }
