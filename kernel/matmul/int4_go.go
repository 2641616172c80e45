package matmul

import (
	"encoding/binary"

	"goatb/device"
	"goatb/internal/asm/gemm"
	"goatb/kernel"
)

// int4Go multiplies in plain Go, in f32.
var int4Go = int4Def("matmul/int4", int4Way{
	maxRows: 4,
	refusal: func() error { return nil },
	book: func(t *int4Tiling) {
		t.RowBytes = roundUp(4*t.K, 64)
		t.SumBytes = (1 + finisherRows) * 4 * gemm.PanelColumns
		t.BlockScratch = t.RowBytes + t.SumBytes
	},
	share: shareInt4Go,
})

func shareInt4Go(a *kernel.Args, first, end int, t *int4Tiling, _ []int64) error {
	mem := a.Scratch.Bytes()[int64(first)*t.BlockScratch:][:t.BlockScratch]
	x := device.View[float32](mem[:t.RowBytes])[:t.K]
	sums := device.View[float32](mem[t.RowBytes:])
	f := finisher{a: a, ep: &t.Ep, buf: sums[gemm.PanelColumns:]}
	lo, hi := kernel.Shares(t.TilesM*t.TilesN, first, end, a.Blocks)
	for i := lo; i < hi; i++ {
		row, rows, panel, panels := t.item(i)
		for r := row; r < row+rows; r++ {
			kernel.LoadFloats(x, a.Mem(X)[r*t.K*t.X.Size():], t.X)
			for p := panel; p < panel+panels; p++ {
				j := p * gemm.PanelColumns
				n := min(gemm.PanelColumns, t.Columns-j)
				f.floatColumns(0, j, n)
				t.multiply(sums[:n], x, a.Mem(W)[p*t.PanelBytes:][:t.PanelBytes])
				f.floats(r*t.Columns+j, sums[:n])
			}
		}
	}
	return nil
}

// multiply multiplies a row of x with the columns of a panel.
func (t *int4Tiling) multiply(sums, x []float32, panel []byte) {
	clear(sums)
	for g := range t.Groups {
		group := panel[g*t.GroupBytes:][:t.GroupBytes]
		words := group[gemm.PanelColumns*t.ScaleBytes:]
		part := x[g*t.Group:][:t.Group]
		for c := range sums {
			var sum float32
			for o := 0; o < len(part); o += 8 {
				at := o/8*octetBytes + 4*c
				even, odd := binary.LittleEndian.Uint16(words[at:]), binary.LittleEndian.Uint16(words[at+2:])
				for i := 0; i < 8; i += 2 {
					sum += float32(part[o+i] * nibble(even>>(2*i)))
					sum += float32(part[o+i+1] * nibble(odd>>(2*i)))
				}
			}
			sums[c] += float32(sum * t.scale(group, c))
		}
	}
}

// nibble returns the lowest four bits as a number from -8 to 7.
func nibble(v uint16) float32 { return float32(int8(v<<4) >> 4) }
