package floats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/internal/cpu"
)

// halves are the types of 16 bits.
var halves = []Element{F16, BF16}

// gate is a function of one number whose 16-bit form has its own error.
type gate struct {
	name string
	run  func(e Element, dst, src []byte)
	ref  func(x float64) float64
}

func swishRef(scale float64) func(x float64) float64 {
	return func(x float64) float64 {
		if z := scale * x; z < -700 {
			return math.Copysign(0, x)
		}
		return x / (1 + math.Exp(-scale*x))
	}
}

func gates() []gate {
	buf := make([]float32, BufferElements)
	unary := func(f Func) func(e Element, dst, src []byte) {
		return func(e Element, dst, src []byte) { Unary(f, e, dst, src, buf) }
	}
	out := []gate{
		{"sigmoid", unary(Sigmoid), func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }},
		{"silu", unary(Silu), swishRef(1)},
		{"gelu tanh", unary(GeluTanh), func(x float64) float64 {
			z := 2 * math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x)
			if z < -700 {
				return math.Copysign(0, x)
			}
			return x / (1 + math.Exp(-z))
		}},
	}
	for _, scale := range []float32{1, 1.702, 0x1p-64, 0x1p-6, 0x1p64, 90} {
		out = append(out, gate{fmt.Sprintf("swish %v", scale), func(e Element, dst, src []byte) { Swish(e, dst, src, scale, buf) }, swishRef(float64(scale))})
	}
	return out
}

// last returns the value of the last place of numbers of type e at x: those
// below the smallest normal number have its.
func last(e Element, x float64) float64 {
	exp := -1022
	if x != 0 {
		exp = math.Ilogb(x)
	}
	if e == F16 {
		return math.Ldexp(1, max(exp, -14)-10)
	}
	return math.Ldexp(1, max(exp, -126)-7)
}

// largest is the largest finite number of a type.
func largest(e Element) float64 {
	if e == F16 {
		return 65504
	}
	return 0x1.fep127
}

// wantNear checks got, which is rounded to type e, against the exact value:
// it is at most bound units of the last place away, infinite where that rounds
// so, and NaN where it is. It returns the distance.
func wantNear(t *testing.T, e Element, got, exact, bound float64, what string, args ...any) float64 {
	t.Helper()
	if off := math.Abs(got-exact) / last(e, exact); off <= bound {
		return off
	}
	switch {
	case math.IsNaN(exact) || math.IsNaN(got):
		require.Equal(t, math.IsNaN(exact), math.IsNaN(got), "%s: want %v, got %v", fmt.Sprintf(what, args...), exact, got)
		return 0
	case math.IsInf(got, 0) || math.IsInf(exact, 0):
		edge := largest(e) + last(e, largest(e))*(1-bound)
		require.True(t, math.Abs(exact) >= edge && math.Signbit(exact) == math.Signbit(got) && math.Abs(got) >= largest(e),
			"%s: want %v, got %v", fmt.Sprintf(what, args...), exact, got)
		return 0
	}
	require.Fail(t, "too far away", "%s: want %v, got %v", fmt.Sprintf(what, args...), exact, got)
	return 0
}

// TestGates goes through all numbers of 16 bits.
func TestGates(t *testing.T) {
	const n = 1 << 16
	for _, e := range halves {
		src, values := make([]uint16, n), make([]float32, n)
		for i := range src {
			src[i] = uint16(i)
		}
		Widen(e, values, bytesOf(src))
		dst, got := make([]uint16, n), make([]float32, n)
		exact := make([]float64, n)
		for _, g := range gates() {
			for i, x := range values {
				exact[i] = g.ref(float64(x))
			}
			for _, level := range cpu.Levels(cpu.Detected()) {
				restore := cpu.Limit(level)
				g.run(e, bytesOf(dst), bytesOf(src))
				restore()
				Widen(e, got, bytesOf(dst))
				worst := 0.0
				for i, x := range values {
					worst = max(worst, wantNear(t, e, float64(got[i]), exact[i], gateBound(e), "%s of %v, cpu=%s", g.name, x, level))
				}
				t.Logf("%s, type %d, cpu=%s: largest error %.3f", g.name, e, level, worst)
			}
		}
	}
}

// gateBound is the largest error of gates in units of the last place.
func gateBound(e Element) float64 {
	if e == F16 {
		return 0.65
	}
	return 0.54
}

// TestGateSigns checks limits and zeros, which keep their signs.
func TestGateSigns(t *testing.T) {
	each(t, func(t *testing.T, _ *rand.Rand, e Element, n int, what string) {
		if n == 0 {
			return
		}
		for _, g := range gates()[1:] {
			for _, x := range []float32{float32(math.Inf(-1)), float32(math.Copysign(0, -1)), 0, float32(math.Inf(1))} {
				src, dst := newArray(e, n, n%7), newArray(e, n, n%5)
				want := make([]float32, n)
				for i := range want {
					src.values[i], want[i] = x, max(x, float32(math.Copysign(0, -1)))
				}
				copy(src.bytes(), encode(e, src.values))
				g.run(e, dst.bytes(), src.bytes())
				dst.require(t, want, g.name+", "+what)
			}
		}
	})
}

// TestSwiGLUHalves checks silu(a)·b against float64, NaN and infinities among
// the operands.
func TestSwiGLUHalves(t *testing.T) {
	buf := make([]float32, BufferElements)
	each(t, func(t *testing.T, r *rand.Rand, e Element, n int, what string) {
		if e == F32 {
			return
		}
		a, b, y := newArray(e, n, n%7).fill(r), newArray(e, n, n%3).fill(r), newArray(e, n, n%5)
		Binary(SwiGLU, e, y.bytes(), a.bytes(), b.bytes(), buf)
		Widen(e, y.values, y.bytes())
		for i, v := range y.values {
			up := float64(b.values[i])
			exact := float64(float32(swishRef(1)(float64(a.values[i])))) * up
			bound := gateBound(e)
			if up != 0 && !math.IsInf(up, 0) && !math.IsNaN(up) {
				bound += 0x1p-143 * math.Abs(up) / last(e, exact) // see package vec
			}
			wantNear(t, e, float64(v), exact, bound, "%v and %v, %s", a.values[i], b.values[i], what)
		}
		y.require(t, y.values, what)
		Binary(SwiGLU, e, a.bytes(), a.bytes(), b.bytes(), buf)
		a.require(t, y.values, "in place, "+what)
	})
}

// TestGatesAlone checks that an element's result does not depend on whether there
// are large ones beside it, for which a turn goes another way.
func TestGatesAlone(t *testing.T) {
	const n = 1000
	r := rand.New(rand.NewPCG(61, 62))
	for _, e := range halves {
		x := newArray(e, n, 1)
		for i := range x.values {
			if x.values[i] = float32(r.Float64()*18 - 9); i < n/2 {
				x.values[i] *= 0.9
			}
		}
		copy(x.bytes(), encode(e, x.values))
		for _, level := range cpu.Levels(cpu.Detected()) {
			restore := cpu.Limit(level)
			for _, g := range gates() {
				run := func(dst, src []byte) { g.run(e, dst, src) }
				y, want := newArray(e, n, 3), make([]float32, n)
				inPieces(e, want, x, run)
				run(y.bytes(), x.bytes())
				y.require(t, want, fmt.Sprintf("%s, type %d, cpu=%s", g.name, e, level))
			}
			restore()
		}
	}
}
