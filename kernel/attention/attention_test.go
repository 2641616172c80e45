package attention

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/kernel"
	"goatb/kernel/kerneltest"
	"goatb/kernel/parts"
	"goatb/tensor"
)

var floatTypes = []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16}

// tolerance is one rounding of the output; for f32, of sums over some hundred
// products.
func tolerance(t tensor.DType) float64 {
	return map[tensor.DType]float64{tensor.Float32: 1e-5, tensor.Float16: 0x1p-11 + 1e-5, tensor.BFloat16: 0x1p-8 + 1e-5}[t]
}

// run runs the call under every number of workers, in one kernel and, where
// that can be, in parts: both have the same bits.
func (c *call) run(t testing.TB) []byte {
	t.Helper()
	whole := kerneltest.Run(t, kerneltest.Case{Kernel: attend, Problem: c.problem, In: c.in, Workers: c.workers})[0]
	if c.a.Quant == NoQuant {
		require.True(t, bytes.Equal(whole, c.split(t)), "Attend differs from Parts and Merge")
	}
	return whole
}

// split runs Parts and then parts.Merge.
func (c *call) split(t testing.TB) []byte {
	t.Helper()
	p := c.problem
	p.Out = []tensor.Desc{c.a.PartsDesc()}
	apart := kerneltest.Run(t, kerneltest.Case{Kernel: attendParts, Problem: p, In: c.in, Keep: true, Workers: c.workers})
	m := kernel.Problem{In: p.Out, Out: c.problem.Out, Params: struct{}{}}
	return kerneltest.Run(t, kerneltest.Case{Kernel: parts.Merge[0], Problem: m, In: apart, Workers: c.workers})[0]
}

// check compares the output with the reference; rows of no sequence are 0.
func (c *call) check(t testing.TB, b []byte) {
	t.Helper()
	out := c.problem.Out[0].DType
	got, tol := decode(b, out), tolerance(out)
	seen := make([]bool, len(got))
	for i := range c.rows {
		for at := range c.rows[i] * c.a.Heads {
			r, h := at/c.a.Heads, at%c.a.Heads
			to := c.queryAt(i, r, h, c.a.Out)
			for x, want := range c.reference(i, r, h) {
				g := got[to+int64(x)]
				seen[to+int64(x)] = true
				if !(math.Abs(g-want) <= tol*math.Max(1, math.Abs(want))) {
					require.Failf(t, "output differs", "sequence %d, row %d, head %d, element %d: want %v, got %v", i, r, h, x, want, g)
				}
			}
		}
	}
	for at, s := range seen {
		if !s {
			require.Zero(t, got[at], "element %d belongs to no sequence", at)
		}
	}
}

// lengths draws query and key lengths; keys are at least as many as rows.
func drawLengths(rng *rand.Rand, single bool) (rows, keys []int64) {
	for range 1 + rng.IntN(4) {
		r := []int64{0, 1, 3, 33}[rng.IntN(4)]
		if single {
			r = rng.Int64N(2)
		}
		rows = append(rows, r)
		keys = append(keys, r+[]int64{0, 1, 40, 150}[rng.IntN(4)])
	}
	return rows, keys
}

// cases is the number of drawn cases of a test that has n of them; short runs have
// a third, which are of all types.
func cases(n uint64) uint64 {
	if testing.Short() {
		return n / 3
	}
	return n
}

func TestAttend(t *testing.T) {
	sizes := [][2]int64{{1, 1}, {8, 8}, {72, 72}, {80, 33}, {100, 128}, {192, 128}}
	heads := [][2]int64{{1, 1}, {4, 4}, {6, 2}, {5, 1}}
	for s, src := range sources {
		for n := range cases(18) {
			t.Run(fmt.Sprintf("%s/%d", src.name, n), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(s), n))
				size, h := sizes[rng.IntN(len(sizes))], heads[rng.IntN(len(heads))]
				rows, keys := drawLengths(rng, n%3 == 0)
				c := newCall(n, floatTypes[n%3], h[0], h[1], size[0], size[1], rows, keys)
				c.a.Causal = rng.IntN(2) == 0
				if rng.IntN(3) == 0 {
					c.a.Window = 1 + rng.Int64N(60)
					c.a.Causal = true
				}
				c.build(src.layout)
				c.check(t, c.run(t))
			})
		}
	}
}

