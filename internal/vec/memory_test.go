package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/internal/cpu"
)

// loop is a function of arrays with what its assembly promises.
type loop struct {
	name string
	// run computes outs from ins, all of length n.
	run func(outs, ins [][]float32)
	// outs and ins count the arrays.
	outs, ins int
	// exact says that assembly gives the bits of plain Go.
	exact bool
	// even says that lengths are even.
	even bool
}

func unaryLoop(name string, exact bool, f func(dst, src []float32)) loop {
	return loop{name: name, outs: 1, ins: 1, exact: exact, run: func(outs, ins [][]float32) { f(outs[0], ins[0]) }}
}

func binaryLoop(name string, exact bool, f func(dst, a, b []float32)) loop {
	return loop{name: name, outs: 1, ins: 2, exact: exact, run: func(outs, ins [][]float32) { f(outs[0], ins[0], ins[1]) }}
}

func rotation(name string, f func(dst, x, cos, sin []float32)) loop {
	return loop{name: name, outs: 1, ins: 3, exact: true, even: true, run: func(outs, ins [][]float32) { f(outs[0], ins[0], ins[1], ins[2]) }}
}

var loops = []loop{
	binaryLoop("add", true, Add), binaryLoop("sub", true, Sub), binaryLoop("mul", true, Mul), binaryLoop("div", true, Div),
	unaryLoop("neg", true, Neg), unaryLoop("relu", true, Relu),
	unaryLoop("round f16", true, func(d, s []float32) { Clamp(s, -0x1p100, 0x1p100); RoundF16(d, s) }),
	unaryLoop("scale", true, func(d, s []float32) { Scale(d, s, 0.3) }),
	unaryLoop("clamp", true, func(d, s []float32) { copy(d, s); Clamp(d, -0.5, 0.7) }),
	unaryLoop("round int8", true, func(d, s []float32) { copy(d, s); RoundInt8(d, 31.7) }),
	binaryLoop("scale mul", true, func(d, a, g []float32) { ScaleMul(d, a, 1.7, g) }),
	{name: "scale mul add", outs: 1, ins: 3, exact: true, run: func(o, i [][]float32) { ScaleMulAdd(o[0], i[0], 1.7, i[1], i[2]) }},
	binaryLoop("blend", true, func(d, y, x []float32) { copy(d, y); Blend(0.3, d, 1.9, x) }),
	binaryLoop("axpy", true, func(d, y, x []float32) { copy(d, y); Axpy(0.3, x, d) }),
	rotation("half", RotateHalf), rotation("pairs", RotatePairs),
	unaryLoop("exp", false, Exp), unaryLoop("sigmoid", false, Sigmoid), unaryLoop("silu", false, Silu),
	unaryLoop("swish", false, func(d, s []float32) { Swish(d, s, 1.702) }), unaryLoop("tanh", false, Tanh),
	unaryLoop("gelu tanh", false, GeluTanh), unaryLoop("gelu erf", false, GeluErf),
	unaryLoop("sin", false, Sin), unaryLoop("cos", false, Cos), unaryLoop("log", false, Log),
	binaryLoop("swiglu", false, SwiGLU),
	{name: "swiglu grad", outs: 2, ins: 3, run: func(o, i [][]float32) { SwiGLUGrad(o[0], o[1], i[0], i[1], i[2]) }},
	unaryLoop("exp sum", false, func(d, s []float32) {
		sum := ExpSum(d, s, Max(s))
		if len(d) > 0 {
			d[0] += sum
		}
	}),
}

// specials are put among random inputs.
var specials = []float32{
	float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, float32(math.Copysign(0, -1)),
	0x1p-149, -0x1p-149, 0x1p-127, -0x1p-127, math.MaxFloat32, -math.MaxFloat32, 88.72, -87.34, -103.9, 1e-38,
}

// guarded returns n elements at an odd place between canaries, and a check of
// the canaries.
func guarded(n, shift int) (payload []float32, check func(t *testing.T, what string)) {
	const canary = -12345.5
	whole := make([]float32, n+64)
	for i := range whole {
		whole[i] = canary
	}
	payload = whole[16+shift:][:n:n]
	return payload, func(t *testing.T, what string) {
		for i, v := range whole {
			if (i < 16+shift || i >= 16+shift+n) && v != canary {
				require.FailNow(t, "memory around an array was written", "%s: element %d of %d", what, i-16-shift, n)
			}
		}
	}
}

// TestLoops runs every loop at every length around its unrollings, at odd
// addresses, with special values among its inputs: it writes its outputs only,
// both widths of assembly give the same bits, and plain Go too where the loop
// is exact.
func TestLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for _, l := range loops {
		t.Run("f="+l.name, func(t *testing.T) {
			for n := range 150 {
				if l.even && n%2 == 1 {
					continue
				}
				ins := make([][]float32, l.ins)
				for i := range ins {
					ins[i] = randoms(r, n)
					for k := 0; k < n; k += 1 + r.IntN(40) {
						ins[i][k] = specials[r.IntN(len(specials))]
					}
				}
				l.check(t, ins, n)
			}
		})
	}
}

func (l *loop) check(t *testing.T, ins [][]float32, n int) {
	var first [][]float32
	for _, level := range cpu.Levels(cpu.Detected()) {
		restore := cpu.Limit(level)
		outs, got := l.guardedRun(t, fmt.Sprintf("%s, n=%d, cpu=%s", l.name, n, level), ins, n)
		restore()
		if first == nil || level == cpu.AVX2 && !l.exact {
			first = outs
			continue
		}
		for o := range outs {
			for i := range got[o] {
				require.True(t, sameBits(first[o][i], outs[o][i]), "%s, n=%d, cpu=%s: output %d element %d: want %v, got %v",
					l.name, n, level, o, i, first[o][i], outs[o][i])
			}
		}
	}
}

