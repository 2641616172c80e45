package vecmath

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

// turnWideFile makes transposes of matrices of 2 and 4 byte elements with 512-bit
// registers, which read every line of the input whole: rows a power of two apart
// share a set of the first-level cache, which has fewer lines than a square.
func turnWideFile(c *build.Context) {
	for _, size := range []int{4, 2} {
		(&turnWide{c: c, size: size}).generate()
	}
}

// turnWide is the transpose for one element size, in squares of one line by one
// line.
type turnWide struct {
	c                   *build.Context
	size                int
	inStride, outStride reg.GPVirtual
}

// soonWritten is the distance of the lines of the output that are asked for while
// a square is written.
const soonWritten = 2 * lineBytes

func (t *turnWide) generate() {
	c, edge := t.c, lineBytes/t.size
	name := fmt.Sprintf("turn%dAVX512", t.size)
	target.Function(c, name, "func(dst, src *byte, dstStride, srcStride, count int)",
		fmt.Sprintf("%s transposes count squares of %d by %d elements of %d bytes that lie side by side in dst and", name, edge, edge, t.size),
		"one below the other in src.")
	load := func(param string) reg.GPVirtual {
		r := c.GP64()
		c.Load(c.Param(param), r)
		return r
	}
	dst, src, count := load("dst"), load("src"), load("count")
	t.outStride, t.inStride = load("dstStride"), load("srcStride")
	c.Label("square")
	if t.size == 4 {
		next := c.GP64()
		c.MOVQ(src, next)
		r := make([]reg.VecVirtual, edge)
		for i := range r {
			r[i] = c.ZMM()
			c.VMOVUPS(operand.Mem{Base: next}, r[i])
			c.ADDQ(t.inStride, next)
		}
		t.store(t.words32(r), dst, func(i int) int { return i })
		c.MOVQ(next, src)
	} else {
		t.halves(dst, src)
	}
	c.ADDQ(operand.I32(lineBytes), dst)
	c.DECQ(count)
	c.JNE(operand.LabelRef("square"))
	target.Return(c)
}

// halves transposes a square of words: the words of two rows interleaved are
// words of 32 bits, of the columns whose number has its third bit clear or set.
// It moves src behind the square.
func (t *turnWide) halves(dst, src reg.GPVirtual) {
	c := t.c
	next := c.GP64()
	for half, unpack := range []func(...operand.Op){c.VPUNPCKLWD, c.VPUNPCKHWD} {
		c.MOVQ(src, next)
		r := make([]reg.VecVirtual, 16)
		for i := range r {
			first := c.ZMM()
			r[i] = c.ZMM()
			c.VMOVDQU16(operand.Mem{Base: next}, first)
			c.VMOVDQU16(operand.Mem{Base: next, Index: t.inStride, Scale: 1}, r[i])
			unpack(r[i], first, r[i])
			c.LEAQ(operand.Mem{Base: next, Index: t.inStride, Scale: 2}, next)
		}
		t.store(t.words32(r), dst, func(i int) int { return i/4*8 + 4*half + i%4 })
	}
	c.MOVQ(next, src)
}

// words32 transposes 16 rows of 16 words of 32 bits.
func (t *turnWide) words32(r []reg.VecVirtual) []reg.VecVirtual {
	c := t.c
	pairs := func(r []reg.VecVirtual, distance int, low, high func(a, b, d reg.VecVirtual)) []reg.VecVirtual {
		out := make([]reg.VecVirtual, len(r))
		for i := range r {
			if i&distance != 0 {
				continue
			}
			out[i], out[i+distance] = c.ZMM(), c.ZMM()
			low(r[i], r[i+distance], out[i])
			high(r[i], r[i+distance], out[i+distance])
		}
		return out
	}
	plain := func(f func(...operand.Op)) func(a, b, d reg.VecVirtual) {
		return func(a, b, d reg.VecVirtual) { f(b, a, d) }
	}
	lanes := func(order uint8) func(a, b, d reg.VecVirtual) {
		return func(a, b, d reg.VecVirtual) { c.VSHUFF32X4(operand.U8(order), b, a, d) }
	}
	// Within lanes: register 4g+p holds elements p of every lane of rows 4g to 4g+3.
	r = pairs(r, 1, plain(c.VUNPCKLPS), plain(c.VUNPCKHPS))
	r = pairs(r, 2, plain(c.VUNPCKLPD), plain(c.VUNPCKHPD))
	order := []int{0, 2, 1, 3}
	sorted := make([]reg.VecVirtual, len(r))
	for i := range r {
		sorted[i] = r[i/4*4+order[i%4]]
	}
	// Across lanes: the even and the odd lanes of rows 4 and then 8 apart.
	sorted = pairs(sorted, 4, lanes(0b10001000), lanes(0b11011101))
	return pairs(sorted, 8, lanes(0b10001000), lanes(0b11011101))
}

// store writes registers, the i-th of which is row at(i) of the square, in the
// order of rows.
func (t *turnWide) store(r []reg.VecVirtual, dst reg.GPVirtual, at func(i int) int) {
	c := t.c
	rows := make([]reg.VecVirtual, at(len(r)-1)+1)
	for i, x := range r {
		rows[at(i)] = x
	}
	out := c.GP64()
	c.MOVQ(dst, out)
	for _, x := range rows {
		if x != nil {
			target.PREFETCHW(c, operand.Mem{Base: out, Disp: soonWritten})
			c.VMOVUPS(x, operand.Mem{Base: out})
		}
		c.ADDQ(t.outStride, out)
	}
}
