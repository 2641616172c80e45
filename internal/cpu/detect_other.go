//go:build noasm || !amd64

package cpu

// detect finds nothing: there is no assembly for this build.
func detect() Features { return None }
