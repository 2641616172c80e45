package floats

import (
	"goatb/internal/asm/vecmath"
	"goatb/internal/vec"
)

// Func names a function of one array.
type Func uint8

// Functions of one array; package vec says what they compute. The first are
// those of package vecmath.
const (
	Neg      = Func(vecmath.Neg)
	Relu     = Func(vecmath.Relu)
	Sigmoid  = Func(vecmath.Sigmoid)
	Tanh     = Func(vecmath.Tanh)
	Silu     = Func(vecmath.Silu)
	GeluTanh = Func(vecmath.GeluTanh)
	GeluErf  = Func(vecmath.GeluErf)
)

const (
	Sin Func = iota + GeluErf + 1
	Cos
	Log
	numFuncs
)

// plain are the functions on float32.
var plain = [numFuncs]func(dst, src []float32){
	Neg: vec.Neg, Relu: vec.Relu, Sigmoid: vec.Sigmoid, Tanh: vec.Tanh, Silu: vec.Silu,
	GeluTanh: vec.GeluTanh, GeluErf: vec.GeluErf, Sin: vec.Sin, Cos: vec.Cos, Log: vec.Log,
}

// Unary stores f(src).
func Unary(f Func, e Element, dst, src []byte, buf []float32) {
	if e == F32 {
		plain[f](view[float32](dst), view[float32](src))
		return
	}
	d, s := view[uint16](dst), view[uint16](src)
	if f <= GeluErf && vecmath.Unary(vecmath.Func(f), e, d, s) {
		return
	}
	for len(s) > 0 {
		x := widen(e, buf, s)
		plain[f](x, x)
		narrow(e, d, x)
		d, s = d[len(x):], s[len(x):]
	}
}

// Swish stores src/(1+e^(-scale·src)).
func Swish(e Element, dst, src []byte, scale float32, buf []float32) {
	if scale == 1 {
		Unary(Silu, e, dst, src, buf)
		return
	}
	if e == F32 {
		vec.Swish(view[float32](dst), view[float32](src), scale)
		return
	}
	d, s := view[uint16](dst), view[uint16](src)
	if vecmath.Swish(e, d, s, scale) {
		return
	}
	for len(s) > 0 {
		x := widen(e, buf, s)
		vec.Swish(x, x, scale)
		narrow(e, d, x)
		d, s = d[len(x):], s[len(x):]
	}
}

// ScalarFunc names a function of an array and a number.
type ScalarFunc = vecmath.ScalarFunc

// Functions of an array x and a number s.
const (
	AddScalar = vecmath.AddScalar // x+s
	SubScalar = vecmath.SubScalar // x-s
	ScalarSub = vecmath.ScalarSub // s-x
	MulScalar = vecmath.MulScalar // x·s
	DivScalar = vecmath.DivScalar // x/s
	ScalarDiv = vecmath.ScalarDiv // s/x
)

// Scalar stores f(src, s).
func Scalar(f ScalarFunc, e Element, dst, src []byte, s float32, buf []float32) {
	if e == F32 {
		d, x := view[float32](dst), view[float32](src)
		if !vecmath.Scalar(f, e, d, x, s) {
			scalar(f, d, x, s)
		}
		return
	}
	d, x := view[uint16](dst), view[uint16](src)
	if vecmath.Scalar(f, e, d, x, s) {
		return
	}
	for len(x) > 0 {
		y := widen(e, buf, x)
		scalar(f, y, y, s)
		narrow(e, d, y)
		d, x = d[len(y):], x[len(y):]
	}
}

func scalar(f ScalarFunc, dst, src []float32, s float32) {
	dst = dst[:len(src)]
	switch f {
	case AddScalar:
		for i, x := range src {
			dst[i] = x + s
		}
	case SubScalar:
		for i, x := range src {
			dst[i] = x - s
		}
	case ScalarSub:
		for i, x := range src {
			dst[i] = s - x
		}
	case MulScalar:
		for i, x := range src {
			dst[i] = x * s
		}
	case DivScalar:
		for i, x := range src {
			dst[i] = x / s
		}
	default:
		for i, x := range src {
			dst[i] = s / x
		}
	}
}
