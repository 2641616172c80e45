package vecmath

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"

	"goatb/internal/asm/gen/target"
)

// wordsFile makes arithmetic, comparisons, logic and conversions of integers,
// with 256-bit registers, which move bytes as fast as the second-level cache
// gives them. The functions do whole groups of 32 elements.
func wordsFile(c *build.Context) {
	w := words{isa{c: c, nums: newPool("words"), labels: new(int)}}
	for i, size := range []int{1, 2, 4, 8} {
		add := []func(...operand.Op){c.VPADDB, c.VPADDW, c.VPADDD, c.VPADDQ}[i]
		sub := []func(...operand.Op){c.VPSUBB, c.VPSUBW, c.VPSUBD, c.VPSUBQ}[i]
		mul := []func(a, b vec) vec{w.mul8, w.mul16, w.mul32, w.mul64}[i]
		equal := []func(...operand.Op){c.VPCMPEQB, c.VPCMPEQW, c.VPCMPEQD, c.VPCMPEQQ}[i]
		greater := []func(...operand.Op){c.VPCMPGTB, c.VPCMPGTW, c.VPCMPGTD, c.VPCMPGTQ}[i]
		w.arithmetic("addWords", "a+b", size, w.plain(add))
		w.arithmetic("subWords", "a-b", size, w.plain(sub))
		w.arithmetic("mulWords", "a·b", size, mul)
		w.compare(fmt.Sprintf("equalWords%d", size), "a equals b", size, w.plain(equal))
		w.compare(fmt.Sprintf("greaterInt%d", 8*size), "a is greater than b", size, w.plain(greater))
		w.compare(fmt.Sprintf("greaterUint%d", 8*size), "a is greater than b, unsigned", size, w.unsigned(greater, size))
	}
	w.compare("equalFloat32", "a equals b", 4, func(a, b vec) vec { return w.compareFloats(a, b, 0) })
	w.compare("greaterFloat32", "a is greater than b", 4, func(a, b vec) vec { return w.compareFloats(a, b, 30) })
	w.logic()
	w.conversions()
	w.nums.write(c)
}

// words are functions of integers at 256 bits.
type words struct{ isa }

// plain makes a function of an instruction.
func (w words) plain(f func(...operand.Op)) func(a, b vec) vec {
	return func(a, b vec) vec {
		d := w.reg()
		f(b, a, d)
		return d
	}
}

// loop makes a function whose body does a group of 32 elements; at(p, size, i)
// is register i of the group in an array of elements of that size.
func (w words) loop(name, sig, doc string, arrays []string, body func(at func(p, size, i int) operand.Mem)) {
	c := w.c
	target.Function(c, name, sig, name+" "+doc)
	p := make([]gp, len(arrays))
	for i, a := range arrays {
		p[i] = w.pointer(a)
	}
	n, index := w.pointer("n"), c.GP64()
	c.XORQ(index, index)
	c.SUBQ(operand.I32(group), n)
	c.JLT(operand.LabelRef("done"))
	c.Label("group")
	body(func(k, size, i int) operand.Mem {
		return operand.Mem{Base: p[k], Index: index, Scale: uint8(size), Disp: 32 * i}
	})
	c.ADDQ(operand.I32(group), index)
	c.SUBQ(operand.I32(group), n)
	c.JGE(operand.LabelRef("group"))
	c.Label("done")
	target.Return(c)
}

// group is the number of elements of a turn.
const group = 32

func (w words) arithmetic(name, what string, size int, f func(a, b vec) vec) {
	name = fmt.Sprintf("%s%d", name, size)
	w.loop(name, "func(dst, a, b *byte, n int)", fmt.Sprintf("writes %s of elements of %d bytes, wrapped.", what, size),
		[]string{"dst", "a", "b"}, func(at func(p, size, i int) operand.Mem) {
			for i := range size {
				w.c.VMOVDQU(f(w.copy(at(1, size, i)), w.copy(at(2, size, i))), at(0, size, i))
			}
		})
}

func (w words) mul16(a, b vec) vec { return w.plain(w.c.VPMULLW)(a, b) }
func (w words) mul32(a, b vec) vec { return w.plain(w.c.VPMULLD)(a, b) }

