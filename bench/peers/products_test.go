package peers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/stretchr/testify/require"

	"goatb/bench/roofline"
)

// contender is one library on one product.
type contender struct {
	name string
	run  func() error
	// close frees what run uses.
	close func()
	spent []time.Duration
}

// BenchmarkProducts multiplies with GoATB and its peers in turns: square
// products of row-major matrices, and those with constant weights [n,k], which
// GoATB and ggml keep packed and OpenBLAS takes as they are. ggml quantises the
// other factor of int8 (q8_0) inside the call. Weights rotate through more memory
// than caches hold. Metrics: GFLOP/s of each, the multiply-add peak of the run,
// and GoATB's rate divided by each peer's.
func BenchmarkProducts(b *testing.B) {
	for _, threads := range []int{1, 2} {
		for _, c := range roofline.Cases() {
			if c.Name != "product" && c.Name != "linear" {
				continue
			}
			b.Run(fmt.Sprintf("threads=%d/case=%s/shape=%s/dtype=%s", threads, c.Name, c.Shape, c.DType), func(b *testing.B) {
				contend(b, &c, threads)
			})
		}
	}
}

func contend(b *testing.B, c *roofline.Case, threads int) {
	own, err := roofline.Open(c, threads, roofline.BeyondCaches)
	require.NoError(b, err)
	defer func() { require.NoError(b, own.Close()) }()
	all := append([]*contender{{name: "goatb", run: func() error { return own.Run(context.Background()) }}}, opponents(b, c, threads)...)
	limits, err := roofline.MeasureLimits(threads, 64<<20)
	require.NoError(b, err)
	defer func() { require.NoError(b, limits.Close()) }()
	for b.Loop() {
		for _, x := range all {
			start := time.Now()
			if err := x.run(); err != nil {
				b.Fatal(err)
			}
			x.spent = append(x.spent, time.Since(start))
		}
	}
	b.ReportMetric(0, "ns/op")
	rate := func(x *contender) float64 {
		slices.Sort(x.spent)
		return c.Flops / float64(x.spent[len(x.spent)/2].Nanoseconds())
	}
	for i, x := range all {
		b.ReportMetric(rate(x), x.name+"-GFLOP/s")
		if i > 0 {
			b.ReportMetric(rate(all[0])/rate(x), "vs-"+x.name)
			x.close()
		}
	}
	b.ReportMetric(rate(all[0])/limits.Peaks[c.Peak], "of-peak")
}

// opponents are the peers that are there and know the type.
func opponents(b *testing.B, c *roofline.Case, threads int) (out []*contender) {
	var m, n, k int
	_, err := fmt.Sscanf(c.Shape, "%dx%dx%d", &m, &n, &k)
	require.NoError(b, err)
	rng := rand.New(rand.NewPCG(1, 2))
	x, w := random(rng, m*k), random(rng, n*k)
	if c.DType == "f32" {
		out = append(out, blasContenders(b, c, threads, x, w, m, n, k)...)
	}
	types := map[string]GGMLType{"f32": GGMLF32, "f16": GGMLF16, "bf16": GGMLBF16, "int8": GGMLQ8}
	g, err := LoadGGML()
	if err != nil {
		b.Log(err)
		return out
	}
	g.SetThreads(threads)
	p, err := g.NewProduct(types[c.DType], w, copies(c, n*k), m, n, k)
	require.NoError(b, err)
	p.SetInput(x)
	return append(out, &contender{name: "ggml", run: func() error { p.Run(); return nil }, close: p.Close})
}

// copies is the number of weights that a case rotates through.
func copies(c *roofline.Case, elements int) int {
	if c.Name == "product" {
		return 1
	}
	size := map[string]int{"f32": 4, "f16": 2, "bf16": 2, "int8": 1}[c.DType]
	return 1 + roofline.BeyondCaches/(elements*size)
}

func blasContenders(b *testing.B, c *roofline.Case, threads int, x, w []float32, m, n, k int) (out []*contender) {
	y := make([]float32, m*n)
	constant := c.Name == "linear"
	ws := [][]float32{w}
	for constant && len(ws) < copies(c, n*k) {
		ws = append(ws, slices.Clone(w))
	}
	next := 0
	turn := func() []float32 {
		next = (next + 1) % len(ws)
		return ws[next]
	}
	if o, err := LoadOpenBLAS(); err != nil {
		b.Log(err)
	} else {
		b.Log("OpenBLAS picked", o.Core)
		o.SetThreads(threads)
		out = append(out, &contender{name: "openblas", close: func() {}, run: func() error {
			if m == 1 && constant {
				o.MatVec(y, turn(), x, n, k)
			} else {
				o.MatMul(y, x, turn(), m, n, k, constant)
			}
			return nil
		}})
	}
	if threads == 2 && m*n*k <= 1<<30 {
		trans, ldb := blas.NoTrans, n
		if constant {
			trans, ldb = blas.Trans, k
		}
		out = append(out, &contender{name: "gonum", close: func() {}, run: func() error {
			gonum.Implementation{}.Sgemm(blas.NoTrans, trans, m, n, k, 1, x, k, turn(), ldb, 0, y, n)
			return nil
		}})
	}
	return out
}
