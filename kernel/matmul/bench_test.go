package matmul

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/tensor"
)

// BenchmarkProduct reports GFLOP/s of products with weights [n,k].
func BenchmarkProduct(b *testing.B) {
	types := []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Int8}
	for _, cores := range []int{1, 2} {
		for _, s := range [][3]int64{{512, 512, 512}, {1024, 1024, 1024}} {
			benchProduct(b, cores, tensor.Float32, s[0], s[1], s[2])
		}
		for _, m := range []int64{1, 16, 128} {
			for _, t := range types {
				benchProduct(b, cores, t, m, 4096, 4096)
			}
		}
		for _, n := range []int64{64, 172, 512} {
			benchProduct(b, cores, tensor.Float32, 1, n, 64)
		}
	}
}

func benchProduct(b *testing.B, cores int, t tensor.DType, m, n, k int64) {
	b.Run(fmt.Sprintf("cores=%d/dtype=%s/m=%d/n=%d/k=%d", cores, t, m, n, k), func(b *testing.B) {
		p, in := benchProblem(cores, t, m, n, k)
		kern, _, err := Product.Select(&p, kernel.Filter{})
		require.NoError(b, err)
		a := device.Args{Tiling: device.BytesOf(make([]uint64, kern.TilingSize(&p)/8))}
		g, err := kern.Tile(&p, a.Tiling)
		require.NoError(b, err)
		for i := range p.In {
			a.Buffers = append(a.Buffers, device.Wrap(in[i]))
		}
		a.Buffers = append(a.Buffers, device.Wrap(device.BytesOf(make([]float32, m*n))))
		a.Scratch = device.Wrap(device.BytesOf(make([]uint64, kern.Scratch(&p)/8)))
		a.Blocks, a.Key = g.Blocks, g.Key
		run := kern.Program().Run
		b.ReportAllocs()
		for b.Loop() {
			require.NoError(b, kern.Program().Prepare(&a))
			if a.Blocks == 1 {
				require.NoError(b, run(&a, 0))
				continue
			}
			var wg sync.WaitGroup
			for i := range a.Blocks {
				wg.Go(func() { _ = run(&a, i) })
			}
			wg.Wait()
		}
		b.ReportMetric(2*float64(m*n*k)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
		b.ReportMetric(float64(a.Blocks), "blocks")
	})
}

// benchProblem makes a product of random operands; int8 gets a scale.
func benchProblem(cores int, t tensor.DType, m, n, k int64) (kernel.Problem, [][]byte) {
	r := rand.New(rand.NewPCG(1, 1))
	p := kernel.Problem{In: make([]tensor.Desc, Inputs), Out: make([]tensor.Desc, 1), Params: Params{TransB: true}}
	p.Machine = kernel.Machine{Cores: cores, L1: 32 << 10, L2: 1 << 20}
	in := make([][]byte, Inputs)
	p.In[X], in[X] = tensor.Of(t, m, k), encode(t, draw(r, t, m*k))
	p.In[W], in[W] = tensor.Of(t, n, k), encode(t, draw(r, t, n*k))
	p.Out[0] = tensor.Of(t, m, n)
	if t == tensor.Int8 {
		p.In[Scale], in[Scale] = tensor.Of(tensor.Float32, n), encode(tensor.Float32, draw(r, tensor.Float32, n))
		p.Out[0].DType = tensor.Float32
	}
	return p, in
}

// BenchmarkTile measures what a product costs on the host.
func BenchmarkTile(b *testing.B) {
	for _, s := range [][3]int64{{1, 64, 64}, {128, 4096, 4096}} {
		b.Run(fmt.Sprintf("m=%d/n=%d/k=%d", s[0], s[1], s[2]), func(b *testing.B) {
			p, _ := benchProblem(2, tensor.Float32, s[0], s[1], s[2])
			dst := device.BytesOf(make([]uint64, floatGo.TilingSize(&p)/8))
			b.ReportAllocs()
			for b.Loop() {
				_, err := floatGo.Tile(&p, dst)
				require.NoError(b, err)
			}
		})
	}
}
