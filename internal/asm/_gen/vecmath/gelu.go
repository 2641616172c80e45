package vecmath

import "math"

// tailPoly holds P with Φ(-t) = e^(-t²/2)·w·P(1-4w) for w = 1/(t+2) and
// 0 <= t <= 14.5, Φ being the normal distribution. With coefficients rounded to
// float32 its relative error is below 2^-24.9.
var tailPoly = []float64{
	0x1.5845dcp-1, -0x1.535baep-2, 0x1.d7d4c2p-6, 0x1.2ccefap-5, -0x1.f9695cp-12, -0x1.b9faf4p-8,
	-0x1.f0372cp-10, 0x1.c8b1bcp-11, 0x1.7b3dc2p-11, 0x1.48a374p-15, -0x1.32feeap-14,
}

// geluErf returns x·Φ(x), which is x - t·Φ(-t) with t = |x| on the positive
// side and -t·Φ(-t) on the other.
func (v isa) geluErf() func(x vec) vec {
	const shift = 2
	limit, zero, one := v.set(v.nums.f32(16)), v.set(v.nums.u32(1<<31)), v.set(v.nums.f32(1))
	return func(x vec) vec {
		t := v.min(limit, v.and(x, v.nums.u32(math.MaxInt32)))
		w := v.div(one, v.add(t, v.nums.f32(shift)))
		u := v.copy(one)
		v.subMul(u, w, v.nums.f32(2*shift))
		y := v.mul(t, v.mul(w, v.horner(u, tailPoly...)))
		n, r := v.reduceProduct(v.mul(t, v.nums.f32(-0.5)), t)
		return v.sub(v.max(zero, x), v.scale(v.mul(y, v.expOf(r)), n))
	}
}
