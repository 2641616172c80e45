package gemm

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

// tileF32AVX512 makes tiles of 1 to 14 rows and the 32 columns of a panel.
func tileF32AVX512(c *build.Context) {
	multiply := func(x, b, acc reg.VecVirtual) { c.VFMADD231PS(x, b, acc) }
	tiles512(c, "tileF32x%dAVX512", multiply, c.VADDPS)
}

// tileBF16AVX512 makes tiles of 1 to 14 rows and the 32 columns of a panel.
func tileBF16AVX512(c *build.Context) {
	multiply := func(x, b, acc reg.VecVirtual) { target.VDPBF16PS(c, x, b, acc) }
	tiles512(c, "tileBF16x%dAVX512", multiply, c.VADDPS)
}

// tileI8AVX512 makes tiles of 1 to 14 rows and the 32 columns of a panel. The
// elements of the rows are unsigned.
func tileI8AVX512(c *build.Context) {
	multiply := func(x, b, acc reg.VecVirtual) { c.VPDPBUSD(b, x, acc) }
	tiles512(c, "tileI8x%dAVX512", multiply, c.VPADDD)
}

// tiles512 makes tiles of which each step of a row is one instruction for each
// register of columns.
func tiles512(c *build.Context, name string, multiply func(x, b, acc reg.VecVirtual), add adder) {
	for rows := 1; rows <= 14; rows++ {
		t := tile{c: c, rows: rows, vectors: 2, bytes: 64, reg: c.ZMM, step: 4 * rows, panel: panelBytes}
		t.begin(fmt.Sprintf(name, rows))
		t.loop(func(u int) {
			b := registers(c.ZMM, 2)
			for v := range b {
				c.VMOVUPS(t.b.Offset(u*panelBytes+64*v), b[v])
			}
			for r := range rows {
				x := c.ZMM()
				c.VBROADCASTSS(t.a.Offset(u*t.step+4*r), x)
				for v := range b {
					multiply(x, b[v], t.acc[r][v])
				}
			}
		})
		t.finish(add)
	}
}

// tileF32AVX2 makes tiles of 1 to 6 rows and half a panel: 16 columns.
func tileF32AVX2(c *build.Context) {
	for rows := 1; rows <= 6; rows++ {
		t := tile{c: c, rows: rows, vectors: 2, bytes: 32, reg: c.YMM, step: 4 * rows, panel: panelBytes}
		t.begin(fmt.Sprintf("tileF32x%dAVX2", rows))
		t.loop(func(u int) {
			b := registers(c.YMM, 2)
			for v := range b {
				c.VMOVUPS(t.b.Offset(u*panelBytes+32*v), b[v])
			}
			t.multiplyRow(b, u*t.step)
		})
		t.finish(c.VADDPS)
	}
}
