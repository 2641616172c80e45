package gemm

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
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
	return wide{"AVX512", 64, c.ZMM, 14, 12}, wide{"AVX2", 32, c.YMM, 6, 4}
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
		tileF16(c, w, rows)
	}
	for rows := 1; rows <= w.mostBF16; rows++ {
		tileBF16(c, w, rows)
	}
	widen(c, "widenF16"+w.suffix, panelBytes/2, panelBytes, nil, func(src, dst operand.Mem) {
		for v := range panelBytes / w.bytes {
			x := w.reg()
			c.VCVTPH2PS(src.Offset(v*w.bytes/2), x)
			c.VMOVUPS(x, dst.Offset(v*w.bytes))
		}
	})
	var mask reg.VecVirtual
	widen(c, "widenBF16"+w.suffix, panelBytes, 2*panelBytes, func() { mask = upperHalves(c, w) }, func(src, dst operand.Mem) {
		for v := range panelBytes / w.bytes {
			lo, hi := widenPair(c, w, src.Offset(v*w.bytes), mask)
			c.VMOVUPS(lo, dst.Offset(v*w.bytes))
			c.VMOVUPS(hi, dst.Offset(panelBytes+v*w.bytes))
		}
	})
}

// tileF16 makes a tile of f32 rows and a panel of f16.
func tileF16(c *build.Context, w wide, rows int) {
	t := tile{c: c, rows: rows, vectors: 2, bytes: w.bytes, reg: w.reg, step: 4 * rows, panel: panelBytes / 2}
	t.begin(fmt.Sprintf("tileF16x%d%s", rows, w.suffix))
	t.loop(func(u int) {
		b := registers(w.reg, 2)
		for v := range b {
			c.VCVTPH2PS(t.b.Offset(u*t.panel+v*w.bytes/2), b[v])
		}
		t.multiplyRow(b, u*t.step)
	})
	t.finish(c.VADDPS)
}

// tileBF16 makes a tile of f32 rows and a panel of pairs of bf16: a step of the
// panel is two steps of the rows.
func tileBF16(c *build.Context, w wide, rows int) {
	t := tile{c: c, rows: rows, vectors: 2, bytes: w.bytes, reg: w.reg, step: 8 * rows, panel: panelBytes}
	t.begin(fmt.Sprintf("tilePairsx%d%s", rows, w.suffix))
	mask := upperHalves(c, w)
	t.loop(func(u int) {
		var lo, hi [2]reg.VecVirtual
		for v := range lo {
			lo[v], hi[v] = widenPair(c, w, t.b.Offset(u*t.panel+v*w.bytes), mask)
		}
		t.multiplyRow(lo[:], u*t.step)
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

// widen makes a loop that turns steps of a panel, from bytes each, into steps of
// f32, to bytes each. It begins with what before emits.
func widen(c *build.Context, name string, from, to int, before func(), step func(src, dst operand.Mem)) {
	target.Function(c, name, "func(steps int, dst, src *byte)", name+" turns a panel into f32; see Narrow.")
	n := c.Load(c.Param("steps"), c.GP64())
	dst := operand.Mem{Base: c.Load(c.Param("dst"), c.GP64())}
	src := operand.Mem{Base: c.Load(c.Param("src"), c.GP64())}
	if before != nil {
		before()
	}
	c.Label("step")
	step(src, dst)
	c.ADDQ(operand.U32(from), src.Base)
	c.ADDQ(operand.U32(to), dst.Base)
	c.DECQ(n)
	c.JNZ(operand.LabelRef("step"))
	target.Return(c)
}
