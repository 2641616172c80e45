package vecmath

import (
	"math"
	"slices"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

// The gates of this file are for float32: x/(1+e^-z). Up to widestNear nothing
// overflows and the function is that quotient. Beyond, far says, the power is
// limited and what is left of it comes last, so that subnormal results are
// rounded once. Both give the same bits where both may be used.

// widestNear bounds the |z| of gates that are not far.
const widestNear = 87

// longGate is a gate of float32: of returns its value. It is not far where the sum
// of beyond is at most bound.
type longGate struct {
	bound vec
	of    func(x vec, far bool) vec
}

// eachLong does body for all elements of arrays of float32: for those of a turn
// at once, not far if p is not beyond bound, and for the others one by one.
func (l *loop) eachLong(p gp, bound vec, body func(far bool)) {
	far := func() { body(true) }
	if !l.wide {
		l.each(2, far)
		return
	}
	const unroll = 6
	l.once(unroll, func() {
		beyond, done := l.label("far"), l.label("near")
		l.askAhead(unroll * l.lanes())
		l.c.KORTESTW(l.beyond(p, bound, unroll))
		l.c.JNE(operand.LabelRef(beyond))
		target.Interleave(l.c, unroll, func(u int) {
			l.off = u * l.lanes()
			body(false)
		})
		l.c.JMP(operand.LabelRef(done))
		l.c.Label(beyond)
		for u := range unroll {
			l.off = u * l.lanes()
			far()
		}
		l.off = 0
		l.c.Label(done)
	})
	l.turns(1, far)
	l.tail(far)
}

// beyond returns, twice, the lanes in which the squares of count registers at p
// add up to more than bound, or to NaN.
func (l *loop) beyond(p gp, bound vec, count int) (k, same reg.OpmaskVirtual) {
	const notAtMost = 0x16
	sum := l.set(l.nums.f32(1)) // no square makes it subnormal
	for u := range count {
		m := l.at(p, 4)
		m.Disp += u * l.bytes()
		x := l.copy(m)
		l.addMul(sum, x, x)
	}
	k = l.c.K()
	l.c.VCMPPS(operand.U8(notAtMost), bound, sum, k)
	return k, k
}

// near returns what the sum of beyond is at most where all |x| <= bound.
func (v isa) near(bound float64) vec { return v.set(v.nums.f32(1 + bound*bound)) }

// gate returns x/(1+e^-z) for z = a·b, where b may be nil for 1.
func (v isa) gate(x, a, b vec, far bool) vec {
	n, r := v.reduceMinus(a, b)
	p := v.horner(r, alternating(append([]float64{1, 1}, expPoly...))...)
	if !far {
		return v.div(x, v.onePlus(p, n))
	}
	most := v.min(v.set(v.nums.f32(126)), n)
	y, rest := v.div(x, v.onePlus(p, most)), v.sub(most, n)
	if v.wide {
		v.c.VSCALEFPS(rest, y, y)
		return y
	}
	return v.mul(y, v.power(v.toInt(rest)))
}

// reduceMinus returns n and r with -a·b = n·ln 2 - r; see reduce and
// reduceProduct.
func (v isa) reduceMinus(a, b vec) (n, r vec) {
	m := v.set(v.nums.f32(-math.Log2E))
	if b == nil {
		v.mulAdd(m, a, v.nums.f32(magic))
		n = v.sub(m, v.nums.f32(magic))
		r = v.copy(a)
		v.addMul(r, n, v.nums.f32(ln2High))
		v.addMul(r, n, v.nums.f32(ln2Low))
		return n, r
	}
	v.mulAdd(m, v.mul(a, b), v.nums.f32(magic))
	n = v.sub(m, v.nums.f32(magic))
	r = v.copy(a)
	v.c.VFMADD213PS(v.mul(n, v.nums.f32(ln2Short)), b, r)
	v.addMul(r, n, v.nums.f32(math.Ln2-ln2Short))
	return n, r
}

// alternating returns the coefficients of a polynomial of -r.
func alternating(coefficients []float64) []float64 {
	c := slices.Clone(coefficients)
	for i := 1; i < len(c); i += 2 {
		c[i] = -c[i]
	}
	return c
}

// sigmoid returns the function 1/(1+e^-x).
func (v isa) sigmoid() longGate {
	one := v.set(v.nums.f32(1))
	return longGate{v.near(widestNear), func(x vec, far bool) vec {
		if far {
			x = v.limits(-widest, widest).clamp(v, x)
		}
		return v.gate(one, x, nil, far)
	}}
}

// silu returns the function x/(1+e^-x).
func (v isa) silu() longGate {
	ends := func() limits { return v.limits(-widest, widest) }
	return v.longSwish(nil, ends, v.near(widestNear))
}

// longSwish returns the function x/(1+e^(-x·factor)), with limits of x.
func (v isa) longSwish(factor vec, ends func() limits, bound vec) longGate {
	return longGate{bound, func(x vec, far bool) vec {
		a := x
		if far {
			x, a = ends().apart(v, x)
		}
		return v.gate(x, a, factor, far)
	}}
}

// geluTanh returns the function x/(1+e^-z) with z = x·(c1 + c3·x²).
func (v isa) geluTanh() longGate {
	// |z| is below widest within the range, and the result is x or 0 outside.
	const edge, near = 12.875, 9.9375
	c1 := 2 * math.Sqrt(2/math.Pi)
	return longGate{v.near(near), func(x vec, far bool) vec {
		a := x
		if far {
			x, a = v.limits(-edge, edge).apart(v, x)
		}
		factor := v.set(v.nums.f32(c1 * 0.044715))
		v.mulAdd(factor, v.mul(a, a), v.nums.f32(c1))
		return v.gate(x, a, factor, far)
	}}
}

// swish makes the silu with a factor in its exponent.
func (v isa) swish(e element) {
	what := "writes src/(1+e^(-scale·src)) for scales from 2^-64 to 2^64; low and high are -174/scale and 174/scale"
	v.array("swish"+e.name, what, signature{scalars: []string{"scale", "low", "high"}}, func(l *loop, p pointers) {
		factor, low, high := p.scalars[0], p.scalars[1], p.scalars[2]
		l.stream(e, p)
		if e != f32 {
			f := v.briefSwish(e, v.mul(factor, v.set(v.nums.f32(-math.Log2E))), low)
			l.eachGate(e, func() { l.store(f(l.load(p.src, e)), p.dst, e) })
			return
		}
		ends := func() limits { return limits{low, high} }
		bound := v.mul(v.min(high, v.set(v.nums.f32(1<<62))), v.nums.f32(0.5))
		g := v.longSwish(factor, ends, v.mul(bound, bound))
		l.eachLong(p.src, g.bound, func(far bool) { l.store(g.of(l.load(p.src, e), far), p.dst, e) })
	})
}

// swiglu makes the product of silu(a) and b.
func (v isa) swiglu(e element) {
	v.array("swiglu"+e.name, "writes silu(a)·b", signature{second: true}, func(l *loop, p pointers) {
		l.stream(e, p)
		if e != f32 {
			l.eachShort(e, p.src, v.shortSilu(e), func(y vec) { l.store(v.mul(y, l.load(p.b, e)), p.dst, e) })
			return
		}
		silu := v.silu()
		l.eachLong(p.src, silu.bound, func(far bool) {
			l.store(v.mul(silu.of(l.load(p.src, e), far), l.load(p.b, e)), p.dst, e)
		})
	})
}
