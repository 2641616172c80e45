package vecmath

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"

	"goatb/internal/asm/gen/target"
)

// softenFile makes the softmax of attention.
func softenFile(c *build.Context) {
	nums := newPool("soften")
	writeTables(c)
	writeSixteenths(c)
	writeFirsts(c)
	both(c, nums, func(v isa) {
		v.soften()
		v.shareRows()
	})
	nums.write(c)
}

// softenLanes is the number of partial sums of a row: sum l adds the elements l,
// l+softenLanes, ... in order, then the upper half joins the lower half until one is
// left. With AVX-512 they are one register, so that several rows are done at once.
const softenLanes = 16

// softenRows are the numbers of rows that AVX-512 does at once: joining the lanes of
// one waits, joining those of several takes few instructions more.
var softenRows = []int{8, 4}

// softener is soften's parameters in registers.
type softener struct {
	isa
	s, n, count, step, tops, sums gp
	scale                         vec
	weight                        func(x vec) vec
}

// soften makes rows of scores into weights: a softmax without its division.
func (v isa) soften() {
	c, name := v.c, v.name("soften")
	v.function(name, "func(s *float32, n, count, step int, scale float32, tops, sums *float32)",
		name+" does Soften for count rows, step bytes apart.")
	f := softener{isa: v, s: v.pointer("s"), n: v.pointer("n"), count: v.pointer("count"), step: v.pointer("step"),
		tops: v.pointer("tops"), sums: v.pointer("sums"), scale: v.param("scale"), weight: v.weight()}
	if v.wide {
		for _, rows := range softenRows {
			f.several(rows)
		}
		c.TESTQ(f.count, f.count)
		c.JEQ(operand.LabelRef("end"))
	}
	c.Label("row")
	f.row()
	f.next(1)
	c.JNE(operand.LabelRef("row"))
	c.Label("end")
	target.Return(c)
}

// next goes on to the rows behind the next n; the flags say whether there are any.
func (f *softener) next(n int) {
	f.c.LEAQ(operand.Mem{Base: f.s, Index: f.step, Scale: uint8(n)}, f.s)
	f.c.ADDQ(operand.I32(4*n), f.tops)
	f.c.ADDQ(operand.I32(4*n), f.sums)
	f.c.SUBQ(operand.I32(n), f.count)
}

// row does one row.
func (f *softener) row() {
	c := f.c
	first := f.reg()
	c.VBROADCASTSS(operand.Mem{Base: f.tops}, first)
	acc := make([]vec, softenLanes/f.lanes())
	for i := range acc {
		acc[i] = f.copy(first)
	}
	l := f.walk(f.n)
	l.fold(acc, first, c.VMAXPS, func() vec { return f.mul(l.load(f.s, f32), f.scale) })
	largest, top := f.joined(acc, c.VMAXPS).AsX(), f.reg()
	c.VMOVSS(largest, operand.Mem{Base: f.tops})
	c.VBROADCASTSS(largest, top)

	acc = f.zeros(len(acc))
	l = f.walk(f.n)
	l.sum(acc, f.weightChains(), func() vec {
		y := f.weight(f.sub(f.mul(l.load(f.s, f32), f.scale), top))
		l.store(y, f.s, f32)
		return y
	})
	c.VMOVSS(f.joined(acc, c.VADDPS).AsX(), operand.Mem{Base: f.sums})
}

// weightChains is the number of weights that a row interleaves.
func (v isa) weightChains() int {
	if v.wide {
		return 4
	}
	return 2
}

// several does as many rows at once as there are multiples of a number of them.
func (f *softener) several(rows int) {
	c, label, acc := f.c, fmt.Sprintf("rows%d", rows), make([]vec, rows)
	c.SUBQ(operand.I32(rows), f.count)
	c.JLT(operand.LabelRef(label + "End"))
	c.Label(label)
	for i := range acc {
		acc[i] = f.reg()
		c.VBROADCASTSS(operand.Mem{Base: f.tops, Disp: 4 * i}, acc[i])
	}
	f.columns(rows, func(i int, at operand.Mem, l *loop) {
		if l.masked {
			c.VMAXPS(acc[i], f.scaled(at, l), l.opmask, acc[i])
			return
		}
		c.VMAXPS(acc[i], f.scaled(at, l), acc[i])
	})
	f.storeJoined(acc, c.VMAXPS, f.tops)
	for _, x := range acc {
		c.VXORPS(x, x, x)
	}
	f.columns(rows, func(i int, at operand.Mem, l *loop) {
		x := f.scaled(at, l)
		c.VSUBPS_BCST(operand.Mem{Base: f.tops, Disp: 4 * i}, x, x)
		y := f.weight(x)
		if l.masked {
			c.VMOVUPS(y, l.opmask, at)
			c.VADDPS(y, acc[i], l.opmask, acc[i])
			return
		}
		c.VMOVUPS(y, at)
		c.VADDPS(y, acc[i], acc[i])
	})
	f.storeJoined(acc, c.VADDPS, f.sums)
	f.next(rows)
	c.JGE(operand.LabelRef(label))
	c.Label(label + "End")
	c.ADDQ(operand.I32(rows), f.count)
}

// scaled loads a register of scores times scale.
func (f *softener) scaled(at operand.Mem, l *loop) vec {
	x := f.reg()
	if l.masked {
		f.c.VMULPS_Z(at, f.scale, l.opmask, x)
	} else {
		f.c.VMULPS(at, f.scale, x)
	}
	return x
}

