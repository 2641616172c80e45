//go:build amd64 && !noasm

package vecmath

// Binary writes f(a, b) to dst.
func Binary(f Func2, dst, a, b []float32) bool {
	n := len(a)
	if n == 0 {
		return true
	}
	d, x, y := &dst[:n][0], &a[0], &b[:n][0]
	switch width() {
	case 512:
		binary512(f, d, x, y, n)
	case 256:
		binary256(f, d, x, y, n)
	default:
		return false
	}
	return true
}

func binary512(f Func2, d, a, b *float32, n int) {
	switch f {
	case Add:
		addAVX512(d, a, b, n)
	case Sub:
		subAVX512(d, a, b, n)
	case Mul:
		mulAVX512(d, a, b, n)
	case Div:
		divAVX512(d, a, b, n)
	case SwiGLU:
		swigluAVX512(d, a, b, n)
	}
}

func binary256(f Func2, d, a, b *float32, n int) {
	switch f {
	case Add:
		addAVX2(d, a, b, n)
	case Sub:
		subAVX2(d, a, b, n)
	case Mul:
		mulAVX2(d, a, b, n)
	case Div:
		divAVX2(d, a, b, n)
	case SwiGLU:
		swigluAVX2(d, a, b, n)
	}
}

// ScaleMul writes (a·s)·g.
func ScaleMul(dst, a []float32, s float32, g []float32) bool {
	n := len(a)
	if n == 0 {
		return true
	}
	d, x, y := &dst[:n][0], &a[0], &g[:n][0]
	switch width() {
	case 512:
		scaleMulAVX512(d, x, y, n, s)
	case 256:
		scaleMulAVX2(d, x, y, n, s)
	default:
		return false
	}
	return true
}

// ScaleMulAdd writes (a·s)·g + b; every product is rounded before the sum.
func ScaleMulAdd(dst, a []float32, s float32, g, b []float32) bool {
	n := len(a)
	if n == 0 {
		return true
	}
	d, x, y, z := &dst[:n][0], &a[0], &g[:n][0], &b[:n][0]
	switch width() {
	case 512:
		scaleMulAddAVX512(d, x, y, z, n, s)
	case 256:
		scaleMulAddAVX2(d, x, y, z, n, s)
	default:
		return false
	}
	return true
}

// Blend writes a·y + b·x; every product is rounded before the sum.
func Blend(dst []float32, a float32, y []float32, b float32, x []float32) bool {
	n := len(y)
	if n == 0 {
		return true
	}
	d, p, q := &dst[:n][0], &y[0], &x[:n][0]
	switch width() {
	case 512:
		blendAVX512(d, p, q, n, a, b)
	case 256:
		blendAVX2(d, p, q, n, a, b)
	default:
		return false
	}
	return true
}

// RotateHalf turns the pairs x[i], x[i+h] of a vector of 2h elements by the
// angles with the given cosines and sines; with f16 every product and sum is
// rounded to f16.
func RotateHalf(dst, x, cos, sin []float32, f16 bool) bool {
	n := len(x)
	if n < 2 {
		return n == 0
	}
	d, p, c, s := &dst[:n][0], &x[0], &cos[:n][0], &sin[:n][0]
	switch w := width(); {
	case w == 512 && f16:
		rotateHalfF16AVX512(d, p, c, s, n/2)
	case w == 512:
		rotateHalfAVX512(d, p, c, s, n/2)
	case w == 256 && f16:
		rotateHalfF16AVX2(d, p, c, s, n/2)
	case w == 256:
		rotateHalfAVX2(d, p, c, s, n/2)
	default:
		return false
	}
	return true
}

// RotatePairs is RotateHalf for the pairs x[2i], x[2i+1].
func RotatePairs(dst, x, cos, sin []float32, f16 bool) bool {
	n := len(x)
	if n == 0 {
		return true
	}
	d, p, c, s := &dst[:n][0], &x[0], &cos[:n][0], &sin[:n][0]
	switch w := width(); {
	case w == 512 && f16:
		rotatePairsF16AVX512(d, p, c, s, n)
	case w == 512:
		rotatePairsAVX512(d, p, c, s, n)
	case w == 256 && f16:
		rotatePairsF16AVX2(d, p, c, s, n)
	case w == 256:
		rotatePairsAVX2(d, p, c, s, n)
	default:
		return false
	}
	return true
}
