package paged

import "goatb/internal/vec"

// join adds a part of a row to its total: the maximum, the sum of exponentials
// relative to it and the values weighted with them. A sum of 0 means that
// nothing was seen.
func join(total []float32, totalMax, totalSum *float32, part []float32, partMax, partSum float32) {
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

// normalise divides a row's values by its sum; a row that saw nothing is zero.
func normalise(total []float32, sum float32) {
	if sum == 0 {
		clear(total)
		return
	}
	vec.Scale(total, total, 1/sum)
}
