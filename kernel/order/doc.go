// Package order holds the kernel that sorts rows and keeps the largest elements
// of each.
//
// The order is total: NaN, whatever its bits, is above +Inf, and -0 equals 0.
// Elements that compare equal stay in the order of their positions, so the
// result is one and the same for every method and every number of workers.
// Values are moved as bits.
package order

// key returns a number for an element such that ascending keys are falling
// elements. The element's bits are the upper ones of the argument, and inf are
// those of +Inf.
func key(bits, inf uint32) uint32 {
	magnitude := bits & 0x7fffffff
	if magnitude > inf {
		return 0
	}
	// A number as an element is one as an integer: of its magnitude and sign.
	sign := uint32(int32(bits) >> 31)
	return 1<<31 - (magnitude ^ sign - sign)
}
