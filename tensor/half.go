package tensor

import "math"

// F16 is an IEEE 754 binary16 number as bits.
type F16 uint16

// BF16 is a bfloat16 number as bits: the upper half of a float32.
type BF16 uint16

// Float32 widens exactly; NaN becomes quiet and keeps its payload.
func (h F16) Float32() float32 {
	sign := uint32(h&0x8000) << 16
	exp := uint32(h>>10) & 0x1f
	frac := uint32(h & 0x3ff)
	switch {
	case exp == 0x1f && frac != 0:
		return math.Float32frombits(sign | 0x7fc00000 | frac<<13)
	case exp == 0x1f:
		return math.Float32frombits(sign | 0x7f800000)
	case exp != 0:
		return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
	}
	// Zero and subnormals: frac * 2^-24 is exact in float32.
	return math.Float32frombits(sign | math.Float32bits(float32(frac)*0x1p-24))
}

// F16From rounds to nearest even. Values beyond 65504 become infinite, NaN
// stays NaN.
func F16From(f float32) F16 {
	b := math.Float32bits(f)
	sign := uint16(b>>16) & 0x8000
	a := b & 0x7fffffff
	switch {
	case a > 0x7f800000:
		return F16(sign | 0x7e00 | uint16(a>>13)&0x1ff)
	case a >= 0x477ff000: // 65520 and above round to infinity
		return F16(sign | 0x7c00)
	case a < 0x38800000: // below 2^-14: the sum's low mantissa bits are the rounded result
		r := math.Float32bits(math.Float32frombits(a) + 0.5)
		return F16(sign | uint16(r-0x3f000000))
	}
	a += 0xfff + a>>13&1
	return F16(sign | uint16((a-0x38000000)>>13))
}

// Float32 widens exactly.
func (h BF16) Float32() float32 { return math.Float32frombits(uint32(h) << 16) }

// BF16From rounds to nearest even; NaN stays NaN.
func BF16From(f float32) BF16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return BF16(b>>16 | 0x40)
	}
	return BF16((b + 0x7fff + b>>16&1) >> 16)
}
