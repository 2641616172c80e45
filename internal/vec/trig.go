package vec

import (
	"math"

	"goatb/internal/asm/vecmath"
)

const (
	// trigRangeBits is the float32 2^20: up to there the reduction of sin64 is
	// exact enough; larger arguments go to package math.
	trigRangeBits = 0x49800000
	// halfPiHigh has 33 significant bits, so that its product with an integer
	// below 2^20 is exact; halfPiLow is the rest of π/2.
	halfPiHigh = 0x1.921fb544p+00
	halfPiLow  = 0x1.0b4611a626331p-34
)

// Sin writes the sine of src in radians; infinities give NaN.
func Sin(dst, src []float32) {
	if part(vecmath.Sin, dst, src, beyondTrig, math.Sin) {
		return
	}
	dst = dst[:len(src)]
	for i := range src {
		if beyondTrig(src[i]) {
			dst[i] = float32(math.Sin(float64(src[i])))
			continue
		}
		x := float64(src[i])
		h := x*(1/math.Pi) + roundShift
		dst[i] = float32(sin64(x, 2*(h-roundShift), math.Float64bits(h)<<63))
	}
}

// Cos writes the cosine of src in radians; infinities give NaN.
func Cos(dst, src []float32) {
	if part(vecmath.Cos, dst, src, beyondTrig, math.Cos) {
		return
	}
	dst = dst[:len(src)]
	for i := range src {
		if beyondTrig(src[i]) {
			dst[i] = float32(math.Cos(float64(src[i])))
			continue
		}
		x := float64(src[i])
		h := x*(1/math.Pi) + 0.5 + roundShift
		dst[i] = float32(sin64(x, 2*(h-roundShift)-1, math.Float64bits(h)<<63))
	}
}

// partStep is the number of elements around one where assembly stops that are
// done in a step of their own.
const partStep = 16

// part does f by assembly and takes exact for the elements outside f's range. It
// returns false where there is no assembly. An element's result does not depend
// on the others.
func part(f vecmath.PartFunc, dst, src []float32, outside func(x float32) bool, exact func(x float64) float64) bool {
	dst = dst[:len(src)]
	for {
		n, ok := vecmath.Part(f, dst, src)
		if !ok {
			return false
		}
		if dst, src = dst[n:], src[n:]; len(src) == 0 {
			return true
		}
		var inside, done [partStep]float32
		n = copy(inside[:], src)
		for i, x := range inside[:n] {
			if outside(x) {
				inside[i] = 1
			}
		}
		vecmath.Part(f, done[:n], inside[:n])
		for i, x := range src[:n] {
			if outside(x) {
				done[i] = float32(exact(float64(x)))
			}
		}
		copy(dst, done[:n])
		dst, src = dst[n:], src[n:]
	}
}

// beyondTrig reports whether package math takes the sine and cosine of x.
func beyondTrig(x float32) bool { return math.Float32bits(x)&absBits >= trigRangeBits }

// abnormal reports whether x is not a positive, finite, normal number.
func abnormal(x float32) bool {
	const minNormal, infinity = 0x00800000, 0x7f800000
	return math.Float32bits(x)-minNormal >= infinity-minNormal
}

// sin64 is the sine of x - n·π/2, which lies within π/2, with its sign flipped
// where sign has the top bit: a polynomial through Chebyshev nodes with a
// relative error below 2^-35. Cos is sin64 since cos x = (-1)^h·sin(x-(2h-1)·π/2).
func sin64(x, n float64, sign uint64) float64 {
	r := x - n*halfPiHigh - n*halfPiLow
	u := r * r
	p := 0.9999999999828988 + u*(-0.16666666616766054+u*(0.008333330972336132+
		u*(-0.0001984086093672866+u*(2.7525257176271905e-06+u*-2.388899024114627e-08))))
	return math.Float64frombits(math.Float64bits(r*p) ^ sign)
}

// Log writes the natural logarithm: -Inf for zeros, NaN below zero.
func Log(dst, src []float32) {
	if part(vecmath.Log, dst, src, abnormal, math.Log) {
		return
	}
	const (
		infBits   = 0x7f800000
		sqrtHalf  = 0x3fe6a09e667f3bcd
		fracShift = 52
	)
	dst = dst[:len(src)]
	for i := range src {
		if math.Float32bits(src[i])-1 >= infBits-1 {
			dst[i] = logEdge(src[i])
			continue
		}
		// src = m·2^k with m in √½..√2, and log m = 2·artanh((m-1)/(m+1)).
		b := math.Float64bits(float64(src[i]))
		k := int64(b-sqrtHalf) >> fracShift
		m := math.Float64frombits(b - uint64(k)<<fracShift)
		s := (m - 1) / (m + 1)
		u := s * s
		p := 1.9999999986313182 + u*(0.666668153381504+u*(0.39974850517846877+u*0.29924390469425693))
		dst[i] = float32(float64(k)*math.Ln2 + s*p)
	}
}

// logEdge is the logarithm of zeros, negative numbers, +Inf and NaN.
func logEdge(x float32) float32 {
	switch {
	case x == 0:
		return float32(math.Inf(-1))
	case x > 0:
		return x
	}
	return float32(math.NaN())
}
