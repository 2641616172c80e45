package vec

import (
	"math"

	"goatb/internal/asm/vecmath"
)

// The functions of this file and of gelu.go and trig.go take element by element
// the value of src, and dst may be the memory of src; len(dst) is at least
// len(src). The package comment has their errors.
//
// Plain Go computes in float64 and rounds once. Its loops read src[i] anew for
// every conversion to float64: a conversion from a register would wait for the
// previous element's result, since the instruction keeps the upper part of its
// target.

const (
	// expSteps is the number of powers 2^(i/expSteps) in the table.
	expSteps = 32
	// roundShift added to a float64 and taken off again rounds it to an
	// integer, which the sum holds in its low bits.
	roundShift = 0x1.8p52
	// expRange bounds the arguments whose exponential is neither 0 nor Inf in
	// float32: e^-104 is below half the smallest subnormal.
	expRange     = 104
	expRangeBits = 0x42d00000
	// wideRange bounds the arguments of exp64.
	wideRange = 708
	absBits   = 0x7fffffff
)

// exp2Table holds the bits of 2^(i/32) less i<<47, so that adding k<<47 to
// entry k&31 gives the bits of 2^(k/32).
var exp2Table = [expSteps]uint64{
	0x3ff0000000000000, 0x3fefd9b0d3158574, 0x3fefb5586cf9890f, 0x3fef9301d0125b51,
	0x3fef72b83c7d517b, 0x3fef54873168b9aa, 0x3fef387a6e756238, 0x3fef1e9df51fdee1,
	0x3fef06fe0a31b715, 0x3feef1a7373aa9cb, 0x3feedea64c123422, 0x3feece086061892d,
	0x3feebfdad5362a27, 0x3feeb42b569d4f82, 0x3feeab07dd485429, 0x3feea47eb03a5585,
	0x3feea09e667f3bcd, 0x3fee9f75e8ec5f74, 0x3feea11473eb0187, 0x3feea589994cce13,
	0x3feeace5422aa0db, 0x3feeb737b0cdc5e5, 0x3feec49182a3f090, 0x3feed503b23e255d,
	0x3feee89f995ad3ad, 0x3feeff76f2fb5e47, 0x3fef199bdd85529c, 0x3fef3720dcef9069,
	0x3fef5818dcfba487, 0x3fef7c97337b9b5f, 0x3fefa4afa2a490da, 0x3fefd0765b6e4540,
}

// exp64 is e^x with a relative error below 2^-30, for |x| below wideRange.
func exp64(x float64) float64 {
	z := x * (expSteps / math.Ln2)
	kd := z + roundShift
	k := math.Float64bits(kd)
	t := (z - (kd - roundShift)) * (math.Ln2 / expSteps)
	s := math.Float64frombits(exp2Table[k%expSteps] + k<<47)
	return s + s*t*(1+t*(0.5+t*(1.0/6)))
}

// expEdge is e^x outside expRange.
func expEdge(x float32) float32 {
	switch {
	case x > 0:
		return float32(math.Inf(1))
	case x < 0:
		return 0
	}
	return x
}

// ExpOf returns e^x.
func ExpOf(x float32) float32 {
	if math.Float32bits(x)&absBits >= expRangeBits {
		return expEdge(x)
	}
	return float32(exp64(float64(x)))
}

// Exp writes e^src. NaN stays NaN, -Inf gives 0.
func Exp(dst, src []float32) {
	if vecmath.Unary(vecmath.Exp, F32, dst, src) {
		return
	}
	dst = dst[:len(src)]
	for i := range src {
		if math.Float32bits(src[i])&absBits >= expRangeBits {
			dst[i] = expEdge(src[i])
			continue
		}
		dst[i] = float32(exp64(float64(src[i])))
	}
}

// ExpSum writes e^(src-max) and returns the sum of the written values. It is
// the core of a softmax: max is the largest element, so every value lies in
// 0..1. With max = -Inf (all elements masked) the values and the sum are 0. A
// NaN element gives a NaN sum.
//
// The difference and its product with log2 e are rounded to float32 where
// assembly computes, which adds up to 1.3·|src-max|·2^-24 to a value's relative
// error. The sum of every SumStep elements
// is in the package's lane order, where plain Go adds in float64; these sums are
// added in float64.
func ExpSum(dst, src []float32, max float32) float32 {
	if sum, ok := expSumSteps(F32, dst, src, max); ok {
		return sum
	}
	return expSum(dst, src, max)
}

// ExpSumHalves is ExpSum for f16 or bf16 numbers as bits.
func ExpSumHalves(e Element, dst []float32, src []uint16, max float32) float32 {
	dst = dst[:len(src)]
	if sum, ok := expSumSteps(e, dst, src, max); ok {
		return sum
	}
	for i, h := range src {
		dst[i] = widen(e, h)
	}
	return expSum(dst, dst, max)
}

// expSumSteps is ExpSum in assembly, SumStep elements at a time.
func expSumSteps[T vecmath.Row](e Element, dst []float32, src []T, max float32) (sum float32, ok bool) {
	if max == float32(math.Inf(-1)) {
		max = 0
	}
	var total float64
	for len(src) > 0 {
		n := min(len(src), SumStep)
		part, ok := vecmath.ExpSum(e, dst[:n], src[:n], max)
		if !ok {
			return 0, false
		}
		total += float64(part)
		dst, src = dst[n:], src[n:]
	}
	return float32(total), true
}

// SumStep is the number of elements whose sum ExpSum takes in float32.
const SumStep = 1024

