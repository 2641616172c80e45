package vecmath

import (
	"github.com/mmcloughlin/avo/operand"

	"goatb/internal/asm/gen/target"
)

// shareRows makes the division of the softmax of attention.
func (v isa) shareRows() {
	const notEqual = 4
	c, name := v.c, v.name("shareRows")
	v.function(name, "func(dst, src, sums *float32, n, count int)",
		name+" writes count rows of n elements that follow each other, times 1 over their sums, and 0 for a sum of 0.")
	dst, src, sums := v.pointer("dst"), v.pointer("src"), v.pointer("sums")
	n, count := v.pointer("n"), v.pointer("count")
	one, zero := c.XMM(), v.zero()
	c.VMOVSS(v.nums.f32(1).Mem, one)
	// The last register of each row has the same mask.
	rest := v.walk(n)
	c.ANDQ(operand.I32(v.lanes()-1), rest.left)
	rest.setMask()
	c.Label("row")
	share, sum, factor := c.XMM(), v.reg(), v.reg()
	c.VDIVSS(operand.Mem{Base: sums}, one, share)
	c.VBROADCASTSS(operand.Mem{Base: sums}, sum)
	c.VBROADCASTSS(share, factor)
	var keep func(y vec) vec
	if v.wide {
		k := c.K()
		c.VCMPPS(operand.U8(notEqual), zero, sum, k)
		keep = func(y vec) vec {
			c.VMOVUPS_Z(y, k, y)
			return y
		}
	} else {
		c.VCMPPS(operand.U8(notEqual), zero, sum, sum)
		keep = func(y vec) vec { return v.and(y, sum) }
	}
	l := v.walk(n)
	l.opmask, l.mask = rest.opmask, rest.mask
	body := func() { l.store(keep(v.mul(l.load(src, f32), factor)), dst, f32) }
	l.once(1, body)
	c.TESTQ(l.left, l.left)
	c.JEQ(operand.LabelRef("whole"))
	l.masked = true
	body()
	c.Label("whole")
	for _, p := range []gp{dst, src} {
		c.LEAQ(operand.Mem{Base: p, Index: n, Scale: 4}, p)
	}
	c.ADDQ(operand.I32(4), sums)
	c.DECQ(count)
	c.JNE(operand.LabelRef("row"))
	target.Return(c)
}
