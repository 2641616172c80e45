package vecmath

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// element is the type of the elements of an array.
type element struct {
	// name is the suffix of functions.
	name string
	size uint8
}

// Element types: float32, its 16-bit types as bits, and int8.
var (
	f32  = element{"F32", 4}
	f16  = element{"F16", 2}
	bf16 = element{"BF16", 2}
	i8   = element{"I8", 1}
)

// floats lists the types that functions compute with.
var floats = []element{f32, f16, bf16}

// load reads a register of elements as float32.
func (l *loop) load(p reg.Register, e element) vec {
	d := l.reg()
	switch e {
	case f32:
		l.loadWords(p, d)
	case f16:
		l.c.VCVTPH2PS(l.loadHalves(p), d)
	case bf16:
		// bf16 is the upper half of a float32.
		l.c.VPMOVZXWD(l.loadHalves(p), d)
		return l.shiftLeft(d, 16)
	case i8:
		l.c.VPMOVSXBD(l.loadBytes(p), d)
		return l.toFloat(d)
	}
	return d
}

// store writes a register of float32 as elements of a float type, rounded to
// nearest even.
func (l *loop) store(a vec, p reg.Register, e element) {
	switch e {
	case f32:
		l.storeWords(a, p)
	case f16:
		if !l.masked {
			l.c.VCVTPS2PH(operand.U8(0), a, l.at(p, 2))
			return
		}
		h := l.half()
		l.c.VCVTPS2PH(operand.U8(0), a, h)
		l.storeHalves(h, p)
	case bf16:
		bits := l.bf16Bits(a)
		if l.wide && !l.masked {
			l.c.VPMOVDW(bits, l.at(p, 2))
			return
		}
		l.storeHalves(l.packHalves(bits), p)
	}
}

func (l *loop) loadWords(p reg.Register, d vec) {
	switch {
	case !l.masked:
		l.c.VMOVUPS(l.at(p, 4), d)
	case l.wide:
		l.c.VMOVUPS_Z(l.at(p, 4), l.opmask, d)
	default:
		l.c.VMASKMOVPS(l.at(p, 4), l.mask, d)
	}
}

func (l *loop) storeWords(a vec, p reg.Register) {
	switch {
	case !l.masked:
		l.c.VMOVUPS(a, l.at(p, 4))
	case l.wide:
		l.c.VMOVUPS(a, l.opmask, l.at(p, 4))
	default:
		l.c.VMASKMOVPS(a, l.mask, l.at(p, 4))
	}
}

// loadHalves returns as many 16-bit elements as there are lanes.
func (l *loop) loadHalves(p reg.Register) operand.Op {
	switch {
	case !l.masked:
		return l.at(p, 2)
	case l.wide:
		h := l.half()
		l.c.VMOVDQU16_Z(l.at(p, 2), l.opmask, h)
		return h
	}
	return l.gather(p, 2)
}

// loadBytes returns as many 8-bit elements as there are lanes.
func (l *loop) loadBytes(p reg.Register) operand.Op {
	switch {
	case !l.masked:
		return l.at(p, 1)
	case l.wide:
		h := l.c.XMM()
		l.c.VMOVDQU8_Z(l.at(p, 1), l.opmask, h)
		return h
	}
	return l.gather(p, 1)
}

// storeHalves writes as many 16-bit elements as there are lanes.
func (l *loop) storeHalves(h vec, p reg.Register) {
	switch {
	case !l.masked:
		l.c.VMOVDQU(h, l.at(p, 2))
	case l.wide:
		l.c.VMOVDQU16(h, l.opmask, l.at(p, 2))
	default:
		l.scatter(h, p, 2)
	}
}

// pieces lists the powers of two that make up the elements that are left,
// fewer than 8, from the last elements to the first: place is the offset of the
// piece in elements, as a mask of left.
var pieces = []struct{ count, place int }{{1, 6}, {2, 4}, {4, 0}}