// TestAttendAcrossTiles walks lengths around the size of a key tile, in one
// batch, with a mask whose last column matters.
func TestAttendAcrossTiles(t *testing.T) {
	c := newCall(3, tensor.Float32, 2, 1, 64, 64, nil, nil)
	tile := int64(keyTile)
	for _, n := range []int64{tile - 1, tile, tile + 1, tile + 3, 2 * tile, 2*tile + 1} {
		c.rows, c.keys = append(c.rows, 3), append(c.keys, n)
	}
	c.a.Batch = int64(len(c.rows))
	c.build(sources[2].layout)
	rows, cols := int64(3), slices.Max(c.keys)
	c.mask = make([]float64, rows*cols)
	for _, n := range c.keys {
		for r := range rows {
			c.mask[r*cols+n-1] = math.Inf(-1) // the last key of each sequence
		}
	}
	c.addMask(rows, cols)
	c.check(t, c.run(t))
}

// addMask adds the call's mask to the operands.
func (c *call) addMask(rows, cols int64) {
	c.a.Bias, c.a.Mask = MaskBias, Mask{Row: cols, Rows: rows, Cols: cols}
	c.problem.Params = c.a
	c.put(InMask, tensor.Of(c.dtype, rows, cols), encode(c.mask, c.dtype))
}

// bits returns the output bytes of sequence i.
func (c *call) bits(b []byte, i int) []byte {
	var out []byte
	size := c.problem.Out[0].DType.Size()
	for at := range c.rows[i] * c.a.Heads {
		to := c.queryAt(i, at/c.a.Heads, at%c.a.Heads, c.a.Out) * size
		out = append(out, b[to:to+c.a.ValueSize*size]...)
	}
	return out
}

// alone makes a call of sequence i alone, with other sequences of other lengths
// around it when others is not nil.
func (c *call) with(i int, src source, others ...int64) *call {
	n := newCall(99, c.dtype, c.a.Heads, c.a.KeyHeads, c.a.KeySize, c.a.ValueSize, []int64{c.rows[i]}, []int64{c.keys[i]})
	n.a.Causal, n.a.Window, n.workers = c.a.Causal, c.a.Window, c.workers
	for _, o := range others {
		n.rows, n.keys = append(n.rows, o), append(n.keys, 2*o)
	}
	n.a.Batch = int64(len(n.rows))
	n.build(src.layout)
	n.q[0], n.k[0], n.v[0] = c.q[i], c.k[i], c.v[i]
	n.layQuery()
	n.layRows(InKey, InNewKey, n.k, n.a.Key, n.a.NewKey, n.a.KeySize, n.blocks())
	n.layRows(InValue, InNewValue, n.v, n.a.Value, n.a.NewValue, n.a.ValueSize, n.blocks())
	return n
}

// TestRowsDoNotDependOnTheirBatch compares the bits of a sequence in a batch, by
// itself, beside longer ones, and under every source: a batch of single rows
// takes another tiling key than one with a longer sequence.
func TestRowsDoNotDependOnTheirBatch(t *testing.T) {
	for d, dtype := range floatTypes {
		c := newCall(5, dtype, 6, 2, 80, 64, []int64{1, 1, 1}, []int64{70, 1, 131})
		c.build(sources[2].layout)
		require.Equal(t, uint64(keySingle), c.key(t))
		base := c.run(t)
		c.workers = fewWorkers
		for i := range c.rows {
			for s, src := range sources[2:5] { // tokens have as many keys as rows
				if (d+i+s)%3 != 0 {
					continue // every two of type, sequence and source meet once
				}
				alone := c.with(i, src)
				require.Equal(t, c.bits(base, i), alone.bits(alone.run(t), 0), "%s: sequence %d alone", src.name, i)
				beside := c.with(i, src, 40, 0, 3)
				require.Equal(t, uint64(keyGeneral), beside.key(t))
				require.Equal(t, c.bits(base, i), beside.bits(beside.run(t), 0), "%s: sequence %d beside longer ones", src.name, i)
			}
		}
	}
}
