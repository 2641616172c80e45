package gemm

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

// rowSums is the number of sums, each a register, that a row loop makes at a
// time: as many as hide the latency of a multiplication with two ports.
const rowSums = 8

func rowF32AVX512(c *build.Context) { rowLoop(c, "rowF32AVX512", c.ZMM, 64) }
func rowF32AVX2(c *build.Context)   { rowLoop(c, "rowF32AVX2", c.YMM, 32) }

// row is the frame of a loop that multiplies one row with many panels.
type row struct {
	c              *build.Context
	reg            func() reg.VecVirtual
	bytes          int // size of a register
	a, b, out      operand.Mem
	stride, thrice reg.Register // bytes between panels
}

// rowLoop makes the loop for registers of some bytes.
func rowLoop(c *build.Context, name string, vector func() reg.VecVirtual, bytes int) {
	target.Function(c, name, "func(steps, panels int, a, b, c *byte, stride int)",
		name+" multiplies a row with panels; see Set.Row.")
	r := &row{c: c, reg: vector, bytes: bytes}
	panels := c.Load(c.Param("panels"), c.GP64())
	r.a = operand.Mem{Base: c.Load(c.Param("a"), c.GP64())}
	r.b = operand.Mem{Base: c.Load(c.Param("b"), c.GP64())}
	r.out = operand.Mem{Base: c.Load(c.Param("c"), c.GP64())}
	r.stride = c.Load(c.Param("stride"), c.GP64())
	thrice := c.GP64()
	c.LEAQ(operand.Mem{Base: r.stride, Index: r.stride, Scale: 2}, thrice)
	r.thrice = thrice
	for n := rowSums * bytes / panelBytes; n > 0; n /= 2 {
		many, fewer := fmt.Sprintf("panels%d", n), fmt.Sprintf("below%d", n)
		c.Label(many)
		c.CMPQ(panels, operand.U8(n))
		c.JLT(operand.LabelRef(fewer))
		r.panels(n)
		c.SUBQ(operand.U8(n), panels)
		c.JMP(operand.LabelRef(many))
		c.Label(fewer)
	}
	target.Return(c)
}

// panels multiplies the row with the next n panels and goes on behind them.
func (r *row) panels(n int) {
	c := r.c
	acc := registers(r.reg, n*panelBytes/r.bytes)
	for _, x := range acc {
		c.VXORPS(x, x, x)
	}
	a, b, left := operand.Mem{Base: c.GP64()}, operand.Mem{Base: c.GP64()}, c.GP64()
	c.MOVQ(r.a.Base, a.Base)
	c.MOVQ(r.b.Base, b.Base)
	c.Load(c.Param("steps"), left)
	label := func(name string) string { return fmt.Sprintf("%s%d", name, n) }
	c.SUBQ(operand.U8(unroll), left)
	c.JLT(operand.LabelRef(label("tail")))
	c.Label(label("turn"))
	for u := range unroll {
		r.step(acc, a, b, u)
	}
	c.ADDQ(operand.U8(4*unroll), a.Base)
	c.ADDQ(operand.U32(unroll*panelBytes), b.Base)
	c.SUBQ(operand.U8(unroll), left)
	c.JGE(operand.LabelRef(label("turn")))
	c.Label(label("tail"))
	c.ADDQ(operand.U8(unroll), left)
	c.JZ(operand.LabelRef(label("sums")))
	c.Label(label("single"))
	r.step(acc, a, b, 0)
	c.ADDQ(operand.U8(4), a.Base)
	c.SUBQ(operand.I8(-128), b.Base)
	c.DECQ(left)
	c.JNZ(operand.LabelRef(label("single")))
	c.Label(label("sums"))
	for i, x := range acc {
		c.VMOVUPS(x, r.out.Offset(i*r.bytes))
	}
	c.ADDQ(operand.U32(n*panelBytes), r.out.Base)
	c.LEAQ(r.panel(r.b, n), r.b.Base)
}

// step adds the products of step u.
func (r *row) step(acc []reg.VecVirtual, a, b operand.Mem, u int) {
	c, x := r.c, r.reg()
	c.VBROADCASTSS(a.Offset(4*u), x)
	each := panelBytes / r.bytes
	for i, sum := range acc {
		c.VFMADD231PS(r.panel(b, i/each).Offset(u*panelBytes+i%each*r.bytes), x, sum)
	}
}

// panel is the address of panel i from b on.
func (r *row) panel(b operand.Mem, i int) operand.Mem {
	switch i {
	case 0:
	case 3:
		b.Index, b.Scale = r.thrice, 1
	default:
		b.Index, b.Scale = r.stride, uint8(i)
	}
	return b
}
