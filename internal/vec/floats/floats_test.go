package floats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/internal/cpu"
	"goatb/internal/vec"
	"goatb/tensor"
)

var types = []Element{F32, F16, BF16}

func sizeOf(e Element) int {
	if e == F32 {
		return 4
	}
	return 2
}

// array is n elements at an odd place between canaries, with their values.
type array struct {
	e      Element
	whole  []byte
	at, n  int
	values []float32
}

const (
	margin = 64
	canary = 0xa5
)

func newArray(e Element, n, shift int) *array {
	size := sizeOf(e)
	a := &array{e: e, whole: make([]byte, n*size+2*margin), at: margin/2 + shift*size, n: n, values: make([]float32, n)}
	for i := range a.whole {
		a.whole[i] = canary
	}
	return a
}

func (a *array) bytes() []byte {
	size := a.n * sizeOf(a.e)
	return a.whole[a.at:][:size:size]
}

// fill sets random values that the type holds, special ones among them.
func (a *array) fill(r *rand.Rand) *array {
	specials := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, float32(math.Copysign(0, -1)), 6e-8, -1e-40, 65504, -3e38}
	for i := range a.values {
		if a.values[i] = float32(r.NormFloat64()) * 2; r.IntN(20) == 0 {
			a.values[i] = specials[r.IntN(len(specials))]
		}
	}
	copy(a.bytes(), encode(a.e, a.values))
	Widen(a.e, a.values, a.bytes())
	return a
}

// encode rounds x to type e.
func encode(e Element, x []float32) []byte {
	b := make([]byte, len(x)*sizeOf(e))
	switch e {
	case F16:
		tensor.F32ToF16(view[tensor.F16](b), x)
	case BF16:
		tensor.F32ToBF16(view[tensor.BF16](b), x)
	default:
		copy(view[float32](b), x)
	}
	return b
}

// require checks that the array holds want, rounded, and that nothing around
// it changed. Any NaN is the same.
func (a *array) require(t *testing.T, want []float32, what string) {
	t.Helper()
	for i, b := range a.whole {
		if (i < a.at || i >= a.at+len(a.bytes())) && b != canary {
			require.FailNow(t, "memory around an array was written", "%s: byte %d", what, i-a.at)
		}
	}
	rounded, got := make([]float32, a.n), make([]float32, a.n)
	Widen(a.e, rounded, encode(a.e, want))
	Widen(a.e, got, a.bytes())
	for i := range got {
		same := math.Float32bits(rounded[i]) == math.Float32bits(got[i]) || rounded[i] != rounded[i] && got[i] != got[i]
		require.True(t, same, "%s: element %d of %d: want %v, got %v", what, i, a.n, rounded[i], got[i])
	}
}

// sizes are the lengths of a test: tails of every kind, and some steps.
func sizes() []int {
	s := []int{255, 256, 257, 700}
	for n := range 100 {
		s = append(s, n)
	}
	return s
}

// each runs a test for every level, type and size.
func each(t *testing.T, test func(t *testing.T, r *rand.Rand, e Element, n int, what string)) {
	for _, level := range cpu.Levels(cpu.Detected()) {
		t.Run("cpu="+level.String(), func(t *testing.T) {
			defer cpu.Limit(level)()
			r := rand.New(rand.NewPCG(1, 2))
			for _, e := range types {
				for _, n := range sizes() {
					test(t, r, e, n, fmt.Sprintf("type %d, n=%d", e, n))
				}
			}
		})
	}
}

// hasGate says that 16-bit results have errors of their own, which TestGates
// checks.
func hasGate(f Func, e Element) bool {
	return e != F32 && (f == Sigmoid || f == Silu || f == GeluTanh)
}

