package vecmath

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"

	"goatb/internal/asm/gen/target"
)

// light is the number of registers of a turn of functions that only move and
// compute a little, and write elements of type e.
func (v isa) light(e element) int {
	switch {
	case v.wide && e == bf16:
		return 3 // each takes two mask registers
	case v.wide:
		return 4
	}
	return 2
}

// arithFile makes arithmetic of arrays. Every operation is rounded by itself,
// as in plain Go.
func arithFile(c *build.Context) {
	nums := newPool("arith")
	writeTables(c)
	both(c, nums, func(v isa) {
		for _, e := range floats {
			v.binary("add", "a+b", e, v.add)
			v.binary("sub", "a-b", e, v.sub)
			v.binary("mul", "a·b", e, v.mul)
			v.binary("div", "a/b", e, v.div)
			v.scalar("addScalar", "src+s", e, func(x, s vec) vec { return v.add(x, s) })
			v.scalar("subScalar", "src-s", e, func(x, s vec) vec { return v.sub(x, s) })
			v.scalar("scalarSub", "s-src", e, func(x, s vec) vec { return v.sub(s, x) })
			v.scalar("mulScalar", "src·s", e, func(x, s vec) vec { return v.mul(x, s) })
			v.scalar("divScalar", "src/s", e, func(x, s vec) vec { return v.div(x, s) })
			v.scalar("scalarDiv", "s/src", e, func(x, s vec) vec { return v.div(s, x) })
			v.scaleMul(e)
			v.scaleTo(e)
			v.scaleMulTo(e)
		}
		v.unary("neg", "-src", floats, v.light(bf16), func() func(x vec) vec {
			return func(x vec) vec { return v.xor(x, v.nums.u32(1<<31)) }
		})
		v.unary("relu", "the larger of src and 0, and NaN for NaN", floats, v.light(bf16), func() func(x vec) vec {
			zero := v.zero()
			return func(x vec) vec { return v.max(zero, x) }
		})
		v.unary("roundF16", "src rounded to f16", floats[:1], v.light(f32), func() func(x vec) vec { return v.roundF16 })
		v.clamp()
		v.roundScaled()
		v.scaleMulAdd()
		v.blendArrays()
	})
	nums.write(c)
}

// binary makes a function of two arrays.
func (v isa) binary(name, what string, e element, f func(a vec, b operand.Op) vec) {
	v.array(name+e.name, "writes "+what, signature{second: true}, func(l *loop, p pointers) {
		l.stream(e, p)
		body := func() { l.store(f(l.load(p.src, e), l.load(p.b, e)), p.dst, e) }
		if e == bf16 {
			l.eachPair(v.light(f32)/2, v.roundEven, body)
		} else {
			l.each(v.light(e), body)
		}
	})
}

// scalar makes a function of an array and a number.
func (v isa) scalar(name, what string, e element, f func(x, s vec) vec) {
	v.array(name+e.name, "writes "+what, signature{scalars: []string{"s"}}, func(l *loop, p pointers) {
		l.each(v.light(e), func() { l.store(f(l.load(p.src, e), p.scalars[0]), p.dst, e) })
	})
}

// roundF16 rounds to f16, to nearest even, and widens again.
func (v isa) roundF16(x vec) vec {
	h, d := v.half(), v.reg()
	v.c.VCVTPS2PH(operand.U8(0), x, h)
	v.c.VCVTPH2PS(h, d)
	return d
}

func (v isa) clamp() {
	v.array("clampF32", "writes src limited to low..high, and NaN for NaN", signature{scalars: []string{"low", "high"}}, func(l *loop, p pointers) {
		ends := limits{p.scalars[0], p.scalars[1]}
		l.each(v.light(f32), func() { l.store(ends.clamp(v, l.load(p.src, f32)), p.dst, f32) })
	})
}

func (v isa) roundScaled() {
	what := "writes src·s rounded to an integer, ties to even, and limited to low..high"
	v.array("roundScaledF32", what, signature{scalars: []string{"s", "low", "high"}}, func(l *loop, p pointers) {
		ends := limits{p.scalars[1], p.scalars[2]}
		l.each(v.light(f32), func() {
			l.store(ends.clamp(v, v.round(v.mul(l.load(p.src, f32), p.scalars[0]))), p.dst, f32)
		})
	})
}

// scaleMul makes the last pass of a normalisation: dst and a have type e, the
// gain b is float32.
func (v isa) scaleMul(e element) {
	v.array("scaleMul"+e.name, "writes (a·s)·b, b being float32", signature{second: true, scalars: []string{"s"}}, func(l *loop, p pointers) {
		l.stream(e, pointers{dst: p.dst, src: p.src})
		l.each(v.light(e), func() {
			l.store(v.mul(v.mul(l.load(p.src, e), p.scalars[0]), l.load(p.b, f32)), p.dst, e)
		})
	})
}

// scaleTo makes the last pass of a softmax: src is float32, dst has type e.
func (v isa) scaleTo(e element) {
	if e == f32 {
		return // mulScalar
	}
	v.array("scaleTo"+e.name, "writes src·s, src being float32", signature{scalars: []string{"s"}}, func(l *loop, p pointers) {
		l.each(v.light(e), func() { l.store(v.mul(l.load(p.src, f32), p.scalars[0]), p.dst, e) })
	})
}

// scaleMulTo is scaleMul where a is float32 and only dst has type e.
func (v isa) scaleMulTo(e element) {
	if e == f32 {
		return // scaleMul
	}
	v.array("scaleMulTo"+e.name, "writes (a·s)·b, a and b being float32", signature{second: true, scalars: []string{"s"}}, func(l *loop, p pointers) {
		l.each(v.light(e), func() {
			l.store(v.mul(v.mul(l.load(p.src, f32), p.scalars[0]), l.load(p.b, f32)), p.dst, e)
		})
	})
}

func (v isa) scaleMulAdd() {
	v.function(v.name("scaleMulAdd"), "func(dst, a, gain, b *float32, n int, s float32)",
		v.name("scaleMulAdd")+" writes (a·s)·gain + b.")
	dst, a, gain, b := v.pointer("dst"), v.pointer("a"), v.pointer("gain"), v.pointer("b")
	l := v.begin()
	s := v.param("s")
	l.each(v.light(f32), func() {
		l.store(v.add(v.mul(v.mul(l.load(a, f32), s), l.load(gain, f32)), l.load(b, f32)), dst, f32)
	})
	target.Return(v.c)
}

func (v isa) blendArrays() {
	v.array("blendF32", "writes s·a + t·b", signature{second: true, scalars: []string{"s", "t"}}, func(l *loop, p pointers) {
		l.each(v.light(f32), func() {
			l.store(v.add(v.mul(l.load(p.src, f32), p.scalars[0]), v.mul(l.load(p.b, f32), p.scalars[1])), p.dst, f32)
		})
	})
}
