package vec

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pagedShapes covers the remainders of both unrollings.
var pagedShapes = []struct{ rows, cols, d int }{
	{1, 1, 1}, {1, 8, 3}, {1, 9, 16}, {2, 4, 8}, {2, 7, 5}, {3, 13, 17}, {5, 3, 64}, {4, 16, 128}, {1, 0, 4}, {0, 4, 4},
}

func TestScoreRows(t *testing.T) { eachLevel(t, checkScoreRows) }

func checkScoreRows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for _, s := range pagedShapes {
		ldd, ldq, ldk := s.cols+2, s.d+1, s.d+3
		q, k := randoms(r, s.rows*ldq+1), randoms(r, s.cols*ldk+1)
		dst := make([]float32, s.rows*ldd+1)
		for i := range dst {
			dst[i] = -7
		}
		ScoreRows(dst, ldd, q, ldq, s.rows, k, ldk, s.cols, s.d)
		for i := range dst {
			row, col := i/ldd, i%ldd
			if row >= s.rows || col >= s.cols {
				require.Equal(t, float32(-7), dst[i], "%+v: element %d is outside", s, i)
				continue
			}
			products := make([]float32, s.d)
			for c := range products {
				products[c] = q[row*ldq+c] * k[col*ldk+c]
			}
			require.Equal(t, laneSum(products), dst[i], "%+v: row %d column %d", s, row, col)
		}
	}
}

func TestMixRows(t *testing.T) { eachLevel(t, checkMixRows) }

func checkMixRows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 2))
	for _, s := range pagedShapes {
		lda, ldp, ldv := s.d+2, s.cols+1, s.d+3
		acc, p, v := randoms(r, s.rows*lda+1), randoms(r, s.rows*ldp+1), randoms(r, s.cols*ldv+1)
		want := append([]float32(nil), acc...)
		for row := range s.rows {
			for c := range s.d {
				for j := range s.cols {
					want[row*lda+c] += float32(p[row*ldp+j] * v[j*ldv+c])
				}
			}
		}
		MixRows(acc, lda, p, ldp, s.rows, v, ldv, s.cols, s.d)
		require.Equal(t, want, acc, "%+v", s)
	}
}

// Columns that are mixed in several calls give the bits of one call.
func TestMixRowsInSteps(t *testing.T) { eachLevel(t, checkMixRowsInSteps) }

func checkMixRowsInSteps(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	const rows, cols, d = 3, 23, 10
	p, v := randoms(r, rows*cols), randoms(r, cols*d)
	whole, steps := make([]float32, rows*d), make([]float32, rows*d)
	MixRows(whole, d, p, cols, rows, v, d, cols, d)
	for j := 0; j < cols; {
		n := min(1+r.IntN(6), cols-j)
		MixRows(steps, d, p[j:], cols, rows, v[j*d:], d, n, d)
		j += n
	}
	assert.Equal(t, whole, steps)
}

func TestScaleMax(t *testing.T) { eachLevel(t, checkScaleMax) }

func checkScaleMax(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		s, bias []float32
	}{
		{nil, nil},
		{[]float32{1, -3, 2}, []float32{0, 100, -1}},
		{[]float32{nan, 1}, []float32{0, 0}},
		{[]float32{nan, nan}, []float32{0, 0}},
		{[]float32{1, 2}, []float32{-inf, -inf}},
		{[]float32{1, 2, 3, 4, 5}, []float32{0, 0, 0, 0, -inf}},
	} {
		scaled, biased := append([]float32{}, c.s...), append([]float32{}, c.s...)
		wantTop, wantBiased := -inf, -inf
		gotTop, gotBiased := ScaleMax(scaled, 2), ScaleAddMax(biased, 2, c.bias)
		for i, v := range c.s {
			require.Equal(t, math.Float32bits(2*v), math.Float32bits(scaled[i]))
			require.Equal(t, math.Float32bits(2*v+c.bias[i]), math.Float32bits(biased[i]))
			if 2*v > wantTop {
				wantTop = 2 * v
			}
			if 2*v+c.bias[i] > wantBiased {
				wantBiased = 2*v + c.bias[i]
			}
		}
		assert.Equal(t, wantTop, gotTop, "%v", c.s)
		assert.Equal(t, wantBiased, gotBiased, "%v + %v", c.s, c.bias)
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
