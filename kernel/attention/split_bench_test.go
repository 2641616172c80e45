package attention

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/cpu"
	"goatb/kernel"
	"goatb/kernel/parts"
	"goatb/tensor"
)

// BenchmarkForms times decode steps on a stream of the embedded device with as
// many workers as there are processors: attention in one kernel (form=whole)
// and in parts (form=parts), at its own choice of neither. capacity is the
// number of slots of the cache, keys how many of them hold a key.
func BenchmarkForms(b *testing.B) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float16} {
		for _, heads := range [][2]int64{{1, 1}, {8, 1}, {2, 2}, {8, 2}, {3, 3}, {8, 4}} {
			for _, batch := range []int{1, 4} {
				for _, x := range [][2]int64{{1024, 1024}, {1536, 1536}, {2048, 2048}, {4096, 4096}, {8192, 8192}, {8192, 64}} {
					capacity, keys := x[0], x[1]
					c := decodeCall(dtype, heads[0], heads[1], batch, capacity, keys)
					name := fmt.Sprintf("dtype=%s/heads=%d-%d/batch=%d/capacity=%d/keys=%d", dtype, heads[0], heads[1], batch, capacity, keys)
					b.Run(name+"/form=whole", func(b *testing.B) { c.stream(b, attend) })
					b.Run(name+"/form=parts", func(b *testing.B) { c.stream(b, attendParts) })
				}
			}
		}
	}
}

// decodeCall makes one query row per sequence over a cache, heads of size 64.
func decodeCall(dtype tensor.DType, heads, keyHeads int64, batch int, capacity, keys int64) *call {
	rows, lens := make([]int64, batch), make([]int64, batch)
	for i := range rows {
		rows[i], lens[i] = 1, capacity
	}
	c := newCall(1, dtype, heads, keyHeads, 64, 64, rows, lens)
	c.a.Causal = true
	c.build(func(c *call) {
		c.packQuery()
		c.a.Rows = sum(c.rows)
		c.cache(sideBySide(c.a.KeyHeads, c.a.KeySize), sideBySide(c.a.KeyHeads, c.a.ValueSize))
		c.a.Slots = capacity
	})
	for i := range lens {
		lens[i] = keys
	}
	return c
}

// stream launches the call with kernel k, and parts.Merge behind attendParts.
func (c *call) stream(b *testing.B, k *kernel.Kernel) {
	d, err := cpu.New(cpu.WithWorkers(runtime.GOMAXPROCS(0)))
	require.NoError(b, err)
	defer d.Close()
	s, err := d.NewStream()
	require.NoError(b, err)
	p := c.problem
	var in []device.Buffer
	for i, x := range c.in {
		if x == nil {
			in = append(in, device.Buffer{})
			continue
		}
		m, err := d.Alloc(p.In[i].Bytes())
		require.NoError(b, err)
		copy(m.Bytes(), x)
		in = append(in, m)
	}
	launches := []step{newStep(b, d, k, p, in)}
	if k == attendParts {
		first := &launches[0]
		m := kernel.Problem{In: first.p.Out, Out: p.Out, Params: struct{}{}}
		launches = append(launches, newStep(b, d, parts.Merge[0], m, first.l.Buffers[NumIn:]))
	}
	b.ReportAllocs()
	for b.Loop() {
		for i := range launches {
			if err := s.Launch(&launches[i].l); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.Synchronize(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(launches[0].l.Blocks), "blocks")
}

// step is a kernel with its launch.
type step struct {
	p kernel.Problem
	l device.Launch
}

func newStep(b *testing.B, d device.Device, k *kernel.Kernel, p kernel.Problem, in []device.Buffer) step {
	p.Machine = kernel.MachineOf(d.Props())
	if k == attendParts {
		a := p.Params.(Params)
		p.Out = []tensor.Desc{a.PartsDesc()}
	}
	require.NoError(b, k.Supports(&p))
	tiling := device.BytesOf(make([]uint64, k.TilingSize(&p)/8))
	g, err := k.Tile(&p, tiling)
	require.NoError(b, err)
	out, err := d.Alloc(p.Out[0].Bytes())
	require.NoError(b, err)
	scratch, err := d.Alloc(max(k.Scratch(&p), 1))
	require.NoError(b, err)
	l := device.Launch{Program: k.Program(), Blocks: g.Blocks, Key: g.Key, Buffers: append(in[:len(in):len(in)], out), Inputs: len(in), Scratch: scratch, Inline: tiling}
	return step{p, l}
}
