//go:build noasm || !amd64

package gemm

var sets []Set

var acrossLoops Across
