//go:build amd64 && !noasm

package vecmath

// Unary writes f(src) to dst.
func Unary(f Func, dst, src []float32) bool {
	n := len(src)
	if n == 0 {
		return true
	}
	d, s := &dst[:n][0], &src[0]
	switch width() {
	case 512:
		unary512(f, d, s, n)
	case 256:
		unary256(f, d, s, n)
	default:
		return false
	}
	return true
}

func unary512(f Func, d, s *float32, n int) {
	switch f {
	case Neg:
		negAVX512(d, s, n)
	case Relu:
		reluAVX512(d, s, n)
	case RoundF16:
		roundF16AVX512(d, s, n)
	case Exp:
		expAVX512(d, s, n)
	case Sigmoid:
		sigmoidAVX512(d, s, n)
	case Tanh:
		tanhAVX512(d, s, n)
	case Silu:
		siluAVX512(d, s, n)
	case GeluTanh:
		geluTanhAVX512(d, s, n)
	case GeluErf:
		geluErfAVX512(d, s, n)
	}
}

func unary256(f Func, d, s *float32, n int) {
	switch f {
	case Neg:
		negAVX2(d, s, n)
	case Relu:
		reluAVX2(d, s, n)
	case RoundF16:
		roundF16AVX2(d, s, n)
	case Exp:
		expAVX2(d, s, n)
	case Sigmoid:
		sigmoidAVX2(d, s, n)
	case Tanh:
		tanhAVX2(d, s, n)
	case Silu:
		siluAVX2(d, s, n)
	case GeluTanh:
		geluTanhAVX2(d, s, n)
	case GeluErf:
		geluErfAVX2(d, s, n)
	}
}

// Part writes f(src) to dst and returns the number of elements that it did. It
// stops before 8 or 16 elements one of which is out of f's range.
func Part(f PartFunc, dst, src []float32) (done int, ok bool) {
	n := len(src)
	if n == 0 {
		return 0, true
	}
	d, s := &dst[:n][0], &src[0]
	switch width() {
	case 512:
		switch f {
		case Sin:
			return sinAVX512(d, s, n), true
		case Cos:
			return cosAVX512(d, s, n), true
		default:
			return logAVX512(d, s, n), true
		}
	case 256:
		switch f {
		case Sin:
			return sinAVX2(d, s, n), true
		case Cos:
			return cosAVX2(d, s, n), true
		default:
			return logAVX2(d, s, n), true
		}
	}
	return 0, false
}

// widest is the largest magnitude of the exponents that the gates take.
const widest = 174

// Swish writes src/(1+e^(-scale·src)), for scales from 2^-64 to 2^64.
func Swish(dst, src []float32, scale float32) bool {
	n := len(src)
	if !(scale >= 0x1p-64 && scale <= 0x1p64) {
		return false
	}
	if n == 0 {
		return true
	}
	d, s, high := &dst[:n][0], &src[0], widest/scale
	switch width() {
	case 512:
		swishAVX512(d, s, n, scale, -high, high)
	case 256:
		swishAVX2(d, s, n, scale, -high, high)
	default:
		return false
	}
	return true
}

// Scale writes src·a.
func Scale(dst, src []float32, a float32) bool {
	n := len(src)
	if n == 0 {
		return true
	}
	d, s := &dst[:n][0], &src[0]
	switch width() {
	case 512:
		scaleAVX512(d, s, n, a)
	case 256:
		scaleAVX2(d, s, n, a)
	default:
		return false
	}
	return true
}

// Clamp writes src limited to low..high; NaN stays NaN.
func Clamp(dst, src []float32, low, high float32) bool {
	n := len(src)
	if n == 0 {
		return true
	}
	d, s := &dst[:n][0], &src[0]
	switch width() {
	case 512:
		clampAVX512(d, s, n, low, high)
	case 256:
		clampAVX2(d, s, n, low, high)
	default:
		return false
	}
	return true
}

// RoundScaled writes src·scale rounded to an integer, ties to even, and limited
// to low..high; NaN stays NaN.
func RoundScaled(dst, src []float32, scale, low, high float32) bool {
	n := len(src)
	if n == 0 {
		return true
	}
	d, s := &dst[:n][0], &src[0]
	switch width() {
	case 512:
		roundScaledAVX512(d, s, n, scale, low, high)
	case 256:
		roundScaledAVX2(d, s, n, scale, low, high)
	default:
		return false
	}
	return true
}
