package vec

import "goatb/internal/asm/vecmath"

// Dot returns the inner product of a and b, which have equal lengths, in the
// package's lane order.
func Dot(a, b []float32) float32 {
	b = b[:len(a)]
	var d [1]float32
	Dots(F32, d[:], a, b, len(b))
	return d[0]
}

// Sum returns the sum of a in the package's lane order.
func Sum(a []float32) float32 {
	if sum, ok := vecmath.Reduce(vecmath.Sum, F32, a); ok {
		return sum
	}
	var s [lanes]float32
	for g := 0; g < min(lanes, len(a)); g += laneGroup {
		p := (*[laneGroup]float32)(s[g:])
		i := g
		for ; i+laneGroup <= len(a); i += lanes {
			x := (*[laneGroup]float32)(a[i:])
			p[0], p[1], p[2], p[3] = p[0]+x[0], p[1]+x[1], p[2]+x[2], p[3]+x[3]
			p[4], p[5], p[6], p[7] = p[4]+x[4], p[5]+x[5], p[6]+x[6], p[7]+x[7]
		}
		if i < len(a) {
			for l, v := range a[i:] {
				p[l] += v
			}
		}
	}
	return foldLanes(&s, len(a))
}

// SumSquares returns the sum of the squares of a in the package's lane order.
func SumSquares(a []float32) float32 {
	if sum, ok := vecmath.Reduce(vecmath.SumSquares, F32, a); ok {
		return sum
	}
	return dot(F32, a, a)
}

const (
	// lanes is the number of interleaved partial sums.
	lanes = 64
	// laneGroup is how many of them plain Go does at a time.
	laneGroup = 8
)

// foldLanes adds the partial sums of n elements.
func foldLanes(s *[lanes]float32, n int) float32 {
	h := lanes
	for h >= 2*n && h > 1 {
		h /= 2
	}
	for h /= 2; h > 0; h /= 2 {
		for l := range h {
			s[l] += s[l+h]
		}
	}
	return s[0]
}

// Axpy adds alpha*x to y, element by element; the product is rounded before it
// is added. x and y have equal lengths.
func Axpy(alpha float32, x, y []float32) {
	weight := [1]float32{alpha}
	Mix(F32, y[:len(x)], weight[:], x, len(x))
}

// Add stores a+b in dst, element by element. The three have equal lengths and
// dst may be a or b.
func Add(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	if vecmath.Binary(vecmath.Add, F32, dst, a, b) {
		return
	}
	for len(dst) >= 4 && len(a) >= 4 && len(b) >= 4 {
		dst[0] = a[0] + b[0]
		dst[1] = a[1] + b[1]
		dst[2] = a[2] + b[2]
		dst[3] = a[3] + b[3]
		dst, a, b = dst[4:], a[4:], b[4:]
	}
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

// Mul stores a*b in dst, element by element. The three have equal lengths and
// dst may be a or b.
func Mul(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	if vecmath.Binary(vecmath.Mul, F32, dst, a, b) {
		return
	}
	for len(dst) >= 4 && len(a) >= 4 && len(b) >= 4 {
		dst[0] = a[0] * b[0]
		dst[1] = a[1] * b[1]
		dst[2] = a[2] * b[2]
		dst[3] = a[3] * b[3]
		dst, a, b = dst[4:], a[4:], b[4:]
	}
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

// Scale stores a*s in dst, element by element. The two have equal lengths and
// dst may be a.
func Scale(dst, a []float32, s float32) {
	a = a[:len(dst)]
	if vecmath.Scalar(vecmath.MulScalar, F32, dst, a, s) {
		return
	}
	for len(dst) >= 4 && len(a) >= 4 {
		dst[0] = a[0] * s
		dst[1] = a[1] * s
		dst[2] = a[2] * s
		dst[3] = a[3] * s
		dst, a = dst[4:], a[4:]
	}
	for i := range dst {
		dst[i] = a[i] * s
	}
}
