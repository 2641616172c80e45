package vecmath

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vec is a vector register, gp a general one.
type (
	vec = reg.VecVirtual
	gp  = reg.GPVirtual
)

// isa is one width of vector registers. Its methods allocate the register of
// their result and hide what differs between AVX2 and AVX-512, so that a
// function is written once and computes the same bits at both widths. An
// operand b may be a num.
type isa struct {
	c    *build.Context
	nums *pool
	// wide says AVX-512.
	wide bool
	// labels counts the labels of the file.
	labels *int
}

// both calls do for the two widths.
func both(c *build.Context, nums *pool, do func(v isa)) {
	labels := new(int)
	do(isa{c: c, nums: nums, labels: labels})
	do(isa{c: c, nums: nums, labels: labels, wide: true})
}

// name adds the suffix of the width.
func (v isa) name(name string) string {
	if v.wide {
		return name + "AVX512"
	}
	return name + "AVX2"
}

// lanes is the number of float32 in a register, bytes its size.
func (v isa) lanes() int { return v.bytes() / 4 }

func (v isa) bytes() int {
	if v.wide {
		return 64
	}
	return 32
}

func (v isa) reg() vec {
	if v.wide {
		return v.c.ZMM()
	}
	return v.c.YMM()
}

// half allocates a register of half the width.
func (v isa) half() vec {
	if v.wide {
		return v.c.YMM()
	}
	return v.c.XMM()
}

func (v isa) zero() vec {
	r := v.reg()
	v.c.VXORPS(r, r, r)
	return r
}

func (v isa) copy(a operand.Op) vec {
	r := v.reg()
	v.c.VMOVUPS(a, r)
	return r
}

// set fills a register with a constant.
func (v isa) set(x num) vec {
	r := v.reg()
	v.c.VBROADCASTSS(x.Mem, r)
	return r
}

// param fills a register with a float32 parameter of the function.
func (v isa) param(name string) vec {
	a, err := v.c.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	r := v.reg()
	v.c.VBROADCASTSS(a.Addr, r)
	return r
}

// emit writes an instruction whose operand b may be a num, which AVX-512
// repeats from 4 bytes and AVX2 reads from memory that holds it repeated.
func (v isa) emit(plain, repeated func(...operand.Op), b operand.Op, rest ...operand.Op) {
	if x, ok := b.(num); ok {
		b = x.Mem
		if v.wide {
			plain = repeated
		}
	}
	plain(append([]operand.Op{b}, rest...)...)
}

// into is emit with a new register as the result.
func (v isa) into(plain, repeated func(...operand.Op), b, a operand.Op) vec {
	d := v.reg()
	v.emit(plain, repeated, b, a, d)
	return d
}

func (v isa) add(a vec, b operand.Op) vec { return v.into(v.c.VADDPS, v.c.VADDPS_BCST, b, a) }
func (v isa) sub(a vec, b operand.Op) vec { return v.into(v.c.VSUBPS, v.c.VSUBPS_BCST, b, a) }
func (v isa) mul(a vec, b operand.Op) vec { return v.into(v.c.VMULPS, v.c.VMULPS_BCST, b, a) }
func (v isa) div(a vec, b operand.Op) vec { return v.into(v.c.VDIVPS, v.c.VDIVPS_BCST, b, a) }

// min and max return b where an operand is NaN, and b of two zeros.
func (v isa) min(a vec, b operand.Op) vec { return v.into(v.c.VMINPS, v.c.VMINPS_BCST, b, a) }
func (v isa) max(a vec, b operand.Op) vec { return v.into(v.c.VMAXPS, v.c.VMAXPS_BCST, b, a) }

func (v isa) and(a vec, b operand.Op) vec { return v.into(v.c.VANDPS, v.c.VANDPS_BCST, b, a) }
func (v isa) or(a vec, b operand.Op) vec  { return v.into(v.c.VORPS, v.c.VORPS_BCST, b, a) }
func (v isa) xor(a vec, b operand.Op) vec { return v.into(v.c.VXORPS, v.c.VXORPS_BCST, b, a) }

// addInt and subInt are sums and differences of 32-bit integers.
func (v isa) addInt(a vec, b operand.Op) vec { return v.into(v.c.VPADDD, v.c.VPADDD_BCST, b, a) }
func (v isa) subInt(a vec, b operand.Op) vec { return v.into(v.c.VPSUBD, v.c.VPSUBD_BCST, b, a) }

// shiftLeft, shiftRight, which keeps the sign, and unsignedShiftRight shift
// 32-bit integers.
func (v isa) shiftLeft(a vec, n int) vec {
	d := v.reg()
	v.c.VPSLLD(operand.U8(n), a, d)
	return d
}

func (v isa) shiftRight(a vec, n int) vec {
	d := v.reg()
	v.c.VPSRAD(operand.U8(n), a, d)
	return d
}

func (v isa) unsignedShiftRight(a vec, n int) vec {
	d := v.reg()
	v.c.VPSRLD(operand.U8(n), a, d)
	return d
}

// toInt rounds to the nearest integer, ties to even; toFloat is its inverse.
func (v isa) toInt(a vec) vec {
	d := v.reg()
	v.c.VCVTPS2DQ(a, d)
	return d
}

func (v isa) toFloat(a vec) vec {
	d := v.reg()
	v.c.VCVTDQ2PS(a, d)
	return d
}

// round rounds to an integer, ties to even; floor rounds down.
func (v isa) round(a vec) vec { return v.roundBy(a, 8) }
func (v isa) floor(a vec) vec { return v.roundBy(a, 9) }

func (v isa) roundBy(a vec, mode uint8) vec {
	d := v.reg()
	if v.wide {
		v.c.VRNDSCALEPS(operand.U8(mode), a, d)
	} else {
		v.c.VROUNDPS(operand.U8(mode), a, d)
	}
	return d
}

// addMul is acc += a·b with one rounding, subMul acc -= a·b.
func (v isa) addMul(acc, a vec, b operand.Op) {
	v.emit(v.c.VFMADD231PS, v.c.VFMADD231PS_BCST, b, a, acc)
}

func (v isa) subMul(acc, a vec, b operand.Op) {
	v.emit(v.c.VFNMADD231PS, v.c.VFNMADD231PS_BCST, b, a, acc)
}

// mulAdd is q = q·a + b with one rounding.
func (v isa) mulAdd(q, a vec, b operand.Op) {
	v.emit(v.c.VFMADD213PS, v.c.VFMADD213PS_BCST, b, a, q)
}

// horner evaluates a polynomial, coefficients from the lowest power up.
func (v isa) horner(x vec, coefficients ...float64) vec {
	last := len(coefficients) - 1
	q := v.set(v.nums.f32(coefficients[last]))
	for i := last - 1; i >= 0; i-- {
		v.mulAdd(q, x, v.nums.f32(coefficients[i]))
	}
	return q
}

// negative says in which lanes a number has its sign bit set: a mask for AVX-512,
// the number itself for AVX2.
type negative struct {
	k reg.OpmaskVirtual
	s vec
}

func (v isa) negative(s vec) negative {
	if !v.wide {
		return negative{s: s}
	}
	k := v.c.K()
	v.c.VPMOVD2M(s, k)
	return negative{k: k}
}

// blend returns b where at says and a elsewhere.
func (v isa) blend(a, b vec, at negative) vec {
	d := v.reg()
	if v.wide {
		v.c.VBLENDMPS(b, a, at.k, d)
	} else {
		v.c.VBLENDVPS(at.s, b, a, d)
	}
	return d
}
