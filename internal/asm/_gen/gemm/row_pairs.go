package gemm

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

func rowPairsAVX512(c *build.Context) {
	w, _ := widths(c)
	rowPairs(c, w)
}

func rowPairsAVX2(c *build.Context) {
	_, w := widths(c)
	rowPairs(c, w)
}

// pairsRow is the frame of the loop that multiplies a row of bf16 with panels of
// pairs of bf16, as f32, while they stream by.
type pairsRow struct {
	c    *build.Context
	w    wide
	a, b operand.Mem
	mask reg.VecVirtual
	sums []reg.VecVirtual // of a chunk
}

// rowPairs makes the loop for registers of a width.
func rowPairs(c *build.Context, w wide) {
	name := "rowPairs" + w.suffix
	target.Function(c, name, "func(steps, chunk, panels int, a, b, c *byte, stride int)",
		name+" multiplies a row with panels; see Narrow.")
	panels := c.Load(c.Param("panels"), c.GP64())
	from := operand.Mem{Base: c.Load(c.Param("b"), c.GP64())}
	out := operand.Mem{Base: c.Load(c.Param("c"), c.GP64())}
	stride := c.Load(c.Param("stride"), c.GP64())
	chunk := c.Load(c.Param("chunk"), c.GP64())
	left, n, row := c.GP64(), c.GP64(), c.GP64()
	t := pairsRow{c: c, w: w, a: operand.Mem{Base: row}, b: operand.Mem{Base: c.GP64()}, mask: upperHalves(c, w)}
	t.sums = registers(w.reg, panelBytes/w.bytes)
	totals := registers(w.reg, panelBytes/w.bytes)
	c.Label("panel")
	c.MOVQ(from.Base, t.b.Base)
	c.Load(c.Param("a"), row)
	c.Load(c.Param("steps"), left)
	negativeZero(c, w, totals)
	c.Label("chunk")
	for _, s := range t.sums {
		c.VXORPS(s, s, s)
	}
	c.MOVQ(chunk, n)
	c.CMPQ(left, n)
	c.CMOVQLT(left, n)
	c.SUBQ(n, left)
	streamSteps(c, n, t.a, t.b, t.step)
	for v, s := range t.sums {
		c.VADDPS(totals[v], s, totals[v])
	}
	c.TESTQ(left, left)
	c.JNZ(operand.LabelRef("chunk"))
	for v, s := range totals {
		c.VMOVUPS(s, out.Offset(v*w.bytes))
	}
	c.ADDQ(operand.U32(panelBytes), out.Base)
	c.ADDQ(stride, from.Base)
	c.DECQ(panels)
	c.JNZ(operand.LabelRef("panel"))
	target.Return(c)
}

// negativeZero makes sums of nothing, which keep the sign of what is added first.
func negativeZero(c *build.Context, w wide, to []reg.VecVirtual) {
	word := c.GP32()
	c.MOVL(operand.U32(1<<31), word)
	for _, x := range to {
		if w.bytes == 64 {
			c.VPBROADCASTD(word, x)
			continue
		}
		c.VMOVD(word, x.AsX())
		c.VPBROADCASTD(x.AsX(), x)
	}
}

// step adds the products of two elements of the row, in order.
func (t *pairsRow) step(u int) {
	c := t.c
	low, high := t.w.reg(), t.w.reg()
	c.VPBROADCASTD(t.a.Offset(4*u), high)
	c.VPSLLD(operand.U8(16), high, low)
	t.upper(high)
	for v, sum := range t.sums {
		lo, hi := widenPair(c, t.w, t.b.Offset(u*panelBytes+v*t.w.bytes), t.mask)
		c.VFMADD231PS(low, lo, sum)
		c.VFMADD231PS(high, hi, sum)
	}
}

// upper keeps the upper halves of words.
func (t *pairsRow) upper(x reg.VecVirtual) {
	if t.w.bytes == 64 {
		t.c.VPANDD(t.mask, x, x)
		return
	}
	t.c.VPAND(t.mask, x, x)
}
