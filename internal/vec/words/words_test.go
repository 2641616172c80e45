package words

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/internal/cpu"
)

// each runs a test at every level and for lengths around whole groups.
func each(t *testing.T, test func(t *testing.T, r *rand.Rand, n int)) {
	for _, level := range cpu.Levels(cpu.Detected()) {
		t.Run("cpu="+level.String(), func(t *testing.T) {
			defer cpu.Limit(level)()
			r := rand.New(rand.NewPCG(1, 2))
			for _, n := range []int{0, 1, 2, 31, 32, 33, 63, 64, 65, 200} {
				test(t, r, n)
			}
		})
	}
}

// random returns n numbers of all bits, many of them equal to others, at an odd
// place of an array.
func random[T Number](r *rand.Rand, n int) []T {
	s := make([]T, n+3)
	few := []float32{0, 1, -1, float32(math.Copysign(0, -1)), float32(math.NaN()), float32(math.Inf(1)), 3e9, -3e9}
	for i := range s {
		if f, ok := any(&s[i]).(*float32); ok {
			*f = few[r.IntN(len(few))] * float32(1+r.IntN(3))
			continue
		}
		if s[i] = T(r.IntN(3)); r.IntN(2) == 0 {
			s[i] = T(r.Uint64())
		}
	}
	return s[1:][:n]
}

// guarded returns n elements with room around them, and a check of the room.
func guarded[T Number](n int) (s []T, check func(t *testing.T)) {
	whole := make([]T, n+70)
	for i := range whole {
		whole[i] = 77
	}
	return whole[3:][:n:n], func(t *testing.T) {
		for i, v := range whole {
			if i < 3 || i >= n+3 {
				require.Equal(t, T(77), v, "element %d of %d was written", i-3, n)
			}
		}
	}
}

func checkIntegers[T Integer](t *testing.T, r *rand.Rand, n int) {
	x, y := random[T](r, n), random[T](r, n)
	for f, ref := range map[Func]func(a, b T) T{
		Add: func(a, b T) T { return a + b }, Sub: func(a, b T) T { return a - b }, Mul: func(a, b T) T { return a * b },
	} {
		z, check := guarded[T](n)
		Apply(f, z, x, y)
		check(t)
		for i := range z {
			require.Equal(t, ref(x[i], y[i]), z[i], "%T, function %d: %v and %v", z, f, x[i], y[i])
		}
	}
}

func checkComparisons[T Number](t *testing.T, r *rand.Rand, n int) {
	x, y := random[T](r, n), random[T](r, n)
	greater, checkGreater := guarded[int8](n)
	equal, checkEqual := guarded[int8](n)
	Greater(greater, x, y)
	Equal(equal, x, y)
	checkGreater(t)
	checkEqual(t)
	for i := range x {
		require.Equal(t, truth(x[i] > y[i]), greater[i], "%v > %v", x[i], y[i])
		require.Equal(t, truth(x[i] == y[i]), equal[i], "%v == %v", x[i], y[i])
	}
}

func checkConversions[D, S Number](t *testing.T, r *rand.Rand, n int) {
	x := random[S](r, n)
	z, check := guarded[D](n)
	Convert(z, x)
	check(t)
	for i := range x {
		require.Equal(t, D(x[i]), z[i], "%T to %T: %v", x[i], z[i], x[i])
	}
}

func TestIntegers(t *testing.T) {
	each(t, func(t *testing.T, r *rand.Rand, n int) {
		checkIntegers[int8](t, r, n)
		checkIntegers[uint8](t, r, n)
		checkIntegers[int16](t, r, n)
		checkIntegers[uint16](t, r, n)
		checkIntegers[int32](t, r, n)
		checkIntegers[uint32](t, r, n)
		checkIntegers[int64](t, r, n)
		checkIntegers[uint64](t, r, n)
	})
}

func TestComparisons(t *testing.T) {
	each(t, func(t *testing.T, r *rand.Rand, n int) {
		checkComparisons[int8](t, r, n)
		checkComparisons[uint8](t, r, n)
		checkComparisons[int16](t, r, n)
		checkComparisons[uint16](t, r, n)
		checkComparisons[int32](t, r, n)
		checkComparisons[uint32](t, r, n)
		checkComparisons[int64](t, r, n)
		checkComparisons[uint64](t, r, n)
		checkComparisons[float32](t, r, n)
	})
}

func TestConversions(t *testing.T) {
	each(t, func(t *testing.T, r *rand.Rand, n int) {
		checkConversions[int32, int8](t, r, n)
		checkConversions[int32, uint8](t, r, n)
		checkConversions[uint32, int16](t, r, n)
		checkConversions[int32, uint16](t, r, n)
		checkConversions[int64, int32](t, r, n)
		checkConversions[int64, uint32](t, r, n)
		checkConversions[uint64, int32](t, r, n)
		checkConversions[int32, int64](t, r, n)
		checkConversions[uint32, uint64](t, r, n)
		checkConversions[int16, int32](t, r, n)
		checkConversions[uint8, uint32](t, r, n)
		checkConversions[float32, int32](t, r, n)
		checkConversions[float32, uint32](t, r, n)
		checkConversions[float32, int64](t, r, n)
		checkConversions[int16, int64](t, r, n)
	})
}

func TestInts(t *testing.T) {
	each(t, func(t *testing.T, r *rand.Rand, n int) {
		for _, ends := range [][2]int32{{math.MinInt32, math.MaxInt32}, {-128, 127}, {0, 65535}} {
			x := random[float32](r, n)
			for i := range x {
				if r.IntN(2) == 0 {
					x[i] = float32(r.NormFloat64()) * 200
				}
			}
			z, check := guarded[int32](n)
			Ints(z, x, ends[0], ends[1])
			check(t)
			for i, v := range x {
				want := int32(0)
				if v == v {
					want = int32(min(max(math.Trunc(float64(v)), float64(ends[0])), float64(ends[1])))
				}
				require.Equal(t, want, z[i], "%v in %v", v, ends)
			}
		}
	})
}

func TestLogic(t *testing.T) {
	each(t, func(t *testing.T, r *rand.Rand, n int) {
		x, y := random[uint8](r, n), random[uint8](r, n)
		both, checkBoth := guarded[uint8](n)
		either, checkEither := guarded[uint8](n)
		not, checkNot := guarded[uint8](n)
		And(both, x, y)
		Or(either, x, y)
		Not(not, x)
		checkBoth(t)
		checkEither(t)
		checkNot(t)
		for i := range x {
			require.Equal(t, x[i] != 0 && y[i] != 0, both[i] == 1)
			require.Equal(t, x[i] != 0 || y[i] != 0, either[i] == 1)
			require.Equal(t, x[i] == 0, not[i] == 1)
			require.LessOrEqual(t, max(both[i], either[i], not[i]), uint8(1))
		}
	})
}

func TestRange(t *testing.T) {
	low, high := Range(8, false)
	require.Equal(t, [2]int32{-128, 127}, [2]int32{low, high})
	low, high = Range(16, true)
	require.Equal(t, [2]int32{0, 65535}, [2]int32{low, high})
	low, high = Range(32, false)
	require.Equal(t, [2]int32{math.MinInt32, math.MaxInt32}, [2]int32{low, high})
}
