package vecmath

import (
	"math"

	"github.com/mmcloughlin/avo/operand"

	"goatb/internal/asm/gen/target"
)

// softmax makes the softmax of short rows: what largest, expSum and the product
// with the reciprocal of the sum do, bit by bit, for many rows in a call.
func (v isa) softmax(e element) {
	c, name := v.c, v.name("softmax"+e.name)
	v.function(name, "func(dst, src *byte, exps *float32, n, count, step int)",
		name+" writes the softmax of count rows of n elements that follow each other. exps has room for a row,",
		"or is dst, and moves by step bytes from row to row. A row of -Inf gives zeros.")
	dst, src, exps := v.pointer("dst"), v.pointer("src"), v.pointer("exps")
	n, count := v.pointer("n"), v.pointer("count")
	exp := v.exp()
	c.Label("row")
	top := v.largestOf(v.walk(n), src, e)

	acc := v.partials()
	l := v.walk(n)
	term := func() vec {
		y := exp(v.sub(l.load(src, e), top))
		l.store(y, exps, f32)
		return y
	}
	l.sum(acc, v.sumChains(), term)
	share := v.reciprocal(v.joined(acc, c.VADDPS))

	l = v.walk(n)
	l.each(v.light(e), func() { l.store(v.mul(l.load(exps, f32), share), dst, e) })
	bytes := c.GP64()
	c.MOVQ(n, bytes)
	if shift := e.size / 2; shift > 0 {
		c.SHLQ(operand.U8(shift), bytes)
	}
	c.ADDQ(bytes, dst)
	c.ADDQ(bytes, src)
	step, err := c.Param("step").Resolve()
	if err != nil {
		panic(err)
	}
	c.ADDQ(step.Addr, exps)
	c.DECQ(count)
	c.JNE(operand.LabelRef("row"))
	target.Return(c)
}

// largestOf fills a register with the largest element, or with the smallest
// finite number where there is none, so that -Inf less it is -Inf.
func (v isa) largestOf(l *loop, src gp, e element) vec {
	c := v.c
	first := v.set(v.nums.f32(-math.MaxFloat32))
	acc := make([]vec, sumLanes/v.lanes())
	for i := range acc {
		acc[i] = v.copy(first)
	}
	l.fold(acc, first, c.VMAXPS, func() vec { return l.load(src, e) })
	top := v.reg()
	c.VBROADCASTSS(v.joined(acc, c.VMAXPS).AsX(), top)
	return top
}

// reciprocal fills a register with 1 over lane 0 of x, and with 0 for 0.
func (v isa) reciprocal(x vec) vec {
	const equal = 0
	c, zero, one, same := v.c, v.c.XMM(), v.c.XMM(), v.c.XMM()
	c.VXORPS(zero, zero, zero)
	c.VMOVSS(v.nums.f32(1).Mem, one)
	c.VCMPSS(operand.U8(equal), zero, x.AsX(), same)
	c.VDIVSS(x.AsX(), one, one)
	c.VANDNPS(one, same, one)
	r := v.reg()
	c.VBROADCASTSS(one, r)
	return r
}
