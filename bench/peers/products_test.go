package peers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/stretchr/testify/require"

	"goatb/bench/roofline"
)

// beyond is the memory that constant weights rotate through.
const beyond = 384 << 20

// contender is one library on one product, or the limit of the machine.
type contender struct {
	name string
	// run multiplies once and says how long that took.
	run func() (time.Duration, error)
	// close frees what run uses.
	close func()
	spent []time.Duration
}

// BenchmarkProducts multiplies with GoATB and its peers in turns: square
// products of row-major matrices, and those with constant weights [n,k], which
// GoATB and ggml keep packed and OpenBLAS takes as they are. ggml quantises the
// other factor of int8 (q8_0) inside the call. Weights rotate through more memory
// than caches hold. Metrics: the median GFLOP/s of each, and the median of the
// time that each peer and the limit (multiply-adds or reading, see package
// roofline) took in a turn, divided by GoATB's in that turn.
func BenchmarkProducts(b *testing.B) {
	if o, err := LoadOpenBLAS(); err == nil {
		b.Log("OpenBLAS picked", o.Core)
	}
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			l, err := roofline.MeasureLimits(threads, beyond)
			require.NoError(b, err)
			defer func() { require.NoError(b, l.Close()) }()
			for _, c := range roofline.Cases() {
				if c.Name != "product" && c.Name != "linear" {
					continue
				}
				b.Run(fmt.Sprintf("case=%s/shape=%s/dtype=%s", c.Name, c.Shape, c.DType), func(b *testing.B) { contend(b, &c, l) })
			}
		})
	}
}

func contend(b *testing.B, c *roofline.Case, l *roofline.Limits) {
	own, err := roofline.Open(c, l.Threads, beyond)
	require.NoError(b, err)
	defer func() { require.NoError(b, own.Close()) }()
	name, limit := l.Bound(c)
	all := append([]*contender{
		{name: "goatb", run: timed(func() error { return own.Run(context.Background()) }), close: func() {}},
		{name: name + "-limit", run: func() (time.Duration, error) { return limit(), nil }, close: func() {}},
	}, opponents(b, c, l.Threads)...)
	runtime.GC()
	for _, x := range all {
		_, err := x.run()
		require.NoError(b, err)
	}
	for b.Loop() {
		for _, x := range all {
			spent, err := x.run()
			if err != nil {
				b.Fatal(err)
			}
			x.spent = append(x.spent, spent)
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, x := range all {
		if i > 0 {
			ratios := make([]float64, len(x.spent))
			for j, d := range x.spent {
				ratios[j] = float64(d) / float64(all[0].spent[j])
			}
			b.ReportMetric(roofline.Median(ratios), "vs-"+x.name)
		}
		x.close()
	}
	for _, x := range all {
		b.ReportMetric(c.Flops/float64(roofline.Median(x.spent).Nanoseconds()), x.name+"-GFLOP/s")
	}
}

// timed makes a contender's run of a call.
func timed(call func() error) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		start := time.Now()
		err := call()
		return time.Since(start), err
	}
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
	return append(out, &contender{name: "ggml", run: timed(func() error { p.Run(); return nil }), close: p.Close})
}

// copies is the number of weights that a case rotates through.
func copies(c *roofline.Case, elements int) int {
	if c.Name == "product" {
		return 1
	}
	size := map[string]int{"f32": 4, "f16": 2, "bf16": 2, "int8": 1}[c.DType]
	return 1 + beyond/(elements*size)
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
		o.SetThreads(threads)
		out = append(out, &contender{name: "openblas", close: func() {}, run: timed(func() error {
			if m == 1 && constant {
				o.MatVec(y, turn(), x, n, k)
			} else {
				o.MatMul(y, x, turn(), m, n, k, constant)
			}
			return nil
		})})
	}
	if threads == 2 && m*n*k <= 1<<30 {
		trans, ldb := blas.NoTrans, n
		if constant {
			trans, ldb = blas.Trans, k
		}
		out = append(out, &contender{name: "gonum", close: func() {}, run: timed(func() error {
			gonum.Implementation{}.Sgemm(blas.NoTrans, trans, m, n, k, 1, x, k, turn(), ldb, 0, y, n)
			return nil
		})})
	}
	return out
}
