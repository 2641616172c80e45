package attend

import "math"

// float32FMA is a·b+c with one rounding: the product is exact in float64, and
// the sum is rounded there to odd, so that rounding it again is right.
func float32FMA(a, b, c float32) float32 {
	p, d := float64(a)*float64(b), float64(c)
	s := p + d
	back := s - p
	if rest := (p - (s - back)) + (d - back); rest != 0 {
		if bits := math.Float64bits(s); bits&1 == 0 {
			if (rest > 0) == (s > 0) {
				bits++
			} else {
				bits--
			}
			s = math.Float64frombits(bits)
		}
	}
	return float32(s)
}