// TestUnary compares with the functions of package vec on float32, or where
// functions of 16-bit numbers have errors of their own in one call with itself
// in pieces.
func TestUnary(t *testing.T) {
	buf := make([]float32, BufferElements)
	each(t, func(t *testing.T, r *rand.Rand, e Element, n int, what string) {
		x, want := newArray(e, n, n%7).fill(r), make([]float32, n)
		for f := range numFuncs {
			y := newArray(e, n, n%5)
			if plain[f](want, x.values); hasGate(f, e) {
				inPieces(e, want, x, func(dst, src []byte) { Unary(f, e, dst, src, buf) })
			}
			Unary(f, e, y.bytes(), x.bytes(), buf)
			y.require(t, want, fmt.Sprintf("function %d, %s", f, what))
		}
		for _, scale := range []float32{1.702, -1} {
			y := newArray(e, n, n%3)
			if vec.Swish(want, x.values, scale); e != F32 && scale > 0 {
				inPieces(e, want, x, func(dst, src []byte) { Swish(e, dst, src, scale, buf) })
			}
			Swish(e, y.bytes(), x.bytes(), scale, buf)
			y.require(t, want, "swish, "+what)
		}
		plain[Tanh](want, x.values)
		Unary(Tanh, e, x.bytes(), x.bytes(), buf)
		x.require(t, want, "in place, "+what)
	})
}

// inPieces computes want piece by piece: an element's result depends on that
// element alone, wherever it lies.
func inPieces(e Element, want []float32, x *array, run func(dst, src []byte)) {
	src := view[uint16](x.bytes())
	for i := 0; i < len(src); i += 5 {
		n := min(5, len(src)-i)
		dst := make([]uint16, n)
		run(bytesOf(dst), bytesOf(src[i:i+n]))
		Widen(e, want[i:i+n], bytesOf(dst))
	}
}

func TestScalar(t *testing.T) {
	buf := make([]float32, BufferElements)
	refs := map[ScalarFunc]func(x, s float32) float32{
		AddScalar: func(x, s float32) float32 { return x + s }, SubScalar: func(x, s float32) float32 { return x - s },
		ScalarSub: func(x, s float32) float32 { return s - x }, MulScalar: func(x, s float32) float32 { return x * s },
		DivScalar: func(x, s float32) float32 { return x / s }, ScalarDiv: func(x, s float32) float32 { return s / x },
	}
	each(t, func(t *testing.T, r *rand.Rand, e Element, n int, what string) {
		x, want := newArray(e, n, n%7).fill(r), make([]float32, n)
		for f, ref := range refs {
			for i, v := range x.values {
				want[i] = ref(v, -1.7)
			}
			y := newArray(e, n, n%5)
			Scalar(f, e, y.bytes(), x.bytes(), -1.7, buf)
			y.require(t, want, fmt.Sprintf("function %d, %s", f, what))
		}
	})
}

func TestBinary(t *testing.T) {
	buf := make([]float32, BufferElements)
	each(t, func(t *testing.T, r *rand.Rand, e Element, n int, what string) {
		a, b, want := newArray(e, n, n%7).fill(r), newArray(e, n, n%3).fill(r), make([]float32, n)
		for f := range plain2 {
			if Func2(f) == SwiGLU && e != F32 {
				continue // TestSwiGLUHalves
			}
			y := newArray(e, n, n%5)
			plain2[f](want, a.values, b.values)
			Binary(Func2(f), e, y.bytes(), a.bytes(), b.bytes(), buf)
			y.require(t, want, fmt.Sprintf("function %d, %s", f, what))
		}
		checkSwiGLUGrad(t, a, b, newArray(e, n, n%4).fill(r), what)
		sum := newArray(F32, n, n%5)
		vec.Add(want, a.values, b.values)
		Add(e, view[float32](sum.bytes()), a.bytes(), b.bytes(), buf)
		sum.require(t, want, "sum as f32, "+what)

		y := newArray(e, n, n%5)
		vec.ScaleMul(want, a.values, 0.3, b.values)
		ScaleMul(e, y.bytes(), a.bytes(), 0.3, b.values, buf)
		y.require(t, want, "scale mul, "+what)
		y = newArray(e, n, n%5)
		ScaleMulTo(e, y.bytes(), a.values, 0.3, b.values, buf)
		y.require(t, want, "scale mul to, "+what)
		y = newArray(e, n, n%5)
		vec.Scale(want, a.values, 0.3)
		ScaleTo(e, y.bytes(), a.values, 0.3, buf)
		y.require(t, want, "scale to, "+what)
	})
}

