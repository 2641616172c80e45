package vecmath

import (
	"math"

	"github.com/mmcloughlin/avo/build"

	"goatb/internal/asm/gen/target"
)

// The functions of this file reduce an argument x to n·ln 2 + r with an integer
// n and |r| <= ln 2/2, and take e^r - 1 from a polynomial: with coefficients
// rounded to float32 its relative error is below 2^-28.

const (
	// magic added to a float32 below 2^22 and taken off again rounds it to an
	// integer, which the low bits of the sum hold.
	magic = 1.5 * (1 << 23)
	// widest bounds the arguments of reduce that scale can undo at both widths.
	widest = 174
)

var (
	ln2High = float64(float32(math.Ln2))
	ln2Low  = math.Ln2 - ln2High
	// ln2Short has 16 bits, so that products with 8-bit integers are exact.
	ln2Short = 0x1.62e4p-1
	expPoly  = []float64{0x1.fffffcp-2, 0x1.555492p-3, 0x1.5558b4p-5, 0x1.1239a0p-7, 0x1.6a4960p-10}
)

// reduce returns n and r for the arguments x.
func (v isa) reduce(x vec) (n, r vec) {
	m := v.set(v.nums.f32(math.Log2E))
	v.mulAdd(m, x, v.nums.f32(magic))
	n = v.sub(m, v.nums.f32(magic))
	r = v.copy(x)
	v.subMul(r, n, v.nums.f32(ln2High))
	v.subMul(r, n, v.nums.f32(ln2Low))
	return n, r
}

// reduceProduct is reduce for the arguments a·b, which are not rounded,
// |a·b| <= 2·widest: n·ln2Short is exact and the difference is rounded once.
func (v isa) reduceProduct(a, b vec) (n, r vec) {
	m := v.mul(a, b)
	v.mulAdd(m, v.set(v.nums.f32(math.Log2E)), v.nums.f32(magic))
	n = v.sub(m, v.nums.f32(magic))
	r = v.copy(a)
	v.c.VFMSUB213PS(v.mul(n, v.nums.f32(ln2Short)), b, r)
	v.subMul(r, n, v.nums.f32(math.Ln2-ln2Short))
	return n, r
}

// expOf returns e^r for |r| <= ln 2/2.
func (v isa) expOf(r vec) vec { return v.horner(r, append([]float64{1, 1}, expPoly...)...) }

// expMinusOne returns e^r - 1 for |r| <= ln 2/2.
func (v isa) expMinusOne(r vec) vec {
	e := v.horner(r, expPoly...)
	v.mulAdd(e, v.mul(r, r), r)
	return e
}

// scale returns y·2^n, rounded once, for -252 <= n <= 254.
func (v isa) scale(y, n vec) vec {
	if v.wide {
		d := v.reg()
		v.c.VSCALEFPS(n, y, d)
		return d
	}
	i := v.toInt(n)
	h := v.shiftRight(i, 1)
	return v.mul(v.mul(y, v.power(h)), v.power(v.subInt(i, h)))
}

// power returns 2^i of integers -126 <= i <= 127.
func (v isa) power(i vec) vec {
	return v.addInt(v.shiftLeft(i, 23), v.nums.f32(1))
}

// onePlus returns 1 + p·2^n for n <= 0 and p near 1. Powers too small to
// change the sum need not be right.
func (v isa) onePlus(p, n vec) vec {
	if v.wide {
		return v.add(v.scale(p, n), v.nums.f32(1))
	}
	n = v.max(v.set(v.nums.f32(-126)), n)
	return v.add(v.addInt(p, v.shiftLeft(v.toInt(n), 23)), v.nums.f32(1))
}

// chains is the number of chains of elementary functions that turns interleave:
// as many as registers hold.
func (v isa) chains(e element) int {
	switch {
	case !v.wide:
		return 2
	case e == bf16:
		return 3 // each takes two mask registers
	}
	return 5
}

// limits holds registers for clamping that keeps NaN.
type limits struct{ low, high vec }

func (v isa) limits(low, high float64) limits {
	return limits{v.set(v.nums.f32(low)), v.set(v.nums.f32(high))}
}

func (l limits) clamp(v isa, x vec) vec { return v.min(l.high, v.max(l.low, x)) }

// apart returns x not below the limits, and within them.
func (l limits) apart(v isa, x vec) (notBelow, within vec) {
	x = v.max(l.low, x)
	return x, v.min(l.high, x)
}

// unary makes a function of one array for element types; make returns its body
// and may load constants before the loop.
func (v isa) unary(name, what string, types []element, unroll int, make func() func(x vec) vec) {
	for _, e := range types {
		v.array(name+e.name, "writes "+what, signature{}, func(l *loop, p pointers) {
			f := make()
			l.stream(e, p)
			l.each(unroll, func() { l.store(f(l.load(p.src, e)), p.dst, e) })
		})
	}
}

