package vecmath

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

// softmax makes the softmax of rows: the largest element, exponentials with
// their sum, and the product with its reciprocal.
func (v isa) softmax(e element) {
	c, name := v.c, v.name("softmax"+e.name)
	v.function(name, "func(dst, src *byte, exps *float32, n, count, step int)",
		name+" writes the softmax of count rows of n elements that follow each other. exps has room for a row,",
		"or is dst, and moves by step bytes from row to row. A row of -Inf gives zeros.")
	s := softmax{isa: v, e: e, dst: v.pointer("dst"), src: v.pointer("src"), exps: v.pointer("exps"), n: v.pointer("n"), soonIn: c.GP64(), soonOut: c.GP64()}
	count, bytes := v.pointer("count"), c.GP64()
	c.MOVQ(s.n, bytes)
	if shift := e.size / 2; shift > 0 {
		c.SHLQ(operand.U8(shift), bytes)
	}
	c.Label("row")
	c.LEAQ(operand.Mem{Base: s.src, Index: bytes, Scale: 1}, s.soonIn)
	c.MOVQ(s.dst, s.soonOut)
	s.largest()
	s.exponentials()
	s.shares()
	c.ADDQ(bytes, s.dst)
	c.ADDQ(bytes, s.src)
	step, err := c.Param("step").Resolve()
	if err != nil {
		panic(err)
	}
	c.ADDQ(step.Addr, s.exps)
	c.DECQ(count)
	c.JNE(operand.LabelRef("row"))
	target.Return(c)
}

// softmax is the row that a function is at.
type softmax struct {
	isa
	e                 element
	dst, src, exps, n gp
	// soonIn and soonOut are where lines are asked for next.
	soonIn, soonOut gp
	// top is the largest element, share 1 over the sum of the exponentials.
	top, share vec
}

// Passes over a row.
const (
	passLargest = iota
	passExponentials
	passShares
)

// ahead says for how many of four lines of a pass a line of the next row's input
// is asked for, and of this row's output, by type: all passes together ask for
// each line once, and for the more the longer they compute.
var ahead = map[element][3]struct{ in, out int }{
	f32:  {{0, 1}, {3, 3}, {1, 0}},
	f16:  {{0, 0}, {2, 4}, {2, 0}},
	bf16: {{0, 0}, {2, 4}, {2, 0}},
}

// asking returns what asks for lines in a turn of n elements of a pass.
func (s *softmax) asking(pass int) func(n int) {
	return func(n int) {
		lines, share := n*int(s.e.size)/lineBytes, ahead[s.e][pass]
		in, out := lines*share.in/4, lines*share.out/4
		for i := range in {
			s.c.PREFETCHT1(operand.Mem{Base: s.soonIn, Disp: i * lineBytes})
		}
		for i := range out {
			target.PREFETCHW(s.c, operand.Mem{Base: s.soonOut, Disp: i * lineBytes})
		}
		if in > 0 {
			s.c.ADDQ(operand.I32(in*lineBytes), s.soonIn)
		}
		if out > 0 {
			s.c.ADDQ(operand.I32(out*lineBytes), s.soonOut)
		}
	}
}

// lowest is below all finite elements but the smallest, and stands for a largest
// element of -Inf, so that -Inf less it is -Inf.
func (s *softmax) lowest() num {
	if s.e == f16 {
		return s.nums.f32(-1 << 17)
	}
	return s.nums.f32(-math.MaxFloat32)
}

// largest finds the largest element, or lowest where there is none. A NaN may
// become the largest.
func (s *softmax) largest() {
	if s.e != f32 && s.wide {
		s.top = s.largestWord()
		return
	}
	c := s.c
	first := s.set(s.lowest())
	acc := make([]vec, 4)
	for i := range acc {
		acc[i] = s.copy(first)
	}
	l := s.walk(s.n)
	l.ask = s.asking(passLargest)
	l.fold(acc, first, c.VMAXPS, func() vec { return l.load(s.src, s.e) })
	s.top = s.reg()
	c.VBROADCASTSS(s.joined(acc, c.VMAXPS).AsX(), s.top)
}

