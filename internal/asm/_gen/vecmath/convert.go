package vecmath

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

// convertFile makes conversions of element types. They do whole registers
// only: n is a multiple of 16.
func convertFile(c *build.Context) {
	nums := newPool("convert")
	both(c, nums, func(v isa) {
		for _, t := range rowTypes[1:] {
			v.conversion("widen"+t.name, "*float32", "*"+t.goType, "widens src", func(l *loop, dst, src reg.Register) {
				l.store(t.load(l, src), dst)
			})
		}
		v.conversion("narrowF16", "*uint16", "*float32", "rounds src to nearest even", func(l *loop, dst, src reg.Register) {
			v.c.VCVTPS2PH(operand.U8(0), l.load(src), l.at(dst, 2))
		})
		v.conversion("narrowBF16", "*uint16", "*float32", "rounds src to nearest even", func(l *loop, dst, src reg.Register) {
			l.storeHalves(v.bf16Bits(l.load(src)), dst)
		})
	})
	nums.write(c)
}

func (v isa) conversion(name, dstType, srcType, what string, step func(l *loop, dst, src reg.Register)) {
	target.Function(v.c, v.name(name), "func(dst "+dstType+", src "+srcType+", n int)", v.name(name)+" "+what+".")
	dst, src := v.pointer("dst"), v.pointer("src")
	l := v.begin()
	do := func() { step(l, dst, src) }
	l.turns(32/v.lanes(), do)
	l.turns(16/v.lanes(), do)
	target.Return(v.c)
}

// bf16Bits rounds to bf16, as 32-bit integers. NaN becomes quiet and keeps its
// upper bits.
func (v isa) bf16Bits(x vec) vec {
	upper := v.unsignedShiftRight(x, 16)
	odd := v.and(upper, v.nums.u32(1))
	rounded := v.unsignedShiftRight(v.addInt(v.addInt(x, v.nums.u32(0x7fff)), odd), 16)
	quiet := v.or(upper, v.nums.u32(0x40))
	d := v.reg()
	const unordered = 3
	if v.wide {
		k := v.c.K()
		v.c.VCMPPS(operand.U8(unordered), x, x, k)
		v.c.VPBLENDMD(quiet, rounded, k, d)
	} else {
		nan := v.reg()
		v.c.VCMPPS(operand.U8(unordered), x, x, nan)
		v.c.VBLENDVPS(nan, quiet, rounded, d)
	}
	return d
}

func (v isa) unsignedShiftRight(a vec, n int) vec {
	d := v.reg()
	v.c.VPSRLD(operand.U8(n), a, d)
	return d
}

// storeHalves stores the lower halves of 32-bit integers below 2^16.
func (l *loop) storeHalves(a vec, p reg.Register) {
	if l.wide {
		l.c.VPMOVDW(a, l.at(p, 2))
		return
	}
	upper := l.c.XMM()
	l.c.VEXTRACTI128(operand.U8(1), a, upper)
	l.c.VPACKUSDW(upper, a.AsX(), upper)
	l.c.VMOVDQU(upper, l.at(p, 2))
}
