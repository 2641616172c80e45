package gemm

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// wide is a width of registers.
type wide struct {
	suffix string
	bytes  int
	reg    func() reg.VecVirtual
	// mostF16 and mostBF16 are the rows of the largest tiles of such panels.
	mostF16, mostBF16 int
}

func widths(c *build.Context) (avx512, avx2 wide) {
	return wide{"AVX512", 64, c.ZMM, 14, 13}, wide{"AVX2", 32, c.YMM, 6, 5}
}

// narrowAVX512 and narrowAVX2 make the loops that multiply panels of 2-byte
// elements as f32.
func narrowAVX512(c *build.Context) {
	w, _ := widths(c)
	narrow(c, w)
}

func narrowAVX2(c *build.Context) {
	_, w := widths(c)
	narrow(c, w)
}

func narrow(c *build.Context, w wide) {
	for rows := 1; rows <= w.mostF16; rows++ {
		tileF16(c, w, rows, false)
	}
	for rows := 1; rows <= w.mostBF16; rows++ {
		tileBF16(c, w, rows, false)
	}
	for rows := (w.mostF16 + 1) / 2; rows <= w.mostF16; rows++ {
		tileF16(c, w, rows, true)
	}
	for rows := (w.mostBF16 + 1) / 2; rows <= w.mostBF16; rows++ {
		tileBF16(c, w, rows, true)
	}
}

// narrowTile makes the frame of a tile of f32 rows, step bytes a step for all of
// them, and a panel of 2-byte elements.
func narrowTile(c *build.Context, w wide, name string, rows, step, panel int, widens bool) tile {
	t := tile{c: c, rows: rows, vectors: 2, bytes: w.bytes, reg: w.reg, step: step, panel: panel, widens: widens}
	kind := "tile"
	if widens {
		kind = "widening"
	}
	t.begin(fmt.Sprintf("%s%sx%d%s", kind, name, rows, w.suffix))
	return t
}

// tileF16 makes a tile of f32 rows and a panel of f16.
func tileF16(c *build.Context, w wide, rows int, widens bool) {
	t := narrowTile(c, w, "F16", rows, 4*rows, panelBytes/2, widens)
	t.loop(func(u int) {
		b := registers(w.reg, 2)
		for v := range b {
			c.VCVTPH2PS(t.b.Offset(u*t.panel+v*w.bytes/2), b[v])
		}
		t.keep(b, u, 0)
		t.multiplyRow(b, u*t.step)
	})
	t.finish(c.VADDPS)
}

// tileBF16 makes a tile of f32 rows and a panel of pairs of bf16: a step of the
// panel is two steps of the rows.
func tileBF16(c *build.Context, w wide, rows int, widens bool) {
	t := narrowTile(c, w, "Pairs", rows, 8*rows, panelBytes, widens)
	mask := upperHalves(c, w)
	t.loop(func(u int) {
		var lo, hi [2]reg.VecVirtual
		for v := range lo {
			lo[v], hi[v] = widenPair(c, w, t.b.Offset(u*t.panel+v*w.bytes), mask)
		}
		t.keep(lo[:], u, 0)
		t.multiplyRow(lo[:], u*t.step)
		t.keep(hi[:], u, 1)
		t.multiplyRow(hi[:], u*t.step+4*rows)
	})
	t.finish(c.VADDPS)
}

// multiplyRow adds one step of f32 rows, at some bytes from a, times b.
func (t *tile) multiplyRow(b []reg.VecVirtual, at int) {
	for r := range t.rows {
		x := t.reg()
		t.c.VBROADCASTSS(t.a.Offset(at+4*r), x)
		for v := range b {
			t.c.VFMADD231PS(x, b[v], t.acc[r][v])
		}
	}
}

// upperHalves makes the mask of the upper halves of words.
func upperHalves(c *build.Context, w wide) reg.VecVirtual {
	word, mask := c.GP32(), w.reg()
	c.MOVL(operand.U32(0xffff0000), word)
	if w.bytes == 64 {
		c.VPBROADCASTD(word, mask)
		return mask
	}
	c.VMOVD(word, mask.AsX())
	c.VPBROADCASTD(mask.AsX(), mask)
	return mask
}

// widenPair loads words of two bf16 and makes f32 of the lower and upper ones.
func widenPair(c *build.Context, w wide, m operand.Mem, mask reg.VecVirtual) (lo, hi reg.VecVirtual) {
	lo, hi = w.reg(), w.reg()
	c.VMOVUPS(m, hi)
	c.VPSLLD(operand.U8(16), hi, lo)
	if w.bytes == 64 {
		c.VPANDD(mask, hi, hi)
	} else {
		c.VPAND(mask, hi, hi)
	}
	return lo, hi
}
