package vec

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSoften(t *testing.T) { eachLevel(t, checkSoften) }

// checkSoften holds rows of every length against float64: NaN and -Inf among the
// scores, a row that is hidden, maxima from before, scores too low to count, and
// what lies behind a row.
func checkSoften(t *testing.T) {
	const count, behind, scale = 5, 3, float32(0.7)
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
					require.LessOrEqual(t, ulps(got, math.Exp(d)), expSumBound(d), "length %d row %d element %d", n, r, i)
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
