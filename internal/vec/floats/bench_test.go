package floats

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// BenchmarkFunctions times functions on arrays in the first-level cache and on
// arrays of 8 MiB. best-ns/16 is the fastest call's time for 16 elements, which
// others that use the machine disturb the least, and of-copy the fastest copy of
// as many bytes as are read and written, in turns with it, over that.
func BenchmarkFunctions(b *testing.B) {
	for _, n := range []int{4096, 2 << 20} {
		for _, e := range types {
			for _, f := range functions(e, n) {
				b.Run(fmt.Sprintf("f=%s/e=%d/n=%d", f.name, e, n), func(b *testing.B) {
					src, dst := make([]byte, f.bytes*n/2), make([]byte, f.bytes*n/2)
					for i := range src {
						src[i] = byte(i)
					}
					calls, best, moved := max(1, 16384/n), time.Hour, time.Hour
					for b.Loop() {
						start := time.Now()
						for range calls {
							f.run()
						}
						middle := time.Now()
						for range calls {
							copy(dst, src)
						}
						best, moved = min(best, middle.Sub(start)), min(moved, time.Since(middle))
					}
					b.ReportMetric(0, "ns/op")
					b.ReportMetric(float64(best.Nanoseconds())*16/float64(n*calls), "best-ns/16")
					b.ReportMetric(float64(moved)/float64(best), "of-copy")
				})
			}
		}
	}
}

// function is a function under measurement with the bytes that it reads and
// writes for an element.
type function struct {
	name  string
	bytes int
	run   func()
}

func functions(e Element, n int) []function {
	r := rand.New(rand.NewPCG(3, 4))
	x, y, z, size := newArray(e, n, 0).fill(r), newArray(e, n, 0).fill(r), newArray(e, n, 0), sizeOf(e)
	buf, wide := make([]float32, n), make([]float32, n)
	for i := range x.values {
		x.values[i], y.values[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
	}
	copy(x.bytes(), encode(e, x.values))
	copy(y.bytes(), encode(e, y.values))
	src, dst := x.bytes(), z.bytes()
	return []function{
		{"silu", 2 * size, func() { Unary(Silu, e, dst, src, buf) }},
		{"swish", 2 * size, func() { Swish(e, dst, src, 1.702, buf) }},
		{"sigmoid", 2 * size, func() { Unary(Sigmoid, e, dst, src, buf) }},
		{"gelu-tanh", 2 * size, func() { Unary(GeluTanh, e, dst, src, buf) }},
		{"gelu-erf", 2 * size, func() { Unary(GeluErf, e, dst, src, buf) }},
		{"tanh", 2 * size, func() { Unary(Tanh, e, dst, src, buf) }},
		{"swiglu", 3 * size, func() { Binary(SwiGLU, e, dst, src, y.bytes(), buf) }},
		{"add", 3 * size, func() { Binary(Plus, e, dst, src, y.bytes(), buf) }},
		{"max", size, func() { Max(e, src, buf) }},
		{"exp-sum", size + 4, func() { ExpSum(e, wide, src, 4) }},
		{"scale-to", size + 4, func() { ScaleTo(e, dst, wide, 0.5, buf) }},
		{"softmax-4096", 2 * size, func() { Softmax(e, dst, src, 4096, buf) }},
		{"sum-squares", size, func() { SumSquares(e, src, buf) }},
		{"scale-mul", 2*size + 4, func() { ScaleMul(e, dst, src, 0.5, wide, buf) }},
		{"rotate-half-128", 2 * size, func() { Rotate(Halves, e, dst, src, n/128, 128, wide[:128], x.values[:128], buf) }},
	}
}