func checkSwiGLUGrad(t *testing.T, dy, gate, up *array, what string) {
	n, buf := dy.n, make([]float32, 5*BufferElements)
	dgate, dup := newArray(dy.e, n, n%5), newArray(dy.e, n, n%3)
	wantGate, wantUp := make([]float32, n), make([]float32, n)
	vec.SwiGLUGrad(wantGate, wantUp, dy.values, gate.values, up.values)
	SwiGLUGrad(dy.e, dgate.bytes(), dup.bytes(), dy.bytes(), gate.bytes(), up.bytes(), buf)
	dgate.require(t, wantGate, "gradient of the gate, "+what)
	dup.require(t, wantUp, "gradient of the other, "+what)
}

func TestRotate(t *testing.T) {
	each(t, func(t *testing.T, r *rand.Rand, e Element, n int, what string) {
		n &^= 1
		x, c, s := newArray(e, n, n%7).fill(r), newArray(e, n, 0).fill(r), newArray(e, n, 0).fill(r)
		want, buf := make([]float32, n), make([]float32, n)
		for k := Halves; k <= PairsSteps; k++ {
			if k >= HalvesSteps {
				if e == BF16 {
					continue
				}
				// Plain Go rounds operands within ±2^115.
				vec.Clamp(x.values, -60000, 60000)
				vec.Clamp(c.values, -60000, 60000)
				vec.Clamp(s.values, -60000, 60000)
				vec.RoundF16(x.values, x.values)
				copy(x.bytes(), encode(e, x.values))
			}
			y := newArray(e, n, n%5)
			rotate(k, want, x.values, c.values, s.values)
			Rotate(k, e, y.bytes(), x.bytes(), 1, n, c.values, s.values, buf)
			y.require(t, want, fmt.Sprintf("rotation %d, %s", k, what))
			checkVectors(t, k, x, c.values, s.values, buf, what)
		}
	})
}

// checkVectors turns several short vectors with a gap between them.
func checkVectors(t *testing.T, k Rotation, x *array, c, s, buf []float32, what string) {
	const width, stride = 6, 8
	count := (x.n + stride - width) / stride
	if count == 0 {
		return
	}
	y, want := newArray(x.e, x.n, 1), slices.Clone(x.values)
	copy(y.bytes(), x.bytes())
	for i := range count {
		rotate(k, want[i*stride:][:width], x.values[i*stride:][:width], c[:width], s[:width])
	}
	Rotate(k, x.e, y.bytes(), x.bytes(), count, stride, c[:width], s[:width], buf)
	y.require(t, want, fmt.Sprintf("rotation %d of %d vectors, %s", k, count, what))
}

func TestReductions(t *testing.T) {
	each(t, func(t *testing.T, r *rand.Rand, e Element, n int, what string) {
		x, buf := newArray(e, n, n%7).fill(r), make([]float32, max(n, BufferElements))
		require.Equal(t, vec.Max(x.values), Max(e, x.bytes(), buf), what)
		require.Equal(t, vec.MaxAbs(x.values), MaxAbs(e, x.bytes(), buf), what)
		for i := range x.values {
			x.values[i] = float32(r.NormFloat64())
		}
		copy(x.bytes(), encode(e, x.values))
		Widen(e, x.values, x.bytes())
		require.Equal(t, vec.SumSquares(x.values), SumSquares(e, x.bytes(), buf), what)

		y, want := newArray(F32, n, n%5), make([]float32, n)
		top := vec.Max(x.values)
		require.Equal(t, vec.ExpSum(want, x.values, top), ExpSum(e, view[float32](y.bytes()), x.bytes(), top), what)
		y.require(t, want, "exp sum, "+what)
	})
}