// columns does body for every register of some rows, a register of each row in turn,
// the last one with a mask.
func (f *softener) columns(rows int, body func(row int, at operand.Mem, l *loop)) {
	const together = 4
	c, l := f.c, f.walk(f.n)
	three, bases := c.GP64(), make([]gp, rows/together)
	c.LEAQ(operand.Mem{Base: f.step, Index: f.step, Scale: 2}, three)
	for i := range bases {
		bases[i] = c.GP64()
		if i == 0 {
			c.MOVQ(f.s, bases[i])
		} else {
			c.LEAQ(operand.Mem{Base: bases[i-1], Index: f.step, Scale: together}, bases[i])
		}
	}
	turn := func() {
		for b, base := range bases {
			at := [together]operand.Mem{{Base: base}, {Base: base, Index: f.step, Scale: 1}, {Base: base, Index: f.step, Scale: 2}, {Base: base, Index: three, Scale: 1}}
			target.Interleave(c, together, func(i int) { body(together*b+i, at[i], l) })
			if !l.masked {
				c.ADDQ(operand.I32(f.bytes()), base)
			}
		}
	}
	l.once(1, turn)
	l.tail(turn)
}

// storeJoined joins the partial results of each of 4 or 8 registers and stores the
// last ones: a step of joining makes one register of two, with their lower and upper
// halves beside each other.
func (f *softener) storeJoined(acc []vec, join func(...operand.Op), at gp) {
	c, rows := f.c, len(acc)
	halves := func(a, b vec, lower, upper uint8) vec {
		x, y := f.reg(), f.reg()
		c.VSHUFF64X2(operand.U8(lower), b, a, x)
		c.VSHUFF64X2(operand.U8(upper), b, a, y)
		join(x, y, x)
		return x
	}
	var x vec
	quads := make([]vec, rows/4)
	for i := range quads {
		a := acc[4*i:]
		quads[i] = halves(halves(a[0], a[1], 0x44, 0xee), halves(a[2], a[3], 0x44, 0xee), 0x88, 0xdd)
	}
	y := f.reg()
	if x = quads[0]; rows == 4 {
		c.VPERMILPD(operand.U8(0x55), x, y)
	} else {
		upper := quads[1]
		c.VUNPCKHPD(upper, x, y)
		c.VUNPCKLPD(upper, x, x)
	}
	join(x, y, x)
	c.VPERMILPS(operand.U8(0xb1), x, y)
	join(x, y, x)
	order := f.copy(operand.NewDataAddr(operand.NewStaticSymbol(firstsName), 0))
	c.VPERMPS(x, order, x)
	if rows == 4 {
		c.VMOVUPS(x.AsX(), operand.Mem{Base: at})
	} else {
		c.VMOVUPS(x.AsY(), operand.Mem{Base: at})
	}
}

// firstsName is the table of the places at which storeJoined finds the results of
// rows.
const firstsName = "softenPlaces"

func writeFirsts(c *build.Context) {
	c.StaticGlobal(firstsName)
	c.DataAttributes(attrConst)
	for i := range 16 {
		c.AppendDatum(operand.U32(4*(i%4) + 2*(i/4%2)))
	}
}

// A weight is made of 2^(k/16)·e^r with an integer k and |r| <= ln 2/32. The power
// comes from a table: its exponent is added to, and the table's numbers lack what k's
// lowest bits add to their mantissas.

const (
	// sixteenths added to a float32 below 2^18 and taken off again rounds it to a
	// sixteenth; the low bits of the sum hold its number.
	sixteenths     = magic / 16
	sixteenthsName = "sixteenths"
)

// weightPoly is e^r with an error below 2^-26.
var weightPoly = []float64{1, 1, 1. / 2, 1. / 6}

func writeSixteenths(c *build.Context) {
	c.StaticGlobal(sixteenthsName)
	c.DataAttributes(attrConst)
	for i := range 16 {
		c.AppendDatum(operand.U32(math.Float32bits(float32(math.Exp2(float64(i)/16))) - uint32(i)<<19))
	}
}

// weight returns the function e^x for x up to 0, which is 0 below the smallest
// x whose weight is normal for certain.
func (v isa) weight() func(x vec) vec {
	const notLess = 0x15 // or unordered
	low, power := v.set(v.nums.f32(-87)), v.powers()
	return func(x vec) vec {
		a := x
		if !v.wide { // the mask keeps AVX-512 from subnormal numbers
			a = v.max(low, x)
		}
		m := v.set(v.nums.f32(math.Log2E))
		v.mulAdd(m, a, v.nums.f32(sixteenths))
		r := v.copy(a)
		v.subMul(r, v.sub(m, v.nums.f32(sixteenths)), v.nums.f32(math.Ln2))
		p, s := v.horner(r, weightPoly...), power(m)
		d := v.reg()
		if v.wide {
			k := v.c.K()
			v.c.VCMPPS(operand.U8(notLess), low, x, k)
			v.c.VMULPS_Z(p, s, k, d)
			return d
		}
		v.c.VCMPPS(operand.U8(notLess), low, x, d)
		return v.and(v.mul(s, p), d)
	}
}

// powers returns the function 2^(k/16) of the sums of k/16 and sixteenths.
func (v isa) powers() func(m vec) vec {
	at := func(i int) operand.Mem {
		return operand.NewDataAddr(operand.NewStaticSymbol(sixteenthsName), 4*i)
	}
	if v.wide {
		table := v.copy(at(0))
		return func(m vec) vec {
			d := v.reg()
			v.c.VPERMPS(table, m, d)
			return v.addInt(v.shiftLeft(m, 19), d)
		}
	}
	return func(m vec) vec {
		lower, upper := v.reg(), v.reg()
		v.c.VPERMPS(at(0), m, lower)
		v.c.VPERMPS(at(8), m, upper)
		return v.addInt(v.shiftLeft(m, 19), v.blend(lower, upper, negative{s: v.shiftLeft(m, 28)}))
	}
}
