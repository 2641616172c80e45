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
	c         *build.Context
	reg       func() reg.VecVirtual
	bytes     int // size of a register
	columns   reg.Register
	a, b, out operand.Mem
	stride    reg.Register // bytes between panels
	numbers   operand.Mem  // of the lanes, for registers without masks of their own
}

// rowLoop makes the loop for registers of some bytes.
func rowLoop(c *build.Context, name string, vector func() reg.VecVirtual, bytes int) {
	target.Function(c, name, "func(steps, columns int, a, b, c *byte, stride int)",
		name+" multiplies a row with columns of panels; see Set.Row.")
	r := &row{c: c, reg: vector, bytes: bytes}
	if bytes < panelBytes/2 {
		r.numbers = wordNumbers(c, "rowLanes")
	}
	r.columns = c.Load(c.Param("columns"), c.GP64())
	r.a = operand.Mem{Base: c.Load(c.Param("a"), c.GP64())}
	r.b = operand.Mem{Base: c.Load(c.Param("b"), c.GP64())}
	r.out = operand.Mem{Base: c.Load(c.Param("c"), c.GP64())}
	r.stride = c.Load(c.Param("stride"), c.GP64())
	for n := rowSums * bytes / panelBytes; n > 0; n-- {
		many, fewer := fmt.Sprintf("panels%d", n), fmt.Sprintf("below%d", n)
		c.Label(many)
		c.CMPQ(r.columns, operand.U8((n-1)*panelBytes/4))
		c.JLE(operand.LabelRef(fewer))
		r.panels(n)
		c.SUBQ(operand.U32(n*panelBytes/4), r.columns)
		c.JMP(operand.LabelRef(many))
		c.Label(fewer)
	}
	target.Return(c)
}

// panels multiplies the row with the next n panels, of which the last one may lack
// columns, and goes on behind them. Each panel has a pointer of its own: a product
// with an indexed operand takes a core as long as two instructions.
func (r *row) panels(n int) {
	c := r.c
	acc, left := registers(r.reg, n*panelBytes/r.bytes), c.GP64()
	for _, x := range acc {
		c.VXORPS(x, x, x)
	}
	a, b := operand.Mem{Base: c.GP64()}, make([]operand.Mem, n)
	c.MOVQ(r.a.Base, a.Base)
	for i := range b {
		b[i].Base = c.GP64()
		c.MOVQ(r.b.Base, b[i].Base)
		c.ADDQ(r.stride, r.b.Base)
	}
	c.Load(c.Param("steps"), left)
	label := func(name string) string { return fmt.Sprintf("%s%d", name, n) }
	c.SUBQ(operand.U8(unroll), left)
	c.JLT(operand.LabelRef(label("tail")))
	c.Label(label("turn"))
	for u := range unroll {
		r.step(acc, a, b, u)
	}
	c.ADDQ(operand.U8(4*unroll), a.Base)
	for i := range b {
		c.ADDQ(operand.U32(unroll*panelBytes), b[i].Base)
	}
	c.SUBQ(operand.U8(unroll), left)
	c.JGE(operand.LabelRef(label("turn")))
	c.Label(label("tail"))
	c.ADDQ(operand.U8(unroll), left)
	c.JZ(operand.LabelRef(label("sums")))
	c.Label(label("single"))
	r.step(acc, a, b, 0)
	c.ADDQ(operand.U8(4), a.Base)
	for i := range b {
		c.SUBQ(operand.I8(-128), b[i].Base)
	}
	c.DECQ(left)
	c.JNZ(operand.LabelRef(label("single")))
	c.Label(label("sums"))
	last := len(acc) - panelBytes/r.bytes
	r.store(acc[:last], r.out)
	c.CMPQ(r.columns, operand.U32(n*panelBytes/4))
	c.JL(operand.LabelRef(label("some")))
	r.store(acc[last:], r.out.Offset(last*r.bytes))
	c.ADDQ(operand.U32(n*panelBytes), r.out.Base)
	c.JMP(operand.LabelRef(label("stored")))
	c.Label(label("some"))
	some := c.GP64()
	c.LEAQ(operand.Mem{Base: r.columns, Disp: -(n - 1) * panelBytes / 4}, some)
	r.storeSome(acc[last:], r.out.Offset(last*r.bytes), some)
	c.Label(label("stored"))
}

// store writes sums.
func (r *row) store(sums []reg.VecVirtual, out operand.Mem) {
	for i, x := range sums {
		r.c.VMOVUPS(x, out.Offset(i*r.bytes))
	}
}

// storeSome writes the first n of the sums of a panel; n is lost.
func (r *row) storeSome(sums []reg.VecVirtual, out operand.Mem, n reg.GPVirtual) {
	c := r.c
	if r.bytes == panelBytes/2 {
		bits, mask := c.GP32(), c.K()
		c.MOVL(operand.U32(1<<32-1), bits)
		c.BZHIL(n.As32(), bits, bits)
		for i, x := range sums {
			c.KMOVW(bits, mask)
			c.VMOVUPS(x, mask, out.Offset(i*r.bytes))
			c.SHRL(operand.U8(16), bits)
		}
		return
	}
	for i, x := range sums {
		left, mask := c.XMM(), c.YMM()
		c.VMOVD(n.As32(), left)
		c.VPBROADCASTD(left, mask)
		c.VPCMPGTD(r.numbers, mask, mask)
		c.VMASKMOVPS(x, mask, out.Offset(i*r.bytes))
		c.SUBQ(operand.U8(8), n)
	}
}

// step adds the products of step u.
func (r *row) step(acc []reg.VecVirtual, a operand.Mem, b []operand.Mem, u int) {
	c, x := r.c, r.reg()
	c.VBROADCASTSS(a.Offset(4*u), x)
	each := panelBytes / r.bytes
	for i, sum := range acc {
		c.VFMADD231PS(b[i/each].Offset(u*panelBytes+i%each*r.bytes), x, sum)
	}
}
