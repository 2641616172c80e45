//go:build !amd64 && !arm64

package workpool

// pause lets the time of a call pass: these processors have no spin hint that
// Go code can give.
//
//go:noinline
func pause() {}
