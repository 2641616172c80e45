package vecmath

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

// lineBytes is the size of a cache line.
const lineBytes = 64

// turnFile makes transposes of matrices of 1, 2, 4 and 8 byte elements with
// 256-bit registers.
func turnFile(c *build.Context) {
	for _, t := range []turn{
		{c: c, size: 8, rows: 4, cols: 4},
		{c: c, size: 4, rows: 8, cols: 8},
		{c: c, size: 2, rows: 8, cols: 16},
		{c: c, size: 1, rows: 8, cols: 32},
	} {
		t.generate()
	}
}

// turn makes the transpose for one element size. It goes through squares of one
// line by one line, so that lines are read and written whole while they are in
// the first-level cache, whatever the strides; a square is made of blocks that
// registers hold: rows by cols of the output.
type turn struct {
	c                *build.Context
	size, rows, cols int
	// in and out are walked from block to block; the others are distances.
	in, out             reg.GPVirtual
	inStride, outStride reg.GPVirtual
}

func (t *turn) generate() {
	c, edge := t.c, lineBytes/t.size
	b := beginBands(c, fmt.Sprintf("turn%dAVX2", t.size), edge, t.size)
	t.outStride, t.inStride = b.outStride, b.inStride
	t.in, t.out = c.GP64(), c.GP64()
	b.each(func(dst, src reg.GPVirtual) {
		for row := 0; row < edge; row += t.rows {
			c.LEAQ(operand.Mem{Base: src, Disp: row * t.size}, t.in)
			for col := 0; col < edge; col += t.cols {
				c.LEAQ(operand.Mem{Base: dst, Disp: col * t.size}, t.out)
				t.skip(row)
				t.block()
			}
		}
	})
	target.Return(c)
}

// skip moves out by rows.
func (t *turn) skip(rows int) {
	if rows == 0 {
		return
	}
	by := t.c.GP64()
	t.c.IMUL3Q(operand.I32(rows), t.outStride, by)
	t.c.ADDQ(by, t.out)
}

// block transposes a block and moves in behind its rows.
func (t *turn) block() {
	switch t.size {
	case 8:
		t.words64()
	case 4:
		t.words32()
	case 2:
		t.store(t.words16(t.pairsOfRows(16)))
	default:
		t.store(t.words16(t.bytes()))
	}
}

// row gives do the place of a row of the input and moves in behind it.
func (t *turn) row(do func(m operand.Mem)) {
	do(operand.Mem{Base: t.in})
	t.c.ADDQ(t.inStride, t.in)
}

// store writes registers to rows of the output.
func (t *turn) store(rows []reg.VecVirtual) {
	for _, r := range rows {
		t.c.VMOVUPS(r, operand.Mem{Base: t.out})
		t.c.ADDQ(t.outStride, t.out)
	}
}

// pairsOfRows reads n rows of 16 bytes: register i holds row i and row i+n/2.
func (t *turn) pairsOfRows(n int) []reg.VecVirtual {
	out := make([]reg.VecVirtual, n/2)
	for i := range n {
		t.row(func(m operand.Mem) {
			if i < n/2 {
				out[i] = t.c.YMM()
				t.c.VBROADCASTI128(m, out[i])
			} else {
				t.c.VINSERTI128(operand.U8(1), m, out[i-n/2], out[i-n/2])
			}
		})
	}
	return out
}

// mix applies the two halves of an interleaving to neighbours at a distance.
func (t *turn) mix(low, high func(...operand.Op), r []reg.VecVirtual, distance int) []reg.VecVirtual {
	out := make([]reg.VecVirtual, len(r))
	k := 0
	for i := range r {
		if i&distance != 0 {
			continue
		}
		out[k], out[k+1] = t.c.YMM(), t.c.YMM()
		low(r[i+distance], r[i], out[k])
		high(r[i+distance], r[i], out[k+1])
		k += 2
	}
	return out
}

// words16 transposes squares of 8 by 8 words in both halves of 8 registers:
// every step interleaves registers that are 4 apart.
func (t *turn) words16(r []reg.VecVirtual) []reg.VecVirtual {
	for range 3 {
		r = t.mix(t.c.VPUNPCKLWD, t.c.VPUNPCKHWD, r, 4)
	}
	return r
}

// bytes reads 32 rows of 8 bytes: register i holds rows 2i and 2i+1 interleaved
// in one half and rows 2i+16 and 2i+17 in the other, so that words16 gives rows
// of bytes.
func (t *turn) bytes() []reg.VecVirtual {
	c := t.c
	pair := func(to reg.Register) {
		first, second := c.XMM(), c.XMM()
		t.row(func(m operand.Mem) { c.VMOVQ(m, first) })
		t.row(func(m operand.Mem) { c.VMOVQ(m, second) })
		c.VPUNPCKLBW(second, first, to)
	}
	out := make([]reg.VecVirtual, 8)
	for i := range out {
		out[i] = c.YMM()
		c.VPXOR(out[i], out[i], out[i])
		pair(out[i].AsX())
	}
	for _, r := range out {
		upper := c.XMM()
		pair(upper)
		c.VINSERTI128(operand.U8(1), upper, r, r)
	}
	return out
}

// words32 transposes 8 rows of 8 words.
func (t *turn) words32() {
	c := t.c
	var half [2][4]reg.VecVirtual
	for i := range 8 {
		t.row(func(m operand.Mem) {
			for k := range half {
				part := operand.Mem{Base: m.Base, Disp: 16 * k}
				if i < 4 {
					half[k][i] = c.YMM()
					c.VBROADCASTF128(part, half[k][i])
				} else {
					c.VINSERTF128(operand.U8(1), part, half[k][i-4], half[k][i-4])
				}
			}
		})
	}
	for _, h := range half {
		r := t.mix(c.VUNPCKLPS, c.VUNPCKHPS, h[:], 2)
		t.store(t.mix(c.VUNPCKLPS, c.VUNPCKHPS, r, 2))
	}
}

// words64 transposes 4 rows of 4 words.
func (t *turn) words64() {
	c := t.c
	var half [2][2]reg.VecVirtual
	for i := range 4 {
		t.row(func(m operand.Mem) {
			for k := range half {
				part := operand.Mem{Base: m.Base, Disp: 16 * k}
				if i < 2 {
					half[k][i] = c.YMM()
					c.VBROADCASTF128(part, half[k][i])
				} else {
					c.VINSERTF128(operand.U8(1), part, half[k][i-2], half[k][i-2])
				}
			}
		})
	}
	for _, h := range half {
		t.store(t.mix(c.VUNPCKLPD, c.VUNPCKHPD, h[:], 1))
	}
}
