package cache

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"goatb/kernel/kerneltest"
	"goatb/tensor"
)

func TestScatterAllocatesNothing(t *testing.T) {
	c := scatterCase{Rows, tensor.Of(f16, 2, 2, 8), tensor.Of(f16, 2, 2, 8), tensor.Of(f16, 3, 4, 2, 8), tensor.Of(f16, 3, 4, 2, 8), []int32{0, 1}}
	p, in := c.problem()
	assert.Zero(t, testing.AllocsPerRun(20, kerneltest.Launch(t, Scatter, p, map[int][]byte{ScatterSlots: in[ScatterSlots]})))
}

// BenchmarkBandwidth reports bytes moved by one core beside a copy, for rows of
// 8 heads of width 128 that go to slots in no order, and for heads of width 128
// all of whose tokens go to windows of their own.
func BenchmarkBandwidth(b *testing.B) {
	const heads, width, block, rowBytes = 8, 128, 16, 8 * 128 * 2
	for _, bytes := range []int64{kerneltest.CacheBytes, kerneltest.MemoryBytes} {
		rows := bytes / rowBytes / 4 / block * block
		x := tensor.Of(f16, rows, heads, width)
		for _, layout := range []Layout{Rows, NZ} {
			store := tensor.Of(f16, rows/block, block, heads, width)
			if layout == NZ {
				store = tensor.Of(f16, rows/block, heads*width/16, block, 16)
			}
			b.Run(fmt.Sprintf("k=scatter/layout=%d/bytes=%d", layout, bytes), func(b *testing.B) {
				c := scatterCase{layout, x, x, store, store, nil}
				for i := range rows {
					c.slots = append(c.slots, int32(i*331%rows))
				}
				p, in := c.problem()
				kerneltest.Bandwidth(b, 4*rows*rowBytes, kerneltest.Launch(b, Scatter, p, map[int][]byte{ScatterSlots: in[ScatterSlots]}))
			})
		}
		b.Run(fmt.Sprintf("k=windows/bytes=%d", bytes), func(b *testing.B) {
			c := windowsCase{dtype: f16, tokens: rows, heads: heads, dk: width, dv: width, blocks: rows / block * heads, bs: block, lengths: []int32{int32(rows)}}
			for h := range heads {
				c.slots, c.sizes = append(c.slots, int32(int64(h)*rows)), append(c.sizes, int32(rows))
			}
			p, in := c.problem()
			values := map[int][]byte{WindowsSlots: in[WindowsSlots], WindowsSizes: in[WindowsSizes], WindowsLengths: in[WindowsLengths]}
			kerneltest.Bandwidth(b, 4*rows*rowBytes, kerneltest.Launch(b, Windows, p, values))
		})
	}
}
