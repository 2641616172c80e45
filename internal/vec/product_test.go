package vec

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inOrder adds the products of two rows in the order of k.
func inOrder(a, b []float32) float32 {
	s := float32(0)
	for k := range a {
		p := a[k] * b[k]
		s += p
	}
	return s
}

// TestProductsAgree checks that every function of a matrix product gives the
// bits of the plain loop.
func TestProductsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, n := range lengths {
		var rows [6][]float32
		for i := range rows {
			rows[i] = randoms(r, n)
			for k := range rows[i] { // exact as bfloat16 too
				rows[i][k] = math.Float32frombits(math.Float32bits(rows[i][k]) &^ 0xffff)
			}
		}
		x, y, w := rows[4], rows[5], rows[:4]
		var want [2][4]float32
		for j := range w {
			want[0][j], want[1][j] = inOrder(x, w[j]), inOrder(y, w[j])
		}
		s0, s1, s2, s3 := Dots4(x, w[0], w[1], w[2], w[3])
		require.Equal(t, want[0], [4]float32{s0, s1, s2, s3}, "Dots4 of %d", n)

		var half [4][]uint16
		for j := range w {
			for _, v := range w[j] {
				half[j] = append(half[j], uint16(math.Float32bits(v)>>16))
			}
		}
		s0, s1, s2, s3 = Dots4BF16(x, half[0], half[1], half[2], half[3])
		require.Equal(t, want[0], [4]float32{s0, s1, s2, s3}, "Dots4BF16 of %d", n)

		a, b := make([]float32, 2*n), make([]float32, 4*n)
		Interleave2(a, x, y)
		Interleave4(b, w[0], w[1], w[2], w[3])
		got := [2][4]float32{{1, 2, 3, 4}, {5, 6, 7, 8}}
		Tile2x4(&got[0], &got[1], a, b)
		for i := range want {
			for j := range want[i] {
				require.Equal(t, float32(4*i+j+1)+want[i][j], got[i][j], "Tile2x4 of %d at %d,%d", n, i, j)
			}
		}
	}
}

func TestAxpy4KeepsTheOrderOfK(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for _, n := range lengths {
		y := randoms(r, n)
		var w [4][]float32
		for k := range w {
			w[k] = randoms(r, n)
		}
		a := [4]float32{1.1, -0.7, 0.3, 2.9}
		want := slices.Clone(y)
		for k := range w {
			for j := range want {
				want[j] += float32(a[k] * w[k][j]) // rounded: not one fused operation
			}
		}
		Axpy4(y, &a, w[0], w[1], w[2], w[3])
		assert.Equal(t, want, y, "length %d", n)
	}
}

func TestInt8ProductsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	for _, n := range lengths {
		var rows [6][]int8
		for i := range rows {
			rows[i] = make([]int8, n)
			for k := range rows[i] {
				rows[i][k] = int8(r.IntN(256) - 128)
				if i == 5 { // the lower sums' largest borrow
					rows[i][k] = -128
				}
			}
		}
		checkInt8(t, rows[5], rows[4], rows[:4])
		checkInt8(t, rows[4], rows[5], rows[:4])
	}
}

func TestInt8ProductsAtTheLimit(t *testing.T) {
	lo, hi := make([]int8, MaxPairTerms), make([]int8, MaxPairTerms)
	for i := range lo {
		lo[i], hi[i] = -128, 127
	}
	checkInt8(t, lo, hi, [][]int8{lo, hi, lo, hi})
	checkInt8(t, hi, lo, [][]int8{lo, hi, lo, hi})
}

func checkInt8(t *testing.T, x, y []int8, w [][]int8) {
	t.Helper()
	n := len(x)
	var want [2][4]int32
	for j := range w {
		want[0][j], want[1][j] = DotI8(x, w[j]), DotI8(y, w[j])
	}
	s0, s1, s2, s3 := Dots4I8(x, w[0], w[1], w[2], w[3])
	require.Equal(t, want[0], [4]int32{s0, s1, s2, s3}, "Dots4I8 of %d", n)

	pairs, panel := make([]int64, n), make([]int64, 4*n)
	Pairs(pairs, x, y)
	p0, p1, p2, p3 := PairDots4(pairs, w[0], w[1], w[2], w[3])
	var got [2][4]int32
	for j, p := range [4]int64{p0, p1, p2, p3} {
		got[0][j], got[1][j] = Unpair(p)
	}
	require.Equal(t, want, got, "PairDots4 of %d", n)

	checkFolded(t, x[:min(n, MaxFoldTerms)&^7], w)

	Widen4(panel, w[0], w[1], w[2], w[3])
	got = [2][4]int32{{1, 1, 1, 1}, {1, 1, 1, 1}}
	PairTile4(&got[0], &got[1], pairs, panel)
	for i := range want {
		for j := range want[i] {
			require.Equal(t, want[i][j]+1, got[i][j], "PairTile4 of %d at %d,%d", n, i, j)
		}
	}
}

func checkFolded(t *testing.T, x []int8, w [][]int8) {
	t.Helper()
	folded := make([]int64, len(x)/2)
	var want [4]int32
	var bytes [4][]byte
	for j := range w {
		want[j] = DotI8(x, w[j][:len(x)])
		for _, v := range w[j] {
			bytes[j] = append(bytes[j], byte(v))
		}
	}
	sum := Fold(folded, x)
	s0, s1, s2, s3 := FoldedDots4(folded, sum, bytes[0], bytes[1], bytes[2], bytes[3])
	require.Equal(t, want, [4]int32{s0, s1, s2, s3}, "FoldedDots4 of %d", len(x))
}
