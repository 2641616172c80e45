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

// cache is a run of rows as bytes and as the same numbers in float64.
type cache struct {
	elem       Elem
	mem        []byte
	values     []float64
	size       int
	step, head int
	cut        *rand.Rand
}

// fill makes a cache whose rows begin at an odd address for bytes, and at an
// address that is aligned to nothing but the element for the others.
func fill(r *rand.Rand, e Elem, heads, keys, width int) *cache {
	c := &cache{elem: e, cut: r, size: [...]int{4, 2, 2, 1}[e]}
	c.step = width + r.IntN(3)
	c.head = c.step*keys + r.IntN(5)
	n := c.head*heads + 3
	words := make([]uint64, (n*c.size+15)/8+1)
	c.mem = unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)[c.size:]
	c.values = make([]float64, n)
	for i := range c.values {
		c.set(i, r.NormFloat64())
	}
	return c
}

func (c *cache) set(i int, x float64) {
	p := unsafe.Pointer(&c.mem[i*c.size])
	switch c.elem {
	case F32:
		*(*float32)(p) = float32(x)
		c.values[i] = float64(float32(x))
	case F16: // multiples of 1/16, and the special values
		h, v := uint16(0), math.RoundToEven(max(-60, min(60, x))*16)/16
		switch {
		case x != x:
			h, v = 0x7e00, x
		case math.IsInf(x, 0):
			h, v = 0x7c00, math.Inf(1)
		case math.Abs(v) >= 1.0/16:
			b := math.Float64bits(v)
			h = uint16(b>>63<<15) | uint16((b>>52&2047)-1023+15)<<10 | uint16(b>>42&1023)
		}
		*(*uint16)(p), c.values[i] = h, v
	case BF16:
		b := math.Float32bits(float32(x)) &^ 0xffff
		if x != x {
			b = 0x7fc00000
		}
		*(*uint16)(p), c.values[i] = uint16(b>>16), float64(math.Float32frombits(b))
	case I8:
		v := int8(max(-128, min(127, math.RoundToEven(x*40))))
		if x != x {
			v = 0
		}
		*(*int8)(p), c.values[i] = v, float64(v)
	}
}

// rows are rows of f32 with canaries between and behind them.
func rows(r *rand.Rand, n, width, stride int) []float32 {
	out := make([]float32, n*stride+64)
	for i := range out {
		out[i] = canary
	}
	for x := range n {
		for i := range width {
			out[x*stride+i] = float32(r.NormFloat64())
		}
	}
	return out
}

const canary = -12345

func eachLevel(t *testing.T, test func(t *testing.T, f cpu.Features)) {
	for _, f := range cpu.Levels(cpu.Detected()) {
		t.Run("cpu="+f.String(), func(t *testing.T) { test(t, f) })
	}
}

// shape draws sizes with all tails.
func shape(r *rand.Rand) (heads, n, keys, width int) {
	width = 1 + r.IntN(150)
	switch r.IntN(6) {
	case 0, 1:
		width = 1 + r.IntN(16)
	case 2:
		width = Chunk
	}
	return 1 + r.IntN(10), 1 + r.IntN(17), 1 + r.IntN(70), width
}

func (c *cache) args(heads, keys, width int) Args {
	a := Args{Rows: unsafe.Pointer(&c.mem[0]), Step: c.step * c.size, Head: c.head * c.size, Heads: heads, Width: width}
	spans := make([]Span, 0, keys)
	for j := 0; j < keys; {
		n := min(1+c.cut.IntN(40), keys-j)
		spans = append(spans, Span{j * a.Step, n})
		j += n
	}
	a.Spans, a.Count = &spans[0], len(spans)
	if runs := c.ahead(); len(runs) > 0 {
		a.Fetch, a.Fetches = &runs[0], len(runs)
	}
	return a
}

// ahead draws what is fetched: too little, too much, nothing, or no memory at all.
func (c *cache) ahead() []Ahead {
	runs := make([]Ahead, c.cut.IntN(4))
	for i := range runs {
		runs[i] = Ahead{At: uintptr(c.cut.Uint64()), Bytes: 1 + c.cut.IntN(1000), Step: 1000, Rows: 1 + c.cut.IntN(5)}
		if c.cut.IntN(2) == 0 {
			runs[i].At = uintptr(unsafe.Pointer(&c.mem[c.cut.IntN(len(c.mem))]))
		}
	}
	return runs
}

