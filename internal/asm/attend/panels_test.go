package attend

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"goatb/internal/cpu"
)

// TestTile compares with fused multiply-adds in the order of the steps, and checks
// that nothing else is written.
func TestTile(t *testing.T) {
	eachLevel(t, func(t *testing.T, f cpu.Features) {
		p, ok := BestPanels(f)
		if !ok {
			require.Equal(t, cpu.None, f)
			return
		}
		r := rand.New(rand.NewPCG(9, 10))
		for n := 1; n <= len(p.Tiles); n++ {
			for _, steps := range []int{1, 3, 4, 5, 16, 129} {
				add := r.IntN(2) == 0
				lda, ldc := steps+r.IntN(5), p.Columns+r.IntN(5)
				a, b, c := rows(r, n, steps, lda), rows(r, steps, PanelColumns, PanelColumns), rows(r, n, p.Columns, ldc)
				want := append([]float32(nil), c...)
				for x := range n {
					for j := range p.Columns {
						sum := float32(0)
						for s := range steps {
							sum = float32FMA(a[x*lda+s], b[s*PanelColumns+j], sum)
						}
						if add {
							sum += want[x*ldc+j]
						}
						want[x*ldc+j] = sum
					}
				}
				p.Tiles[n-1](steps, &a[0], lda, &b[0], &c[0], ldc, add)
				require.Equal(t, want, c, "%d rows, %d steps, add %v", n, steps, add)
			}
		}
	})
}

// TestPacks compares with the rows as they are, and checks that nothing is written
// but the panels.
func TestPacks(t *testing.T) {
	eachLevel(t, func(t *testing.T, f cpu.Features) {
		p, ok := BestPanels(f)
		if !ok {
			return
		}
		r := rand.New(rand.NewPCG(11, 12))
		for range 200 {
			_, _, n, width := shape(r)
			e := Elem(r.IntN(4))
			if r.IntN(2) == 0 {
				width = (width + 7) &^ 7
			}
			if _, ok := Best(f, e, width); !ok {
				continue
			}
			c := fill(r, e, 1, n, width)
			step, src := c.step*c.size, unsafe.Pointer(&c.mem[0])
			checkKeys(t, &p, c, src, step, n, width)
			checkValues(t, &p, c, src, step, n, width, n+r.IntN(3))
		}
	})
}

func checkKeys(t *testing.T, p *Panels, c *cache, src unsafe.Pointer, step, n, width int) {
	steps, count := (width+Chunk-1)/Chunk*Chunk, (n+PanelColumns-1)/PanelColumns
	dst := make([]float32, count*steps*PanelColumns+PanelColumns)
	for i := range dst {
		dst[i] = canary
	}
	p.Keys(c.elem, &dst[0], src, step, n, width)
	for j := range count * PanelColumns {
		for i := range steps {
			got, row := dst[(j/PanelColumns*steps+i)*PanelColumns+j%PanelColumns], min(j, n-1)
			switch {
			case j >= (n+15)/16*16: // behind the last register
			case j >= n && got == canary: // registers of 8
			case i < width:
				require.Equal(t, float32(c.values[row*c.step+i]), got, "%v: key %d of %d, element %d of %d", c.elem, j, n, i, width)
			default:
				require.Zero(t, got, "behind the width")
			}
		}
	}
	for _, v := range dst[count*steps*PanelColumns:] {
		require.Equal(t, float32(canary), v)
	}
}

func checkValues(t *testing.T, p *Panels, c *cache, src unsafe.Pointer, step, n, width, room int) {
	stride, count := room*PanelColumns, (width+PanelColumns-1)/PanelColumns
	dst := make([]float32, count*stride+PanelColumns)
	for i := range dst {
		dst[i] = canary
	}
	p.Values(c.elem, &dst[0], stride, src, step, n, width)
	for i := range count * PanelColumns {
		for j := range room {
			got := dst[i/PanelColumns*stride+j*PanelColumns+i%PanelColumns]
			switch {
			case j >= n:
				require.Equal(t, float32(canary), got, "behind the rows")
			case i < width:
				require.Equal(t, float32(c.values[j*c.step+i]), got, "%v: value %d of %d, element %d of %d", c.elem, j, n, i, width)
			default:
				require.True(t, got == 0 || got == canary, "behind the width: %v", got)
			}
		}
	}
	for _, v := range dst[count*stride:] {
		require.Equal(t, float32(canary), v)
	}
}
