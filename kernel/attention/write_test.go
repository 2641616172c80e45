package attention

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/kernel"
	"goatb/kernel/kerneltest"
	"goatb/status"
	"goatb/tensor"
)

// writeCall is a launch of the cache writer: rows of 3 and 5 elements.
type writeCall struct {
	a          WriteParams
	rows, keys []int64
	status     []int64
	layer      int64
	dtype      tensor.DType
	problem    kernel.Problem
	in         [][]byte
}

const keyRow, valueRow = 3, 5

func newWriteCall(dtype tensor.DType, slots, layers int64, rows, keys []int64) *writeCall {
	c := &writeCall{rows: rows, keys: keys, layer: max(layers-1, 0), dtype: dtype}
	n := int64(len(rows))
	c.a = WriteParams{
		Batch: n, Rows: sum(rows) + 2, Slots: slots, Layers: layers,
		Key:   Strides{Row: keyRow, Batch: slots * keyRow, Layer: n * slots * keyRow},
		Value: Strides{Row: valueRow, Batch: slots * valueRow, Layer: n * slots * valueRow},
	}
	return c
}

func (c *writeCall) build() *writeCall {
	rng := rand.New(rand.NewPCG(9, 9))
	dims := max(c.a.Layers, 1) * c.a.Batch * c.a.Slots
	c.problem = kernel.Problem{
		In:     []tensor.Desc{tensor.Of(c.dtype, c.a.Rows, keyRow), tensor.Of(c.dtype, c.a.Rows, valueRow)},
		Out:    []tensor.Desc{tensor.Of(c.dtype, dims, keyRow), tensor.Of(c.dtype, dims, valueRow)},
		Params: c.a, Values: [][]int64{c.keys, c.rows, {c.layer}},
	}
	if c.a.Status {
		c.problem.Values = append(c.problem.Values, c.status)
	}
	c.in = nil
	for i := range c.problem.In {
		b := make([]byte, c.problem.In[i].Bytes())
		for j := range b {
			b[j] = byte(1 + rng.IntN(255))
		}
		c.in = append(c.in, b)
	}
	return c
}

// want writes the rows one after the other; later ones replace earlier ones.
func (c *writeCall) want(i int, row int64) []byte {
	size := row * c.dtype.Size()
	out := make([]byte, c.problem.Out[i].Bytes())
	from := int64(0)
	for b := range c.rows {
		for r := range c.rows[b] {
			pos := c.keys[b] - c.rows[b] + r
			to := ((c.layer*c.a.Batch+int64(b))*c.a.Slots + pos%c.a.Slots) * size
			if !c.a.Status || c.status[b] != 0 {
				copy(out[to:to+size], c.in[i][(from+r)*size:])
			}
		}
		from += c.rows[b]
	}
	return out
}

func (c *writeCall) check(t *testing.T) {
	t.Helper()
	got := kerneltest.Run(t, kerneltest.Case{Kernel: write, Problem: c.problem, In: c.in, Keep: true})
	assert.Equal(t, c.want(0, keyRow), got[0])
	assert.Equal(t, c.want(1, valueRow), got[1])
}

func TestWrite(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Int8} {
		newWriteCall(dtype, 7, 3, []int64{2, 0, 3}, []int64{7, 4, 3}).build().check(t)
		newWriteCall(dtype, 900, 0, []int64{400, 1, 300}, []int64{400, 900, 899}).build().check(t)

		skipped := newWriteCall(dtype, 4, 0, []int64{1, 2, 1}, []int64{1, 4, 3})
		skipped.a.Status, skipped.status = true, []int64{1, 0, 1}
		skipped.build().check(t)

		ring := newWriteCall(dtype, 4, 2, []int64{1, 6, 3, 4}, []int64{9, 6, 11, 8})
		ring.a.Ring, ring.a.Window = true, 4
		ring.build().check(t)
	}
}

func TestWriteNothing(t *testing.T) {
	newWriteCall(tensor.Float16, 3, 1, []int64{0, 0}, []int64{0, 3}).build().check(t)
}

func TestWriteChecksHostValues(t *testing.T) {
	for text, change := range map[string]func(v [][]int64){
		"tokenOffset of sequence 1: want 0 to 7, the keys that there is room for, got 8": func(v [][]int64) { v[0][1] = 8 },
		"tokenOffset of sequence 0: want at least its 2 query rows, got 1":               func(v [][]int64) { v[0][0] = 1 },
		"seqLen of sequence 1: want 0 to 4, the rows that the query has for it, got 9":   func(v [][]int64) { v[1][1] = 9 },
		"layerId: want 0 to 2, the cache has 3 layers, got [3]":                          func(v [][]int64) { v[2][0] = 3 },
	} {
		c := newWriteCall(tensor.Float32, 7, 3, []int64{2, 2}, []int64{7, 4}).build()
		p := c.problem
		p.Machine = kernelMachine
		p.Values = nil
		for _, v := range c.problem.Values {
			p.Values = append(p.Values, slices.Clone(v))
		}
		change(p.Values)
		_, err := write.Tile(&p, make([]byte, write.TilingSize(&p)))
		require.ErrorIs(t, err, status.ErrInvalidParam)
		assert.ErrorContains(t, err, text)
	}
}

func TestWriteSupports(t *testing.T) {
	for name, change := range map[string]func(p *kernel.Problem, a *WriteParams){
		"type":    func(p *kernel.Problem, _ *WriteParams) { p.In[1].DType = tensor.Float16 },
		"rows":    func(_ *kernel.Problem, a *WriteParams) { a.Rows++ },
		"slots":   func(_ *kernel.Problem, a *WriteParams) { a.Slots++ },
		"layers":  func(_ *kernel.Problem, a *WriteParams) { a.Layers++ },
		"no ring": func(_ *kernel.Problem, a *WriteParams) { a.Ring = true },
	} {
		c := newWriteCall(tensor.Float32, 7, 3, []int64{2, 2}, []int64{7, 4}).build()
		require.NoError(t, write.Supports(&c.problem))
		a := c.a
		change(&c.problem, &a)
		c.problem.Params = a
		assert.ErrorIs(t, write.Supports(&c.problem), status.ErrInvalidParam, name)
	}
}
