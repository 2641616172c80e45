package gemm

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tileI8AVX2 makes tiles of 1 to 4 rows and half a panel: 16 columns. VPMADDUBSW
// saturates, so bytes are widened to 16 bits: the even ones of a word make one
// register, the odd ones another, of rows and columns alike.
func tileI8AVX2(c *build.Context) {
	for rows := 1; rows <= 4; rows++ {
		t := tile{c: c, rows: rows, vectors: 2, bytes: 32, reg: c.YMM, step: 4 * rows, panel: panelBytes}
		t.begin(fmt.Sprintf("tileI8x%dAVX2", rows))
		t.loop(func(u int) {
			var even, odd [2]reg.VecVirtual
			for v := range even {
				b := c.YMM()
				c.VMOVUPS(t.b.Offset(u*panelBytes+32*v), b)
				even[v], odd[v] = widenBytes(c, b)
			}
			for r := range rows {
				x := c.YMM()
				c.VPBROADCASTD(t.a.Offset(u*t.step+4*r), x)
				xEven, xOdd := widenBytes(c, x)
				for v := range even {
					p, q := c.YMM(), c.YMM()
					c.VPMADDWD(even[v], xEven, p)
					c.VPMADDWD(odd[v], xOdd, q)
					c.VPADDD(p, t.acc[r][v], t.acc[r][v])
					c.VPADDD(q, t.acc[r][v], t.acc[r][v])
				}
			}
		})
		t.finish(c.VPADDD)
	}
}

// widenBytes makes 16-bit numbers of the even and of the odd bytes of x, which it
// overwrites.
func widenBytes(c *build.Context, x reg.VecVirtual) (even, odd reg.VecVirtual) {
	even = c.YMM()
	c.VPSLLW(operand.U8(8), x, even)
	c.VPSRAW(operand.U8(8), even, even)
	c.VPSRAW(operand.U8(8), x, x)
	return even, x
}
