package attend

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

const (
	// digits is the number of digits of a fixed-point number, of digitBits each.
	digits, digitBits = 3, 7
	// mostFixed is the largest fixed-point number: its digits are int8.
	mostFixed = 1<<21 - 1<<15
	// pieceBytes is the part of a row of int8 that is transposed at once: words of
	// wordBytes elements.
	pieceBytes, wordBytes = 32, 4
)

// word is the type of rows of which words of four bytes are transposed.
var word = rowTypes[0]

// fixedFile makes what multiplies rows of fixed-point numbers with int8 rows.
func fixedFile(c *build.Context) {
	v := newISA(c, true)
	fix(v)
	for _, rows := range []int{1, 2, 4} {
		fixedScores(v, rows)
	}
}

// fix turns a row of f32 into fixed-point numbers in place.
func fix(v isa) {
	c, name := v.c, "fix"+v.suffix
	target.Function(c, name, "func(row *float32, width int)", name+" does Fix; width is a positive multiple of 32.")
	row, n, dst := c.GP64(), c.GP64(), c.GP64()
	c.Load(c.Param("row"), row)
	c.MOVQ(row, dst)
	c.Load(c.Param("width"), n)

	// Bits of absolute values are ordered as integers, NaN above infinity.
	at, end, abs, most := c.GP64(), c.GP64(), v.reg(), v.reg()
	v.fill(abs, math.MaxInt32)
	v.zero(most)
	c.MOVQ(row, at)
	c.LEAQ(operand.Mem{Base: row, Index: n, Scale: 4}, end)
	c.Label("most")
	x := v.reg()
	c.VPANDD(operand.Mem{Base: at}, abs, x)
	c.VPMAXUD(x, most, most)
	c.ADDQ(operand.I32(64), at)
	c.CMPQ(at, end)
	c.JNE(operand.LabelRef("most"))
	top := v.across(most, c.VPMAXUD)
	bound, factor, scale := c.XMM(), c.XMM(), v.reg()
	v.fill(scale, math.Float32bits(mostFixed))
	c.VMOVAPS(scale.AsX(), bound)
	c.VDIVSS(top, bound, factor)
	none := c.XMM() // NaN where top is not finite, else 0
	c.VSUBSS(top, top, none)
	c.VDIVSS(bound, top, top)
	c.VADDSS(none, top, top)
	c.VBROADCASTSS(factor, scale)

	sums := v.regs(digits)
	for _, s := range sums {
		v.zero(s)
	}
	c.Label("digits")
	q := v.reg()
	c.VMULPS(operand.Mem{Base: row}, scale, q)
	c.VCVTPS2DQ(q, q)
	for l := range digits {
		d := q
		if l < digits-1 {
			d = v.reg()
			c.VPSLLD(operand.U8(32-digitBits), q, d)
			c.VPSRAD(operand.U8(32-digitBits), d, d)
			c.VPSUBD(d, q, q)
			c.VPSRAD(operand.U8(digitBits), q, q)
		}
		c.VPADDD(d, sums[l], sums[l])
		bytes := c.XMM()
		c.VPMOVDB(d, bytes)
		for w := range v.lanes / wordBytes {
			c.VPEXTRD(operand.U8(w), bytes, operand.Mem{Base: dst, Disp: wordBytes * (digits*w + l)})
		}
	}
	c.ADDQ(operand.I32(64), row)
	c.ADDQ(operand.I32(digits*v.lanes), dst)
	c.CMPQ(row, end)
	c.JNE(operand.LabelRef("digits"))
	for l, s := range sums {
		sum := c.GP32()
		c.VMOVD(v.across(s, c.VPADDD), sum)
		c.SHLL(operand.U8(7), sum)
		c.NEGL(sum)
		c.MOVL(sum, operand.Mem{Base: dst, Disp: 4 * l})
	}
	c.VMOVSS(top, operand.Mem{Base: dst, Disp: 4 * digits})
	target.Return(c)
}

// fill sets the words of a register.
func (v isa) fill(x vec, bits uint32) {
	r := v.c.GP32()
	v.c.MOVL(operand.U32(bits), r)
	v.c.VPBROADCASTD(r, x)
}

// across joins the words of a 512-bit register into the first one of the result.
func (v isa) across(a vec, join func(...operand.Op)) reg.VecVirtual {
	c := v.c
	y, x := c.YMM(), c.XMM()
	c.VEXTRACTI64X4(operand.U8(1), a, y)
	join(a.AsY(), y, y)
	c.VEXTRACTI128(operand.U8(1), y, x)
	join(y.AsX(), x, x)
	for _, order := range []uint8{0x4e, 0xb1} {
		t := c.XMM()
		c.VPSHUFD(operand.U8(order), x, t)
		join(t, x, x)
	}
	return x
}

