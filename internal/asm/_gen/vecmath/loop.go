package vecmath

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

// loop walks arrays a register of float32 at a time; the last, short step masks
// its loads and stores, and reads zeros beyond the end.
type loop struct {
	isa
	// index counts the elements done, left those to do; off is the offset of
	// the step within a turn.
	index, left gp
	off         int
	// part is the part of pairs of bf16 that the step does. rounds says how
	// results of pairs are rounded; even holds, by array, even results that wait
	// for the odd ones.
	part    part
	rounds  func(x vec) vec
	even    map[reg.Register]vec
	oddMask reg.OpmaskVirtual
	// streams are arrays whose lines turns of several registers ask for ahead.
	streams []stream
	// ask, if there is one, asks for other lines in such a turn of n elements.
	ask func(n int)
	// masked says that this is the last step; opmask or mask is its mask.
	masked bool
	opmask reg.OpmaskVirtual
	mask   vec
}

// function begins a function.
func (v isa) function(name, sig string, doc ...string) {
	*v.labels = 0
	target.Function(v.c, name, sig, doc...)
}

// pointer loads a pointer parameter.
func (v isa) pointer(name string) gp {
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

// walk starts another loop in a function, over n elements.
func (v isa) walk(n gp) *loop {
	l := &loop{isa: v, index: v.c.GP64(), left: v.c.GP64()}
	v.c.MOVQ(n, l.left)
	v.c.XORQ(l.index, l.index)
	return l
}

// signature says what an array function has beside dst, src and n.
type signature struct {
	// second is a second input, b; src is called a then.
	second bool
	// scalars are float32 parameters.
	scalars []string
}

// pointers are the parameters of an array function.
type pointers struct {
	dst, src, b gp
	scalars     []vec
}

// array makes a function of arrays, whose pointers are bytes whatever the
// elements are. The body does all of the loop.
func (v isa) array(name, what string, s signature, body func(l *loop, p pointers)) {
	sig, src := "func(dst, src *byte, n int", "src"
	if s.second {
		sig, src = "func(dst, a, b *byte, n int", "a"
	}
	for _, p := range s.scalars {
		sig += ", " + p + " float32"
	}
	v.function(v.name(name), sig+")", v.name(name)+" "+what+".")
	p := pointers{dst: v.pointer("dst"), src: v.pointer(src)}
	if s.second {
		p.b = v.pointer("b")
	}
	l := v.begin()
	for _, scalar := range s.scalars {
		p.scalars = append(p.scalars, v.param(scalar))
	}
	body(l, p)
	target.Return(v.c)
}

// stream makes the arrays of an array function streams, all of type e.
func (l *loop) stream(e element, p pointers) {
	l.streams = []stream{{p.src, e.size, false, aheadBytes}, {p.dst, e.size, true, aheadBytes}}
	if p.b != nil {
		l.streams = append(l.streams, stream{p.b, e.size, false, aheadBytes})
	}
}

// label returns a new name for a label.
func (l *loop) label(name string) string {
	*l.labels++
	return fmt.Sprintf("%s%d", name, *l.labels)
}

// each does body for all elements, unroll registers in a turn.
func (l *loop) each(unroll int, body func()) {
	l.turns(unroll, body)
	if unroll > 1 {
		l.turns(1, body)
	}
	l.tail(body)
}

// turns does body for each register of as many turns as there are, and
// interleaves what it does for the registers of a turn.
func (l *loop) turns(unroll int, body func()) {
	l.groups(unroll, unroll, func(int) { body() })
}

// groups does body for each register of as many turns as there are, and
// interleaves what it does for groups of registers; body gets the number of the
// register in the turn.
func (l *loop) groups(unroll, group int, body func(u int)) {
	l.once(unroll, func() {
		if unroll > 1 {
			l.askAhead(unroll * l.lanes())
		}
		for from := 0; from < unroll; from += group {
			target.Interleave(l.c, min(group, unroll-from), func(u int) {
				l.off = (from + u) * l.lanes()
				body(from + u)
			})
		}
		l.off = 0
	})
}

// stream is an array that a loop goes through.
type stream struct {
	p       reg.Register
	size    uint8
	written bool
	// ahead is the distance in bytes at which its lines are asked for.
	ahead int
}

// aheadBytes is how far ahead of a turn the lines of most streams are asked for. The
// processor's own prefetching stops at the end of a page, and does not know what
// will be written before the instructions that are waiting.
const aheadBytes = 2048

// askAhead asks for the lines of a turn of n elements that comes later.
func (l *loop) askAhead(n int) {
	for _, s := range l.streams {
		for at := 0; at < n*int(s.size); at += lineBytes {
			m := l.at(s.p, s.size)
			m.Disp += s.ahead + at
			if s.written {
				target.PREFETCHW(l.c, m)
			} else {
				l.c.PREFETCHT0(m)
			}
		}
	}
	if l.ask != nil {
		l.ask(n)
	}
}

// once does body once for each of as many turns as there are.
func (l *loop) once(unroll int, body func()) {
	c, step := l.c, unroll*l.lanes()
	start, end := l.label("turn"), l.label("turned")
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
	done := l.label("done")
	l.c.TESTQ(l.left, l.left)
	l.c.JEQ(operand.LabelRef(done))
	l.short(body)
	l.c.Label(done)
}

// short does body with the mask of the elements that are left.
func (l *loop) short(body func()) {
	l.setMask()
	l.masked = true
	body()
	l.masked = false
}

// setMask makes the mask of the elements that are left.
func (l *loop) setMask() {
	c := l.c
	if l.wide {
		l.opmask = c.K()
		bits := c.GP64()
		c.MOVQ(l.left, reg.RCX)
		c.MOVQ(operand.I32(1), bits)
		c.SHLQ(reg.CL, bits)
		c.DECQ(bits)
		c.KMOVW(bits.As32(), l.opmask)
		return
	}
	at, back := c.GP64(), c.GP64()
	l.mask = l.reg()
	c.LEAQ(operand.NewDataAddr(operand.NewStaticSymbol(tailName), 4*tailLanes), at)
	c.MOVQ(l.left, back)
	c.SHLQ(operand.U8(2), back)
	c.SUBQ(back, at)
	c.VMOVUPS(operand.Mem{Base: at}, l.mask)
}

// at is the place of the step in an array of elements of the given size.
func (l *loop) at(p reg.Register, size uint8) operand.Mem {
	return operand.Mem{Base: p, Index: l.index, Scale: size, Disp: l.off * int(size)}
}

// reduce does step(i) for the registers of every sumLanes elements, and last(i)
// with a mask for what is left. chains is the number of registers of a turn that
// it does at once.
func (l *loop) reduce(acc []vec, chains int, step, last func(i int)) {
	c, n := l.c, len(acc)
	if chains > n {
		l.groups(n*chains/gcd(n, chains), chains, func(u int) { step(u % n) })
	}
	l.groups(n, min(chains, n), step)
	done := l.label("done")
	short := make([]string, len(acc))
	for i := range acc {
		short[i] = l.label("short")
		c.CMPQ(l.left, operand.I32(l.lanes()))
		c.JLT(operand.LabelRef(short[i]))
		step(i)
		c.ADDQ(operand.I32(l.lanes()), l.index)
		c.SUBQ(operand.I32(l.lanes()), l.left)
	}
	for i := range acc {
		c.Label(short[i])
		c.TESTQ(l.left, l.left)
		c.JEQ(operand.LabelRef(done))
		l.short(func() { last(i) })
		if i < len(acc)-1 {
			c.JMP(operand.LabelRef(done))
		}
	}
	c.Label(done)
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// sum adds term() for all elements to partial sums.
func (l *loop) sum(acc []vec, chains int, term func() vec) {
	l.reduce(acc, chains, func(i int) { l.c.VADDPS(term(), acc[i], acc[i]) }, func(i int) {
		y := term()
		if l.wide {
			l.c.VADDPS(y, acc[i], l.opmask, acc[i])
		} else {
			l.c.VADDPS(l.and(y, l.mask), acc[i], acc[i])
		}
	})
}

// fold joins term() for all elements into partial results; first is what
// joining does not change. join(b, a, d) is d = join of a and b, where a NaN in a
// gives b.
func (l *loop) fold(acc []vec, first vec, join func(...operand.Op), term func() vec) {
	l.reduce(acc, 4, func(i int) { join(acc[i], term(), acc[i]) }, func(i int) {
		x := term()
		if l.wide {
			join(acc[i], x, l.opmask, acc[i])
			return
		}
		filled := l.reg()
		l.c.VBLENDVPS(l.mask, x, first, filled)
		join(acc[i], filled, acc[i])
	})
}
