package vec

import (
	"math"

	"goatb/internal/asm/vecmath"
)

// Max returns the largest element of a. NaN elements are passed over; a slice
// that is empty or all NaN gives -Inf. Zeros of both signs are equal to it.
func Max(a []float32) float32 {
	if top, ok := vecmath.Reduce(vecmath.Max, F32, a); ok {
		return top
	}
	ninf := float32(math.Inf(-1))
	m0, m1, m2, m3 := ninf, ninf, ninf, ninf
	for len(a) >= 4 {
		if a[0] > m0 {
			m0 = a[0]
		}
		if a[1] > m1 {
			m1 = a[1]
		}
		if a[2] > m2 {
			m2 = a[2]
		}
		if a[3] > m3 {
			m3 = a[3]
		}
		a = a[4:]
	}
	for _, v := range a {
		if v > m0 {
			m0 = v
		}
	}
	return max(m0, m1, m2, m3)
}

// MaxAbs returns the largest magnitude in a. NaN elements are passed over; a
// slice that is empty or all NaN gives 0.
func MaxAbs(a []float32) float32 {
	if top, ok := vecmath.Reduce(vecmath.MaxAbs, F32, a); ok {
		return top
	}
	var m0, m1, m2, m3 uint32
	for len(a) >= 4 {
		m0 = max(m0, magnitude(a[0]))
		m1 = max(m1, magnitude(a[1]))
		m2 = max(m2, magnitude(a[2]))
		m3 = max(m3, magnitude(a[3]))
		a = a[4:]
	}
	for _, v := range a {
		m0 = max(m0, magnitude(v))
	}
	return math.Float32frombits(max(m0, m1, m2, m3))
}

// magnitude maps |v| to an integer of the same order, and NaN to 0.
func magnitude(v float32) uint32 {
	b := math.Float32bits(v) &^ (1 << 31)
	if b > 0x7f800000 {
		return 0
	}
	return b
}