// largestWord is largest for 16-bit numbers, compared as words: as signed words
// positive ones are in order, and as unsigned words negative ones in reverse.
func (s *softmax) largestWord() vec {
	const words = 32
	c, n, at := s.c, s.c.GP64(), s.c.GP64()
	c.MOVQ(s.n, n)
	c.MOVQ(s.src, at)
	signed, unsigned := [2]vec{}, [2]vec{}
	for i := range signed {
		signed[i], unsigned[i] = s.set(s.nums.u32(0x80008000)), s.set(s.nums.u32(math.MaxUint32))
	}
	take := func(i int, x operand.Op) {
		c.VPMAXSW(x, signed[i], signed[i])
		c.VPMINUW(x, unsigned[i], unsigned[i])
	}
	for _, turn := range []struct {
		name string
		regs int
	}{{"pairs", 2}, {"single", 1}} {
		c.SUBQ(operand.I32(turn.regs*words), n)
		c.JLT(operand.LabelRef(turn.name + "End"))
		c.Label(turn.name)
		if turn.regs > 1 {
			s.asking(passLargest)(turn.regs * words)
		}
		for i := range turn.regs {
			take(i, s.copy(operand.Mem{Base: at, Disp: 64 * i}))
		}
		c.ADDQ(operand.I32(64*turn.regs), at)
		c.SUBQ(operand.I32(turn.regs*words), n)
		c.JGE(operand.LabelRef(turn.name))
		c.Label(turn.name + "End")
		c.ADDQ(operand.I32(turn.regs*words), n)
	}
	c.TESTQ(n, n)
	c.JEQ(operand.LabelRef("words"))
	bits, mask, x := c.GP64(), c.K(), s.copy(signed[0])
	c.MOVQ(n, reg.RCX)
	c.MOVQ(operand.I32(1), bits)
	c.SHLQ(reg.CL, bits)
	c.DECQ(bits)
	c.KMOVD(bits.As32(), mask)
	c.VMOVDQU16(operand.Mem{Base: at}, mask, x)
	c.VPMAXSW(x, signed[0], signed[0])
	c.VPMINUW(x, unsigned[0], mask, unsigned[0])
	c.Label("words")
	c.VPMAXSW(signed[1], signed[0], signed[0])
	c.VPMINUW(unsigned[1], unsigned[0], unsigned[0])
	// The complement of all but the sign puts signed words in the reverse order of
	// unsigned ones.
	return s.wordTop(s.leastWord(s.xor(signed[0], s.nums.u32(0x7fff7fff))), s.leastWord(unsigned[0]))
}

// leastWord returns the smallest of 32 unsigned words.
func (s *softmax) leastWord(x vec) gp {
	c, y, z, r := s.c, s.c.YMM(), s.c.XMM(), s.c.GP64()
	c.VEXTRACTI64X4(operand.U8(1), x, y)
	c.VPMINUW(x.AsY(), y, y)
	c.VEXTRACTI128(operand.U8(1), y, z)
	c.VPMINUW(y.AsX(), z, z)
	c.VPHMINPOSUW(z, z)
	c.VMOVD(z, r.As32())
	c.MOVWLZX(r.As16(), r.As32())
	return r
}

// wordTop fills a register with the largest element, which is the complement of
// positive in the lower 15 bits unless that has its highest bit set; then all
// elements are negative and it is negative.
func (s *softmax) wordTop(positive, negative gp) vec {
	c, x := s.c, s.c.XMM()
	c.XORL(operand.U32(0x7fff), positive.As32())
	c.TESTL(operand.U32(0x8000), positive.As32())
	c.CMOVLNE(negative.As32(), positive.As32())
	if s.e == bf16 {
		c.SHLL(operand.U8(16), positive.As32())
		c.VMOVD(positive.As32(), x)
	} else {
		c.VMOVD(positive.As32(), x)
		c.VCVTPH2PS(x, x)
	}
	low := c.XMM()
	c.VMOVSS(s.lowest().Mem, low)
	c.VMAXSS(x, low, x)
	top := s.reg()
	c.VBROADCASTSS(x, top)
	return top
}

// exponentials writes e^(src-top) to exps and takes the reciprocal of the sum.
func (s *softmax) exponentials() {
	l := s.walk(s.n)
	l.ask = s.asking(passExponentials)
	var sum vec
	switch s.e {
	case bf16:
		sum = s.pairExponentials(l)
	case f16:
		sum = s.halfExponentials(l)
	default:
		sum = s.longExponentials(l)
	}
	s.share = s.reciprocal(sum)
}