// fixedScores makes inner products of rows of fixed-point numbers with int8 rows
// of a cache, whose elements are made positive.
func fixedScores(v isa, rows int) {
	name := fmt.Sprintf("scoresFixedx%d%s", rows, v.suffix)
	f := v.begin(name, fmt.Sprintf("%s does FixedScores for %d rows of X.", name, rows))
	c := v.c
	flip := v.reg()
	v.fill(flip, 0x80808080)
	acc := make([][]vec, rows)
	for r := range acc {
		acc[r] = v.regs(digits)
	}
	f.heads(func() {
		c.MOVQ(f.get(argY), f.arg(argOut))
		f.spans("span", f.arg(argRows), func(key, n vecPointer) {
			c.MOVQ(n, f.arg(argLeft))
			c.Label("keys")
			c.MOVQ(key, f.arg(argKey))
			start := f.fixedEnd(rows)
			for r := range acc {
				for l, s := range acc[r] {
					c.VPBROADCASTD(start.at(r, 4*l), s)
				}
			}
			f.pieces(key, func() func(cols []vec, beside func()) {
				x := f.stride(f.get(argX), f.get(argXRow), rows)
				return func(cols []vec, beside func()) {
					for w, col := range cols {
						c.VPXORD(flip, col, col)
						for r := range acc {
							for l, s := range acc[r] {
								c.VPDPBUSD_BCST(x.at(r, wordBytes*(digits*w+l)), col, s)
							}
						}
						beside()
					}
					x.advance(digits * pieceBytes)
				}
			})
			f.storeSums(f.floats(acc))
			c.IMUL3Q(operand.I32(v.lanes), f.get(argStep), key)
			c.ADDQ(f.arg(argKey), key)
			c.SUBQ(operand.I32(v.lanes), f.arg(argLeft))
			c.JGT(operand.LabelRef("keys"))
		})
	})
}

// fixedEnd locates what lies behind the digits of the rows of X.
func (f frame) fixedEnd(rows int) strided {
	end, width := f.get(argX), f.get(argWidth)
	f.c.LEAQ(operand.Mem{Base: width, Index: width, Scale: 2}, width)
	f.c.ADDQ(width, end)
	return f.stride(end, f.get(argXRow), rows)
}

// floats returns the sums of the digits of each row as numbers.
func (f frame) floats(acc [][]vec) []vec {
	c, unit := f.c, f.reg()
	f.fill(unit, math.Float32bits(1<<digitBits))
	end := f.fixedEnd(len(acc))
	sums := make([]vec, len(acc))
	for r, a := range acc {
		for _, s := range a {
			c.VCVTDQ2PS(s, s)
		}
		sums[r] = a[digits-1]
		for l := digits - 2; l >= 0; l-- {
			c.VFMADD213PS(a[l], unit, sums[r])
		}
		c.VMULPS_BCST(end.at(r, 4*digits), sums[r], sums[r])
	}
	return sums
}

// pieces transposes pieces of as many rows of the cache from key on as there are
// lanes, or of those that are left. begin prepares what is done with the words of
// a piece.
func (f frame) pieces(key vecPointer, begin func() func(cols []vec, beside func())) {
	c := f.c
	count := func() reg.GPVirtual {
		n := f.get(argWidth)
		c.SHRQ(operand.U8(5), n)
		return n
	}
	f.fewOrAll(f.lanes, "some")
	do := begin()
	k := f.stride(key, f.get(argStep), f.lanes)
	n := count()
	ahead := f.fetching()
	c.Label("piece")
	words := pieceBytes / wordBytes
	fetch, near := f.spread("piece", ahead, pieceBytes*f.lanes/lineBytes, words), f.nearRows(k, f.lanes, words)
	do(f.transposed(word, func(i int) operand.Mem { return k.at(i, 0) }, nil), func() {
		fetch()
		near()
	})
	k.advance(pieceBytes)
	c.DECQ(n)
	c.JNE(operand.LabelRef("piece"))
	f.fetched(ahead)
	c.JMP(operand.LabelRef("whole"))
	c.Label("some")
	f.repeatLast(key)
	do = begin()
	at := c.GP64()
	n = count()
	c.XORQ(at, at)
	c.Label("somePiece")
	do(f.transposed(word, func(i int) operand.Mem {
		return operand.Mem{Base: f.get(argSlots + 8*i), Index: at, Scale: 1}
	}, nil), func() {})
	c.ADDQ(operand.I32(pieceBytes), at)
	c.DECQ(n)
	c.JNE(operand.LabelRef("somePiece"))
	c.Label("whole")
}
