//go:build !linux

package cpu

// adviseHuge does nothing: the system chooses its page sizes itself.
func adviseHuge([]byte) {}
