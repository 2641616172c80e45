package gemm

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"

	"goatb/internal/asm/gen/target"
)

// rowI8AVX512 makes the loop that multiplies one row with panels of int8 as memory
// gives them. The elements of the row are unsigned.
func rowI8AVX512(c *build.Context) {
	target.Function(c, "rowI8AVX512", "func(steps, columns int, a, b, c *byte, stride int)",
		"rowI8AVX512 multiplies a row with columns of panels; see Set.Row.")
	columns := c.Load(c.Param("columns"), c.GP64())
	row := c.GP64()
	a := operand.Mem{Base: row}
	from, b := operand.Mem{Base: c.Load(c.Param("b"), c.GP64())}, operand.Mem{Base: c.GP64()}
	out := operand.Mem{Base: c.Load(c.Param("c"), c.GP64())}
	stride := c.Load(c.Param("stride"), c.GP64())
	n, acc := c.GP64(), registers(c.ZMM, 4)
	step := func(u int) {
		for v := range 2 {
			x, w := c.ZMM(), c.ZMM()
			c.VPBROADCASTD(a.Offset(4*u), x)
			c.VMOVDQU32(b.Offset(panelBytes*u+64*v), w)
			c.VPDPBUSD(w, x, acc[u%2*2+v])
		}
	}
	c.Label("panel")
	c.MOVQ(from.Base, b.Base)
	for _, x := range acc {
		c.VPXORD(x, x, x)
	}
	c.Load(c.Param("a"), row)
	c.Load(c.Param("steps"), n)
	streamSteps(c, n, a, b, step)
	for v := range 2 {
		c.VPADDD(acc[2+v], acc[v], acc[v])
		c.VMOVDQU32(acc[v], out.Offset(64*v))
	}
	c.ADDQ(operand.U32(panelBytes), out.Base)
	c.ADDQ(stride, from.Base)
	c.SUBQ(operand.U8(panelBytes/4), columns)
	c.JG(operand.LabelRef("panel"))
	target.Return(c)
}