// gateUnary makes a function of one array for float32 and for results of 16 bits.
func (v isa) gateUnary(name, what string, long func() longGate, short func(l *loop, e element, p pointers)) {
	for _, e := range floats {
		v.array(name+e.name, "writes "+what, signature{}, func(l *loop, p pointers) {
			l.stream(e, p)
			if e != f32 {
				short(l, e, p)
				return
			}
			g := long()
			l.eachLong(p.src, g.bound, func(far bool) { l.store(g.of(l.load(p.src, f32), far), p.dst, f32) })
		})
	}
}

// expFile makes e^x and what is made of it.
func expFile(c *build.Context) {
	nums := newPool("exp")
	writeTables(c)
	writePieces(c)
	both(c, nums, func(v isa) {
		v.unary("exp", "e^src", floats[:1], v.chains(f32), v.exp)
		v.gateUnary("sigmoid", "1/(1+e^-src)", v.sigmoid, func(l *loop, e element, p pointers) {
			l.eachShort(e, p.src, v.shortSigmoid(e), func(y vec) { l.store(y, p.dst, e) })
		})
		v.unary("tanh", "the hyperbolic tangent of src", floats, v.chains(bf16), func() func(x vec) vec { return v.tanh })
		v.gateUnary("silu", "src/(1+e^-src)", v.silu, func(l *loop, e element, p pointers) {
			l.eachShort(e, p.src, v.shortSilu(e), func(y vec) { l.store(y, p.dst, e) })
		})
		v.gateUnary("geluTanh", "src/2·(1+tanh(√(2/π)·(src+0.044715·src³)))", v.geluTanh, func(l *loop, e element, p pointers) {
			f := v.briefGeluTanh(e)
			l.eachGate(e, func() { l.store(f(l.load(p.src, e)), p.dst, e) })
		})
		v.unary("geluErf", "src/2·(1+erf(src/√2))", floats, v.chains(bf16), v.geluErf)
		for _, e := range floats {
			v.swish(e)
			v.swiglu(e)
			v.swigluGrad(e)
			v.expSum(e)
			v.softmax(e)
		}
	})
	nums.write(c)
}

func (v isa) exp() func(x vec) vec {
	ends := v.limits(-104, 89)
	return func(x vec) vec {
		n, r := v.reduce(ends.clamp(v, x))
		return v.scale(v.expOf(r), n)
	}
}

// tanh is m/(m+2) with m = e^2|x| - 1, formed without cancellation, and the
// sign of x. From 10 on the result is 1.
func (v isa) tanh(x vec) vec {
	sign := v.nums.u32(1 << 31)
	a := v.set(v.nums.f32(10))
	a = v.min(a, v.and(x, v.nums.u32(math.MaxInt32)))
	n, r := v.reduce(v.add(a, a))
	e := v.expMinusOne(r)
	two := v.power(v.toInt(n))
	m := v.sub(two, v.nums.f32(1))
	v.addMul(m, two, e)
	return v.or(v.div(m, v.add(m, v.nums.f32(2))), v.and(x, sign))
}

// swigluGrad makes the gradients of silu(gate)·up.
func (v isa) swigluGrad(e element) {
	c, name := v.c, v.name("swigluGrad"+e.name)
	v.function(name, "func(dgate, dup, dy, gate, up *byte, n int)",
		name+" writes dy·up·s·(1+gate·(1-s)) and dy·gate·s with s = 1/(1+e^-gate).")
	dgate, dup, dy, gate, up := v.pointer("dgate"), v.pointer("dup"), v.pointer("dy"), v.pointer("gate"), v.pointer("up")
	l := v.begin()
	ends, one := v.limits(-widest, widest), v.set(v.nums.f32(1))
	l.each(1, func() {
		x := v.max(ends.low, l.load(gate, e))
		g := v.min(ends.high, x)
		n, r := v.reduce(v.or(g, v.nums.u32(1<<31)))
		// With q = e^-|g| one of s and 1-s is 1/(1+q) and the other q/(1+q).
		q := v.scale(v.expOf(r), n)
		t := v.div(one, v.add(q, v.nums.f32(1)))
		qt := v.mul(q, t)
		below := v.negative(g)
		s, rest := v.blend(t, qt, below), v.blend(qt, t, below)
		d := v.mul(l.load(dy, e), s)
		slope := v.copy(one)
		v.addMul(slope, g, rest)
		u := l.load(up, e)
		l.store(v.mul(v.mul(d, u), slope), dgate, e)
		l.store(v.mul(d, x), dup, e)
	})
	target.Return(c)
}
