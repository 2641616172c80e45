//go:build noasm || !amd64

package gemm

var int4Sets []Int4Set
