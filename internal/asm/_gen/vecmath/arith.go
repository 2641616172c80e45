package vecmath

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"

	"goatb/internal/asm/gen/target"
)

// arithUnroll is the number of registers of a turn of functions that only move
// and compute a little.
const arithUnroll = 4

// arithFile makes arithmetic of arrays. Every operation is rounded by itself,
// as in plain Go.
func arithFile(c *build.Context) {
	nums := newPool("arith")
	writeTailMasks(c)
	both(c, nums, func(v isa) {
		v.binary("add", "a+b", v.add)
		v.binary("sub", "a-b", v.sub)
		v.binary("mul", "a·b", v.mul)
		v.binary("div", "a/b", v.div)
		unary(v, "neg", "writes -src.", arithUnroll, func() func(x vec) vec {
			return func(x vec) vec { return v.xor(x, v.nums.u32(1<<31)) }
		})
		unary(v, "relu", "writes the larger of src and 0, and NaN for NaN.", arithUnroll, func() func(x vec) vec {
			zero := v.zero()
			return func(x vec) vec { return v.max(zero, x) }
		})
		unary(v, "roundF16", "writes src rounded to f16.", arithUnroll, func() func(x vec) vec { return v.roundF16 })
		v.unaryWith("scale", "src·a", []string{"a"}, func(p []vec, x vec) vec { return v.mul(x, p[0]) })
		v.unaryWith("clamp", "src limited to a..b, and NaN for NaN", []string{"a", "b"}, func(p []vec, x vec) vec {
			return limits{p[0], p[1]}.clamp(v, x)
		})
		v.unaryWith("roundScaled", "src·a rounded to an integer, ties to even, and limited to b..c", []string{"a", "b", "c"},
			func(p []vec, x vec) vec { return limits{p[1], p[2]}.clamp(v, v.round(v.mul(x, p[0]))) })
		v.scaleMul()
		v.scaleMulAdd()
		v.blendArrays()
	})
	nums.write(c)
}

// binary makes a function of two arrays.
func (v isa) binary(name, what string, f func(a vec, b operand.Op) vec) {
	target.Function(v.c, v.name(name), "func(dst, a, b *float32, n int)", v.name(name)+" writes "+what+".")
	dst, a, b := v.pointer("dst"), v.pointer("a"), v.pointer("b")
	l := v.begin()
	l.each(arithUnroll, func() { l.store(f(l.load(a), l.load(b)), dst) })
	target.Return(v.c)
}

// unaryWith makes a function of one array with float parameters.
func (v isa) unaryWith(name, what string, params []string, f func(p []vec, x vec) vec) {
	sig := "func(dst, src *float32, n int"
	for _, p := range params {
		sig += ", " + p + " float32"
	}
	target.Function(v.c, v.name(name), sig+")", v.name(name)+" writes "+what+".")
	dst, src := v.pointer("dst"), v.pointer("src")
	l := v.begin()
	var values []vec
	for _, p := range params {
		values = append(values, v.param(p))
	}
	l.each(arithUnroll, func() { l.store(f(values, l.load(src)), dst) })
	target.Return(v.c)
}

// roundF16 rounds to f16, to nearest even, and widens again.
func (v isa) roundF16(x vec) vec {
	h, d := v.half(), v.reg()
	v.c.VCVTPS2PH(operand.U8(0), x, h)
	v.c.VCVTPH2PS(h, d)
	return d
}

func (v isa) scaleMul() {
	target.Function(v.c, v.name("scaleMul"), "func(dst, a, gain *float32, n int, s float32)",
		v.name("scaleMul")+" writes (a·s)·gain.")
	dst, a, gain := v.pointer("dst"), v.pointer("a"), v.pointer("gain")
	l := v.begin()
	s := v.param("s")
	l.each(arithUnroll, func() { l.store(v.mul(v.mul(l.load(a), s), l.load(gain)), dst) })
	target.Return(v.c)
}

func (v isa) scaleMulAdd() {
	target.Function(v.c, v.name("scaleMulAdd"), "func(dst, a, gain, b *float32, n int, s float32)",
		v.name("scaleMulAdd")+" writes (a·s)·gain + b.")
	dst, a, gain, b := v.pointer("dst"), v.pointer("a"), v.pointer("gain"), v.pointer("b")
	l := v.begin()
	s := v.param("s")
	l.each(arithUnroll, func() { l.store(v.add(v.mul(v.mul(l.load(a), s), l.load(gain)), l.load(b)), dst) })
	target.Return(v.c)
}

func (v isa) blendArrays() {
	target.Function(v.c, v.name("blend"), "func(dst, y, x *float32, n int, a, b float32)",
		v.name("blend")+" writes a·y + b·x.")
	dst, y, x := v.pointer("dst"), v.pointer("y"), v.pointer("x")
	l := v.begin()
	a, b := v.param("a"), v.param("b")
	l.each(arithUnroll, func() { l.store(v.add(v.mul(l.load(y), a), v.mul(l.load(x), b)), dst) })
	target.Return(v.c)
}
