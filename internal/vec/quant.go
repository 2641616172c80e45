package vec

import (
	"math"

	"goatb/internal/asm/vecmath"
)

// The quantisations below round half to even in float64 arithmetic, whose
// quotients decide every tie right for float32 operands. NaN gives 0.

// quantMax is the largest quantised value.
const quantMax = 127

// QuantMul stores src·scale+offset as int8, rounded and clamped to low..127.
// dst is at least as long as src.
func QuantMul(dst []int8, src []float32, scale, offset float32, low int8) {
	dst = dst[:len(src)]
	c, o, lo := float64(scale), float64(offset), float64(low)
	for i := vecmath.QuantMul(dst, src, c, o, lo); i < len(src); i++ {
		v := float64(float64(src[i])*c) + o
		if !(v > lo && v < quantMax) {
			dst[i] = quantEdge(v, low)
			continue
		}
		dst[i] = int8(math.Float64bits(v + roundShift))
	}
}

// QuantDiv stores src/scale+offset as int8, element by element, rounded and
// clamped to low..127; offsets are integers that int8 holds. dst, scale and offset are at least as long as src.
func QuantDiv(dst []int8, src, scale, offset []float32, low int8) {
	n := len(src)
	dst, scale, offset = dst[:n], scale[:n], offset[:n]
	for len(src) > 0 {
		if n = vecmath.QuantDiv(dst, src, scale, offset, float32(low)); n == 0 {
			n = min(len(src), quantStep)
			quantDiv(dst[:n], src, scale, offset, low)
		}
		dst, src, scale, offset = dst[n:], src[n:], scale[n:], offset[n:]
	}
}

// quantStep is the number of elements that are done in plain Go at a time.
const quantStep = 16

func quantDiv(dst []int8, src, scale, offset []float32, low int8) {
	src, scale, offset = src[:len(dst)], scale[:len(dst)], offset[:len(dst)]
	lo := float64(low)
	for i := range src {
		v := float64(src[i])/float64(scale[i]) + float64(offset[i])
		if !(v > lo && v < quantMax) {
			dst[i] = quantEdge(v, low)
			continue
		}
		dst[i] = int8(math.Float64bits(v + roundShift))
	}
}

// QuantSymmetric stores src·127/top as int8, rounded, for a top that no
// magnitude in src exceeds. A top of 0 gives zeros. dst is at least as long as
// src.
func QuantSymmetric(dst []int8, src []float32, top float32) {
	dst = dst[:len(src)]
	if top == 0 {
		clear(dst)
		return
	}
	d := float64(top)
	for i := vecmath.QuantShare(F32, dst, src, top); i < len(src); i++ {
		v := float64(src[i]) * quantMax / d
		if !(v > -quantMax && v < quantMax) {
			dst[i] = quantEdge(v, -quantMax)
			continue
		}
		dst[i] = int8(math.Float64bits(v + roundShift))
	}
}

// quantEdge is the quantisation of a value outside low..127, or of NaN.
func quantEdge(v float64, low int8) int8 {
	switch {
	case v >= quantMax:
		return quantMax
	case v <= float64(low):
		return low
	}
	return 0
}
