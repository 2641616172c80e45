package gemm

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

const transposeSignature = "func(words int, dst *byte, dstStride int, src *byte, srcStride int, rows int, flip uint32)"

// transposer is the frame of a loop that turns square blocks of words.
type transposer struct {
	c              *build.Context
	words          reg.GPVirtual
	dst, src       reg.GPVirtual
	dstStride      reg.GPVirtual
	srcStride      reg.GPVirtual
	rows, row, end reg.GPVirtual
}

func newTransposer(c *build.Context, name string, doc ...string) transposer {
	target.Function(c, name, transposeSignature, doc...)
	load := func(p string) reg.GPVirtual { return c.Load(c.Param(p), c.GP64()).(reg.GPVirtual) }
	return transposer{
		c: c, words: load("words"), dst: load("dst"), src: load("src"), dstStride: load("dstStride"),
		srcStride: load("srcStride"), rows: load("rows"), row: c.GP64(), end: c.GP64(),
	}
}

// loadRows loads a register from each row; behind the last one, that one.
func (t *transposer) loadRows(regs []reg.VecVirtual, load func(m operand.Mem, x reg.VecVirtual)) {
	c := t.c
	c.MOVQ(t.src, t.row)
	for i, x := range regs {
		load(operand.Mem{Base: t.row}, x)
		if i+1 < len(regs) {
			c.LEAQ(operand.Mem{Base: t.row, Index: t.srcStride, Scale: 1}, t.end)
			c.CMPQ(t.rows, operand.U8(i+1))
			c.CMOVQGT(t.end, t.row)
		}
	}
}

// storeSteps stores a register for each step of K.
func (t *transposer) storeSteps(regs []reg.VecVirtual, store func(m operand.Mem, x reg.VecVirtual)) {
	for _, x := range regs {
		store(operand.Mem{Base: t.dst}, x)
		t.c.ADDQ(t.dstStride, t.dst)
	}
}

// storeSome stores as many registers as there are words left.
func (t *transposer) storeSome(regs []reg.VecVirtual, store func(m operand.Mem, x reg.VecVirtual)) {
	for _, x := range regs[:len(regs)-1] {
		store(operand.Mem{Base: t.dst}, x)
		t.c.ADDQ(t.dstStride, t.dst)
		t.c.DECQ(t.words)
		t.c.JZ(operand.LabelRef("done"))
	}
}

// transposeAVX512 turns blocks of 16 rows and 16 words.
func transposeAVX512(c *build.Context) {
	t := newTransposer(c, "transposeAVX512", "transposeAVX512 turns up to 16 rows; see Transpose.")
	flip := c.ZMM()
	word := c.Load(c.Param("flip"), c.GP32())
	c.VPBROADCASTD(word, flip)
	block := func(load func(m operand.Mem, x reg.VecVirtual)) []reg.VecVirtual {
		x := registers(c.ZMM, 16)
		t.loadRows(x, load)
		for i := range x {
			c.VPXORD(flip, x[i], x[i])
		}
		return transpose16(c, x)
	}
	store := func(m operand.Mem, x reg.VecVirtual) { c.VMOVUPS(x, m) }
	c.SUBQ(operand.U8(16), t.words)
	c.JLT(operand.LabelRef("tail"))
	c.Label("block")
	t.storeSteps(block(func(m operand.Mem, x reg.VecVirtual) { c.VMOVUPS(m, x) }), store)
	c.ADDQ(operand.U8(64), t.src)
	c.SUBQ(operand.U8(16), t.words)
	c.JGE(operand.LabelRef("block"))
	c.Label("tail")
	c.ADDQ(operand.U8(16), t.words)
	c.JZ(operand.LabelRef("done"))
	mask, bits := c.K(), c.GP32()
	c.MOVL(operand.U32(1<<16-1), bits)
	c.BZHIL(t.words.As32(), bits, bits)
	c.KMOVW(bits, mask)
	t.storeSome(block(func(m operand.Mem, x reg.VecVirtual) { c.VMOVUPS_Z(m, mask, x) }), store)
	c.Label("done")
	target.Return(c)
}

func registers(get func() reg.VecVirtual, n int) []reg.VecVirtual {
	x := make([]reg.VecVirtual, n)
	for i := range x {
		x[i] = get()
	}
	return x
}

