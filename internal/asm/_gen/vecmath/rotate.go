package vecmath

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

// rotateFile makes rotations of pairs, in float32 and in the arithmetic of f16.
func rotateFile(c *build.Context) {
	nums := newPool("rotate")
	writeTailMasks(c)
	both(c, nums, func(v isa) {
		exact := func(x vec) vec { return x }
		v.rotateHalf("rotateHalf", "", exact)
		v.rotateHalf("rotateHalfF16", " Every product and sum is rounded to f16.", v.roundF16)
		v.rotatePairs("rotatePairs", "", exact)
		v.rotatePairs("rotatePairsF16", " Every product and sum is rounded to f16.", v.roundF16)
	})
	nums.write(c)
}

// rotateHalf makes the rotation of pairs that lie n elements apart.
func (v isa) rotateHalf(name, note string, round func(x vec) vec) {
	c := v.c
	target.Function(c, v.name(name), "func(dst, x, cos, sin *float32, n int)",
		v.name(name)+" turns the n pairs x[i], x[i+n]."+note)
	first := [4]reg.GPVirtual{v.pointer("dst"), v.pointer("x"), v.pointer("cos"), v.pointer("sin")}
	l := v.begin()
	var second [4]reg.GPVirtual
	for i, p := range first {
		second[i] = c.GP64()
		c.LEAQ(operand.Mem{Base: p, Index: l.left, Scale: 4}, second[i])
	}
	l.each(2, func() {
		a, b := l.load(first[1]), l.load(second[1])
		p := v.sub(round(v.mul(a, l.load(first[2]))), round(v.mul(b, l.load(first[3]))))
		q := v.add(round(v.mul(b, l.load(second[2]))), round(v.mul(a, l.load(second[3]))))
		l.store(round(p), first[0])
		l.store(round(q), second[0])
	})
	target.Return(c)
}

// rotatePairs makes the rotation of neighbours.
func (v isa) rotatePairs(name, note string, round func(x vec) vec) {
	c := v.c
	target.Function(c, v.name(name), "func(dst, x, cos, sin *float32, n int)",
		v.name(name)+" turns the pairs of neighbours among n elements."+note)
	dst, x, cos, sin := v.pointer("dst"), v.pointer("x"), v.pointer("cos"), v.pointer("sin")
	l := v.begin()
	even := v.reg()
	c.VBROADCASTSD(v.nums.at(1<<31, true).Mem, even)
	l.each(2, func() {
		a, b := l.load(x), v.reg()
		c.VPERMILPS(operand.U8(0b10110001), a, b)
		turned := v.xor(round(v.mul(b, l.load(sin))), even)
		l.store(round(v.add(round(v.mul(a, l.load(cos))), turned)), dst)
	})
	target.Return(c)
}
