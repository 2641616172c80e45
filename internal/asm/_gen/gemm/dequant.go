package gemm

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

const dequantSignature = "func(n int, dst *float32, sums, less *int32, scale *float32, factor float32)"

// dequantizer holds the operands of a loop that turns int32 sums into floats.
type dequantizer struct {
	c                     *build.Context
	n                     reg.GPVirtual
	dst, sums, less, scal operand.Mem
	factor                reg.VecVirtual
}

func newDequantizer(c *build.Context, name string, vec func() reg.VecVirtual) dequantizer {
	target.Function(c, name, dequantSignature, name+" turns int32 sums into floats; see Dequant.")
	mem := func(p string) operand.Mem { return operand.Mem{Base: c.Load(c.Param(p), c.GP64())} }
	d := dequantizer{
		c: c, n: c.Load(c.Param("n"), c.GP64()).(reg.GPVirtual),
		dst: mem("dst"), sums: mem("sums"), less: mem("less"), scal: mem("scale"), factor: vec(),
	}
	x := c.Load(c.Param("factor"), c.XMM())
	c.VBROADCASTSS(x, d.factor)
	return d
}

func (d *dequantizer) advance(bytes int) {
	for _, m := range []operand.Mem{d.dst, d.sums, d.less, d.scal} {
		d.c.ADDQ(operand.U8(bytes), m.Base)
	}
}

// step computes one register.
func (d *dequantizer) step(vec func() reg.VecVirtual, load func(m operand.Mem) reg.VecVirtual, store func(x reg.VecVirtual, m operand.Mem)) {
	c, x := d.c, vec()
	c.VPSUBD(load(d.less), load(d.sums), x)
	c.VCVTDQ2PS(x, x)
	c.VMULPS(load(d.scal), x, x)
	c.VMULPS(d.factor, x, x)
	store(x, d.dst)
}

func dequantAVX512(c *build.Context) {
	d := newDequantizer(c, "dequantAVX512", c.ZMM)
	c.SUBQ(operand.U8(16), d.n)
	c.JLT(operand.LabelRef("tail"))
	c.Label("loop")
	d.step(c.ZMM, func(m operand.Mem) reg.VecVirtual {
		x := c.ZMM()
		c.VMOVUPS(m, x)
		return x
	}, func(x reg.VecVirtual, m operand.Mem) { c.VMOVUPS(x, m) })
	d.advance(64)
	c.SUBQ(operand.U8(16), d.n)
	c.JGE(operand.LabelRef("loop"))
	c.Label("tail")
	c.ADDQ(operand.U8(16), d.n)
	c.JZ(operand.LabelRef("done"))
	mask, bits := c.K(), c.GP32()
	c.MOVL(operand.U32(1<<16-1), bits)
	c.BZHIL(d.n.As32(), bits, bits)
	c.KMOVW(bits, mask)
	d.step(c.ZMM, func(m operand.Mem) reg.VecVirtual {
		x := c.ZMM()
		c.VMOVUPS_Z(m, mask, x)
		return x
	}, func(x reg.VecVirtual, m operand.Mem) { c.VMOVUPS(x, mask, m) })
	c.Label("done")
	target.Return(c)
}

func dequantAVX2(c *build.Context) {
	d := newDequantizer(c, "dequantAVX2", c.YMM)
	c.SUBQ(operand.U8(8), d.n)
	c.JLT(operand.LabelRef("tail"))
	c.Label("loop")
	d.step(c.YMM, func(m operand.Mem) reg.VecVirtual {
		x := c.YMM()
		c.VMOVUPS(m, x)
		return x
	}, func(x reg.VecVirtual, m operand.Mem) { c.VMOVUPS(x, m) })
	d.advance(32)
	c.SUBQ(operand.U8(8), d.n)
	c.JGE(operand.LabelRef("loop"))
	c.Label("tail")
	c.ADDQ(operand.U8(8), d.n)
	c.JZ(operand.LabelRef("done"))
	mask, left := c.YMM(), c.XMM()
	c.VMOVD(d.n.As32(), left)
	c.VPBROADCASTD(left, mask)
	c.VPCMPGTD(wordNumbers(c, "dequantLanes"), mask, mask)
	d.step(c.YMM, func(m operand.Mem) reg.VecVirtual {
		x := c.YMM()
		c.VMASKMOVPS(m, mask, x)
		return x
	}, func(x reg.VecVirtual, m operand.Mem) { c.VMASKMOVPS(x, mask, m) })
	c.Label("done")
	target.Return(c)
}
