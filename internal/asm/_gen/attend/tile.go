package attend

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"

	"goatb/internal/asm/gen/target"
)

const (
	// panelBytes is the size of a step of a panel: 32 f32.
	panelBytes = 128
	// unroll is the number of steps of a turn of a tile's loop.
	unroll = 4
)

// tiles makes products of 1 to `most` rows with a panel.
func tiles(c *build.Context, wide bool, most int) {
	v := newISA(c, wide)
	for rows := 1; rows <= most; rows++ {
		v.tile(rows)
	}
}

// tile makes a product of some rows, as they lie, with two registers of columns.
func (v isa) tile(rows int) {
	c := v.c
	name := fmt.Sprintf("tilex%d%s", rows, v.suffix)
	target.Function(c, name, "func(steps int, a *float32, lda int, b, c *float32, ldc int, add bool)",
		fmt.Sprintf("%s computes %d rows and %d columns; see Tile.", name, rows, 2*v.lanes))
	f := frame{isa: v}
	a, lda := c.GP64(), c.GP64()
	c.Load(c.Param("a"), a)
	c.Load(c.Param("lda"), lda)
	c.SHLQ(operand.U8(2), lda)
	x := f.stride(a, lda, rows)
	b, n := c.GP64(), c.GP64()
	c.Load(c.Param("b"), b)
	acc := make([][]vec, rows)
	for r := range acc {
		acc[r] = v.regs(2)
		for _, s := range acc[r] {
			v.zero(s)
		}
	}
	step := func(u int) {
		cols := v.regs(2)
		for i := range cols {
			c.VMOVUPS(operand.Mem{Base: b, Disp: u*panelBytes + 4*v.lanes*i}, cols[i])
		}
		for r := range acc {
			w := v.reg()
			c.VBROADCASTSS(x.at(r, 4*u), w)
			for i := range cols {
				c.VFMADD231PS(cols[i], w, acc[r][i])
			}
		}
	}
	c.Load(c.Param("steps"), n)
	c.SUBQ(operand.I32(unroll), n)
	c.JLT(operand.LabelRef("tail"))
	c.Label("turn")
	for u := range unroll {
		step(u)
	}
	x.advance(4 * unroll)
	c.ADDQ(operand.I32(unroll*panelBytes), b)
	c.SUBQ(operand.I32(unroll), n)
	c.JGE(operand.LabelRef("turn"))
	c.Label("tail")
	c.ADDQ(operand.I32(unroll), n)
	c.JEQ(operand.LabelRef("sums"))
	c.Label("single")
	step(0)
	x.advance(4)
	c.ADDQ(operand.I32(panelBytes), b)
	c.DECQ(n)
	c.JNE(operand.LabelRef("single"))
	c.Label("sums")
	v.storeTile(acc)
}

// storeTile stores the sums of a tile, or adds them to what is there.
func (v isa) storeTile(acc [][]vec) {
	c := v.c
	out, ldc, add := c.GP64(), c.GP64(), c.GP8()
	c.Load(c.Param("c"), out)
	c.Load(c.Param("ldc"), ldc)
	c.SHLQ(operand.U8(2), ldc)
	c.Load(c.Param("add"), add)
	c.TESTB(add, add)
	c.JEQ(operand.LabelRef("store"))
	from := c.GP64()
	c.MOVQ(out, from)
	for _, row := range acc {
		for i, s := range row {
			c.VADDPS(operand.Mem{Base: from, Disp: 4 * v.lanes * i}, s, s)
		}
		c.ADDQ(ldc, from)
	}
	c.Label("store")
	for _, row := range acc {
		for i, s := range row {
			c.VMOVUPS(s, operand.Mem{Base: out, Disp: 4 * v.lanes * i})
		}
		c.ADDQ(ldc, out)
	}
	target.Return(c)
}
