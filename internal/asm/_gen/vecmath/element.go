package vecmath

import (
	"math"

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
	if l.part != whole {
		return l.loadPart(p)
	}
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
	if l.part != whole {
		l.storePart(a, p)
		return
	}
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
		if l.rounds != nil {
			l.storeHalves(l.uppers(l.rounds(a)), p)
		} else {
			l.storeHalves(l.narrowBF16(a), p)
		}
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

// narrowBF16 rounds to bf16. NaN keeps its upper bits; it must be quiet or have
// no others.
func (v isa) narrowBF16(x vec) vec {
	const ordered, unordered = 7, 3
	c := v.c
	if v.wide {
		number, odd, d := c.K(), c.K(), v.copy(x)
		c.VCMPPS(operand.U8(ordered), x, x, number)
		c.VPTESTMD_BCST(v.nums.u32(1<<16).Mem, x, number, odd)
		c.VPADDD_BCST(v.nums.u32(0x7fff).Mem, d, number, d)
		c.VPSUBD_BCST(v.nums.u32(math.MaxUint32).Mem, d, odd, d)
		return v.uppers(d)
	}
	nan, d := v.reg(), v.reg()
	up := v.addInt(v.and(v.unsignedShiftRight(x, 16), v.nums.u32(1)), v.nums.u32(0x7fff))
	c.VCMPPS(operand.U8(unordered), x, x, nan)
	c.VPANDN(up, nan, d)
	return v.uppers(v.addInt(x, d))
}

// uppers returns the upper halves of words.
func (v isa) uppers(d vec) vec {
	c := v.c
	if v.wide {
		index := c.ZMM()
		c.VMOVUPS(operand.NewDataAddr(operand.NewStaticSymbol(oddName), 0), index.AsY())
		c.VPERMW(d, index, d)
		return d.AsY().(vec)
	}
	h := v.half()
	d = v.unsignedShiftRight(d, 16)
	c.VEXTRACTI128(operand.U8(1), d, h)
	c.VPACKUSDW(h, d.AsX(), h)
	return h
}

// convertFile makes conversions of element types.
func convertFile(c *build.Context) {
	nums := newPool("convert")
	writeTables(c)
	both(c, nums, func(v isa) {
		for _, e := range []element{f16, bf16, i8} {
			v.convert("widen"+e.name, "widens src", f32, e)
		}
		v.convert("narrowF16", "rounds src to nearest even", f16, f32)
		v.convertQuiet("narrowBF16", "rounds src to nearest even", bf16, f32)
	})
	nums.write(c)
}

func (v isa) convert(name, what string, to, from element) {
	v.array(name, what, signature{}, func(l *loop, p pointers) {
		l.streams = []stream{{p.src, from.size, false, aheadBytes}, {p.dst, to.size, true, aheadBytes}}
		l.each(v.light(to), func() { l.store(l.load(p.src, from), p.dst, to) })
	})
}

// convertQuiet is convert with a product that makes NaN quiet.
func (v isa) convertQuiet(name, what string, to, from element) {
	v.array(name, what, signature{}, func(l *loop, p pointers) {
		one := v.set(v.nums.f32(1))
		l.each(v.light(to), func() { l.store(v.mul(l.load(p.src, from), one), p.dst, to) })
	})
}