// TestScores compares with float64 and checks that nothing else is written.
func TestScores(t *testing.T) {
	eachLevel(t, func(t *testing.T, f cpu.Features) {
		r := rand.New(rand.NewPCG(1, 2))
		for range 200 {
			heads, n, keys, width := shape(r)
			e := Elem(r.IntN(4))
			if r.IntN(2) == 0 {
				width = (width + 7) &^ 7
			}
			l, ok := Best(f, e, width)
			if !ok {
				assert.True(t, f == cpu.None || !f.Has(cpu.AVX512) && e != F32 && width%Chunk != 0)
				continue
			}
			c := fill(r, e, heads, keys, width)
			ldx, ldy := (width+7)&^7, keys+r.IntN(4)
			x, y := rows(r, heads*n, width, ldx), rows(r, heads*n, 0, ldy)
			for i := range heads * n {
				clear(x[i*ldx+width : (i+1)*ldx])
			}
			a := c.args(heads, keys, width)
			a.X, a.XRow, a.XHead, a.Y, a.YRow, a.YHead = &x[0], 4*ldx, 4*ldx*n, &y[0], 4*ldy, 4*ldy*n
			l.Scores(&a, n)
			for i := range heads * n {
				for j := range ldy {
					got := y[i*ldy+j]
					if j >= keys {
						require.Equal(t, float32(canary), got, "behind the row")
						continue
					}
					want, sum := float32(0), 0.0
					for d := range width {
						k := c.values[i/n*c.head+j*c.step+d]
						want = float32FMA(x[i*ldx+d], float32(k), want)
						sum += float64(x[i*ldx+d]) * k
					}
					require.Equal(t, want, got, "%v: row %d, key %d of %d, width %d", e, i, j, keys, width)
					require.InDelta(t, sum, got, 1e-3*math.Sqrt(float64(width))*40)
				}
			}
			for _, v := range y[heads*n*ldy:] {
				require.Equal(t, float32(canary), v)
			}
		}
	})
}

// TestMix compares with fused multiply-adds in the order of keys.
func TestMix(t *testing.T) {
	eachLevel(t, func(t *testing.T, f cpu.Features) {
		r := rand.New(rand.NewPCG(3, 4))
		for range 200 {
			heads, n, keys, width := shape(r)
			e := Elem(r.IntN(4))
			if r.IntN(2) == 0 {
				width = (width + 7) &^ 7
			}
			l, ok := Best(f, e, width)
			if !ok {
				continue
			}
			c := fill(r, e, heads, keys, width)
			ldx, ldy := keys+r.IntN(4), width+r.IntN(4)
			x, y := rows(r, heads*n, keys, ldx), rows(r, heads*n, width, ldy)
			want := append([]float32(nil), y...)
			for i := range heads * n {
				for d := range width {
					for j := range keys {
						k := c.values[i/n*c.head+j*c.step+d]
						want[i*ldy+d] = float32FMA(x[i*ldx+j], float32(k), want[i*ldy+d])
					}
				}
			}
			a := c.args(heads, keys, width)
			a.X, a.XRow, a.XHead, a.Y, a.YRow, a.YHead = &x[0], 4*ldx, 4*ldx*n, &y[0], 4*ldy, 4*ldy*n
			l.Mix(&a, n)
			require.Equal(t, want, y, "%v: %d rows, %d keys, width %d", e, n, keys, width)
		}
	})
}

// TestSpecialValues has NaN and infinities in one row of the cache each: they
// reach the score of their row and the columns that they lie in, nothing else.
func TestSpecialValues(t *testing.T) {
	eachLevel(t, func(t *testing.T, f cpu.Features) {
		r := rand.New(rand.NewPCG(5, 6))
		for e := F32; e <= BF16; e++ {
			for _, bad := range []float64{math.NaN(), math.Inf(1)} {
				const n, keys, width = 3, 37, 24
				l, ok := Best(f, e, width)
				if !ok {
					continue
				}
				c := fill(r, e, 1, keys, width)
				j, d := r.IntN(keys), r.IntN(width)
				c.set(j*c.step+d, bad)
				x, y := rows(r, n, width, width), rows(r, n, 0, keys)
				a := c.args(1, keys, width)
				a.X, a.XRow, a.Y, a.YRow = &x[0], 4*width, &y[0], 4*keys
				l.Scores(&a, n)
				for i := range n * keys {
					assert.Equal(t, i%keys != j, finite(y[i]), "%v: score %d", e, i)
				}
				p, o := rows(r, n, keys, keys), rows(r, n, width, width)
				a.X, a.XRow, a.Y, a.YRow = &p[0], 4*keys, &o[0], 4*width
				l.Mix(&a, n)
				for i := range n * width {
					assert.Equal(t, i%width != d, finite(o[i]), "%v: value %d", e, i)
				}
			}
		}
	})
}

func finite(x float32) bool { return x-x == 0 }
