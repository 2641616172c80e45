package vecmath

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"

	"goatb/internal/asm/gen/target"
)

// softenFile makes the softmax of attention without its division.
func softenFile(c *build.Context) {
	nums := newPool("soften")
	writeTables(c)
	both(c, nums, isa.soften)
	nums.write(c)
}

// soften makes rows of scores into weights.
func (v isa) soften() {
	c, name := v.c, v.name("soften")
	v.function(name, "func(s *float32, n, count, step int, scale float32, tops, sums *float32)",
		name+" does Soften for count rows, step bytes apart.")
	s, n, count := v.pointer("s"), v.pointer("n"), v.pointer("count")
	tops, sums := v.pointer("tops"), v.pointer("sums")
	scale, weight := v.param("scale"), v.weight()
	c.Label("row")
	first := v.reg()
	c.VBROADCASTSS(operand.Mem{Base: tops}, first)
	acc := make([]vec, sumLanes/v.lanes())
	for i := range acc {
		acc[i] = v.copy(first)
	}
	l := v.walk(n)
	l.fold(acc, first, c.VMAXPS, func() vec { return v.mul(l.load(s, f32), scale) })
	largest, top := v.joined(acc, c.VMAXPS).AsX(), v.reg()
	c.VMOVSS(largest, operand.Mem{Base: tops})
	c.VBROADCASTSS(largest, top)

	acc = v.partials()
	l = v.walk(n)
	l.sum(acc, v.chains(f32), func() vec {
		y := weight(v.sub(v.mul(l.load(s, f32), scale), top))
		l.store(y, s, f32)
		return y
	})
	c.VMOVSS(v.joined(acc, c.VADDPS).AsX(), operand.Mem{Base: sums})
	step, err := c.Param("step").Resolve()
	if err != nil {
		panic(err)
	}
	c.ADDQ(step.Addr, s)
	c.ADDQ(operand.I32(4), tops)
	c.ADDQ(operand.I32(4), sums)
	c.DECQ(count)
	c.JNE(operand.LabelRef("row"))
	target.Return(c)
}

// weight returns the function e^x for x up to 0, which is 0 below the smallest
// x whose powers of two are all normal.
func (v isa) weight() func(x vec) vec {
	const notLess = 0x15 // or unordered
	low := v.set(v.nums.f32(-87))
	return func(x vec) vec {
		n, r := v.reduce(v.max(low, x))
		y, d := v.expOf(r), v.reg()
		if v.wide {
			k := v.c.K()
			v.c.VCMPPS(operand.U8(notLess), low, x, k)
			v.c.VSCALEFPS_Z(n, y, k, d)
			return d
		}
		v.c.VCMPPS(operand.U8(notLess), low, x, d)
		return v.and(v.mul(y, v.power(v.toInt(n))), d)
	}
}
