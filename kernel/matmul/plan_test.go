package matmul

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/tensor"
)

func TestChunkDependsOnKAlone(t *testing.T) {
	for k, want := range map[int64]int64{1: 512, 512: 512, 32768: 512, 32769: 576, 70000: 1152, 262144: 4096, 1 << 40: 4096} {
		assert.Equal(t, want, chunkOf(k), "k = %d", k)
	}
}

// TestPlansOfHugeShapes plans products whose operands are as large as tensors
// may be: scratch stays small and every element of the output has an item.
func TestPlansOfHugeShapes(t *testing.T) {
	const big = 1 << 36
	for _, c := range []struct{ m, n, k int64 }{
		{big, 1, 1}, {1, big, 1}, {1, 1, big}, {1 << 18, 1 << 18, 1}, {1 << 18, 1 << 18, 1 << 18}, {1 << 20, 1, 1 << 16}, {3, 1 << 30, 1 << 6}, {16, 1 << 16, 1 << 20},
	} {
		for _, x := range []tensor.DType{tensor.Float16, tensor.Int8} {
			for _, transB := range []bool{false, true} {
				p := kernel.Problem{In: make([]tensor.Desc, Inputs), Out: make([]tensor.Desc, 1), Machine: kernel.Machine{Cores: 64, L2: 1 << 20}}
				p.In[X], p.In[W], p.Out[0] = tensor.Of(x, c.m, c.k), tensor.Of(x, c.k, c.n), tensor.Of(tensor.Float16, c.m, c.n)
				if transB {
					p.In[W] = tensor.Of(x, c.n, c.k)
				}
				if x == tensor.Int8 {
					p.In[Scale] = tensor.Of(tensor.Float32, c.n)
				}
				p.Params = Params{TransB: transB}
				k, _, err := Product.Select(&p, kernel.Filter{})
				require.NoError(t, err, "%+v", c)
				dst := device.BytesOf(make([]uint64, k.TilingSize(&p)/8))
				g, err := k.Tile(&p, dst)
				require.NoError(t, err)
				l := device.View[int64](dst)
				assert.Equal(t, [4]int64{1, c.m, c.n, c.k}, [4]int64(l[:4]), "batch, m, n and k come first")
				assert.LessOrEqual(t, int64(g.Blocks), int64(64))
				assert.LessOrEqual(t, k.Scratch(&p), int64(64)*(8<<20), "%+v %s", c, x)
				_, _, err = Choose(&p, Params{TransB: transB})
				require.NoError(t, err)
				cost := k.Program().Cost(dst, g.Key, g.Blocks)
				assert.Positive(t, cost.Flops)
				assert.Positive(t, cost.Bytes)
			}
		}
	}
}

// TestItemsCoverTheOutput checks that the items of a plan cover every output
// element once, for every chunk when K is split.
func TestItemsCoverTheOutput(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for range 300 {
		c := product{x: tensor.Float32, out: tensor.Float32, b: 1 + r.Int64N(3), m: 1 + r.Int64N(90), n: 1 + r.Int64N(90), k: 1 + r.Int64N(1500)}
		c.wb, c.p.TransB = c.b, r.IntN(2) == 0
		p := kernel.Problem{In: make([]tensor.Desc, Inputs), Out: []tensor.Desc{tensor.Of(tensor.Float32, c.b, c.m, c.n)}}
		p.In[X], p.In[W] = tensor.Of(tensor.Float32, c.b, c.m, c.k), tensor.Of(tensor.Float32, c.b, c.k, c.n)
		if c.p.TransB {
			p.In[W] = tensor.Of(tensor.Float32, c.b, c.n, c.k)
		}
		p.Machine = kernel.Machine{Cores: 1 + r.IntN(70), L2: 1 << (16 + r.IntN(6))}
		s, err := shapeOf(&p, c.p)
		require.NoError(t, err)
		for _, split := range []bool{false, true} {
			plans := []plan{newPlan(&p, &s, split)}
			for i := range engines {
				if engines[i].word == tensor.Float32 {
					plans = append(plans, engines[i].plan(&p, &s, split))
				}
			}
			for _, l := range plans {
				wantCover(t, c, &l)
			}
		}
	}
}

