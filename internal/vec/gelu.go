package vec

import (
	"math"

	"goatb/internal/asm/vecmath"
)

// GeluTanh writes the tanh form of the Gaussian error linear unit,
// x/2·(1+tanh(√(2/π)·(x+0.044715·x³))), with the limit -0 at -Inf.
func GeluTanh(dst, src []float32) {
	if vecmath.Unary(vecmath.GeluTanh, F32, dst, src) {
		return
	}
	// 1+tanh(u) = 2/(1+e^-2u).
	const (
		c1 = 2 * (math.Sqrt2 / math.SqrtPi)
		c3 = c1 * 0.044715
	)
	dst = dst[:len(src)]
	for i := range src {
		x := float64(src[i])
		z := x * (c1 + c3*(x*x))
		if !(z > -wideRange && z < wideRange) {
			dst[i] = gateEdge(x, z)
			continue
		}
		dst[i] = float32(x / (1 + exp64(-z)))
	}
}

const (
	// tailRange bounds the x for which x·Φ(x) is neither x nor 0 in float32.
	tailRange = 16
	// tailShift is the shift of the variable of tailPoly.
	tailShift = 3
)

// tailPoly holds the coefficients of P with Φ(-t) = e^(-t²/2)·w·P(w) for
// w = 1/(t+3) and 0 <= t <= 16, Φ being the normal distribution: a polynomial
// through Chebyshev nodes, relative error below 2^-29.
var tailPoly = [...]float64{
	0.39894800266478364, 1.1963024013022514, 3.2126313184950073, 6.690040757630087,
	19.297597173159936, -66.15636305459056, 458.1493196453164, -2376.2559425777995,
	5812.482414899536, -6953.488395365087, 3364.992995005783,
}

// GeluErf writes the exact Gaussian error linear unit, x/2·(1+erf(x/√2)), with
// the limit -0 at -Inf. Negative arguments keep their relative accuracy.
func GeluErf(dst, src []float32) {
	if vecmath.Unary(vecmath.GeluErf, F32, dst, src) {
		return
	}
	dst = dst[:len(src)]
	c := &tailPoly
	for i := range src {
		x := float64(src[i])
		t := math.Abs(x)
		if !(t < tailRange) {
			dst[i] = gateEdge(x, x)
			continue
		}
		w := 1 / (t + tailShift)
		v := w * w
		lo := c[0] + c[1]*w + v*(c[2]+c[3]*w)
		hi := c[4] + c[5]*w + v*(c[6]+c[7]*w) + v*v*(c[8]+c[9]*w+v*c[10])
		q := exp64(-0.5*t*t) * w * (lo + v*v*hi)
		// x·Φ(x) is x - x·Φ(-x) on the positive side and x·Φ(x) on the other.
		dst[i] = float32(0.5*(x+t) - t*q)
	}
}
