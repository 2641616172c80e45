package vecmath

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

// quantMax is the largest quantised value.
const quantMax = 127

// quantFile makes quantisation to int8: rounded half to even, with every tie
// decided as in exact arithmetic, limited to low..127, NaN as 0. The functions
// do whole registers only: n is a multiple of 16.
func quantFile(c *build.Context) {
	nums := newPool("quant")
	both(c, nums, func(v isa) {
		v.quantMul()
		v.quantShare()
		v.quantHalves(f16)
		v.quantHalves(bf16)
		v.quantDiv()
	})
	nums.write(c)
}

// double is a register of float64, half of the lanes of one of float32.
func (v isa) doubles(x vec) [2]vec {
	lo, hi := v.reg(), v.reg()
	upper := v.half()
	if v.wide {
		v.c.VEXTRACTF64X4(operand.U8(1), x, upper)
		v.c.VCVTPS2PD(x.AsY(), lo)
	} else {
		v.c.VEXTRACTF128(operand.U8(1), x, upper)
		v.c.VCVTPS2PD(x.AsX(), lo)
	}
	v.c.VCVTPS2PD(upper, hi)
	return [2]vec{lo, hi}
}

// paramDouble fills a register with a float64 parameter.
func (v isa) paramDouble(name string) vec {
	a, err := v.c.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	r := v.reg()
	v.c.VBROADCASTSD(a.Addr, r)
	return r
}

// storeDoubles stores float64 limited to low..high and rounded as int8.
func (l *loop) storeDoubles(x [2]vec, low, high vec, p reg.Register) {
	c := l.c
	var part [2]vec
	for i, a := range x {
		a = l.into(c.VMINPD, nil, l.into(c.VMAXPD, nil, a, low), high)
		part[i] = l.half()
		if l.wide {
			c.VCVTPD2DQ(a, part[i])
			continue
		}
		const ordered = 7
		real := l.reg()
		c.VCMPPD(operand.U8(ordered), a, a, real)
		c.VANDPD(a, real, a)
		c.VCVTPD2DQY(a, part[i])
	}
	if l.wide {
		all := c.ZMM()
		c.VINSERTI64X4(operand.U8(1), part[1], part[0].AsZ(), all)
		c.VPMOVDB(all, l.at(p, 1))
		return
	}
	c.VPACKSSDW(part[1], part[0], part[0])
	c.VPACKSSWB(part[0], part[0], part[0])
	c.VMOVQ(part[0].AsX(), l.at(p, 1))
}

// quantMul makes src·scale + offset, computed in float64.
func (v isa) quantMul() {
	v.function(v.name("quantMul"), "func(dst *int8, src *float32, n int, scale, offset, low float64)",
		v.name("quantMul")+" writes src·scale+offset, rounded and limited to low..127.")
	dst, src := v.pointer("dst"), v.pointer("src")
	l := v.begin()
	scale, offset, low := v.paramDouble("scale"), v.paramDouble("offset"), v.paramDouble("low")
	high := v.reg()
	v.c.VBROADCASTSD(v.nums.f64(quantMax).Mem, high)
	l.turns(16/v.lanes(), func() {
		x := v.doubles(l.load(src, f32))
		for i := range x {
			v.c.VMULPD(scale, x[i], x[i])
			v.c.VADDPD(offset, x[i], x[i])
		}
		l.storeDoubles(x, low, high, dst)
	})
	target.Return(v.c)
}

// quantShare makes src·share for share = 127/top and |src| <= top. In float64
// the product is off by less than 2^-44, and src·127/top is a tie or at least
// 2^-34 away from one: rounding to multiples of 2^-40 first restores ties.
func (v isa) quantShare() {
	v.function(v.name("quantShare"), "func(dst *int8, src *float32, n int, share float64)",
		v.name("quantShare")+" writes src·share, which is 127/top, rounded.")
	dst, src := v.pointer("dst"), v.pointer("src")
	l := v.begin()
	share, low, high, grid := v.paramDouble("share"), v.reg(), v.reg(), v.reg()
	v.c.VBROADCASTSD(v.nums.f64(-quantMax).Mem, low)
	v.c.VBROADCASTSD(v.nums.f64(quantMax).Mem, high)
	v.c.VBROADCASTSD(v.nums.f64(1.5*(1<<(52-40))).Mem, grid)
	l.turns(16/v.lanes(), func() {
		x := v.doubles(l.load(src, f32))
		for i := range x {
			v.c.VMULPD(share, x[i], x[i])
			v.c.VADDPD(grid, x[i], x[i])
			v.c.VSUBPD(grid, x[i], x[i])
		}
		l.storeDoubles(x, low, high, dst)
	})
	target.Return(v.c)
}

