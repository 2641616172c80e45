package floats

import (
	"goatb/internal/asm/vecmath"
	"goatb/internal/vec"
)

// Func2 names a function of two arrays.
type Func2 = vecmath.Func2

// Functions of two arrays.
const (
	Plus   = vecmath.Add
	Minus  = vecmath.Sub
	Times  = vecmath.Mul
	Over   = vecmath.Div
	SwiGLU = vecmath.SwiGLU // silu(a)·b
)

// plain2 are the functions on float32.
var plain2 = [...]func(dst, a, b []float32){Plus: vec.Add, Minus: vec.Sub, Times: vec.Mul, Over: vec.Div, SwiGLU: vec.SwiGLU}

// Binary stores f(a, b).
func Binary(f Func2, e Element, dst, a, b []byte, buf []float32) {
	if e == F32 {
		plain2[f](view[float32](dst), view[float32](a), view[float32](b))
		return
	}
	d, x, y := view[uint16](dst), view[uint16](a), view[uint16](b)
	if vecmath.Binary(f, e, d, x, y) {
		return
	}
	for len(x) > 0 {
		u := widen(e, buf, x)
		v := widen(e, buf[len(u):], y)
		plain2[f](u, u, v)
		narrow(e, d, u)
		d, x, y = d[len(u):], x[len(u):], y[len(u):]
	}
}

// SwiGLUGrad stores the gradients of SwiGLU; see package vec. buf has five times
// the elements of an array, or five times BufferElements.
func SwiGLUGrad(e Element, dgate, dup, dy, gate, up []byte, buf []float32) {
	if e == F32 {
		vec.SwiGLUGrad(view[float32](dgate), view[float32](dup), view[float32](dy), view[float32](gate), view[float32](up))
		return
	}
	dg, du, d, g, u := view[uint16](dgate), view[uint16](dup), view[uint16](dy), view[uint16](gate), view[uint16](up)
	if vecmath.SwiGLUGrad(e, dg, du, d, g, u) {
		return
	}
	for len(g) > 0 {
		x := widen(e, buf, g)
		n := len(x)
		y, z, a, b := widen(e, buf[n:], u), widen(e, buf[2*n:], d), buf[3*n:4*n], buf[4*n:5*n]
		vec.SwiGLUGrad(a, b, z, x, y)
		narrow(e, dg, a)
		narrow(e, du, b)
		dg, du, d, g, u = dg[n:], du[n:], d[n:], g[n:], u[n:]
	}
}

// ScaleMul stores (a·s)·gain; dst and a have type e.
func ScaleMul(e Element, dst, a []byte, s float32, gain, buf []float32) {
	if e == F32 {
		vec.ScaleMul(view[float32](dst), view[float32](a), s, gain)
		return
	}
	d, x := view[uint16](dst), view[uint16](a)
	if vecmath.ScaleMul(e, d, x, s, gain) {
		return
	}
	for len(x) > 0 {
		u := widen(e, buf, x)
		vec.ScaleMul(u, u, s, gain[:len(u)])
		narrow(e, d, u)
		d, x, gain = d[len(u):], x[len(u):], gain[len(u):]
	}
}

// ScaleMulTo stores (a·s)·gain as elements of type e.
func ScaleMulTo(e Element, dst []byte, a []float32, s float32, gain, buf []float32) {
	if e == F32 {
		vec.ScaleMul(view[float32](dst), a, s, gain)
		return
	}
	d := view[uint16](dst)
	if vecmath.ScaleMulTo(e, d, a, s, gain) {
		return
	}
	for len(a) > 0 {
		u := buf[:min(step, len(a))]
		vec.ScaleMul(u, a[:len(u)], s, gain[:len(u)])
		narrow(e, d, u)
		d, a, gain = d[len(u):], a[len(u):], gain[len(u):]
	}
}

// ScaleTo stores src·s as elements of type e.
func ScaleTo(e Element, dst []byte, src []float32, s float32, buf []float32) {
	if e == F32 {
		vec.Scale(view[float32](dst), src, s)
		return
	}
	d := view[uint16](dst)
	if vecmath.ScaleTo(e, d, src, s) {
		return
	}
	for len(src) > 0 {
		u := buf[:min(step, len(src))]
		vec.Scale(u, src[:len(u)], s)
		narrow(e, d, u)
		d, src = d[len(u):], src[len(u):]
	}
}

// Rotation names a rotation of pairs.
type Rotation = vecmath.Rotation

// Rotations: of pairs half a vector apart and of neighbours; with steps, which
// is for f16, every product and sum is rounded to f16.
const (
	Halves      = vecmath.Halves
	Pairs       = vecmath.Pairs
	HalvesSteps = vecmath.HalvesSteps
	PairsSteps  = vecmath.PairsSteps
)

// Rotate turns the pairs of count vectors of x, stride elements apart, by the
// angles whose cosines and sines are given for each element of a vector; their
// number is even. See package vec. buf has room for a vector.
func Rotate(r Rotation, e Element, dst, x []byte, count, stride int, cos, sin, buf []float32) {
	if e == F32 {
		d, s := view[float32](dst), view[float32](x)
		if vecmath.Rotate(r, e, d, s, count, stride, cos, sin) {
			return
		}
		for i := range count {
			rotate(r, d[i*stride:][:len(cos)], s[i*stride:][:len(cos)], cos, sin)
		}
		return
	}
	d, s := view[uint16](dst), view[uint16](x)
	if vecmath.Rotate(r, e, d, s, count, stride, cos, sin) {
		return
	}
	buf = buf[:len(cos)]
	for i := range count {
		Widen(e, buf, bytesOf(s[i*stride:][:len(cos)]))
		rotate(r, buf, buf, cos, sin)
		narrow(e, d[i*stride:], buf)
	}
}

func rotate(r Rotation, dst, x, cos, sin []float32) {
	switch r {
	case Halves:
		vec.RotateHalf(dst, x, cos, sin)
	case Pairs:
		vec.RotatePairs(dst, x, cos, sin)
	case HalvesSteps:
		vec.RotateHalfF16(dst, x, cos, sin)
	default:
		vec.RotatePairsF16(dst, x, cos, sin)
	}
}
