package tensor

import (
	"math"
	"sort"
)

// nearest rounds to a 16-bit float format by searching the list of all its
// values: the reference for every conversion to f16 and bf16.
type nearest struct {
	fracBits int
	// values[i] is the value of bit pattern i, ascending; the last pattern is
	// infinity, which stands at the power of two that it begins at.
	values []float64
}

func newNearest(expBits, fracBits int) *nearest {
	bias, inf := 1<<(expBits-1)-1, 1<<15-1<<fracBits
	n := &nearest{fracBits: fracBits, values: make([]float64, inf+1)}
	for i := range n.values {
		exp, frac := i>>fracBits, i&(1<<fracBits-1)
		if exp > 0 {
			frac += 1 << fracBits
		}
		n.values[i] = math.Ldexp(float64(frac), max(exp, 1)-bias-fracBits)
	}
	return n
}

var (
	nearestF16  = newNearest(5, 10)
	nearestBF16 = newNearest(8, 7)
)

// value decodes a bit pattern.
func (n *nearest) value(bits uint16) float64 {
	sign := 1.0
	if bits>>15 != 0 {
		sign = -1
	}
	switch i, inf := int(bits&0x7fff), len(n.values)-1; {
	case i > inf:
		return math.NaN()
	case i == inf:
		return math.Inf(int(sign))
	default:
		return math.Copysign(n.values[i], sign)
	}
}

// round returns the pattern next to x, ties to even. A midpoint needs one bit
// more than the format has, so float64 holds it exactly. NaN gives a NaN.
func (n *nearest) round(x float64) uint16 {
	inf := len(n.values) - 1
	var sign uint16
	if math.Signbit(x) {
		sign = 0x8000
	}
	a := math.Abs(x)
	if a != a {
		return sign | uint16(inf) + 1<<(n.fracBits-1)
	}
	hi := sort.SearchFloat64s(n.values, a)
	switch {
	case hi > inf:
		return sign | uint16(inf)
	case n.values[hi] == a:
		return sign | uint16(hi)
	}
	mid := n.values[hi-1]/2 + n.values[hi]/2
	if a < mid || a == mid && hi%2 == 1 {
		hi--
	}
	return sign | uint16(hi)
}

// isNaN reports whether a pattern is a NaN.
func (n *nearest) isNaN(bits uint16) bool { return int(bits&0x7fff) >= len(n.values) }

// cuts calls visit with every value of the format, with every midpoint between
// neighbours, the last being where infinity begins, and with the float32 on
// each side of them, in both signs.
func (n *nearest) cuts(visit func(x float32)) {
	around := func(x float64) {
		f := float32(x)
		for _, v := range []float32{f, math.Nextafter32(f, 0), math.Nextafter32(f, math.MaxFloat32)} {
			visit(v)
			visit(-v)
		}
	}
	for i, v := range n.values[:len(n.values)-1] {
		around(v)
		around(v/2 + n.values[i+1]/2)
	}
}