// mul8 multiplies the even and the odd bytes as words.
func (w words) mul8(a, b vec) vec {
	c, low := w.c, w.nums.u32(0x00ff00ff)
	even := w.mul16(a, b)
	oddA, oddB := w.reg(), w.reg()
	c.VPSRLW(operand.U8(8), a, oddA)
	c.VPSRLW(operand.U8(8), b, oddB)
	odd := w.mul16(oddA, oddB)
	c.VPSLLW(operand.U8(8), odd, odd)
	return w.or(w.and(even, low), odd)
}

// mul64 puts the lower halves of products together from 32-bit ones.
func (w words) mul64(a, b vec) vec {
	c := w.c
	swapped, cross := w.reg(), w.reg()
	c.VPSHUFD(operand.U8(0b10110001), b, swapped)
	c.VPMULLD(swapped, a, cross) // low·high and high·low
	other := w.reg()
	c.VPSHUFD(operand.U8(0b10110001), cross, other)
	c.VPADDD(other, cross, cross)
	c.VPSLLQ(operand.U8(32), cross, cross)
	low := w.reg()
	c.VPMULUDQ(b, a, low)
	c.VPADDQ(cross, low, low)
	return low
}

// unsigned makes a comparison of unsigned numbers of a signed one.
func (w words) unsigned(f func(...operand.Op), size int) func(a, b vec) vec {
	sign := w.nums.u32([]uint32{1: 0x80808080, 2: 0x80008000, 4: 1 << 31, 8: 0}[size])
	if size == 8 {
		sign = w.nums.at(1<<63, true)
	}
	return func(a, b vec) vec { return w.plain(f)(w.xor(a, sign), w.xor(b, sign)) }
}

func (w words) compareFloats(a, b vec, predicate uint8) vec {
	d := w.reg()
	w.c.VCMPPS(operand.U8(predicate), b, a, d)
	return d
}

// compare makes a function that writes a byte of 1 or 0 for each element.
func (w words) compare(name, what string, size int, f func(a, b vec) vec) {
	w.loop(name, "func(dst, a, b *byte, n int)", "writes 1 where "+what+" and 0 elsewhere.",
		[]string{"dst", "a", "b"}, func(at func(p, size, i int) operand.Mem) {
			r := make([]vec, size)
			for i := range r {
				r[i] = f(w.copy(at(1, size, i)), w.copy(at(2, size, i)))
			}
			w.c.VMOVDQU(w.and(w.packed(r), w.nums.u32(0x01010101)), at(0, 1, 0))
		})
}

// packed packs registers of masks until they are one register of bytes.
func (w words) packed(r []vec) vec {
	c := w.c
	for len(r) > 1 {
		half := make([]vec, len(r)/2)
		for i := range half {
			d, a, b := w.reg(), r[2*i], r[2*i+1]
			switch len(r) {
			case 8: // the lower words of pairs of words
				c.VSHUFPS(operand.U8(0b10001000), b, a, d)
			case 4:
				c.VPACKSSDW(b, a, d)
			default:
				c.VPACKSSWB(b, a, d)
			}
			c.VPERMQ(operand.U8(0b11011000), d, d)
			half[i] = d
		}
		r = half
	}
	return r[0]
}

// logic makes functions of truth values: bytes that are 0 for false.
func (w words) logic() {
	c := w.c
	one := w.nums.u32(0x01010101)
	isZero := func(a vec) vec { return w.plain(c.VPCMPEQB)(a, w.zero()) }
	not := func(mask vec) vec {
		d := w.reg()
		c.VPANDN(one.Mem, mask, d)
		return d
	}
	two := func(name, what string, f func(a, b vec) vec) {
		w.loop(name, "func(dst, a, b *byte, n int)", "writes 1 where "+what+" and 0 elsewhere.",
			[]string{"dst", "a", "b"}, func(at func(p, size, i int) operand.Mem) {
				c.VMOVDQU(f(w.copy(at(1, 1, 0)), w.copy(at(2, 1, 0))), at(0, 1, 0))
			})
	}
	two("bothTrue", "neither byte is 0", func(a, b vec) vec { return not(w.or(isZero(a), isZero(b))) })
	two("eitherTrue", "a byte is not 0", func(a, b vec) vec { return not(isZero(w.or(a, b))) })
	w.loop("notTrue", "func(dst, src *byte, n int)", "writes 1 where the byte is 0 and 0 elsewhere.",
		[]string{"dst", "src"}, func(at func(p, size, i int) operand.Mem) {
			c.VMOVDQU(w.and(isZero(w.copy(at(1, 1, 0))), one), at(0, 1, 0))
		})
}

