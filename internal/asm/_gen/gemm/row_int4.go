package gemm

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

// rowInt4AVX512 makes the loops that multiply one row with panels of int4, which
// lie one behind the other: one reads weights as they stream by, the other orders
// the row for it.
func rowInt4AVX512(c *build.Context) {
	rowInt4(c)
	orderInt4(c)
}

// int4Row is the frame of rowInt4.
type int4Row struct {
	c             *build.Context
	x, less, w    operand.Mem
	mask, flip    reg.VecVirtual
	scaleBytes    reg.GPVirtual
	half          reg.Register
	octets, octet reg.GPVirtual
	sums          []reg.VecVirtual // of a chunk
	lows, highs   [][]reg.VecVirtual
}

func rowInt4(c *build.Context) {
	target.Function(c, "rowInt4AVX512", "func(panels, groups, chunk, octets int, x *byte, less *int32, factors *float32, w *byte, c *float32, half bool)",
		"rowInt4AVX512 multiplies a row with panels of int4; see Int4Row.")
	mem := func(p string) operand.Mem { return operand.Mem{Base: c.Load(c.Param(p), c.GP64())} }
	t := int4Row{c: c, w: mem("w"), scaleBytes: c.GP64(), half: c.Load(c.Param("half"), c.GP8()), octets: c.GP64(), octet: c.GP64()}
	t.x, t.less = operand.Mem{Base: c.GP64()}, operand.Mem{Base: c.GP64()}
	out, factor := mem("c"), operand.Mem{Base: c.GP64()}
	t.constants()
	left, group := c.GP64(), c.GP64()
	chunk := c.Load(c.Param("chunk"), c.GP64())
	totals := registers(c.ZMM, 2)
	t.sums = registers(c.ZMM, 2)
	for range totals {
		t.lows, t.highs = append(t.lows, registers(c.ZMM, 2)), append(t.highs, registers(c.ZMM, 2))
	}
	panels := c.Load(c.Param("panels"), c.GP64())
	c.Label("panel")
	c.Load(c.Param("x"), t.x.Base.(reg.GPVirtual))
	c.Load(c.Param("less"), t.less.Base.(reg.GPVirtual))
	c.Load(c.Param("factors"), factor.Base.(reg.GPVirtual))
	c.Load(c.Param("groups"), left)
	wide512, _ := widths(c)
	negativeZero(c, wide512, totals)
	c.Label("chunk")
	for _, s := range t.sums {
		c.VPXORD(s, s, s)
	}
	c.MOVQ(chunk, group)
	c.CMPQ(left, group)
	c.CMOVQLT(left, group)
	c.SUBQ(group, left)
	c.Label("group")
	t.oneGroup()
	c.DECQ(group)
	c.JNZ(operand.LabelRef("group"))
	f := c.ZMM()
	c.VBROADCASTSS(factor, f)
	c.ADDQ(operand.U8(4), factor.Base)
	for v, s := range t.sums {
		c.VFMADD231PS(f, s, totals[v])
	}
	c.TESTQ(left, left)
	c.JNZ(operand.LabelRef("chunk"))
	for v, s := range totals {
		c.VMOVUPS(s, out.Offset(64*v))
	}
	c.ADDQ(operand.U32(128), out.Base)
	c.DECQ(panels)
	c.JNZ(operand.LabelRef("panel"))
	target.Return(c)
}

// constants makes the masks and the size of the scales of a group.
func (t *int4Row) constants() {
	c := t.c
	word := c.GP32()
	t.mask, t.flip = c.ZMM(), c.ZMM()
	c.MOVL(operand.U32(0x0f0f0f0f), word)
	c.VPBROADCASTD(word, t.mask)
	c.MOVL(operand.U32(0x08080808), word)
	c.VPBROADCASTD(word, t.flip)
	c.Load(c.Param("octets"), t.octets)
	c.MOVQ(operand.U32(128), t.scaleBytes)
	c.TESTB(t.half, t.half)
	c.JZ(operand.LabelRef("sized"))
	c.MOVQ(operand.U32(64), t.scaleBytes)
	c.Label("sized")
}

// oneGroup adds a group: elements of the weights plus 8, unsigned, times the lower
// and the upper bytes of the row apart.
func (t *int4Row) oneGroup() {
	c := t.c
	for v := range t.lows {
		c.VPBROADCASTD(t.less, t.lows[v][0])
		for _, x := range []reg.VecVirtual{t.lows[v][1], t.highs[v][0], t.highs[v][1]} {
			c.VPXORD(x, x, x)
		}
	}
	c.ADDQ(operand.U8(4), t.less.Base)
	scales := operand.Mem{Base: c.GP64()}
	c.MOVQ(t.w.Base, scales.Base)
	c.PREFETCHT1(scales.Offset(streamFar)) // octets fetch a line less than there are
	c.ADDQ(t.scaleBytes, t.w.Base)
	c.MOVQ(t.octets, t.octet)
	c.Label("octet")
	fetchStream(c, t.w, 0, octetBytes)
	for v := range t.lows {
		lower, upper := c.ZMM(), c.ZMM()
		c.VMOVDQU32(t.w.Offset(64*v), lower)
		c.VPSRLW(operand.U8(4), lower, upper)
		// (words and mask) xor flip
		c.VPTERNLOGD(operand.U8(0x6c), t.mask, t.flip, lower)
		c.VPTERNLOGD(operand.U8(0x6c), t.mask, t.flip, upper)
		for i, w := range []reg.VecVirtual{lower, upper} {
			c.VPDPBUSD_BCST(t.x.Offset(4*i), w, t.lows[v][i])
			c.VPDPBUSD_BCST(t.x.Offset(8+4*i), w, t.highs[v][i])
		}
	}
	c.ADDQ(operand.U8(16), t.x.Base)
	c.ADDQ(operand.U32(octetBytes), t.w.Base)
	c.DECQ(t.octet)
	c.JNZ(operand.LabelRef("octet"))
	t.flush(scales)
}

