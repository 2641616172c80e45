package vec

import "goatb/internal/asm/vecmath"

// Sub stores a-b in dst, element by element. The three have equal lengths and
// dst may be a or b.
func Sub(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	if vecmath.Binary(vecmath.Sub, F32, dst, a, b) {
		return
	}
	for len(dst) >= 4 && len(a) >= 4 && len(b) >= 4 {
		dst[0] = a[0] - b[0]
		dst[1] = a[1] - b[1]
		dst[2] = a[2] - b[2]
		dst[3] = a[3] - b[3]
		dst, a, b = dst[4:], a[4:], b[4:]
	}
	for i := range dst {
		dst[i] = a[i] - b[i]
	}
}

// Div stores a/b in dst, element by element. The three have equal lengths and
// dst may be a or b.
func Div(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	if vecmath.Binary(vecmath.Div, F32, dst, a, b) {
		return
	}
	for len(dst) >= 4 && len(a) >= 4 && len(b) >= 4 {
		dst[0] = a[0] / b[0]
		dst[1] = a[1] / b[1]
		dst[2] = a[2] / b[2]
		dst[3] = a[3] / b[3]
		dst, a, b = dst[4:], a[4:], b[4:]
	}
	for i := range dst {
		dst[i] = a[i] / b[i]
	}
}

// Neg stores -a in dst, element by element. The two have equal lengths and dst
// may be a.
func Neg(dst, a []float32) {
	a = a[:len(dst)]
	if vecmath.Unary(vecmath.Neg, F32, dst, a) {
		return
	}
	for i := range dst {
		dst[i] = -a[i]
	}
}

// Relu stores the larger of a and 0 in dst, element by element; NaN stays NaN.
// The two have equal lengths and dst may be a.
func Relu(dst, a []float32) {
	a = a[:len(dst)]
	if vecmath.Unary(vecmath.Relu, F32, dst, a) {
		return
	}
	for i := range dst {
		v := a[i]
		if v < 0 {
			v = 0
		}
		dst[i] = v
	}
}

// ScaleMul stores (a*s)*g in dst, element by element. The three have equal
// lengths and dst may be a or g.
func ScaleMul(dst, a []float32, s float32, g []float32) {
	a, g = a[:len(dst)], g[:len(dst)]
	if vecmath.ScaleMul(F32, dst, a, s, g) {
		return
	}
	for len(dst) >= 4 && len(a) >= 4 && len(g) >= 4 {
		dst[0] = a[0] * s * g[0]
		dst[1] = a[1] * s * g[1]
		dst[2] = a[2] * s * g[2]
		dst[3] = a[3] * s * g[3]
		dst, a, g = dst[4:], a[4:], g[4:]
	}
	for i := range dst {
		dst[i] = a[i] * s * g[i]
	}
}

// ScaleMulAdd stores (a*s)*g + b in dst, element by element; every product is
// rounded before the sum. The four have equal lengths and dst may be any.
func ScaleMulAdd(dst, a []float32, s float32, g, b []float32) {
	a, g, b = a[:len(dst)], g[:len(dst)], b[:len(dst)]
	if vecmath.ScaleMulAdd(dst, a, s, g, b) {
		return
	}
	for len(dst) >= 4 && len(a) >= 4 && len(g) >= 4 && len(b) >= 4 {
		dst[0] = float32(a[0]*s*g[0]) + b[0]
		dst[1] = float32(a[1]*s*g[1]) + b[1]
		dst[2] = float32(a[2]*s*g[2]) + b[2]
		dst[3] = float32(a[3]*s*g[3]) + b[3]
		dst, a, g, b = dst[4:], a[4:], g[4:], b[4:]
	}
	for i := range dst {
		dst[i] = float32(a[i]*s*g[i]) + b[i]
	}
}