// gather reads the last, fewer than 8 elements for AVX2 piece by piece, and
// zeros behind them.
func (l *loop) gather(p reg.Register, size uint8) vec {
	c := l.c
	d := c.XMM()
	c.VPXOR(d, d, d)
	for _, piece := range pieces {
		l.piece(piece.count, piece.place, func(at reg.Register) {
			from := operand.Mem{Base: p, Index: at, Scale: size}
			bytes := piece.count * int(size)
			c.VPSLLDQ(operand.U8(bytes), d, d)
			switch bytes {
			case 1:
				c.VPINSRB(operand.U8(0), from, d, d)
			case 2:
				c.VPINSRW(operand.U8(0), from, d, d)
			case 4:
				c.VPINSRD(operand.U8(0), from, d, d)
			default:
				c.VPINSRQ(operand.U8(0), from, d, d)
			}
		})
	}
	return d
}

// scatter writes what gather reads; it changes h.
func (l *loop) scatter(h vec, p reg.Register, size uint8) {
	c := l.c
	for i := range pieces {
		piece := pieces[len(pieces)-1-i]
		l.piece(piece.count, ^(2*piece.count-1)&7, func(at reg.Register) {
			to := operand.Mem{Base: p, Index: at, Scale: size}
			bytes := piece.count * int(size)
			switch bytes {
			case 1:
				c.VPEXTRB(operand.U8(0), h, to)
			case 2:
				c.VPEXTRW(operand.U8(0), h, to)
			case 4:
				c.VMOVD(h, to)
			default:
				c.VMOVQ(h, to)
			}
			c.VPSRLDQ(operand.U8(bytes), h, h)
		})
	}
}

// piece does body with the place of a piece if the elements that are left have
// one of that many elements: at is index + left&place.
func (l *loop) piece(count, place int, body func(at reg.Register)) {
	c, at, skip := l.c, l.c.GP64(), l.label("piece")
	c.TESTQ(operand.U32(count), l.left)
	c.JEQ(operand.LabelRef(skip))
	c.MOVQ(l.left, at)
	c.ANDQ(operand.U8(place), at)
	c.ADDQ(l.index, at)
	body(at)
	c.Label(skip)
}

// bf16Bits rounds to bf16, as 32-bit integers. NaN becomes quiet and keeps its
// upper bits.
func (v isa) bf16Bits(x vec) vec {
	const unordered = 3
	upper := v.unsignedShiftRight(x, 16)
	odd := v.and(upper, v.nums.u32(1))
	rounded := v.unsignedShiftRight(v.addInt(v.addInt(x, v.nums.u32(0x7fff)), odd), 16)
	quiet := v.or(upper, v.nums.u32(0x40))
	d := v.reg()
	if v.wide {
		k := v.c.K()
		v.c.VCMPPS(operand.U8(unordered), x, x, k)
		v.c.VPBLENDMD(quiet, rounded, k, d)
		return d
	}
	v.c.VCMPPS(operand.U8(unordered), x, x, d)
	v.c.VBLENDVPS(d, quiet, rounded, d)
	return d
}

// packHalves packs 32-bit integers below 2^16.
func (v isa) packHalves(a vec) vec {
	h := v.half()
	if v.wide {
		v.c.VPMOVDW(a, h)
		return h
	}
	v.c.VEXTRACTI128(operand.U8(1), a, h)
	v.c.VPACKUSDW(h, a.AsX(), h)
	return h
}

// convertFile makes conversions of element types.
func convertFile(c *build.Context) {
	nums := newPool("convert")
	writeTailMasks(c)
	both(c, nums, func(v isa) {
		for _, e := range []element{f16, bf16, i8} {
			v.convert("widen"+e.name, "widens src", f32, e)
		}
		v.convert("narrowF16", "rounds src to nearest even", f16, f32)
		v.convert("narrowBF16", "rounds src to nearest even", bf16, f32)
	})
	nums.write(c)
}

func (v isa) convert(name, what string, to, from element) {
	v.array(name, what, signature{}, func(l *loop, p pointers) {
		l.each(arithUnroll, func() { l.store(l.load(p.src, from), p.dst, to) })
	})
}
