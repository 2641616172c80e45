package matmul

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/internal/cpu"
	"goatb/kernel"
	"goatb/kernel/kerneltest"
	"goatb/tensor"
)

var floats = []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16}

// shapes are m, n, k of every variant, with tails of all unrollings.
var shapes = [][3]int64{
	{1, 1, 1}, {1, 4, 3}, {2, 3, 5}, {3, 5, 7}, {1, 70, 64}, {16, 33, 300}, {17, 9, 31},
	{5, 130, 257}, {33, 67, 129}, {70, 20, 300}, {40, 300, 70}, {9, 1, 600}, {1, 2, 1000},
}

// layouts are the ways that operands can lie in memory.
func layouts() []Params {
	return []Params{{TransB: true}, {}, {TransA: true}, {TransA: true, TransB: true}}
}

func TestFloatProducts(t *testing.T) { eachLevel(t, floatProducts) }

func floatProducts(t *testing.T) {
	seed := uint64(0)
	for _, s := range shapes {
		for _, x := range floats {
			for _, p := range layouts() {
				seed++
				c := product{x: x, out: x, b: 1, wb: 1, m: s[0], n: s[1], k: s[2], p: p, rank2: seed%2 == 0}
				d := newData(c, seed)
				d.check(t, d.run(t))
			}
		}
	}
}

func TestBatches(t *testing.T) {
	for i, c := range []product{
		{b: 3, wb: 3, m: 5, n: 6, k: 40, p: Params{TransB: true}},
		{b: 3, wb: 1, m: 5, n: 6, k: 40, p: Params{TransB: true}},
		{b: 3, wb: 1, m: 1, n: 6, k: 40},
		{b: 3, wb: 3, m: 20, n: 37, k: 40},
		{b: 3, wb: 1, m: 20, n: 37, k: 40},
		{b: 2, wb: 2, m: 20, n: 37, k: 40, p: Params{TransA: true}},
		{b: 2, wb: 1, m: 3, n: 37, k: 40, p: Params{TransA: true}},
		{b: 2, wb: 2, m: 1, n: 37, k: 40, p: Params{TransA: true, TransB: true}},
		{b: 4, wb: 4, m: 3, n: 9, k: 33, p: Params{EinSum: true}},
		{b: 4, wb: 4, m: 30, n: 9, k: 33, p: Params{EinSum: true, TransB: true}},
		{b: 4, wb: 1, m: 3, n: 16, k: 32, p: Params{EinSum: true}, stored: true},
		{b: 4, wb: 4, m: 3, n: 16, k: 32, p: Params{EinSum: true, TransB: true}, stored: true},
	} {
		for _, x := range floats {
			c.x, c.out = x, x
			d := newData(c, uint64(i))
			d.check(t, d.run(t))
		}
	}
}

func TestStoredWeights(t *testing.T) {
	for i, s := range [][3]int64{{1, 16, 16}, {3, 32, 48}, {40, 48, 96}, {1, 64, 512}, {20, 16, 272}} {
		for _, transB := range []bool{false, true} {
			for _, x := range floats {
				d := newData(product{x: x, out: x, b: 1, wb: 1, m: s[0], n: s[1], k: s[2], p: Params{TransB: transB}, stored: true}, uint64(i))
				d.check(t, d.run(t))
			}
		}
	}
}

func TestBiasAndAccumulator(t *testing.T) {
	for i, s := range [][3]int64{{1, 5, 9}, {4, 30, 70}, {40, 70, 300}} {
		for _, x := range floats {
			for _, bias := range floats {
				d := newData(product{x: x, out: x, b: 2, wb: 2, m: s[0], n: s[1], k: s[2], p: Params{TransB: true}, bias: bias}, uint64(i))
				d.check(t, d.run(t))
			}
			d := newData(product{x: x, out: tensor.Float32, b: 2, wb: 2, m: s[0], n: s[1], k: s[2], p: Params{TransB: true}, acc: true}, uint64(i))
			d.check(t, d.run(t))
		}
	}
}

// TestBiasRounding checks a product of 257 that has no bf16 neighbour nearer
// than 256 (ties to even) before a bias of 1.0: rounding at the end only would
// give 258.
func TestBiasRounding(t *testing.T) {
	d := newData(product{x: tensor.BFloat16, out: tensor.BFloat16, b: 1, wb: 1, m: 1, n: 1, k: 2, p: Params{TransB: true}, bias: tensor.BFloat16}, 1)
	d.in[X] = encode(tensor.BFloat16, []float64{256, 1})
	d.in[W] = encode(tensor.BFloat16, []float64{1, 1})
	d.in[Bias] = encode(tensor.BFloat16, []float64{1})
	assert.Equal(t, []float64{256}, decode(tensor.BFloat16, d.run(t)), "256 + 1 rounds to 256")
	d.problem.In[Bias], d.in[Bias] = tensor.Of(tensor.Float32, 1), encode(tensor.Float32, []float64{1})
	assert.Equal(t, []float64{258}, decode(tensor.BFloat16, d.run(t)), "an f32 bias is added before the only rounding")
}