// flush adds the sums of a group times the scales of its columns.
func (t *int4Row) flush(scales operand.Mem) {
	c := t.c
	scale := registers(c.ZMM, 2)
	c.TESTB(t.half, t.half)
	c.JZ(operand.LabelRef("wide"))
	for v := range scale {
		c.VCVTPH2PS(scales.Offset(32*v), scale[v])
	}
	c.JMP(operand.LabelRef("scaled"))
	c.Label("wide")
	for v := range scale {
		c.VMOVUPS(scales.Offset(64*v), scale[v])
	}
	c.Label("scaled")
	for v := range scale {
		low, high := t.lows[v], t.highs[v]
		c.VPADDD(high[1], high[0], high[0])
		c.VPSLLD(operand.U8(8), high[0], high[0])
		c.VPADDD(low[1], low[0], low[0])
		c.VPADDD(high[0], low[0], low[0])
		c.VCVTDQ2PS(low[0], low[0])
		c.VFMADD231PS(low[0], scale[v], t.sums[v])
	}
}

// orderInt4 makes the loop that orders a row for rowInt4: up to four octets at a time.
func orderInt4(c *build.Context) {
	target.Function(c, "orderInt4AVX512", "func(groups, octets int, dst *byte, less *int32, x *int16)",
		"orderInt4AVX512 orders a row for an Int4Row; see Int4Order.")
	mem := func(p string) operand.Mem { return operand.Mem{Base: c.Load(c.Param(p), c.GP64())} }
	dst, less, x := mem("dst"), mem("less"), mem("x")
	groups, octets := c.Load(c.Param("groups"), c.GP64()), c.Load(c.Param("octets"), c.GP64())
	words := func(v uint32) reg.VecVirtual {
		word, to := c.GP32(), c.ZMM()
		c.MOVL(operand.U32(v), word)
		c.VPBROADCASTD(word, to)
		return to
	}
	ones, round := words(1<<16|1), words(0x80<<16|0x80)
	order := c.ZMM()
	half, low, high := c.GP64(), c.XMM(), c.XMM()
	// The lower bytes of elements 0, 4, 1, 5, 2, 6, 3 and 7, then the upper ones.
	c.MOVQ(operand.U64(0x0e060c040a020800), half)
	c.VMOVQ(half, low)
	c.MOVQ(operand.U64(0x0f070d050b030901), half)
	c.VMOVQ(half, high)
	c.VPUNPCKLQDQ(high, low, low)
	c.VSHUFI64X2(operand.U8(0), low.AsZ(), low.AsZ(), order)
	// The last turn of a group takes octets%4, or none.
	left, bits, rest := c.GP64(), c.GP32(), c.K()
	c.MOVQ(octets, left)
	c.ANDQ(operand.U8(3), left)
	c.ADDQ(left, left)
	c.MOVL(operand.U32(0xff), bits)
	c.BZHIL(left.As32(), bits, bits)
	c.KMOVW(bits, rest)
	c.SHLQ(operand.U8(3), left) // bytes
	sum := c.ZMM()
	turn := func(v reg.VecVirtual, store func(v reg.VecVirtual)) {
		t := c.ZMM()
		c.VPMADDWD(ones, v, t)
		c.VPADDD(t, sum, sum)
		// The upper byte of x is that of x + 128, the lower one being signed.
		c.VPADDW(round, v, v)
		c.VPXORD(round, v, v)
		c.VPSHUFB(order, v, v)
		store(v)
	}
	c.SHRQ(operand.U8(2), octets)
	n := c.GP64()
	c.Label("group")
	c.VPXORD(sum, sum, sum)
	c.MOVQ(octets, n)
	c.TESTQ(n, n)
	c.JZ(operand.LabelRef("rest"))
	c.Label("four")
	v := c.ZMM()
	c.VMOVDQU64(x, v)
	turn(v, func(v reg.VecVirtual) { c.VMOVDQU64(v, dst) })
	c.ADDQ(operand.U8(64), x.Base)
	c.ADDQ(operand.U8(64), dst.Base)
	c.DECQ(n)
	c.JNZ(operand.LabelRef("four"))
	c.Label("rest")
	c.TESTQ(left, left)
	c.JZ(operand.LabelRef("sums"))
	v = c.ZMM()
	c.VMOVDQU64_Z(x, rest, v)
	turn(v, func(v reg.VecVirtual) { c.VMOVDQU64(v, rest, dst) })
	c.ADDQ(left, x.Base)
	c.ADDQ(left, dst.Base)
	c.Label("sums")
	fold := c.YMM()
	c.VEXTRACTI64X4(operand.U8(1), sum, fold)
	c.VPADDD(fold, sum.AsY(), fold)
	quarter := c.XMM()
	c.VEXTRACTI128(operand.U8(1), fold, quarter)
	c.VPADDD(quarter, fold.AsX(), quarter)
	for _, order := range []uint8{0x4e, 0xb1} {
		t := c.XMM()
		c.VPSHUFD(operand.U8(order), quarter, t)
		c.VPADDD(t, quarter, quarter)
	}
	c.VPSLLD(operand.U8(3), quarter, quarter)
	zero := c.XMM()
	c.VPXOR(zero, zero, zero)
	c.VPSUBD(quarter, zero, quarter)
	c.VMOVD(quarter, less)
	c.ADDQ(operand.U8(4), less.Base)
	c.DECQ(groups)
	c.JNZ(operand.LabelRef("group"))
	target.Return(c)
}