// transpose16 turns 16 registers of 16 words: pairs of rows, then pairs of
// pairs within 128-bit lanes, then the lanes in two steps.
func transpose16(c *build.Context, x []reg.VecVirtual) []reg.VecVirtual {
	y := registers(c.ZMM, 16)
	for i := 0; i < 16; i += 2 {
		c.VUNPCKLPS(x[i+1], x[i], y[i])
		c.VUNPCKHPS(x[i+1], x[i], y[i+1])
	}
	// z[i+j] has word j of each lane of the rows i to i+3.
	z := registers(c.ZMM, 16)
	for i := 0; i < 16; i += 4 {
		c.VUNPCKLPD(y[i+2], y[i], z[i])
		c.VUNPCKHPD(y[i+2], y[i], z[i+1])
		c.VUNPCKLPD(y[i+3], y[i+1], z[i+2])
		c.VUNPCKHPD(y[i+3], y[i+1], z[i+3])
	}
	out := registers(c.ZMM, 16)
	for j := range 4 {
		lo, hi := registers(c.ZMM, 2), registers(c.ZMM, 2)
		for h := range 2 { // lanes 0 and 2, then 1 and 3, of the halves of the rows
			imm := operand.U8([2]uint8{0x88, 0xdd}[h])
			c.VSHUFF32X4(imm, z[4+j], z[j], lo[h])
			c.VSHUFF32X4(imm, z[12+j], z[8+j], hi[h])
		}
		for lane := range 4 {
			imm := operand.U8([2]uint8{0x88, 0xdd}[lane/2])
			c.VSHUFF32X4(imm, hi[lane%2], lo[lane%2], out[4*lane+j])
		}
	}
	return out
}

// transposeAVX2 turns blocks of 8 rows and 8 words.
func transposeAVX2(c *build.Context) {
	t := newTransposer(c, "transposeAVX2", "transposeAVX2 turns up to 8 rows; see Transpose.")
	flip, mask := c.Load(c.Param("flip"), c.GP32()), c.YMM()
	block := func(load func(m operand.Mem, x reg.VecVirtual)) []reg.VecVirtual {
		x := registers(c.YMM, 8)
		t.loadRows(x, load)
		y := transpose8(c, x)
		f := c.YMM()
		c.VMOVD(flip, f.AsX())
		c.VPBROADCASTD(f.AsX(), f)
		for i := range y {
			c.VPXOR(f, y[i], y[i])
		}
		return y
	}
	store := func(m operand.Mem, x reg.VecVirtual) { c.VMOVUPS(x, m) }
	c.SUBQ(operand.U8(8), t.words)
	c.JLT(operand.LabelRef("tail"))
	c.Label("block")
	t.storeSteps(block(func(m operand.Mem, x reg.VecVirtual) { c.VMOVUPS(m, x) }), store)
	c.ADDQ(operand.U8(32), t.src)
	c.SUBQ(operand.U8(8), t.words)
	c.JGE(operand.LabelRef("block"))
	c.Label("tail")
	c.ADDQ(operand.U8(8), t.words)
	c.JZ(operand.LabelRef("done"))
	left := c.XMM()
	c.VMOVD(t.words.As32(), left)
	c.VPBROADCASTD(left, mask)
	c.VPCMPGTD(wordNumbers(c, "transposeLanes"), mask, mask)
	t.storeSome(block(func(m operand.Mem, x reg.VecVirtual) { c.VMASKMOVPS(m, mask, x) }), store)
	c.Label("done")
	target.Return(c)
}

// wordNumbers is a table of the numbers 0 to 7.
func wordNumbers(c *build.Context, name string) operand.Mem {
	table := c.StaticGlobal(name)
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 8 {
		c.AppendDatum(operand.U32(i))
	}
	return table
}

// transpose8 turns 8 registers of 8 words.
func transpose8(c *build.Context, x []reg.VecVirtual) []reg.VecVirtual {
	y := registers(c.YMM, 8)
	for i := 0; i < 8; i += 2 {
		c.VUNPCKLPS(x[i+1], x[i], y[i])
		c.VUNPCKHPS(x[i+1], x[i], y[i+1])
	}
	z := registers(c.YMM, 8)
	for i := 0; i < 8; i += 4 {
		c.VUNPCKLPD(y[i+2], y[i], z[i])
		c.VUNPCKHPD(y[i+2], y[i], z[i+1])
		c.VUNPCKLPD(y[i+3], y[i+1], z[i+2])
		c.VUNPCKHPD(y[i+3], y[i+1], z[i+3])
	}
	out := registers(c.YMM, 8)
	for j := range 4 {
		c.VPERM2F128(operand.U8(0x20), z[4+j], z[j], out[j])
		c.VPERM2F128(operand.U8(0x31), z[4+j], z[j], out[4+j])
	}
	return out
}
