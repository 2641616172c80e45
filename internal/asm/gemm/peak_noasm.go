//go:build noasm || !amd64

package gemm

var peaks []peak

var readLoop func(p *byte, bytes int)