// conversions makes conversions by way of 32-bit integers.
func (w words) conversions() {
	c := w.c
	convert := func(name, what, more string, body func(at func(p, size, i int) operand.Mem)) {
		w.loop(name, "func(dst, src *byte, n int"+more+")", what, []string{"dst", "src"}, body)
	}
	for _, x := range []struct {
		name     string
		f        func(...operand.Op)
		from, to int
	}{
		{"extendInt8", c.VPMOVSXBD, 1, 4}, {"extendUint8", c.VPMOVZXBD, 1, 4},
		{"extendInt16", c.VPMOVSXWD, 2, 4}, {"extendUint16", c.VPMOVZXWD, 2, 4},
		{"extendInt32", c.VPMOVSXDQ, 4, 8}, {"extendUint32", c.VPMOVZXDQ, 4, 8},
	} {
		convert(x.name, fmt.Sprintf("extends integers to %d bytes.", x.to), "", func(at func(p, size, i int) operand.Mem) {
			for i := range x.to {
				d, from := w.reg(), at(1, x.from, 0)
				from.Disp = i * 32 / x.to * x.from
				x.f(from, d)
				c.VMOVDQU(d, at(0, x.to, i))
			}
		})
	}
	cut := func(name string, from, to int) {
		convert(name, fmt.Sprintf("cuts integers of %d bytes to %d.", from, to), "", func(at func(p, size, i int) operand.Mem) {
			for k := range to {
				r := make([]vec, from/to)
				for i := range r {
					r[i] = w.copy(at(1, from, k*len(r)+i))
				}
				c.VMOVDQU(w.cut(r, from), at(0, to, k))
			}
		})
	}
	cut("cutInt64", 8, 4)
	cut("cutInt32To16", 4, 2)
	cut("cutInt32To8", 4, 1)
	convert("int32Floats", "converts int32 to float32.", "", func(at func(p, size, i int) operand.Mem) {
		for i := range 4 {
			c.VMOVUPS(w.toFloat(w.copy(at(1, 4, i))), at(0, 4, i))
		}
	})
	w.floatInts()
}

// cut keeps the lower bytes of integers and packs them into one register.
func (w words) cut(r []vec, from int) vec {
	c := w.c
	switch {
	case from == 8:
		d := w.reg()
		c.VSHUFPS(operand.U8(0b10001000), r[1], r[0], d)
		c.VPERMQ(operand.U8(0b11011000), d, d)
		return d
	case len(r) == 2:
		low := w.nums.u32(0xffff)
		d := w.reg()
		c.VPACKUSDW(w.and(r[1], low), w.and(r[0], low), d)
		c.VPERMQ(operand.U8(0b11011000), d, d)
		return d
	}
	low := w.nums.u32(0xff)
	var half [2]vec
	for i := range half {
		half[i] = w.reg()
		c.VPACKUSDW(w.and(r[2*i+1], low), w.and(r[2*i], low), half[i])
		c.VPERMQ(operand.U8(0b11011000), half[i], half[i])
	}
	d := w.reg()
	c.VPACKUSWB(half[1], half[0], d)
	c.VPERMQ(operand.U8(0b11011000), d, d)
	return d
}

// floatInts makes the conversion of float32 to int32: towards zero, limited to
// low..high, NaN as 0. low is at least -2^31, high below 2^31 or 2^31 itself,
// which gives 2^31-1.
func (w words) floatInts() {
	const ordered, notLess = 7, 13
	c, name := w.c, "floatInt32"
	target.Function(c, name, "func(dst, src *byte, n int, low, high float32)",
		name+" converts float32 to int32, towards zero and limited to low..high; NaN gives 0.")
	dst, src := w.pointer("dst"), w.pointer("src")
	l := w.begin()
	ends, top := limits{w.param("low"), w.param("high")}, w.set(w.nums.f32(1<<31))
	l.turns(group/w.lanes(), func() {
		x := l.load(src, f32)
		number, beyond, i := w.reg(), w.reg(), w.reg()
		c.VCMPPS(operand.U8(ordered), x, x, number)
		x = ends.clamp(w.isa, x)
		c.VCMPPS(operand.U8(notLess), top, x, beyond)
		c.VCVTTPS2DQ(x, i)
		// 2^31 became -2^31, whose complement is 2^31-1.
		l.store(w.and(w.xor(i, beyond), number), dst, f32)
	})
	target.Return(c)
}