// TestPack checks every byte of packed weights, the padding too.
func TestPack(t *testing.T) {
	for _, x := range append([]tensor.DType{tensor.Int8}, floats...) {
		for _, n := range []int64{1, 4, 32, 67, 130} {
			for _, transB := range []bool{false, true} {
				for _, k := range []int64{1, 3, 300, 514} {
					d := newData(product{x: x, out: x, b: 2, wb: 2, m: 1, n: n, k: k, p: Params{TransB: transB}}, uint64(n))
					p := kernel.Problem{In: make([]tensor.Desc, Inputs), Out: []tensor.Desc{d.panels()}, Params: d.p}
					p.In[W] = d.problem.In[W]
					got := kerneltest.Run(t, kerneltest.Case{Kernel: packPanels, Problem: p, In: [][]byte{nil, d.in[W], nil, nil, nil, nil}})[0]
					require.True(t, bytes.Equal(d.packed(), got), "%s", d)
				}
			}
		}
	}
}

func TestInt8Products(t *testing.T) {
	seed := uint64(0)
	for _, s := range shapes {
		for _, p := range layouts() {
			for _, token := range []bool{false, true} {
				seed++
				c := product{x: tensor.Int8, out: floats[seed%3], b: 1, wb: 1, m: s[0], n: s[1], k: s[2], p: p, scale: tensor.Float32, token: token}
				if !token {
					c.b, c.wb, c.bias, c.scale = 2, 2, tensor.Int32, []tensor.DType{tensor.Int64, tensor.Uint64, tensor.Float32}[seed/2%3]
				}
				d := newData(c, seed)
				d.check(t, d.run(t))
			}
		}
	}
	for _, transB := range []bool{false, true} {
		for _, m := range []int64{1, 3, 20} {
			d := newData(product{x: tensor.Int8, out: tensor.Float32, b: 1, wb: 1, m: m, n: 64, k: 96, p: Params{TransB: transB}, stored: true, scale: tensor.Int64}, uint64(m))
			d.check(t, d.run(t))
		}
	}
}

// TestInt8Extremes sums the largest products of an int32 that is still exact.
func TestInt8Extremes(t *testing.T) {
	const k = 131071
	for _, m := range []int64{1, 2, 17} {
		d := newData(product{x: tensor.Int8, out: tensor.Float32, b: 1, wb: 1, m: m, n: 2, k: k, p: Params{TransB: true}, scale: tensor.Float32}, 1)
		for i := range d.xs {
			d.xs[i] = -128
		}
		for i := range d.ws {
			d.ws[i] = -128 + 255*float64(i/k)
		}
		d.layOutX()
		d.layOutW()
		d.check(t, d.run(t))
	}
}

func TestSpecialValues(t *testing.T) {
	for i, s := range [][3]int64{{1, 6, 20}, {3, 17, 300}, {30, 33, 40}} {
		for _, x := range floats {
			for _, p := range layouts() {
				d := newData(product{x: x, out: x, b: 1, wb: 1, m: s[0], n: s[1], k: s[2], p: p, special: true}, uint64(i))
				d.check(t, d.run(t))
			}
		}
	}
}

// TestRowsOfInfinities checks that an infinity stays in its row where panels end
// with a zero that no element of K meets.
func TestRowsOfInfinities(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, x := range floats {
			for _, k := range []int64{1, 33, 600, 1201} {
				d := newData(product{x: x, out: tensor.Float32, b: 1, wb: 1, m: 30, n: 40, k: k, p: Params{TransB: true}, rank2: true}, uint64(k))
				for i := int64(0); i < d.m; i += 3 {
					for at := i * k; at < (i+1)*k; at++ {
						d.xs[at] = math.Inf(1)
					}
				}
				d.layOutX()
				d.check(t, d.run(t))
				d.check(t, d.runPacked(t))
			}
		}
	})
}

