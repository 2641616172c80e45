//go:build amd64 || arm64

package workpool

// pause tells the processor that the caller spins: it frees the core's shared
// parts for about 10 to 60 ns.
//
//go:noescape
func pause()
