package vecmath

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

// rowType is an element type of the rows of dots and mix.
type rowType struct {
	name, goType string
	size         uint8
	// load reads a register of elements as float32.
	load func(l *loop, p reg.Register) vec
}

var rowTypes = []rowType{
	{"F32", "float32", 4, (*loop).load},
	{"F16", "uint16", 2, (*loop).loadF16},
	{"BF16", "uint16", 2, (*loop).loadBF16},
	{"I8", "int8", 1, (*loop).loadI8},
}

// rowsFile makes products with rows of several types.
func rowsFile(c *build.Context) {
	writeTailMasks(c)
	writeShiftBytes(c)
	both(c, newPool("rows"), func(v isa) {
		for _, t := range rowTypes {
			v.dots(t)
			v.mix(t)
		}
	})
}

// dots makes inner products of one vector with many rows.
func (v isa) dots(t rowType) {
	c := v.c
	name := v.name("dots" + t.name)
	target.Function(c, name, "func(dst, x *float32, rows *"+t.goType+", n, count, stride int)",
		name+" writes the inner product of x with each of count rows of n elements, stride bytes apart,",
		"in the order of a reduction.")
	dst, x, rows := v.pointer("dst"), v.pointer("x"), v.pointer("rows")
	count, stride := v.pointer("count"), v.pointer("stride")
	l := &loop{isa: v, index: c.GP64()}
	n := v.pointer("n")
	c.Label("row")
	l.left = c.GP64()
	c.MOVQ(n, l.left)
	c.XORQ(l.index, l.index)
	acc := v.partials()
	step := func(i int) {
		c.VADDPS(v.mul(l.load(x), t.load(l, rows)), acc[i], acc[i])
	}
	l.reduce(acc, step, step)
	c.VMOVSS(v.joined(acc, c.VADDPS).AsX(), operand.Mem{Base: dst})
	c.ADDQ(operand.I32(4), dst)
	c.ADDQ(stride, rows)
	c.DECQ(count)
	c.JNE(operand.LabelRef("row"))
	target.Return(c)
}

// mix makes weighted sums of rows.
func (v isa) mix(t rowType) {
	c := v.c
	name := v.name("mix" + t.name)
	target.Function(c, name, "func(acc, weights *float32, rows *"+t.goType+", n, count, stride int)",
		name+" adds count rows of n elements, stride bytes apart, each times its weight, to acc, one after the other.")
	sums, weights, rows := v.pointer("acc"), v.pointer("weights"), v.pointer("rows")
	count, stride := v.pointer("count"), v.pointer("stride")
	l := v.begin()
	// columns does one turn of columns: the sums stay in registers over all rows.
	columns := func(label string, registers int) {
		acc := make([]vec, registers)
		for i := range acc {
			l.off = i * v.lanes()
			acc[i] = l.load(sums)
		}
		row, weight, todo := c.GP64(), c.GP64(), c.GP64()
		c.MOVQ(rows, row)
		c.MOVQ(weights, weight)
		c.MOVQ(count, todo)
		c.Label(label)
		w := v.reg()
		c.VBROADCASTSS(operand.Mem{Base: weight}, w)
		for i := range acc {
			l.off = i * v.lanes()
			c.VADDPS(v.mul(t.load(l, row), w), acc[i], acc[i])
		}
		c.ADDQ(stride, row)
		c.ADDQ(operand.I32(4), weight)
		c.DECQ(todo)
		c.JNE(operand.LabelRef(label))
		for i := range acc {
			l.off = i * v.lanes()
			l.store(acc[i], sums)
		}
		l.off = 0
	}
	l.once(sumLanes/v.lanes(), func() { columns("wide", sumLanes/v.lanes()) })
	l.once(1, func() { columns("narrow", 1) })
	l.tail(func() { columns("last", 1) })
	target.Return(c)
}

// loadF16 reads a register of f16.
func (l *loop) loadF16(p reg.Register) vec {
	d := l.reg()
	l.c.VCVTPH2PS(l.loadHalves(p), d)
	return d
}

// loadBF16 reads a register of bf16, the upper halves of float32.
func (l *loop) loadBF16(p reg.Register) vec {
	d := l.reg()
	l.c.VPMOVZXWD(l.loadHalves(p), d)
	return l.shiftLeft(d, 16)
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
	return l.loadLast(p, 2)
}

// loadI8 reads a register of int8.
func (l *loop) loadI8(p reg.Register) vec {
	d := l.reg()
	switch {
	case !l.masked:
		l.c.VPMOVSXBD(l.at(p, 1), d)
	case l.wide:
		h := l.c.XMM()
		l.c.VMOVDQU8_Z(l.at(p, 1), l.opmask, h)
		l.c.VPMOVSXBD(h, d)
	default:
		l.c.VPMOVSXBD(l.loadLast(p, 1), d)
	}
	return l.toFloat(d)
}

// shiftName is the table of byte shuffles that move the upper bytes of a
// 16-byte register down and clear the rest.
const shiftName = "shiftBytes"

func writeShiftBytes(c *build.Context) {
	c.StaticGlobal(shiftName)
	c.DataAttributes(attrConst)
	for i := range 16 {
		c.AppendDatum(operand.U8(i))
	}
	for range 16 {
		c.AppendDatum(operand.U8(0x80))
	}
}

// loadLast reads the last, fewer than 8 elements of an array of at least 8,
// for AVX2: the last 8 elements are shifted down.
func (l *loop) loadLast(p reg.Register, size uint8) vec {
	c := l.c
	end, shift := c.GP64(), c.GP64()
	c.LEAQ(operand.Mem{Base: l.index, Index: l.left, Scale: 1}, end)
	d := c.XMM()
	last := operand.Mem{Base: p, Index: end, Scale: size, Disp: -8 * int(size)}
	if size == 1 {
		c.VMOVQ(last, d)
	} else {
		c.VMOVDQU(last, d)
	}
	c.LEAQ(operand.NewDataAddr(operand.NewStaticSymbol(shiftName), 8*int(size)), shift)
	back := c.GP64()
	c.MOVQ(l.left, back)
	if size == 2 {
		c.ADDQ(back, back)
	}
	c.SUBQ(back, shift)
	c.VPSHUFB(operand.Mem{Base: shift}, d, d)
	return d
}