// TestVariantsGiveEqualBits checks the one order of summation of a level: a
// product, its partial sums added up, and a product with packed weights.
func TestVariantsGiveEqualBits(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for i, s := range [][3]int64{{1, 5, 2000}, {3, 7, 1100}, {20, 9, 700}, {2, 3, 9001}, {18, 33, 300}, {13, 40, 1030}} {
			for j, x := range append([]tensor.DType{tensor.Int8}, floats...) {
				c := product{x: x, out: x, b: 2, wb: 2, m: s[0], n: s[1], k: s[2], p: layouts()[(i+j)%4]}
				if i%2 == 0 {
					c.wb, c.p.TransA = 1, false
				}
				if x == tensor.Int8 {
					c.out, c.scale, c.bias = tensor.Float32, tensor.Float32, tensor.Int32
				} else if i%3 == 0 {
					c.bias = x
				} else if i%3 == 1 {
					c.acc, c.out = true, tensor.Float32
				}
				d := newData(c, uint64(i))
				want := d.run(t)
				d.check(t, want)
				for _, shuffle := range []bool{false, true} {
					require.True(t, bytes.Equal(want, d.runSplit(t, kernel.Options{ShuffleK: shuffle})), "%s split, shuffled %t", d, shuffle)
				}
				require.True(t, bytes.Equal(want, d.runPacked(t)), "%s packed", d)
			}
		}
	})
}

// TestOneRow checks single rows times packed weights that a cache holds: the bits
// are those of weights that are not packed, for every number of cores.
func TestOneRow(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(51, 52))
		for i := range 40 {
			f32, b := tensor.Float32, 1+r.Int64N(2)
			c := product{x: f32, out: f32, b: b, wb: b, m: 1, n: 1 + r.Int64N(600), k: 1 + r.Int64N(300), p: Params{TransB: true}}
			d := newData(c, uint64(i))
			d.problem.Machine.Cores = 1 + i%3
			want := d.run(t)
			d.check(t, want)
			require.True(t, bytes.Equal(want, d.runPacked(t)), "%s packed", d)
		}
	})
}

// TestEveryEngine runs engines that are not the best ones of this machine too.
func TestEveryEngine(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	for i := range engines {
		e := engines[i]
		if !cpu.Active().Has(e.set.Needs) {
			continue
		}
		set := *e.set
		set.Wants = cpu.None
		e.set = &set
		for _, x := range e.types {
			for n := range 20 {
				c := randomProduct(r, x)
				d := newData(c, uint64(n))
				k := int8Of(&e)
				if x != tensor.Int8 {
					k = productOf(&e)
				}
				d.check(t, kerneltest.Run(t, d.kernelCase(k))[0])
			}
		}
	}
}

// TestRowsDoNotDependOnTheBatch checks that a row of x gives the same bits
// alone and as any row of larger batches, across the variants.
func TestRowsDoNotDependOnTheBatch(t *testing.T) {
	eachLevel(t, rowsDoNotDependOnTheBatch)
}

func rowsDoNotDependOnTheBatch(t *testing.T) {
	const n, k = 24, 1200
	for _, x := range floats {
		for _, transB := range []bool{false, true} {
			c := product{x: x, out: tensor.Float32, b: 1, wb: 1, m: 70, n: n, k: k, p: Params{TransB: transB}, rank2: true}
			all := newData(c, 9)
			size := k * x.Size()
			var first []byte
			for _, m := range []int64{1, 2, 4, 5, 9, 13, 17, 70} {
				c.m = m
				d := newData(c, 9)
				d.in[W] = all.in[W]
				d.in[X] = all.in[X][:m*size]
				got := d.run(t)
				if first == nil {
					first = got
				}
				require.True(t, bytes.Equal(first, got[:4*n]), "%s: row 0 of a batch of %d", x, m)
				last := device.BytesOf(make([]uint64, size/8))
				copy(last, all.in[X][:size])
				moved := append(append([]byte(nil), d.in[X][size:]...), last...)
				d.in[X] = moved
				got = d.run(t)
				require.True(t, bytes.Equal(first, got[4*n*(m-1):]), "%s: last row of a batch of %d", x, m)
			}
		}
	}
}

