//go:build !linux

package cpu

// spanBytes is 0: each large region is a mapping of its own.
const spanBytes = 0

// adviseHuge does nothing: the system chooses its page sizes itself.
func adviseHuge([]byte) {}

// leavePages is for spans of several regions, which there are none of.
func leavePages([]byte) error { return nil }
