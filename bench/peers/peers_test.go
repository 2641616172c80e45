package peers

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func random(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = rng.Float32()*2 - 1
	}
	return x
}

func naive(x, w []float32, m, n, k int) []float64 {
	y := make([]float64, m*n)
	for i := range m {
		for j := range n {
			for l := range k {
				y[i*n+j] += float64(x[i*k+l]) * float64(w[j*k+l])
			}
		}
	}
	return y
}

// The peers compute what the benchmarks say they do.
func TestPeers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const m, n, k = 5, 64, 256
	x, w := random(rng, m*k), random(rng, n*k)
	want := naive(x, w, m, n, k)
	check := func(got []float32, tol float64) {
		t.Helper()
		for i := range want {
			require.InDelta(t, want[i], got[i], tol)
		}
	}
	t.Run("openblas", func(t *testing.T) {
		o, err := LoadOpenBLAS()
		if err != nil {
			t.Skip(err)
		}
		t.Log("core", o.Core)
		y := make([]float32, m*n)
		o.MatMul(y, x, w, m, n, k, true)
		check(y, 1e-4)
		o.MatVec(y[:n], w, x[:k], n, k)
		check(y, 1e-4)
	})
	t.Run("ggml", func(t *testing.T) {
		g, err := LoadGGML()
		if err != nil {
			t.Skip(err)
		}
		t.Log("backend", g.Variant, "repacks", g.extra != 0)
		for dtype, tol := range map[GGMLType]float64{GGMLF32: 1e-3, GGMLF16: 2e-2, GGMLBF16: 0.2, GGMLQ8: 0.4, GGMLQ4: 4} {
			p, err := g.NewProduct(dtype, w, 2, m, n, k)
			require.NoError(t, err)
			p.SetInput(x)
			p.Run()
			p.Run()
			check(p.Output(1), tol)
			p.Close()
		}
	})
}