// guardedRun runs the loop on guarded copies of ins, not in place.
func (l *loop) guardedRun(t *testing.T, what string, ins [][]float32, n int) (outs, again [][]float32) {
	var checks []func(t *testing.T, what string)
	place := func(k int) []float32 {
		p, check := guarded(n, k%5)
		checks = append(checks, check)
		return p
	}
	src := make([][]float32, len(ins))
	for i := range ins {
		src[i] = place(i + n)
		copy(src[i], ins[i])
	}
	outs = make([][]float32, l.outs)
	for i := range outs {
		outs[i] = place(i + 2 + n)
	}
	l.run(outs, src)
	for _, check := range checks {
		check(t, what)
	}
	return outs, outs
}

// TestLoopsInPlace checks that an output may be the first input.
func TestLoopsInPlace(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	for _, l := range loops {
		t.Run("f="+l.name, func(t *testing.T) {
			eachLevel(t, func(t *testing.T) {
				for _, n := range []int{2, 16, 38, 130} {
					ins := make([][]float32, l.ins)
					for i := range ins {
						ins[i] = randoms(r, n)
					}
					want, _ := l.guardedRun(t, l.name, ins, n)
					l.run(ins[:l.outs], ins)
					require.Equal(t, bitsOf(want[0]), bitsOf(ins[0]), "n=%d", n)
				}
			})
		})
	}
}

func bitsOf(a []float32) []uint32 {
	out := make([]uint32, len(a))
	for i, v := range a {
		if out[i] = math.Float32bits(v); v != v {
			out[i] = math.Float32bits(float32(math.NaN()))
		}
	}
	return out
}

// TestReductionsAgree checks that sums, products and maxima have the bits of
// plain Go at every level, length and address.
func TestReductionsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 26))
	for n := range 300 {
		shift := n % 5
		a, b := randoms(r, n+shift)[shift:], randoms(r, n+shift)[shift:]
		type result struct{ sum, dot, max, abs float32 }
		var want result
		for i, level := range cpu.Levels(cpu.Detected()) {
			restore := cpu.Limit(level)
			got := result{Sum(a), Dot(a, b), Max(a), MaxAbs(a)}
			restore()
			if i == 0 {
				want = got
			}
			require.Equal(t, want, got, "n=%d, cpu=%s", n, level)
		}
	}
}

// rowsOf returns rows of an element type, odd ones NaN behind their end.
func rowsOf[T float32 | uint16 | int8](r *rand.Rand, count, n, stride int) []T {
	rows := make([]T, count*stride)
	for i := range rows {
		switch p := any(&rows[i]).(type) {
		case *float32:
			*p = r.Float32() - 0.5
		case *uint16:
			*p = uint16(r.IntN(1<<16)) &^ 0x4000
		case *int8:
			*p = int8(r.IntN(256) - 128)
		}
	}
	return rows[:(count-1)*stride+n]
}

func checkRows[T float32 | uint16 | int8](t *testing.T, e Element) {
	r := rand.New(rand.NewPCG(27, uint64(e)))
	for n := 1; n < 200; n += 1 + n/40 {
		count, stride := 1+n%7, n+n%3
		x, rows, weights := randoms(r, n), rowsOf[T](r, count, n, stride), randoms(r, count)
		start := randoms(r, n)
		var wantDots, wantMix []float32
		for i, level := range cpu.Levels(cpu.Detected()) {
			restore := cpu.Limit(level)
			dots, checkDots := guarded(count, n%5)
			acc, checkAcc := guarded(n, n%5)
			copy(acc, start)
			Dots(e, dots, x, rows, stride)
			Mix(e, acc, weights, rows, stride)
			restore()
			checkDots(t, "dots")
			checkAcc(t, "mix")
			if i == 0 {
				wantDots, wantMix = slices.Clone(dots), slices.Clone(acc)
				checkRowsFloat64(t, e, x, rows, stride, dots)
				continue
			}
			require.Equal(t, bitsOf(wantDots), bitsOf(dots), "dots, n=%d, cpu=%s", n, level)
			require.Equal(t, bitsOf(wantMix), bitsOf(acc), "mix, n=%d, cpu=%s", n, level)
		}
	}
}

func checkRowsFloat64[T float32 | uint16 | int8](t *testing.T, e Element, x []float32, rows []T, stride int, got []float32) {
	for j := range got {
		exact, scale := 0.0, 0.0
		for i, v := range rows[j*stride:][:len(x)] {
			p := float64(x[i]) * float64(widen(e, v))
			exact, scale = exact+p, scale+math.Abs(p)
		}
		require.InDelta(t, exact, got[j], scale*0x1p-23*8, "row %d of %d", j, len(x))
	}
}

func TestRowsF32(t *testing.T)  { checkRows[float32](t, F32) }
func TestRowsF16(t *testing.T)  { checkRows[uint16](t, F16) }
func TestRowsBF16(t *testing.T) { checkRows[uint16](t, BF16) }
func TestRowsI8(t *testing.T)   { checkRows[int8](t, I8) }

func TestAllocations(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		ins, outs := make([][]float32, 3), [][]float32{make([]float32, 34), make([]float32, 34)}
		for i := range ins {
			ins[i] = make([]float32, 34)
		}
		for _, l := range loops {
			require.Zero(t, testing.AllocsPerRun(10, func() { l.run(outs, ins) }), l.name)
		}
		a, b := ins[0], ins[1]
		require.Zero(t, testing.AllocsPerRun(10, func() {
			Dots(F32, a[:1], b, a, 34)
			Axpy(Dot(a, b)+Sum(a)+SumSquares(b), a, b)
		}))
	})
}
