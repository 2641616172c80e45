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
		(&turnWide{c: c}).generate(size)
	}
}

// turnWide is the transpose for one element size, in squares of one line by one
// line.
type turnWide struct {
	c                   *build.Context
	inStride, outStride reg.GPVirtual
}

func (t *turnWide) generate(size int) {
	c, edge := t.c, lineBytes/size
	name := fmt.Sprintf("turn%dAVX512", size)
	var more []string
	if size == 2 {
		more = []string{"rest *byte", "rest has room for half a square."}
	}
	b := beginBands(c, name, edge, size, more...)
	t.inStride, t.outStride = b.inStride, b.outStride
	if size == 2 {
		rest := b.param("rest")
		b.each(func(dst, src reg.GPVirtual) { t.halves(dst, src, rest) })
	} else {
		b.each(t.words)
	}
	target.Return(c)
}

// words transposes a square of words of 32 bits. It asks for the lines of the
// output before it waits for those of the input.
func (t *turnWide) words(dst, src reg.GPVirtual) {
	c := t.c
	in, soon := c.GP64(), c.GP64()
	c.MOVQ(src, in)
	c.MOVQ(dst, soon)
	r := make([]reg.VecVirtual, lineBytes/4)
	for i := range r {
		r[i] = c.ZMM()
		c.VMOVUPS(operand.Mem{Base: in}, r[i])
		c.ADDQ(t.inStride, in)
		t.ask(soon)
	}
	t.store(t.words32(r), dst, func(i int) int { return i })
}

// ask asks for the next line of the output.
func (t *turnWide) ask(soon reg.GPVirtual) {
	target.PREFETCHW(t.c, operand.Mem{Base: soon})
	t.c.ADDQ(t.outStride, soon)
}

// halves transposes a square of words: the words of two rows interleaved are
// words of 32 bits, of the columns whose number has its third bit clear or set.
// Those of the latter wait in rest, for by then the lines of the input may be
// gone from the first-level cache.
func (t *turnWide) halves(dst, src, rest reg.GPVirtual) {
	c := t.c
	in, soon := c.GP64(), c.GP64()
	c.MOVQ(src, in)
	c.MOVQ(dst, soon)
	r := make([]reg.VecVirtual, 16)
	at := func(i int) operand.Mem { return operand.Mem{Base: rest, Disp: lineBytes * i} }
	for i := range r {
		first, second, upper := c.ZMM(), c.ZMM(), c.ZMM()
		r[i] = c.ZMM()
		c.VMOVDQU16(operand.Mem{Base: in}, first)
		c.VMOVDQU16(operand.Mem{Base: in, Index: t.inStride, Scale: 1}, second)
		c.LEAQ(operand.Mem{Base: in, Index: t.inStride, Scale: 2}, in)
		c.VPUNPCKLWD(second, first, r[i])
		c.VPUNPCKHWD(second, first, upper)
		c.VMOVDQU16(upper, at(i))
		t.ask(soon)
		t.ask(soon)
	}
	for half := range 2 {
		if half == 1 {
			for i := range r {
				r[i] = c.ZMM()
				c.VMOVDQU16(at(i), r[i])
			}
		}
		t.store(t.words32(r), dst, func(i int) int { return i/4*8 + 4*half + i%4 })
	}
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
			c.VMOVUPS(x, operand.Mem{Base: out})
		}
		c.ADDQ(t.outStride, out)
	}
}
