package vecmath

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"

	"goatb/internal/asm/gen/target"
)

// rowTypes are the element types of rows.
var rowTypes = []element{f32, f16, bf16, i8}

// rowsFile makes products with rows of several types.
func rowsFile(c *build.Context) {
	writeTables(c)
	both(c, newPool("rows"), func(v isa) {
		for _, e := range rowTypes {
			v.dots(e)
			v.mix(e)
		}
	})
}

// dots makes inner products of one vector with many rows.
func (v isa) dots(e element) {
	c := v.c
	name := v.name("dots" + e.name)
	v.function(name, "func(dst, x *float32, rows *byte, n, count, stride int)",
		name+" writes the inner product of x with each of count rows of n elements, stride bytes apart,",
		"in the order of a reduction.")
	dst, x, rows := v.pointer("dst"), v.pointer("x"), v.pointer("rows")
	count, stride := v.pointer("count"), v.pointer("stride")
	n := v.pointer("n")
	c.Label("row")
	l := v.walk(n)
	acc := v.partials()
	step := func(i int) {
		c.VADDPS(v.mul(l.load(x, f32), l.load(rows, e)), acc[i], acc[i])
	}
	l.reduce(acc, 4, step, step)
	c.VMOVSS(v.joined(acc, c.VADDPS).AsX(), operand.Mem{Base: dst})
	c.ADDQ(operand.I32(4), dst)
	c.ADDQ(stride, rows)
	c.DECQ(count)
	c.JNE(operand.LabelRef("row"))
	target.Return(c)
}

// mix makes weighted sums of rows.
func (v isa) mix(e element) {
	c := v.c
	name := v.name("mix" + e.name)
	v.function(name, "func(acc, weights *float32, rows *byte, n, count, stride int)",
		name+" adds count rows of n elements, stride bytes apart, each times its weight, to acc, one after the other.")
	sums, weights, rows := v.pointer("acc"), v.pointer("weights"), v.pointer("rows")
	count, stride := v.pointer("count"), v.pointer("stride")
	l := v.begin()
	// columns does one turn of columns: the sums stay in registers over all rows.
	columns := func(label string, registers int) {
		acc := make([]vec, registers)
		for i := range acc {
			l.off = i * v.lanes()
			acc[i] = l.load(sums, f32)
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
			c.VADDPS(v.mul(l.load(row, e), w), acc[i], acc[i])
		}
		c.ADDQ(stride, row)
		c.ADDQ(operand.I32(4), weight)
		c.DECQ(todo)
		c.JNE(operand.LabelRef(label))
		for i := range acc {
			l.off = i * v.lanes()
			l.store(acc[i], sums, f32)
		}
		l.off = 0
	}
	l.once(sumLanes/v.lanes(), func() { columns("wide", sumLanes/v.lanes()) })
	l.once(1, func() { columns("narrow", 1) })
	l.tail(func() { columns("last", 1) })
	target.Return(c)
}
