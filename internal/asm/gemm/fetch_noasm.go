//go:build !amd64 || noasm

package gemm

// Fetch brings memory from an address on into L2 and does not wait for it: lines of 64
// bytes, at least one. Plain Go cannot.
func Fetch(uintptr, int) {}
