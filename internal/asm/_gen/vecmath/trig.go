package vecmath

import (
	"math"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"

	"goatb/internal/asm/gen/target"
)

// trigFile makes sine, cosine and logarithm, which stop before a register with
// arguments that they do not take.
func trigFile(c *build.Context) {
	nums := newPool("trig")
	writeTables(c)
	both(c, nums, func(v isa) {
		// The tail's zeros are in the range of sin and cos, but not of log.
		v.partial("sin", "sine of src, |src| < 2^20", func() func(x vec) (ok, y vec) { return v.sine(0) })
		v.partial("cos", "cosine of src, |src| < 2^20", func() func(x vec) (ok, y vec) { return v.sine(0.5) })
		v.partial("log", "natural logarithm of src, positive, finite and normal", v.logarithm)
	})
	nums.write(c)
}

// partial makes a function of one array that returns the number of elements it
// did: it stops before a register with an element for which ok has no sign bit.
func (v isa) partial(name, what string, make func() func(x vec) (ok, y vec)) {
	c := v.c
	v.function(v.name(name), "func(dst, src *float32, n int) int",
		v.name(name)+" writes the "+what+", and returns the number of elements it did:",
		"it stops before a register with an element outside.")
	dst, src := v.pointer("dst"), v.pointer("src")
	l := v.begin()
	f := make()
	l.each(1, func() {
		ok, y := f(l.load(src, f32))
		good := c.GP32()
		all := 1<<v.lanes() - 1
		if v.wide {
			c.KMOVW(v.negative(ok).k, good)
			if l.masked {
				rest := c.GP32()
				c.KMOVW(l.opmask, rest)
				c.NOTL(rest)
				c.ORL(rest, good)
				c.MOVWLZX(good.As16(), good)
			}
		} else {
			c.VMOVMSKPS(ok, good)
			if l.masked {
				rest := c.GP32()
				c.VMOVMSKPS(l.mask, rest)
				c.XORL(operand.I32(all), rest)
				c.ORL(rest, good)
			}
		}
		c.CMPL(good, operand.U32(all))
		c.JNE(operand.LabelRef("stop"))
		l.store(y, dst, f32)
	})
	// The tail leaves index where it began.
	c.ADDQ(l.left, l.index)
	c.Label("stop")
	c.Store(l.index, c.ReturnIndex(0))
	target.Return(c)
}

// sinPoly holds S with sin r = r + r³·S(r²) for |r| <= 1.63; relative error
// below 2^-30.
var sinPoly = []float64{-0x1.555556p-3, 0x1.111134p-7, -0x1.a02298p-13, 0x1.729834p-19, -0x1.b07454p-26}

// sine is the sine of x - n·π with the sign of (-1)^n. For phase 0, n is the
// integer nearest to x/π. For phase ½ n lies ½ below an integer k and
// cos x = (-1)^k·sin(x - n·π).
func (v isa) sine(phase float64) func(x vec) (ok, y vec) {
	pi1 := float64(float32(math.Pi))
	pi2 := float64(float32(math.Pi - pi1))
	const piRest = 1.2246467991473532e-16 // π less its float64
	pi3 := math.Pi - pi1 - pi2 + piRest
	return func(x vec) (ok, y vec) {
		ok = v.subInt(v.and(x, v.nums.u32(math.MaxInt32)), v.nums.f32(1<<20))
		m := v.set(v.nums.f32(1 / math.Pi))
		n := m
		if phase == 0 {
			v.mulAdd(m, x, v.nums.f32(magic))
			n = v.sub(m, v.nums.f32(magic))
		} else {
			v.mulAdd(m, x, v.nums.f32(phase))
			m = v.add(m, v.nums.f32(magic))
			n = v.sub(v.sub(m, v.nums.f32(magic)), v.nums.f32(phase))
		}
		r := v.copy(x)
		v.subMul(r, n, v.nums.f32(pi1))
		v.subMul(r, n, v.nums.f32(pi2))
		v.subMul(r, n, v.nums.f32(pi3))
		u := v.mul(r, r)
		y = v.horner(u, sinPoly...)
		v.mulAdd(y, v.mul(u, r), r)
		return ok, v.xor(y, v.shiftLeft(m, 31))
	}
}

// logPoly holds L with log(1+f) = f - f²/2 + f³·L(f) for √½-1 <= f <= √2-1;
// relative error of the logarithm below 2^-27.
var logPoly = []float64{
	0x1.555554p-2, -0x1.000228p-2, 0x1.99a022p-3, -0x1.547206p-3,
	0x1.22d86cp-3, -0x1.0d86a4p-3, 0x1.05652cp-3, -0x1.38c080p-4,
}

// logarithm writes x as m·2^k with m in √½..√2.
func (v isa) logarithm() func(x vec) (ok, y vec) {
	const (
		sqrtHalf  = 0x3f3504f3
		minNormal = 0x00800000
		infinity  = 0x7f800000
	)
	return func(x vec) (ok, y vec) {
		// The sign bit of ok is set for minNormal <= x < infinity: the first
		// difference is negative only then.
		below := v.subInt(x, v.nums.u32(infinity))
		above := v.subInt(x, v.nums.u32(minNormal))
		ok = v.and(v.xor(above, v.nums.u32(math.MaxUint32)), v.and(below, v.xor(x, v.nums.u32(math.MaxUint32))))
		k := v.shiftRight(v.subInt(x, v.nums.u32(sqrtHalf)), 23)
		f := v.sub(v.subInt(x, v.shiftLeft(k, 23)), v.nums.f32(1))
		kf := v.toFloat(k)
		s := v.mul(f, f)
		y = v.mul(v.mul(s, f), v.horner(f, logPoly...))
		v.addMul(y, kf, v.nums.f32(ln2Low))
		v.addMul(y, s, v.nums.f32(-0.5))
		y = v.add(y, f)
		v.addMul(y, kf, v.nums.f32(ln2High))
		return ok, y
	}
}