// expSum is ExpSum in plain Go.
func expSum(dst, src []float32, max float32) float32 {
	if max == float32(math.Inf(-1)) {
		max = 0
	}
	m := float64(max)
	var even, odd float64
	for len(src) >= 2 && len(dst) >= 2 {
		s, d := (*[2]float32)(src), (*[2]float32)(dst)
		a, b := float64(s[0])-m, float64(s[1])-m
		if a > -expRange && a < wideRange && b > -expRange && b < wideRange {
			a, b = exp64(a), exp64(b)
		} else {
			a, b = expWide(a), expWide(b)
		}
		d[0], d[1] = float32(a), float32(b)
		even += a
		odd += b
		src, dst = src[2:], dst[2:]
	}
	if len(src) == 1 {
		a := expWide(float64(src[0]) - m)
		dst[0] = float32(a)
		even += a
	}
	return float32(even + odd)
}

// expWide is e^x for every x, where 0 stands for what float32 rounds to 0.
func expWide(x float64) float64 {
	switch {
	case x <= -expRange:
		return 0
	case x < wideRange:
		return exp64(x)
	case x >= wideRange:
		return math.Inf(1)
	}
	return x
}

// Sigmoid writes 1/(1+e^-src).
func Sigmoid(dst, src []float32) {
	if vecmath.Unary(vecmath.Sigmoid, F32, dst, src) {
		return
	}
	dst = dst[:len(src)]
	for i := range src {
		if math.Float32bits(src[i])&absBits >= expRangeBits {
			dst[i] = sigmoidEdge(src[i])
			continue
		}
		dst[i] = float32(1 / (1 + exp64(-float64(src[i]))))
	}
}

// sigmoidEdge is the sigmoid outside expRange.
func sigmoidEdge(x float32) float32 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return 0
	}
	return x
}

// Silu writes src/(1+e^-src), with the limit -0 at -Inf.
func Silu(dst, src []float32) {
	if vecmath.Unary(vecmath.Silu, F32, dst, src) {
		return
	}
	Swish(dst, src, 1)
}

// Swish writes src/(1+e^(-scale·src)), with the limits at infinities.
func Swish(dst, src []float32, scale float32) {
	if vecmath.Swish(F32, dst, src, scale) {
		return
	}
	dst = dst[:len(src)]
	c := float64(scale)
	for i := range src {
		x := float64(src[i])
		z := c * x
		if !(z > -wideRange && z < wideRange) {
			dst[i] = gateEdge(x, z)
			continue
		}
		dst[i] = float32(x / (1 + exp64(-z)))
	}
}

// gateEdge is x/(1+e^-z) for a z outside wideRange; both infinite with opposite
// signs give a zero.
func gateEdge(x, z float64) float32 {
	switch {
	case z > 0:
		return float32(x)
	case z < 0:
		return float32(math.Copysign(0, x))
	}
	return float32(z)
}

// SwiGLU writes silu(gate)·up. dst may be the memory of gate or of up.
func SwiGLU(dst, gate, up []float32) {
	if vecmath.Binary(vecmath.SwiGLU, F32, dst, gate, up) {
		return
	}
	dst, up = dst[:len(gate)], up[:len(gate)]
	for i := range gate {
		x := float64(gate[i])
		if !(x > -wideRange && x < wideRange) {
			dst[i] = gateEdge(x, x) * up[i]
			continue
		}
		dst[i] = float32(x / (1 + exp64(-x)) * float64(up[i]))
	}
}

// SwiGLUGrad writes the gradients of SwiGLU: with s = sigmoid(gate),
// dgate = dy·up·s·(1+gate·(1-s)) and dup = dy·gate·s. dgate and dup may be the
// memory of gate and up.
func SwiGLUGrad(dgate, dup, dy, gate, up []float32) {
	n := len(gate)
	dgate, dup, dy, up = dgate[:n], dup[:n], dy[:n], up[:n]
	if vecmath.SwiGLUGrad(F32, dgate, dup, dy, gate, up) {
		return
	}
	for i := range gate {
		// Below -wideRange both gradients are 0; above it s is 1.
		x := max(float64(gate[i]), -wideRange)
		g := min(x, wideRange)
		s := 1 / (1 + exp64(-g))
		d, u := float64(dy[i])*float64(float32(s)), float64(up[i])
		dgate[i] = float32(d * u * (1 + g*(1-s)))
		dup[i] = float32(d * x)
	}
}

// Tanh writes the hyperbolic tangent.
func Tanh(dst, src []float32) {
	if vecmath.Unary(vecmath.Tanh, F32, dst, src) {
		return
	}
	dst = dst[:len(src)]
	for i := range src {
		if math.Float32bits(src[i])&absBits >= expRangeBits {
			dst[i] = tanhEdge(src[i])
			continue
		}
		// With m = e^2x-1, tanh x = m/(m+2); m is formed without cancellation.
		z := float64(src[i]) * (2 * expSteps / math.Ln2)
		kd := z + roundShift
		k := math.Float64bits(kd)
		t := (z - (kd - roundShift)) * (math.Ln2 / expSteps)
		s := math.Float64frombits(exp2Table[k%expSteps] + k<<47)
		m := s*t*(1+t*(0.5+t*(1.0/6+t*(1.0/24)))) + (s - 1)
		dst[i] = float32(m / (m + 2))
	}
}

// tanhEdge is the hyperbolic tangent outside expRange.
func tanhEdge(x float32) float32 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x
}
