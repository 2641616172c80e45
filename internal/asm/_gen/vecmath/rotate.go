package vecmath

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"

	"goatb/internal/asm/gen/target"
)

// rotateFile makes rotations of pairs, in float32 and in the arithmetic of f16.
func rotateFile(c *build.Context) {
	nums := newPool("rotate")
	writeTables(c)
	both(c, nums, func(v isa) {
		exact := func(x vec) vec { return x }
		for _, e := range floats {
			v.rotateHalf("rotateHalf"+e.name, "", e, exact)
			v.rotatePairs("rotatePairs"+e.name, "", e, exact)
		}
		for _, e := range floats[:2] {
			const steps = " Every product and sum is rounded to f16."
			v.rotateHalf("rotateHalfSteps"+e.name, steps, e, v.roundF16)
			v.rotatePairs("rotatePairsSteps"+e.name, steps, e, v.roundF16)
		}
	})
	nums.write(c)
}

// rotation makes a function that turns count vectors, stride bytes apart, by the
// same angles. turn does one vector.
func (v isa) rotation(name, what string, turn func(l *loop, dst, x, cos, sin gp)) {
	c := v.c
	v.function(v.name(name), "func(dst, x *byte, cos, sin *float32, n, count, stride int)",
		v.name(name)+" turns "+what, "in count vectors stride bytes apart.")
	dst, x, cos, sin := v.pointer("dst"), v.pointer("x"), v.pointer("cos"), v.pointer("sin")
	count, n := v.pointer("count"), v.pointer("n")
	c.Label("vector")
	turn(v.walk(n), dst, x, cos, sin)
	stride, err := c.Param("stride").Resolve()
	if err != nil {
		panic(err)
	}
	c.ADDQ(stride.Addr, dst)
	c.ADDQ(stride.Addr, x)
	c.DECQ(count)
	c.JNE(operand.LabelRef("vector"))
	target.Return(c)
}

// rotateHalf makes the rotation of pairs that lie n elements apart.
func (v isa) rotateHalf(name, note string, e element, round func(x vec) vec) {
	v.rotation(name, "the n pairs x[i], x[i+n]."+note, func(l *loop, dst, x, cos, sin gp) {
		first := [4]gp{dst, x, cos, sin}
		var second [4]gp
		for i, p := range first {
			size := e.size
			if i >= 2 {
				size = f32.size
			}
			second[i] = l.c.GP64()
			l.c.LEAQ(operand.Mem{Base: p, Index: l.left, Scale: size}, second[i])
		}
		l.streams = []stream{{x, e.size, false, aheadBytes}, {second[1], e.size, false, aheadBytes},
			{dst, e.size, true, aheadBytes}, {second[0], e.size, true, aheadBytes}}
		l.each(2, func() {
			a, b := l.load(x, e), l.load(second[1], e)
			p := v.sub(round(v.mul(a, l.load(cos, f32))), round(v.mul(b, l.load(sin, f32))))
			q := v.add(round(v.mul(b, l.load(second[2], f32))), round(v.mul(a, l.load(second[3], f32))))
			if e != f16 { // whose store rounds
				p, q = round(p), round(q)
			}
			l.store(p, dst, e)
			l.store(q, second[0], e)
		})
	})
}

// rotatePairs makes the rotation of neighbours.
func (v isa) rotatePairs(name, note string, e element, round func(x vec) vec) {
	v.rotation(name, "the pairs of neighbours among n elements."+note, func(l *loop, dst, x, cos, sin gp) {
		even := v.reg()
		l.c.VBROADCASTSD(v.nums.at(1<<31, true).Mem, even)
		l.streams = []stream{{x, e.size, false, aheadBytes}, {dst, e.size, true, aheadBytes}}
		l.each(2, func() {
			a, b := l.load(x, e), v.reg()
			l.c.VPERMILPS(operand.U8(0b10110001), a, b)
			turned := v.xor(round(v.mul(b, l.load(sin, f32))), even)
			sum := v.add(round(v.mul(a, l.load(cos, f32))), turned)
			if e != f16 { // whose store rounds
				sum = round(sum)
			}
			l.store(sum, dst, e)
		})
	})
}