// TestSoftmax compares rows in one call: of float32 with each row by its parts,
// of 16-bit numbers with float64.
func TestSoftmax(t *testing.T) {
	each(t, func(t *testing.T, r *rand.Rand, e Element, n int, what string) {
		if n == 0 {
			return
		}
		const rows = 3
		buf := make([]float32, max(n, BufferElements))
		x, y, want := newArray(e, rows*n, n%7).fill(r), newArray(e, rows*n, n%5), make([]float32, rows*n)
		for i := range x.values[:n] {
			x.values[i] = float32(math.Inf(-1))
		}
		for i := range x.values[n:] {
			x.values[n+i] = float32(r.NormFloat64()) * 4
		}
		copy(x.bytes(), encode(e, x.values))
		Widen(e, x.values, x.bytes())
		if !Softmax(e, y.bytes(), x.bytes(), n, buf) {
			return
		}
		for i := 1; i < rows; i++ {
			row, w := x.values[i*n:(i+1)*n], want[i*n:(i+1)*n]
			if e == F32 {
				vec.Scale(w, w, 1/vec.ExpSum(w, row, vec.Max(row)))
				continue
			}
			got := make([]float32, n)
			Widen(e, got, y.bytes()[i*n*2:(i+1)*n*2])
			for k, exact := range softmaxRef(row) {
				wantNear(t, e, float64(got[k]), exact, gateBound(e), "row %d element %d of %d, %s", i, k, n, what)
			}
			copy(w, got)
		}
		y.require(t, want, what)
		Softmax(e, x.bytes(), x.bytes(), n, buf)
		x.require(t, want, "in place, "+what)
	})
	require.False(t, Softmax(F32, nil, nil, LongestRow+1, nil))
}

// softmaxRef is the softmax of a row, zeros for one of -Inf.
func softmaxRef(row []float32) []float64 {
	out, top, sum := make([]float64, len(row)), math.Inf(-1), 0.0
	for _, x := range row {
		top = max(top, float64(x))
	}
	for i, x := range row {
		if !math.IsInf(top, -1) {
			out[i] = math.Exp(float64(x) - top)
		}
		sum += out[i]
	}
	for i := range out {
		if sum != 0 {
			out[i] /= sum
		}
	}
	return out
}

// TestSoftmaxSpecialRows has rows whose numbers are extreme: NaN and +Inf make a
// row NaN, -Inf hides, and large, small and negative numbers stay exact.
func TestSoftmaxSpecialRows(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	negative := math.Float32frombits(0xffc00000) // a NaN too
	each(t, func(t *testing.T, r *rand.Rand, e Element, n int, what string) {
		if n < 2 {
			return
		}
		big := float32(largest(e))
		for _, s := range [][]float32{{nan}, {negative}, {inf}, {inf, -inf}, {-inf}, {big, -big}, {-big, -inf}, {-3, -1e-7, -2}, {1e-7, 0}, {-big}} {
			x, y, buf := newArray(e, n, n%7), newArray(e, n, n%5), make([]float32, n)
			for i := range x.values {
				x.values[i] = s[i%len(s)]
				if len(s) == 1 && i > 0 {
					x.values[i] = float32(r.NormFloat64())
				}
			}
			copy(x.bytes(), encode(e, x.values))
			Widen(e, x.values, x.bytes())
			if !Softmax(e, y.bytes(), x.bytes(), n, buf) {
				return
			}
			got := make([]float32, n)
			Widen(e, got, y.bytes())
			for i, exact := range softmaxRef(x.values) {
				if e == F32 {
					if math.IsNaN(exact) {
						require.True(t, got[i] != got[i], "%v of %v", i, s)
					} else {
						require.InDelta(t, exact, got[i], 1e-6, "%v of %v, %s", i, s, what)
					}
					continue
				}
				wantNear(t, e, float64(got[i]), exact, gateBound(e), "element %d of %d, values %v, %s", i, n, s, what)
			}
			y.require(t, got, what)
		}
	})
}

func TestNothingAllocates(t *testing.T) {
	each(t, func(t *testing.T, r *rand.Rand, e Element, n int, what string) {
		if n != 700 {
			return
		}
		x, buf := newArray(e, n, 1).fill(r), make([]float32, n)
		b := x.bytes()
		require.Zero(t, testing.AllocsPerRun(5, func() {
			Unary(Silu, e, b, b, buf)
			Unary(Cos, e, b, b, buf)
			Swish(e, b, b, 2, buf)
			Scalar(AddScalar, e, b, b, Max(e, b, buf)+MaxAbs(e, b, buf), buf)
			Binary(SwiGLU, e, b, b, b, buf)
			ScaleMul(e, b, b, SumSquares(e, b, buf), x.values, buf)
			ScaleTo(e, b, x.values, ExpSum(e, x.values, b, 1), buf)
			Rotate(Pairs, e, b, b, 1, n, x.values, x.values, buf)
			Add(e, x.values, b, b, buf)
		}), what)
	})
}
