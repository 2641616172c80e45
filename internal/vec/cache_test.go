package vec

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/tensor"
)

// drawCache makes a cache of several spans in any order, and the same numbers in
// float64.
func drawCache(r *rand.Rand, e Element) (c Cache, value func(h, j, i int) float64) {
	c = Cache{Elem: e, Heads: 1 + r.IntN(9), Width: 1 + r.IntN(140)}
	switch r.IntN(3) {
	case 0:
		c.Width = Padded(c.Width)
	case 1:
		c.Width = 1 + c.Width%16
	}
	c.Step = c.Width + r.IntN(3)
	slots := 1 + r.IntN(80)
	c.Head = slots*c.Step + r.IntN(3)
	numbers := make([]float64, c.Heads*c.Head+1)
	for i := range numbers {
		numbers[i] = r.NormFloat64() * 20
	}
	t := map[Element]tensor.DType{F32: tensor.Float32, F16: tensor.Float16, BF16: tensor.BFloat16, I8: tensor.Int8}[e]
	c.Mem = tensor.FromFloat64s(t, numbers)
	numbers, _ = tensor.Float64s(c.Mem, t)
	var firsts []int
	for j := 0; j < slots; {
		n := min(1+r.IntN(40), slots-j)
		at := r.IntN(slots - n + 1)
		c.Add(int64(at*c.Step), n)
		for k := range n {
			firsts = append(firsts, (at+k)*c.Step)
		}
		j += n
	}
	return c, func(h, j, i int) float64 { return numbers[h*c.Head+firsts[j]+i] }
}

// TestCache compares both products with float64, for every element type, and
// rows done at once with rows done alone, bit by bit.
func TestCache(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		for range 200 {
			e := Element(r.IntN(4))
			c, value := drawCache(r, e)
			if !CacheTakes(e, c.Width) {
				require.False(t, e == F32 || plain() || c.Width%8 == 0)
				continue
			}
			rows, keys := 1+r.IntN(12), c.Rows()
			ldq, ldd, lda := Padded(c.Width), keys+1, c.Width+1
			q := make([]float32, c.Heads*rows*ldq)
			for i := range c.Heads * rows {
				copy(q[i*ldq:], randoms(r, c.Width))
			}
			scores, acc := make([]float32, c.Heads*rows*ldd), make([]float32, c.Heads*rows*lda)
			c.Scores(scores, ldd, q, ldq, rows)
			c.Mix(acc, lda, scores, ldd, rows)
			for i := range c.Heads * rows {
				mixed, size := make([]float64, c.Width), make([]float64, c.Width)
				for j := range keys {
					want, scale := 0.0, 0.0
					for d := range c.Width {
						v := value(i/rows, j, d)
						want += v * float64(q[i*ldq+d])
						scale += math.Abs(v * float64(q[i*ldq+d]))
						mixed[d] += v * float64(scores[i*ldd+j])
						size[d] += math.Abs(v * float64(scores[i*ldd+j]))
					}
					require.InDelta(t, want, scores[i*ldd+j], 1e-6*scale+1e-30, "element type %d", e)
				}
				for d := range mixed {
					require.InDelta(t, mixed[d], acc[i*lda+d], 1e-6*size[d]+1e-30, "element type %d", e)
				}
			}
			alone(t, c, q, ldq, rows, scores, ldd, acc, lda)
		}
	})
}

// alone does one row of one head, span by span.
func alone(t *testing.T, c Cache, q []float32, ldq, rows int, scores []float32, ldd int, acc []float32, lda int) {
	i := (c.Heads*rows - 1) / 2
	keys, spans := c.Rows(), c.Spans
	c.Mem, c.Heads = c.Mem[i/rows*c.Head*sizeOf(c.Elem):], 1
	s, a, j := make([]float32, keys), make([]float32, c.Width), 0
	for _, span := range spans {
		c.Spans = []Span{span}
		c.Scores(s[j:], keys, q[i*ldq:], ldq, 1)
		c.Mix(a, c.Width, s[j:], keys, 1)
		j += span.Rows
	}
	require.Equal(t, scores[i*ldd:][:keys], s)
	require.Equal(t, acc[i*lda:][:c.Width], a)
}

func TestCacheChecksItsMemory(t *testing.T) {
	c := Cache{Mem: make([]byte, 4*29), Elem: F32, Heads: 2, Width: 3, Step: 5, Head: 16}
	c.Add(0, 3)
	require.Panics(t, func() { c.Add(1, 3) })
}

func TestCachesAllocateNothing(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		c, _ := drawCache(rand.New(rand.NewPCG(2, 2)), F32)
		q, s, a := make([]float32, 80*160), make([]float32, 80*100), make([]float32, 80*160)
		require.Zero(t, testing.AllocsPerRun(10, func() {
			c.Scores(s, 100, q, 160, 8)
			c.Mix(a, 160, s, 100, 8)
		}))
	})
}
