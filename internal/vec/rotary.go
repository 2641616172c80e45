package vec

import (
	"math"

	"goatb/internal/asm/vecmath"
)

// RotateHalf turns the pairs (x[i], x[i+h]) of a vector of 2h elements by the
// angles whose cosines and sines are given per element:
// dst[i] = x[i]·cos[i] - x[i+h]·sin[i] and
// dst[i+h] = x[i+h]·cos[i+h] + x[i]·sin[i+h]. Every product is rounded before
// the sum. All have the length of x, which is even; dst may be x.
func RotateHalf(dst, x, cos, sin []float32) {
	if vecmath.Rotate(vecmath.Halves, F32, dst, x, 1, len(x), cos[:len(x)], sin) {
		return
	}
	n := len(x)
	h := n / 2
	x0, x1 := x[:h], x[h:][:h]
	c0, c1 := cos[:h], cos[h:][:h]
	s0, s1 := sin[:h], sin[h:][:h]
	d0, d1 := dst[:h], dst[h:][:h]
	for i := range x0 {
		a, b := x0[i], x1[i]
		d0[i] = float32(a*c0[i]) - float32(b*s0[i])
		d1[i] = float32(b*c1[i]) + float32(a*s1[i])
	}
}

// RotatePairs turns the neighbours (x[2i], x[2i+1]) as RotateHalf turns x[i]
// and x[i+h].
func RotatePairs(dst, x, cos, sin []float32) {
	if vecmath.Rotate(vecmath.Pairs, F32, dst, x, 1, len(x), cos[:len(x)], sin) {
		return
	}
	n := len(x)
	dst, cos, sin = dst[:n], cos[:n], sin[:n]
	for len(x) >= 2 && len(dst) >= 2 && len(cos) >= 2 && len(sin) >= 2 {
		a, b := x[0], x[1]
		dst[0] = float32(a*cos[0]) - float32(b*sin[0])
		dst[1] = float32(b*cos[1]) + float32(a*sin[1])
		x, dst, cos, sin = x[2:], dst[2:], cos[2:], sin[2:]
	}
}

// RotateHalfF16 is RotateHalf in the arithmetic of f16: the operands are f16
// numbers, every product and every sum is rounded to one.
func RotateHalfF16(dst, x, cos, sin []float32) {
	if vecmath.Rotate(vecmath.HalvesSteps, F32, dst, x, 1, len(x), cos[:len(x)], sin) {
		return
	}
	n := len(x)
	h := n / 2
	x0, x1 := x[:h], x[h:][:h]
	c0, c1 := cos[:h], cos[h:][:h]
	s0, s1 := sin[:h], sin[h:][:h]
	d0, d1 := dst[:h], dst[h:][:h]
	for i := range x0 {
		a, b := x0[i], x1[i]
		d0[i] = roundF16(roundF16(a*c0[i]) - roundF16(b*s0[i]))
		d1[i] = roundF16(roundF16(b*c1[i]) + roundF16(a*s1[i]))
	}
}

// RotatePairsF16 is RotatePairs in the arithmetic of f16.
func RotatePairsF16(dst, x, cos, sin []float32) {
	if vecmath.Rotate(vecmath.PairsSteps, F32, dst, x, 1, len(x), cos[:len(x)], sin) {
		return
	}
	n := len(x)
	dst, cos, sin = dst[:n], cos[:n], sin[:n]
	for len(x) >= 2 && len(dst) >= 2 && len(cos) >= 2 && len(sin) >= 2 {
		a, b := x[0], x[1]
		dst[0] = roundF16(roundF16(a*cos[0]) - roundF16(b*sin[0]))
		dst[1] = roundF16(roundF16(b*cos[1]) + roundF16(a*sin[1]))
		x, dst, cos, sin = x[2:], dst[2:], cos[2:], sin[2:]
	}
}

// RoundF16 rounds every element of src to the nearest f16 number, ties to even;
// beyond the range of f16 it becomes infinite. Finite elements lie within
// ±2^115. dst is at least as long as src and may be src.
func RoundF16(dst, src []float32) {
	if vecmath.Unary(vecmath.RoundF16, F32, dst, src) {
		return
	}
	dst = dst[:len(src)]
	for i := range src {
		dst[i] = roundF16(src[i])
	}
}

// roundF16 rounds x, finite ones within ±2^115, to f16 and widens it again.
func roundF16(x float32) float32 {
	const (
		expMask   = 0x7f800000
		signBit   = 1 << 31
		minNormal = 0x38800000 // 2^-14
		// lift turns the bits of 2^e into those of 1.5·2^(e+13), whose last
		// place is that of an f16 with exponent e.
		lift = 13<<23 | 1<<22
		// beyond times 2^16, the first power of two beyond f16, is infinite.
		beyond = 0x1p112
	)
	b := math.Float32bits(x)
	a := math.Float32frombits(max(b&expMask, minNormal) + lift)
	y := (x + a - a) * beyond * (1 / beyond)
	// The sum lost the sign of what it rounded to zero.
	return math.Float32frombits(math.Float32bits(y) | b&signBit)
}
