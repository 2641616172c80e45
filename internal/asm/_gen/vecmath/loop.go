package vecmath

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// loop walks arrays of 32-bit elements a register at a time; the last, short
// step masks its loads and stores, and reads zeros beyond the end.
type loop struct {
	isa
	// index counts the elements done, left those to do; off is the offset of
	// the step within a turn.
	index, left reg.GPVirtual
	off         int
	// masked says that this is the last step; mask is its mask.
	masked bool
	opmask reg.OpmaskVirtual
	mask   vec
}

// pointer loads a pointer parameter.
func (v isa) pointer(name string) reg.GPVirtual {
	p := v.c.GP64()
	v.c.Load(v.c.Param(name), p)
	return p
}

// begin starts a loop over the elements that parameter n counts.
func (v isa) begin() *loop {
	l := &loop{isa: v, index: v.c.GP64(), left: v.pointer("n")}
	v.c.XORQ(l.index, l.index)
	return l
}

// each does body for all elements, unroll registers in a turn.
func (l *loop) each(unroll int, body func()) {
	l.turns(unroll, body)
	if unroll > 1 {
		l.turns(1, body)
	}
	l.tail(body)
}

// turns does body for each register of as many turns as there are.
func (l *loop) turns(unroll int, body func()) {
	l.once(unroll, func() {
		for u := range unroll {
			l.off = u * l.lanes()
			body()
		}
		l.off = 0
	})
}

// once does body once for each of as many turns as there are.
func (l *loop) once(unroll int, body func()) {
	c, step := l.c, unroll*l.lanes()
	start, end := fmt.Sprintf("turn%d", unroll), fmt.Sprintf("turned%d", unroll)
	c.SUBQ(operand.I32(step), l.left)
	c.JLT(operand.LabelRef(end))
	c.Label(start)
	body()
	c.ADDQ(operand.I32(step), l.index)
	c.SUBQ(operand.I32(step), l.left)
	c.JGE(operand.LabelRef(start))
	c.Label(end)
	c.ADDQ(operand.I32(step), l.left)
}

// tail does body for the fewer than lanes elements that are left.
func (l *loop) tail(body func()) {
	l.c.TESTQ(l.left, l.left)
	l.c.JEQ(operand.LabelRef("done"))
	l.setMask()
	l.masked = true
	body()
	l.masked = false
	l.c.Label("done")
}

// setMask makes the mask of the elements that are left.
func (l *loop) setMask() {
	if l.wide {
		l.opmask = l.c.K()
		bits := l.c.GP64()
		l.c.MOVQ(l.left, reg.RCX)
		l.c.MOVQ(operand.I32(1), bits)
		l.c.SHLQ(reg.CL, bits)
		l.c.DECQ(bits)
		l.c.KMOVW(bits.As32(), l.opmask)
		return
	}
	l.mask = l.tailMask(0)
}

// tailMask loads the AVX2 mask of the elements from first on.
func (l *loop) tailMask(first int) vec {
	at, m := l.c.GP64(), l.reg()
	l.c.LEAQ(operand.NewDataAddr(operand.NewStaticSymbol(tailName), 4*(tailLanes+first)), at)
	back := l.c.GP64()
	l.c.MOVQ(l.left, back)
	l.c.SHLQ(operand.U8(2), back)
	l.c.SUBQ(back, at)
	l.c.VMOVUPS(operand.Mem{Base: at}, m)
	return m
}

// at is the place of the step in an array of elements of the given size.
func (l *loop) at(p reg.Register, size uint8) operand.Mem {
	return operand.Mem{Base: p, Index: l.index, Scale: size, Disp: l.off * int(size)}
}

// load reads a register of 32-bit elements.
func (l *loop) load(p reg.Register) vec {
	d := l.reg()
	switch {
	case !l.masked:
		l.c.VMOVUPS(l.at(p, 4), d)
	case l.wide:
		l.c.VMOVUPS_Z(l.at(p, 4), l.opmask, d)
	default:
		l.c.VMASKMOVPS(l.at(p, 4), l.mask, d)
	}
	return d
}

// store writes a register of 32-bit elements.
func (l *loop) store(a vec, p reg.Register) {
	switch {
	case !l.masked:
		l.c.VMOVUPS(a, l.at(p, 4))
	case l.wide:
		l.c.VMOVUPS(a, l.opmask, l.at(p, 4))
	default:
		l.c.VMASKMOVPS(a, l.mask, l.at(p, 4))
	}
}

// reduce does step(i) for the registers of every sumLanes elements, and last(i)
// with a mask for what is left.
func (l *loop) reduce(acc []vec, step, last func(i int)) {
	i := 0
	l.turns(len(acc), func() {
		step(i % len(acc))
		i++
	})
	for i := range acc {
		l.c.TESTQ(l.left, l.left)
		l.c.JLE(operand.LabelRef("done"))
		short := fmt.Sprintf("short%d", i)
		l.c.CMPQ(l.left, operand.I32(l.lanes()))
		l.c.JLT(operand.LabelRef(short))
		step(i)
		l.c.ADDQ(operand.I32(l.lanes()), l.index)
		l.c.SUBQ(operand.I32(l.lanes()), l.left)
	}
	// A full last register leaves nothing here.
	l.c.JMP(operand.LabelRef("done"))
	for i := range acc {
		l.c.Label(fmt.Sprintf("short%d", i))
		l.setMask()
		l.masked = true
		last(i)
		l.masked = false
		if i < len(acc)-1 {
			l.c.JMP(operand.LabelRef("done"))
		}
	}
	l.c.Label("done")
}