func TestVariantFollowsTheShape(t *testing.T) {
	m := kernel.Machine{Cores: 2, L2: 1 << 20}
	key := func(c product) (uint64, int) {
		d := newData(c, 1)
		d.problem.Machine = m
		s, err := shapeOf(&d.problem, c.p)
		require.NoError(t, err)
		l := newPlan(&d.problem, &s, false)
		return l.grid.Key, l.grid.Blocks
	}
	f32 := tensor.Float32
	for _, c := range []struct {
		product
		key    uint64
		blocks int
	}{
		{product{x: f32, out: f32, b: 1, wb: 1, m: 1, n: 64, k: 64, p: Params{TransB: true}}, keyRows, 1},
		{product{x: f32, out: f32, b: 1, wb: 1, m: 1, n: 512, k: 512, p: Params{TransB: true}}, keyRows, 2},
		{product{x: f32, out: f32, b: 1, wb: 1, m: 1, n: 64, k: 64}, keyColumns, 1},
		{product{x: f32, out: f32, b: 1, wb: 1, m: 16, n: 64, k: 64}, keyColumns, 2},
		{product{x: f32, out: f32, b: 1, wb: 1, m: 17, n: 64, k: 64}, keyPanels, 2},
		{product{x: f32, out: f32, b: 1, wb: 1, m: 3, n: 1, k: 64}, keyRows, 1},
	} {
		k, blocks := key(c.product)
		assert.Equal(t, c.key, k, c.product.String())
		assert.Equal(t, c.blocks, blocks, c.product.String())
	}
}

func TestChoose(t *testing.T) {
	choose := func(cores int, x tensor.DType, m, n, k int64) Strategy {
		p := kernel.Problem{In: make([]tensor.Desc, Inputs), Out: make([]tensor.Desc, 1), Machine: kernel.Machine{Cores: cores, L2: 1 << 20}}
		p.In[X], p.In[W], p.Out[0] = tensor.Of(x, m, k), tensor.Of(x, n, k), tensor.Of(x, m, n)
		s, _, err := Choose(&p, Params{TransB: true})
		require.NoError(t, err)
		return s
	}
	f32 := tensor.Float32
	assert.Equal(t, Direct, choose(1, f32, 4, 3, 70000), "one core gains nothing from more items")
	assert.Equal(t, SplitK, choose(2, f32, 4, 3, 70000))
	assert.Equal(t, SplitK, choose(16, tensor.Int8, 4, 8, 70000))
	assert.Equal(t, Direct, choose(2, f32, 4, 3, 3))
	assert.Equal(t, Direct, choose(2, f32, 1, 4096, 4096))
	assert.Equal(t, Direct, choose(2, f32, 512, 512, 512))
}

func TestCost(t *testing.T) {
	d := newData(product{x: tensor.Float16, out: tensor.Float16, b: 1, wb: 1, m: 3, n: 5, k: 7, p: Params{TransB: true}}, 1)
	l, err := planFloat(&d.problem, d.p)
	require.NoError(t, err)
	flops, bytes := l.cost()
	assert.Equal(t, int64(2*3*5*7), flops)
	assert.Equal(t, int64(2*(3*7+5*7+3*5)), bytes)
}

func TestRefusals(t *testing.T) {
	good := product{x: tensor.Float16, out: tensor.Float16, b: 1, wb: 1, m: 3, n: 5, k: 7, p: Params{TransB: true}, rank2: true}
	for name, spoil := range map[string]func(d *data){
		"k differs":             func(d *data) { d.problem.In[W] = tensor.Of(tensor.Float16, 5, 8) },
		"types differ":          func(d *data) { d.problem.In[W].DType = tensor.BFloat16 },
		"output too small":      func(d *data) { d.problem.Out[0] = tensor.Of(tensor.Float16, 3, 4) },
		"output type":           func(d *data) { d.problem.Out[0].DType = tensor.Int32 },
		"bias length":           func(d *data) { d.problem.In[Bias] = tensor.Of(tensor.Float16, 4) },
		"bias type":             func(d *data) { d.problem.In[Bias] = tensor.Of(tensor.Int8, 5) },
		"scale without int8":    func(d *data) { d.problem.In[Scale] = tensor.Of(tensor.Float32, 5) },
		"half accumulator":      func(d *data) { d.problem.In[Acc] = tensor.Of(tensor.Float16, 3, 5) },
		"rank of x":             func(d *data) { d.problem.In[X] = tensor.Of(tensor.Float16, 21) },
		"rank 4 without layout": func(d *data) { d.problem.In[W] = tensor.Of(tensor.Float16, 1, 1, 5, 16) },
		"batch of w":            func(d *data) { d.problem.In[W] = tensor.Of(tensor.Float16, 2, 5, 7) },
		"operands":              func(d *data) { d.problem.In = d.problem.In[:3] },
	} {
		t.Run(name, func(t *testing.T) {
			d := newData(good, 1)
			_, _, err := Product.Select(&d.problem, kernel.Filter{})
			require.NoError(t, err)
			spoil(d)
			_, _, err = Product.Select(&d.problem, kernel.Filter{})
			require.Error(t, err)
		})
	}
}
