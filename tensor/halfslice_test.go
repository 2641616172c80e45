package tensor

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/internal/cpu"
)

// eachLevel runs a test in plain Go and with every assembly of this machine.
func eachLevel(t *testing.T, test func(t *testing.T)) {
	for _, level := range cpu.Levels(cpu.Detected()) {
		t.Run("cpu="+level.String(), func(t *testing.T) {
			defer cpu.Limit(level)()
			test(t)
		})
	}
}

func TestWideningSlicesMatchElements(t *testing.T) { eachLevel(t, checkWidening) }

func checkWidening(t *testing.T) {
	f16, bf16 := make([]F16, 1<<16), make([]BF16, 1<<16)
	for i := range f16 {
		f16[i], bf16[i] = F16(i), BF16(i)
	}
	a, b := make([]float32, 1<<16), make([]float32, 1<<16)
	F16ToF32(a, f16)
	BF16ToF32(b, bf16)
	for i := range f16 {
		require.Equal(t, math.Float32bits(f16[i].Float32()), math.Float32bits(a[i]), "f16 %#04x", i)
		require.Equal(t, math.Float32bits(bf16[i].Float32()), math.Float32bits(b[i]), "bf16 %#04x", i)
	}
}

// TestNarrowingSlicesMatchElements covers every cut of both formats and every
// sign, exponent and rounding position; NaN bits are compared too.
func TestNarrowingSlicesMatchElements(t *testing.T) { eachLevel(t, checkNarrowing) }

func checkNarrowing(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var src []float32
	nearestF16.cuts(func(x float32) { src = append(src, x) })
	nearestBF16.cuts(func(x float32) { src = append(src, x) })
	for upper := range uint32(1 << 9) {
		for range 64 {
			src = append(src, math.Float32frombits(upper<<23|r.Uint32()>>9))
		}
	}
	f16, bf16 := make([]F16, len(src)), make([]BF16, len(src))
	F32ToF16(f16, src)
	F32ToBF16(bf16, src)
	for i, x := range src {
		if want := F16From(x); want != f16[i] {
			require.Failf(t, "f16", "%v (%#08x): want %#04x, got %#04x", x, math.Float32bits(x), want, f16[i])
		}
		if want := BF16From(x); want != bf16[i] {
			require.Failf(t, "bf16", "%v (%#08x): want %#04x, got %#04x", x, math.Float32bits(x), want, bf16[i])
		}
	}
}

func TestSliceConversionsConvertTheShorterLength(t *testing.T) { eachLevel(t, checkShorterLengths) }

func checkShorterLengths(t *testing.T) {
	const room = 40
	for n := range room {
		for _, extra := range []int{-1, 0, 3} {
			checkShorter(t, n, n+extra, F16ToF32, F16.Float32, F16(0x3c00))
			checkShorter(t, n, n+extra, BF16ToF32, BF16.Float32, BF16(0x3f80))
			checkShorter(t, n, n+extra, F32ToF16, F16From, float32(1))
			checkShorter(t, n, n+extra, F32ToBF16, BF16From, float32(1))
		}
	}
}

// checkShorter converts n values into room for m, that lies in a longer slice.
func checkShorter[D, S comparable](t *testing.T, n, m int, convert func([]D, []S), one func(S) D, value S) {
	t.Helper()
	src, dst := make([]S, n), make([]D, max(n, m, 0)+8)
	for i := range src {
		src[i] = value
	}
	convert(dst[:max(m, 0)], src)
	var zero D
	for i, got := range dst {
		want := zero
		if i < min(n, m) {
			want = one(value)
		}
		assert.Equal(t, want, got, "%T: %d of %d into %d", got, i, n, m)
	}
}

func TestSliceConversionsAllocateNothing(t *testing.T) {
	f, h, b := make([]float32, 100), make([]F16, 100), make([]BF16, 100)
	run := func() {
		F16ToF32(f, h)
		F32ToF16(h, f)
		BF16ToF32(f, b)
		F32ToBF16(b, f)
	}
	run()
	assert.Zero(t, testing.AllocsPerRun(10, run))
}

// BenchmarkHalf reports the element rate. The f16 conversions also run by way
// of the element function, to show what the tables are worth; source=stream
// reads a slice that does not fit the caches.
func BenchmarkHalf(b *testing.B) {
	const row = 16 << 10
	r := rand.New(rand.NewPCG(5, 6))
	for _, d := range []struct {
		name string
		next func() float32
	}{
		{"weights", func() float32 { return float32(r.NormFloat64() * 0.02) }},
		{"bits", func() float32 { return F16(r.Uint32()).Float32() }},
	} {
		f, h, bf := make([]float32, row), make([]F16, row), make([]BF16, row)
		for i := range f {
			f[i] = d.next()
		}
		F32ToF16(h, f)
		F32ToBF16(bf, f)
		long := slices.Repeat(h, 1024)
		out, outH, outBF := make([]float32, row), make([]F16, row), make([]BF16, row)
		for _, c := range []struct {
			name string
			n    int
			run  func()
		}{
			{"from=f16/to=f32/via=table", row, func() { F16ToF32(out, h) }},
			{"from=f16/to=f32/via=element", row, func() { widenEach(out, h) }},
			{"from=f16/to=f32/via=table/source=stream", len(long), func() { inRows(long, row, func(s []F16) { F16ToF32(out, s) }) }},
			{"from=f16/to=f32/via=element/source=stream", len(long), func() { inRows(long, row, func(s []F16) { widenEach(out, s) }) }},
			{"from=f32/to=f16/via=table", row, func() { F32ToF16(outH, f) }},
			{"from=f32/to=f16/via=element", row, func() { narrowEach(outH, f) }},
			{"from=bf16/to=f32", row, func() { BF16ToF32(out, bf) }},
			{"from=f32/to=bf16", row, func() { F32ToBF16(outBF, f) }},
		} {
			b.Run("data="+d.name+"/"+c.name, func(b *testing.B) {
				for b.Loop() {
					c.run()
				}
				b.ReportMetric(float64(c.n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Melem/s")
			})
		}
	}
}

func widenEach(dst []float32, src []F16) {
	dst = dst[:len(src)]
	for i, h := range src {
		dst[i] = h.Float32()
	}
}

func narrowEach(dst []F16, src []float32) {
	dst = dst[:len(src)]
	for i, f := range src {
		dst[i] = F16From(f)
	}
}

func inRows(src []F16, n int, visit func([]F16)) {
	for row := range slices.Chunk(src, n) {
		visit(row)
	}
}