// longExponentials is exponentials for float32. The sums of sumStep elements are
// added in float64.
func (s *softmax) longExponentials(l *loop) vec {
	c, rest, total, wide := s.c, s.c.GP64(), s.c.XMM(), s.c.XMM()
	c.VXORPD(total, total, total)
	c.MOVQ(l.left, rest)
	c.Label("part")
	c.MOVQ(operand.I32(sumStep), l.left)
	c.CMPQ(rest, l.left)
	c.CMOVQLT(rest, l.left)
	c.SUBQ(l.left, rest)
	acc := s.zeros(sumLanes / s.lanes())
	l.sum(acc, s.sumChains(f32), func() vec {
		y := s.exp2(s.mul(s.sub(l.load(s.src, f32), s.top), s.nums.f32(math.Log2E)), f32)
		l.store(y, s.exps, f32)
		return y
	})
	sum := s.joined(acc, c.VADDPS).AsX()
	c.VXORPD(wide, wide, wide)
	c.VCVTSS2SD(sum, wide, wide)
	c.VADDSD(wide, total, total)
	c.TESTQ(rest, rest)
	c.JNE(operand.LabelRef("part"))
	c.VCVTSD2SS(total, total, total)
	return total
}

// halfExponentials is exponentials for f16.
func (s *softmax) halfExponentials(l *loop) vec {
	acc, factor := s.zeros(4), s.set(s.nums.f32(math.Log2E))
	offset := s.mul(s.top, s.nums.f32(-math.Log2E))
	l.sum(acc, s.sumChains(f16), func() vec {
		z := l.load(s.src, f16)
		s.mulAdd(z, factor, offset)
		y := s.exp2(z, f16)
		l.store(y, s.exps, f32)
		return y
	})
	return s.joined(acc, s.c.VADDPS)
}

// pairExponentials is exponentials for bf16: a register's even elements lie
// before its odd ones in exps, but for what is left at the end of a row.
func (s *softmax) pairExponentials(l *loop) vec {
	acc := s.zeros(4)
	exp := func(x vec) vec { return s.exp2(s.mul(s.sub(x, s.top), s.nums.f32(math.Log2E)), bf16) }
	pairs := func(regs int) {
		l.once(2*regs, func() {
			l.askAhead(2 * regs * l.lanes())
			target.Interleave(l.c, 2*regs, func(u int) {
				l.off, l.part = u/2*2*l.lanes(), evens+part(u%2)
				y := exp(l.load(s.src, bf16))
				l.off, l.part = u*l.lanes(), whole
				l.c.VMOVUPS(y, l.at(s.exps, 4))
				l.c.VADDPS(y, acc[u%len(acc)], acc[u%len(acc)])
			})
			l.off = 0
		})
	}
	if s.wide {
		pairs(3)
	}
	pairs(1)
	l.sum(acc[:2], 1, func() vec {
		y := exp(l.load(s.src, bf16))
		l.store(y, s.exps, f32)
		return y
	})
	return s.joined(acc, s.c.VADDPS)
}

// shares writes exps times share.
func (s *softmax) shares() {
	l := s.walk(s.n)
	l.ask = s.asking(passShares)
	if s.e != bf16 {
		l.each(s.light(s.e), func() { l.store(s.mul(l.load(s.exps, f32), s.share), s.dst, s.e) })
		return
	}
	l.eachPair(s.light(f32)/2, s.roundAway, func() {
		if l.part == whole {
			l.store(s.mul(l.load(s.exps, f32), s.share), s.dst, bf16)
			return
		}
		at := l.at(s.exps, 4)
		if l.part == odds {
			at.Disp += s.bytes()
		}
		l.store(s.mul(s.copy(at), s.share), s.dst, bf16)
	})
}

// reciprocal fills a register with 1 over lane 0 of x, and with 0 for 0.
func (v isa) reciprocal(x vec) vec {
	const equal = 0
	c, zero, one, same := v.c, v.c.XMM(), v.c.XMM(), v.c.XMM()
	c.VXORPS(zero, zero, zero)
	c.VMOVSS(v.nums.f32(1).Mem, one)
	c.VCMPSS(operand.U8(equal), zero, x.AsX(), same)
	c.VDIVSS(x.AsX(), one, one)
	c.VANDNPS(one, same, one)
	r := v.reg()
	c.VBROADCASTSS(one, r)
	return r
}
