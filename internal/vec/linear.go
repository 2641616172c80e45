package vec

// lanes is the number of interleaved partial sums of Dot, Sum and SumSquares.
const lanes = 8

// fold adds the eight partial sums in the package's fixed order.
func fold(s0, s1, s2, s3, s4, s5, s6, s7 float32) float32 {
	return ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))
}

// Dot returns the inner product of a and b, which have equal lengths, in the
// package's lane order.
func Dot(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for len(a) >= lanes && len(b) >= lanes {
		s0 += float32(a[0] * b[0])
		s1 += float32(a[1] * b[1])
		s2 += float32(a[2] * b[2])
		s3 += float32(a[3] * b[3])
		s4 += float32(a[4] * b[4])
		s5 += float32(a[5] * b[5])
		s6 += float32(a[6] * b[6])
		s7 += float32(a[7] * b[7])
		a, b = a[lanes:], b[lanes:]
	}
	s := fold(s0, s1, s2, s3, s4, s5, s6, s7)
	for i, v := range a {
		s += float32(v * b[i])
	}
	return s
}

// Sum returns the sum of a in the package's lane order.
func Sum(a []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for len(a) >= lanes {
		s0 += a[0]
		s1 += a[1]
		s2 += a[2]
		s3 += a[3]
		s4 += a[4]
		s5 += a[5]
		s6 += a[6]
		s7 += a[7]
		a = a[lanes:]
	}
	s := fold(s0, s1, s2, s3, s4, s5, s6, s7)
	for _, v := range a {
		s += v
	}
	return s
}

// SumSquares returns the sum of the squares of a in the package's lane order.
func SumSquares(a []float32) float32 { return Dot(a, a) }

// Axpy adds alpha*x to y, element by element; the product is rounded before it
// is added. x and y have equal lengths.
func Axpy(alpha float32, x, y []float32) {
	y = y[:len(x)]
	for len(x) >= 4 && len(y) >= 4 {
		y[0] += float32(alpha * x[0])
		y[1] += float32(alpha * x[1])
		y[2] += float32(alpha * x[2])
		y[3] += float32(alpha * x[3])
		x, y = x[4:], y[4:]
	}
	for i, v := range x {
		y[i] += float32(alpha * v)
	}
}

// Add stores a+b in dst, element by element. The three have equal lengths and
// dst may be a or b.
func Add(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
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
