package vecmath

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
)

// The gates of this file are for results of 16 bits: x/(1+2^z) with an
// exponential whose relative error is below 2^-13.7 for bf16 and 2^-18.5 for
// f16, and for AVX-512 with the processor's reciprocal, whose error is below
// 2^-14. Before it is rounded a result is off by less than 0.14 units in the last
// place of f16, and by less than 0.03 of bf16.

// exp2Polys hold polynomials for 2^f with the smallest relative error: for results
// of 16 bits for 0 <= f <= 1; for float32 for |f| <= 1/2, with an error below
// 2^-22.6, and 1 for 0.
var exp2Polys = map[element][]float64{
	bf16: {0x1.fff632p-1, 0x1.64444cp-1, 0x1.cefc4ap-3, 0x1.3f96a6p-4},
	f16:  {0x1.00002cp0, 0x1.62d166p-1, 0x1.ee798cp-3, 0x1.aa13e4p-5, 0x1.bb7ce6p-7},
	f32:  {1, 0x1.62e42ap-1, 0x1.ebf9c2p-3, 0x1.c6b6dap-5, 0x1.3ce8b8p-7, 0x1.5bd9bap-10},
}

// gateShifts hold a number that z is taken less of, so that no z whose result is
// not 0 overflows: a bf16 may be as small as 2^-133.
var gateShifts = map[element]float64{bf16: 20, f16: 0}

// exp2 returns 2^z for z < 128, with the polynomial of e; NaN stays NaN. For
// float32 both widths give the same bits: the fraction is exact.
func (v isa) exp2(z vec, e element) vec {
	const nearest, down = 0, 1
	if v.wide {
		f, n := v.reg(), z
		if e == f32 {
			v.c.VREDUCEPS(operand.U8(nearest), z, f)
			n = v.sub(z, f)
		} else {
			v.c.VREDUCEPS(operand.U8(down), z, f)
		}
		p := v.horner(f, exp2Polys[e]...)
		v.c.VSCALEFPS(n, p, p) // by the integer below n
		return p
	}
	z = v.max(v.set(v.nums.f32(-200)), z)
	n := v.floor(z)
	if e == f32 {
		n = v.round(z)
	}
	return v.scale(v.horner(v.sub(z, n), exp2Polys[e]...), n)
}

// onePlusExp2 returns one + 2^z. Powers below 2^-126 may be 2^-126, and those from
// 2^128 on give Inf; NaN stays NaN.
func (v isa) onePlusExp2(one num, z vec, e element) vec {
	if v.wide {
		return v.add(v.exp2(z, e), one)
	}
	// Half the power has an exponent within range.
	half := make([]float64, len(exp2Polys[e]))
	for i, c := range exp2Polys[e] {
		half[i] = c / 2
	}
	z = v.max(v.set(v.nums.f32(-125)), v.min(v.set(v.nums.f32(128.5)), z))
	n := v.floor(z)
	p := v.horner(v.sub(z, n), half...)
	p = v.addInt(p, v.shiftLeft(v.toInt(n), 23))
	v.mulAdd(p, v.set(v.nums.f32(2)), one)
	return p
}

// lessShift returns x·factor less the shift of e.
func (v isa) lessShift(x, factor vec, e element) vec {
	if gateShifts[e] == 0 {
		return v.mul(x, factor)
	}
	z := v.copy(x)
	v.mulAdd(z, factor, v.nums.f32(-gateShifts[e]))
	return z
}

// share returns 1/(1+2^z) for z less the shift of e.
func (v isa) share(z vec, e element) vec {
	one := v.nums.f32(math.Exp2(-gateShifts[e]))
	r := v.onePlusExp2(one, z, e)
	if v.wide {
		v.c.VRCP14PS(r, r)
		if gateShifts[e] != 0 {
			r = v.mul(r, one)
		}
		return r
	}
	return v.div(v.set(one), r)
}

// shortSigmoid is the function 1/(1+e^-x).
func (v isa) shortSigmoid(e element) shortGate {
	return shortGate{func(_, sigmoid vec) vec { return sigmoid }, func(x vec) vec {
		return v.share(v.lessShift(x, v.set(v.nums.f32(-math.Log2E)), e), e)
	}}
}

// briefSwish returns the function x/(1+2^(x·factor)); at low it is -0. A factor
// of bf16 is at least 2^-6: where the result is small the share may be too small
// for a float32 to hold all of its digits.
func (v isa) briefSwish(e element, factor, low vec) func(x vec) vec {
	return func(x vec) vec {
		x = v.max(low, x)
		return v.mul(x, v.share(v.lessShift(x, factor, e), e))
	}
}

// shortSilu is the function x/(1+e^-x).
func (v isa) shortSilu(e element) shortGate {
	return shortGate{func(x, sigmoid vec) vec { return v.mul(x, sigmoid) }, func(x vec) vec {
		return v.briefSwish(e, v.set(v.nums.f32(-math.Log2E)), v.set(v.nums.f32(-130)))(x)
	}}
}

// briefGeluTanh returns the function x/(1+e^-z) with z = x·(c1 + c3·x²).
func (v isa) briefGeluTanh(e element) func(x vec) vec {
	c1 := -math.Log2E * 2 * math.Sqrt(2/math.Pi)
	low, third := v.set(v.nums.f32(-12.875)), v.set(v.nums.f32(c1*0.044715))
	return func(x vec) vec {
		x = v.max(low, x)
		factor := v.mul(x, x)
		v.mulAdd(factor, third, v.nums.f32(c1))
		return v.mul(x, v.share(v.lessShift(x, factor, e), e))
	}
}