// quantHalves is quantShare of 16-bit elements in float32. The share and the product
// are rounded, which adds less than 2^-23 of a value. Elements and top have at most 11
// bits, so that a value which is no tie is at least 2^-19 of it away from one: rounding
// to 20 bits first restores ties.
func (v isa) quantHalves(e element) {
	const bits = 24 - 20
	v.function(v.name("quantShare"+e.name), "func(dst *int8, src *uint16, n int, share float32)",
		v.name("quantShare"+e.name)+" writes src·share, which is 127/top, rounded.")
	dst, src := v.pointer("dst"), v.pointer("src")
	l := v.begin()
	share, half, kept := v.param("share"), v.set(v.nums.u32(1<<(bits-1))), v.set(v.nums.u32(1<<32-1<<bits))
	body := func() {
		x := v.into(v.c.VMULPS, nil, l.load(src, e), share)
		l.storeBytes(v.and(v.addInt(x, half), kept), dst)
	}
	const unroll = 4
	l.turns(unroll, body)
	l.turns(16/v.lanes(), body)
	target.Return(v.c)
}

// quantDiv makes src/scale + offset for integer offsets. The quotient q, rounded
// to float32, only finds floor(q); src - (floor(q)+½)·scale, whose sign is
// exact, then says on which side of the tie the quotient lies. Scales near 0,
// for which it may vanish, stop the loop.
func (v isa) quantDiv() {
	c := v.c
	v.function(v.name("quantDiv"), "func(dst *int8, src, scale, offset *float32, n int, low float32) int",
		v.name("quantDiv")+" writes src/scale+offset, rounded and limited to low..127, and returns the number",
		"of elements it did: it stops before 16 elements with a scale below 2^-100.")
	dst, src, scales, offsets := v.pointer("dst"), v.pointer("src"), v.pointer("scale"), v.pointer("offset")
	l := v.begin()
	low, high := v.param("low"), v.set(v.nums.f32(quantMax))
	l.once(16/v.lanes(), func() {
		for i := range 16 / v.lanes() {
			l.off = i * v.lanes()
			v.stopBelow(l.load(scales, f32))
		}
		for i := range 16 / v.lanes() {
			l.off = i * v.lanes()
			l.storeBytes(limits{low, high}.clamp(v, v.quotient(l.load(src, f32), l.load(scales, f32), l.load(offsets, f32))), dst)
		}
		l.off = 0
	})
	c.Label("stop")
	c.Store(l.index, c.ReturnIndex(0))
	target.Return(c)
}

// stopBelow jumps to label stop if an element is below 2^-100 or NaN.
func (v isa) stopBelow(x vec) {
	const notGreaterEqual = 9
	c, small := v.c, v.set(v.nums.f32(0x1p-100))
	x = v.and(x, v.nums.u32(1<<31-1))
	if v.wide {
		k := c.K()
		c.VCMPPS(operand.U8(notGreaterEqual), small, x, k)
		c.KORTESTW(k, k)
		c.JNE(operand.LabelRef("stop"))
		return
	}
	bad := v.reg()
	c.VCMPPS(operand.U8(notGreaterEqual), small, x, bad)
	c.VPTEST(bad, bad)
	c.JNE(operand.LabelRef("stop"))
}

// quotient returns x/s + o rounded to an integer.
func (v isa) quotient(x, s, o vec) vec {
	f := v.floor(v.div(x, s))
	rest := v.copy(x)
	v.subMul(rest, v.add(f, v.nums.f32(0.5)), s)
	rest = v.xor(rest, v.and(s, v.nums.u32(1<<31)))
	// even rounds f+o+½ as a tie: to the even one of f+o and f+o+1.
	sum := v.add(f, o)
	even := v.round(v.add(sum, v.nums.f32(0.5)))
	next := v.add(sum, v.nums.f32(1))
	const less, greater = 1, 14
	zero := v.zero()
	if v.wide {
		below, above := v.c.K(), v.c.K()
		v.c.VCMPPS(operand.U8(less), zero, rest, below)
		v.c.VCMPPS(operand.U8(greater), zero, rest, above)
		v.c.VMOVAPS(sum, below, even)
		v.c.VMOVAPS(next, above, even)
		return even
	}
	side := v.reg()
	v.c.VCMPPS(operand.U8(less), zero, rest, side)
	v.c.VBLENDVPS(side, sum, even, even)
	v.c.VCMPPS(operand.U8(greater), zero, rest, side)
	v.c.VBLENDVPS(side, next, even, even)
	return even
}

// storeBytes stores float32 that are integers from -128 to 127 as int8, and
// NaN as 0.
func (l *loop) storeBytes(a vec, p reg.Register) {
	c := l.c
	if l.wide {
		c.VPMOVDB(l.toInt(a), l.at(p, 1))
		return
	}
	const ordered = 7
	real := l.reg()
	c.VCMPPS(operand.U8(ordered), a, a, real)
	i := l.toInt(l.and(a, real))
	upper := c.XMM()
	c.VEXTRACTI128(operand.U8(1), i, upper)
	c.VPACKSSDW(upper, i.AsX(), upper)
	c.VPACKSSWB(upper, upper, upper)
	c.VMOVQ(upper, l.at(p, 1))
}
