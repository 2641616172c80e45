package elementwise

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/tensor"
)

// launch prepares one block of a kernel on plain memory.
func launch(t testing.TB, table kernel.Table, p kernel.Problem) func() {
	p.Machine = kernel.Machine{Cores: 1, L1: 32 << 10, L2: 1 << 20, L3: 32 << 20}
	k, _, err := table.Select(&p, kernel.Filter{})
	require.NoError(t, err)
	var a device.Args
	for _, descs := range [][]tensor.Desc{p.In, p.Out} {
		for i := range descs {
			b := device.BytesOf(make([]uint64, (descs[i].Bytes()+7)/8))
			for j := range b {
				b[j] = 0x3c
			}
			a.Buffers = append(a.Buffers, device.Wrap(b[:descs[i].Bytes()]))
		}
	}
	a.Scratch = device.Wrap(device.BytesOf(make([]uint64, (k.Scratch(&p)+7)/8)))
	a.Tiling = device.BytesOf(make([]uint64, k.TilingSize(&p)/8))
	g, err := k.Tile(&p, a.Tiling)
	require.NoError(t, err)
	a.Key, a.Blocks = g.Key, g.Blocks
	run := k.Program().Run
	return func() {
		if err := run(&a, 0); err != nil {
			t.Error(err)
		}
	}
}

// benchCases are launches by name.
func benchCases(n int64) map[string]struct {
	table kernel.Table
	p     kernel.Problem
} {
	type c = struct {
		table kernel.Table
		p     kernel.Problem
	}
	d := tensor.Of
	cases := map[string]c{}
	for _, t := range floatTypes {
		x := []tensor.Desc{d(t, n)}
		cases["add/"+t.String()] = c{Binary, kernel.Problem{In: []tensor.Desc{x[0], x[0]}, Out: x, Params: BinaryParams{Add}}}
		cases["muls/"+t.String()] = c{Unary, kernel.Problem{In: x, Out: x, Params: UnaryParams{Op: Muls, Scale: 2}}}
		cases["gelu/"+t.String()] = c{Unary, kernel.Problem{In: x, Out: x, Params: UnaryParams{Op: GeluErf}}}
		cases["swiglu/"+t.String()] = c{SwiGLU, kernel.Problem{In: []tensor.Desc{d(t, 2*n)}, Out: x, Params: struct{}{}}}
		cases["swiglu-grad/"+t.String()] = c{SwiGLUGrad, kernel.Problem{In: []tensor.Desc{d(t, n), d(t, 2*n)}, Out: []tensor.Desc{d(t, 2*n)}, Params: struct{}{}}}
		cases["cos/"+t.String()] = c{Unary, kernel.Problem{In: x, Out: x, Params: UnaryParams{Op: Cos}}}
		cases["quant-dynamic/"+t.String()] = c{QuantDynamic, kernel.Problem{In: x, Out: []tensor.Desc{d(tensor.Int8, n), d(tensor.Float32, 1)}, Params: struct{}{}}}
		cases["mul-rows/"+t.String()] = c{Binary, kernel.Problem{In: []tensor.Desc{d(t, n/64, 64), d(t, n/64, 1)}, Out: []tensor.Desc{d(t, n/64, 64)}, Params: BinaryParams{Mul}}}
	}
	cases["div-pairs/bf16"] = c{Binary, kernel.Problem{In: []tensor.Desc{d(tensor.BFloat16, n/2, 2), d(tensor.BFloat16, n/2, 1)}, Out: []tensor.Desc{d(tensor.BFloat16, n/2, 2)}, Params: BinaryParams{Div}}}
	cases["cast/int32-int64"] = c{Cast, kernel.Problem{In: []tensor.Desc{d(tensor.Int32, n)}, Out: []tensor.Desc{d(tensor.Int64, n)}, Params: struct{}{}}}
	cases["cast/f32-bf16"] = c{Cast, kernel.Problem{In: []tensor.Desc{d(tensor.Float32, n)}, Out: []tensor.Desc{d(tensor.BFloat16, n)}, Params: struct{}{}}}
	cases["less/int64"] = c{Compare, kernel.Problem{In: []tensor.Desc{d(tensor.Int64, n), d(tensor.Int64, 1)}, Out: []tensor.Desc{d(tensor.Int8, n)}, Params: CompareParams{Less}}}
	return cases
}

func TestRunsDoNotAllocate(t *testing.T) {
	for name, c := range benchCases(2048) {
		assert.Zero(t, testing.AllocsPerRun(10, launch(t, c.table, c.p)), name)
	}
}

func BenchmarkElementwise(b *testing.B) {
	for _, n := range []int64{64, 4096, 1 << 18} {
		cases := benchCases(n)
		for _, name := range slices.Sorted(maps.Keys(cases)) {
			c := cases[name]
			b.Run(fmt.Sprintf("f=%s/n=%d", name, n), func(b *testing.B) {
				run, bytes := launch(b, c.table, c.p), c.p.Out[0].Bytes()
				for i := range c.p.In {
					bytes += c.p.In[i].Bytes()
				}
				b.SetBytes(bytes)
				for b.Loop() {
					run()
				}
			})
		}
	}
}
