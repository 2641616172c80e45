package matmul

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/tensor"
)

// TestAhead checks for products of one row that a block reads nothing of the weights
// outside of what it tells of and its neighbour does not.
func TestAhead(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		const n, k = 1100, 1024
		int4 := newInt4Data(t, tensor.Float32, tensor.Float16, tensor.Undefined, 1, n, k, 32, 3)
		checkAhead(t, Int4Product, int4.problem(), int4.mem)
		for _, x := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Int8} {
			c := product{x: x, out: tensor.Float32, b: 1, wb: 1, m: 1, n: n, k: k, p: Params{TransB: true}}
			if x == tensor.Int8 {
				c.scale = tensor.Float32
			}
			d := newData(c, 5)
			p, in := d.problem, slices.Clone(d.in)
			p.In = slices.Clone(p.In)
			p.In[W], in[W] = d.panels(), d.packed()
			checkAhead(t, Product, p, in)
		}
	})
}

func checkAhead(t *testing.T, table kernel.Table, p kernel.Problem, in [][]byte) {
	t.Helper()
	p.Machine = kernel.Machine{Cores: 2, L1: 32 << 10, L2: 1 << 20}
	kern, _, err := table.Select(&p, kernel.Filter{})
	require.NoError(t, err)
	a := device.Args{Tiling: device.BytesOf(make([]uint64, kern.TilingSize(&p)/8))}
	g, err := kern.Tile(&p, a.Tiling)
	require.NoError(t, err)
	for i := range p.In {
		a.Buffers = append(a.Buffers, device.Wrap(slices.Clone(in[i])))
	}
	out := make([]byte, p.Out[0].Bytes())
	a.Buffers = append(a.Buffers, device.Wrap(out))
	a.Scratch = device.Wrap(device.BytesOf(make([]uint64, kern.Scratch(&p)/8)))
	a.Blocks, a.Key = g.Blocks, g.Key
	prog, w := kern.Program(), a.Mem(W)
	if prog.Ahead == nil || len(prog.Ahead(&a, 0)) == 0 {
		return
	}
	require.NoError(t, prog.Prepare(&a))
	for b := range g.Blocks {
		clear(out)
		copy(w, in[W])
		require.NoError(t, prog.Run(&a, b))
		want := slices.Clone(out)
		own := len(w) - len(prog.Ahead(&a, b))
		end := len(w)
		if b+1 < g.Blocks {
			end -= len(prog.Ahead(&a, b+1))
		}
		require.Less(t, own, end, "%s: block %d of %d", kern.Name(), b, g.Blocks)
		for i := range w {
			if i < own || i >= end {
				w[i] ^= 0x5a
			}
		}
		clear(out)
		require.NoError(t, prog.Run(&a, b))
		require.Equal(t, want, out, "%s: block %d of %d", kern.Name(), b, g.Blocks)
	}
	gone := device.Args{Tiling: a.Tiling, Buffers: make([]device.Buffer, len(a.Buffers)), Blocks: a.Blocks, Key: a.Key}
	require.Empty(t, prog.Ahead(&gone, g.Blocks-1), "memory that is gone")
}
