package vec

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSoften(t *testing.T) { eachLevel(t, checkSoften) }

// checkSoften holds rows of every length against float64: NaN and -Inf among the
// scores, a row that is hidden, maxima from before, scores too low to count, and
// what lies behind a row.
func checkSoften(t *testing.T) {
	const count, behind, scale = 14, 3, float32(0.7)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for n := range 150 {
		stride := n + behind
		s, tops, sums := make([]float32, count*stride), make([]float32, count), make([]float32, count)
		for i := range s {
			s[i] = float32(math.Sin(float64(7*i))) * 70
			if i/stride == 1 || i%11 == 5 {
				s[i] = -inf
			}
			if i/stride == 2 && i%stride == n/2 {
				s[i] = nan
			}
		}
		for i := range tops {
			tops[i] = Lowest
		}
		tops[4] = 60
		from := append([]float32(nil), s...)
		Soften(s, n, count, stride, scale, tops, sums)
		for r := range count {
			top, sum := float64(Lowest), 0.0
			if r == 4 {
				top = 60
			}
			for _, x := range from[r*stride:][:n] {
				if x == x {
					top = max(top, float64(scale*x))
				}
			}
			require.Equal(t, float32(top), tops[r], "length %d row %d", n, r)
			for i, x := range from[r*stride:][:n] {
				d, got := float64(scale*x)-top, s[r*stride+i]
				sum += math.Exp(d)
				switch {
				case x != x:
					require.True(t, math.IsNaN(float64(got)))
				case d > -87:
					require.LessOrEqual(t, ulps(got, math.Exp(d)), softenBound(d), "length %d row %d element %d", n, r, i)
				default:
					require.LessOrEqual(t, got, float32(0x1p-125), "length %d row %d element %d", n, r, i)
				}
			}
			if r == 2 && n > 0 {
				require.True(t, math.IsNaN(float64(sums[r])))
			} else {
				require.InDelta(t, sum, sums[r], sum*0x1p-17, "length %d row %d", n, r)
			}
			for i := n; i < stride; i++ {
				require.True(t, sameBits(from[r*stride+i], s[r*stride+i]), "length %d row %d: element %d behind it", n, r, i)
			}
		}
	}
	sums := []float32{1}
	Soften(nil, 0, 1, 0, 1, []float32{Lowest}, sums)
	assert.Zero(t, sums[0])
	Soften(nil, 0, 0, 0, 1, nil, nil)
}

// softenBound is the largest error of a weight e^d in ulp.
func softenBound(d float64) float64 {
	if plain() {
		return plainBound
	}
	return 2.0 + 1.04*math.Abs(d)
}

// TestSoftenBits holds rows that are done together, of every number, against rows alone,
// and assembly's levels against each other: bits are the same.
func TestSoftenBits(t *testing.T) {
	type shape struct{ n, count int }
	type result struct{ s, tops, sums []float32 }
	first := map[shape]result{}
	eachLevel(t, func(t *testing.T) {
		for _, n := range []int{1, 7, 8, 15, 16, 17, 31, 48, 61, 130, 512} {
			for count := 1; count < 20; count++ {
				stride := n + count%3
				from := make([]float32, count*stride)
				for i := range from {
					from[i] = float32(math.Sin(float64(i*i%1009))) * 90
				}
				got := result{slices.Clone(from), make([]float32, count), make([]float32, count)}
				Soften(got.s, n, count, stride, 0.9, got.tops, got.sums)
				for i := range count {
					row, top, sum := from[i*stride:][:n], []float32{0}, []float32{0}
					Soften(row, n, 1, n, 0.9, top, sum)
					require.Equal(t, row, got.s[i*stride:][:n], "length %d, row %d of %d", n, i, count)
					require.Equal(t, [2]float32{top[0], sum[0]}, [2]float32{got.tops[i], got.sums[i]}, "length %d, row %d of %d", n, i, count)
				}
				if plain() {
					continue
				}
				if want, ok := first[shape{n, count}]; ok {
					require.Equal(t, want, got, "length %d, %d rows", n, count)
				}
				first[shape{n, count}] = got
			}
		}
	})
}

// TestSoftenFlushes proves that assembly makes no subnormal weights.
func TestSoftenFlushes(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		if plain() {
			return // plain Go does
		}
		s, sums := []float32{0, -86.9, -87.1, -90, -103, -110}, []float32{0}
		Soften(s, len(s), 1, len(s), 1, []float32{Lowest}, sums)
		assert.Greater(t, s[1], float32(0x1p-126))
		assert.Equal(t, []float32{0, 0, 0, 0}, s[2:])
	})
}

func TestShareRows(t *testing.T) { eachLevel(t, checkShareRows) }

// checkShareRows has rows of every length, in place and not, some of which saw nothing,
// whatever their values are, and nothing else is written.
func checkShareRows(t *testing.T) {
	const behind, canary = 5, float32(12345)
	for n := range 40 {
		for count := 1; count < 10; count++ {
			src, sums := make([]float32, count*n), make([]float32, count)
			for i := range src {
				src[i] = float32(i) - 17.3
			}
			for i := range sums {
				sums[i] = float32(1+i) * 0.7
			}
			if count > 1 && n > 0 {
				sums[1] = 0
				src[n] = float32(math.NaN())
			}
			want := make([]float32, len(src)+behind)
			for i := range want {
				if want[i] = canary; i < len(src) {
					want[i] = 0
					if sum := sums[i/n]; sum != 0 {
						want[i] = src[i] * (1 / sum)
					}
				}
			}
			dst := make([]float32, len(want))
			for i := range dst {
				dst[i] = canary
			}
			ShareRows(dst[:len(src)], src, sums)
			require.Equal(t, want, dst, "%d rows of %d", count, n)
			ShareRows(src, src, sums)
			require.Equal(t, want[:len(src)], src, "%d rows of %d in place", count, n)
		}
	}
}

func TestBlend(t *testing.T) { eachLevel(t, checkBlend) }

func checkBlend(t *testing.T) {
	y := []float32{1, 2, -3}
	Blend(0.5, y, 2, []float32{10, 20, 30})
	assert.Equal(t, []float32{20.5, 41, 58.5}, y)
}

func TestInt8Floats(t *testing.T) { eachLevel(t, checkInt8Floats) }

func checkInt8Floats(t *testing.T) {
	src := make([]int8, 256)
	for i := range src {
		src[i] = int8(i - 128)
	}
	dst := make([]float32, 256)
	Int8Floats(dst, src)
	for i, v := range src {
		require.Equal(t, float32(v), dst[i])
	}
}