// wantCover checks that the items of a plan cover every chunk of every output.
func wantCover(t *testing.T, c product, l *plan) {
	t.Helper()
	seen := make([]int64, c.b*c.m*c.n)
	for i := range l.Items {
		q := l.place(i)
		require.LessOrEqual(t, q.m, l.TileM)
		require.LessOrEqual(t, q.n, l.TileN)
		for row := range q.m {
			for j := range q.n {
				seen[(q.b*l.M+q.i+row)*l.N+q.j+j] += q.k1 - q.k0
			}
		}
	}
	for i, n := range seen {
		if n != c.k {
			require.Equal(t, c.k, n, "%s split %t, element %d", c, l.Split, i)
		}
	}
	require.LessOrEqual(t, int64(l.grid.Blocks), l.Items)
}

func TestRotatedOrderTakesEveryItem(t *testing.T) {
	l := tiling{Rotate: true}
	for block := range 5 {
		var got []int64
		for i := range int64(7) {
			got = append(got, l.order(10, 17, i, block))
		}
		assert.ElementsMatch(t, []int64{10, 11, 12, 13, 14, 15, 16}, got)
		assert.Equal(t, 10+int64(block), got[0], "blocks start at different chunks")
	}
}

// TestRandomProducts draws everything at random.
func TestRandomProducts(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(31, 32))
		types := append([]tensor.DType{tensor.Int8}, floats...)
		for i := range 150 {
			c := randomProduct(r, types[r.IntN(4)])
			small := i%3 == 0
			if small { // caches so small that rows come in parts
				c.m += r.Int64N(90)
			}
			d := newData(c, uint64(i))
			if small {
				d.problem.Machine = kernel.Machine{L1: 8 << 10, L2: 16 << 10, L3: 64 << 10}
			}
			d.check(t, d.run(t))
		}
	})
}

// randomProduct draws a product of elements of type x.
func randomProduct(r *rand.Rand, x tensor.DType) product {
	c := product{
		x: x, out: floats[r.IntN(3)], b: 1 + r.Int64N(3), m: 1 + r.Int64N(40), n: 1 + r.Int64N(70),
		k: 1 + int64(math.Exp(r.Float64()*6.5)), p: Params{TransA: r.IntN(2) == 0, TransB: r.IntN(2) == 0}, wb: 1,
	}
	if r.IntN(2) == 0 {
		c.wb = c.b
	}
	if c.x == tensor.Int8 {
		c.scale = []tensor.DType{tensor.Float32, tensor.Int64}[r.IntN(2)]
		if r.IntN(2) == 0 {
			c.bias = tensor.Int32
		}
	} else {
		c.bias = append(floats, tensor.Undefined)[r.IntN(4)]
	}
	return c
}

// TestColumnsAreEven checks that tiles cover all columns and that every run of them has
// as many units, within one, as its share of the tiles.
func TestColumnsAreEven(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for range 500 {
		p := tiling{N: 1 + r.Int64N(3000), Unit: 1 << r.IntN(6)}
		units := ceilDiv(p.N, p.Unit)
		p.TilesN = 1 + r.Int64N(units)
		require.Zero(t, p.column(0))
		require.Equal(t, units*p.Unit, p.column(p.TilesN))
		for first := range p.TilesN {
			require.Less(t, p.column(first), p.column(first+1))
			for end := first + 1; end <= p.TilesN; end += 1 + p.TilesN/7 {
				got := float64((p.column(end) - p.column(first)) / p.Unit)
				require.InDelta(t, float64(units*(end-first))/float64(p.TilesN), got, 1)
			}
		}
	}
}
