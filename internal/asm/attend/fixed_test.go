package attend

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/internal/cpu"
)

func needFixed(t *testing.T) {
	t.Helper()
	if !FixedTakes(cpu.Detected(), FixedChunk) {
		t.Skip("this machine has no VNNI, or the program no assembly")
	}
}

// fixed are rows after Fix, with canaries between and behind them, and before it.
func fixed(r *rand.Rand, n, width, stride int) (out, before []float32) {
	out = rows(r, n, width, stride)
	before = append(before, out...)
	for x := range n {
		Fix(out[x*stride:], width)
	}
	return out, before
}

// TestFixedScores compares with float64 over all tails of rows and positions, and
// checks that nothing else is written. The bound is what Fix rounds off at most,
// and the rounding of the sums.
func TestFixedScores(t *testing.T) {
	needFixed(t)
	r := rand.New(rand.NewPCG(11, 12))
	for range 200 {
		heads, n, keys := 1+r.IntN(5), 1+r.IntN(17), 1+r.IntN(70)
		width := FixedChunk * (1 + r.IntN(9))
		ldq, ldd := width+r.IntN(5), keys+r.IntN(5)
		k := fill(r, I8, heads, keys, width)
		for i := range width { // the largest sums
			k.set(i, 1e9)
			k.set(k.head*(heads-1)+i, -1e9)
		}
		q, before := fixed(r, heads*n, width, ldq)
		got := rows(r, heads*n, keys, ldd)
		a := k.args(heads, keys, width)
		a.X, a.XRow, a.XHead = &q[0], 4*ldq, 4*ldq*n
		a.Y, a.YRow, a.YHead = &got[0], 4*ldd, 4*ldd*n
		FixedScores(&a, n)
		for x := range heads * n {
			row, most := before[x*ldq:][:width], 0.0
			for _, v := range row {
				most = max(most, math.Abs(float64(v)))
			}
			for j := range keys {
				want, sizes := 0.0, 0.0
				for i, v := range row {
					y := k.values[x/n*k.head+j*k.step+i]
					want += float64(v) * y
					sizes += math.Abs(y)
				}
				bound := sizes*most*math.Ldexp(0.5, -FixedBits) + math.Abs(want)*0x1p-21
				require.InDelta(t, want, got[x*ldd+j], bound, "width %d row %d of %d, position %d of %d", width, x, heads*n, j, keys)
			}
			for j := keys; j < ldd; j++ {
				require.Equal(t, float32(canary), got[x*ldd+j])
			}
			for i := width; i < ldq; i++ {
				require.Equal(t, float32(canary), q[x*ldq+i])
			}
		}
		for _, v := range got[heads*n*ldd:] {
			require.Equal(t, float32(canary), v)
		}
	}
}

// TestFixedBits computes rows together and alone: the bits are the same.
func TestFixedBits(t *testing.T) {
	needFixed(t)
	const n, keys, width = 7, 37, 96
	r := rand.New(rand.NewPCG(13, 14))
	k := fill(r, I8, 1, keys, width)
	q, _ := fixed(r, n, width, width)
	all, one := make([]float32, n*keys), make([]float32, n*keys)
	run := func(x, rows int, dst []float32) {
		a := k.args(1, keys, width)
		a.X, a.XRow, a.Y, a.YRow = &q[x*width], 4*width, &dst[x*keys], 4*keys
		FixedScores(&a, rows)
	}
	run(0, n, all)
	for x := range n {
		run(x, 1, one)
	}
	assert.Equal(t, all, one)
}

// TestFixEdges has rows of zeros, of very small and very large numbers, and of what
// is no number.
func TestFixEdges(t *testing.T) {
	needFixed(t)
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	key := make([]int8, FixedChunk)
	for i := range key {
		key[i] = int8(3 - i)
	}
	score := func(at int, x float32) float32 {
		row, got := make([]float32, FixedChunk), float32(canary)
		for i := range row {
			row[i] = x / 2
		}
		row[at] = x
		Fix(row, FixedChunk)
		span := Span{Rows: 1}
		a := Args{Rows: unsafe.Pointer(&key[0]), Step: FixedChunk, Spans: &span, Count: 1, Heads: 1, Width: FixedChunk, X: &row[0], Y: &got}
		FixedScores(&a, 1)
		return got
	}
	sum := 0.0
	for _, k := range key {
		sum += float64(k) / 2
	}
	for at := range FixedChunk {
		all := sum + float64(key[at])/2
		for _, x := range []float32{1, -7, 1e-30, 1e30} {
			assert.InDelta(t, all*float64(x), score(at, x), 400*math.Abs(float64(x))*0x1p-20, "%v at %d", x, at)
		}
		assert.Zero(t, score(at, 0))
		assert.InDelta(t, 0, score(at, 1e-42), 1e-38)
		for _, x := range []float32{inf, -inf, nan} {
			assert.True(t, math.IsNaN(float64(score(at, x))), "%v at %d", x, at)
		}
	}
}

func TestFixedTakes(t *testing.T) {
	assert.False(t, FixedTakes(cpu.AVX512, 64))
	assert.False(t, FixedTakes(cpu.VNNI, 0))
	assert.False(t, FixedTakes(cpu.VNNI, 48))
	assert.Equal(t, present, FixedTakes(cpu.VNNI, 64))
}
