package parts

import "goatb/internal/vec"

// Len is the number of positions in a part.
const Len = 512

// Count returns the number of parts of n positions from the first of a part on.
func Count(n int64) int64 { return (n + Len - 1) / Len }

// Join adds a part of a row to its total: the maximum, the sum of exponentials
// relative to it and the values weighted with them. A sum of 0 means that
// nothing was seen. Every product is rounded before it is added.
func Join(total []float32, totalMax, totalSum *float32, part []float32, partMax, partSum float32) {
	switch {
	case partSum == 0:
	case *totalSum == 0:
		copy(total, part)
		*totalMax, *totalSum = partMax, partSum
	default:
		top := max(*totalMax, partMax)
		a, b := vec.ExpOf(*totalMax-top), vec.ExpOf(partMax-top)
		vec.Blend(a, total, b, part)
		*totalMax, *totalSum = top, float32(*totalSum*a)+float32(partSum*b)
	}
}

// Finish writes the values of rows that follow each other, each over its sum; a row
// that saw nothing is zero. dst may be total.
func Finish(dst, total, sums []float32) { vec.ShareRows(dst, total, sums) }
