package attend

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vecPointer is a register with the address of a row.
type vecPointer = reg.GPVirtual

// transposed loads a chunk of as many rows as there are lanes and returns a
// register for each element of the chunk.
func (f frame) transposed(t rowType, row func(i int) operand.Mem, k *mask) []vec {
	return f.joinQuads(f.quadsOf(t, row, k, 0), f.quadsOf(t, row, k, 1), f.regs(chunk))
}

// quadsOf is transposed within lanes of 128 bits, for one half of the rows: with
// AVX-512 these lanes are two times four rows, each with the lower and the upper half
// of the chunk.
func (f frame) quadsOf(t rowType, row func(i int) operand.Mem, k *mask, half int) []vec {
	first := half * f.lanes / 2
	return f.quads(func(i int) vec {
		if f.wide {
			return f.loadChunks(t, row(first+i), row(first+4+i), k)
		}
		return f.loadChunk(t, row(first+i), k)
	})
}

// joinQuads makes out of both halves.
func (f frame) joinQuads(a, b, out []vec) []vec {
	for half, imm := range f.halves() {
		for d := range 4 {
			if f.wide {
				f.c.VSHUFF64X2(imm, b[d], a[d], out[4*half+d])
			} else {
				f.c.VPERM2F128(imm, b[d], a[d], out[4*half+d])
			}
		}
	}
	return out
}

// halves are the choices of the 128-bit lanes with the lower and the upper half
// of a chunk.
func (f frame) halves() [2]operand.U8 {
	if f.wide {
		return [2]operand.U8{0x88, 0xdd}
	}
	return [2]operand.U8{0x20, 0x31}
}

// quads transposes four registers in each of their 128-bit lanes.
func (f frame) quads(load func(i int) vec) []vec {
	c := f.c
	y := f.regs(4)
	for i := 0; i < 4; i += 2 {
		lo, hi := load(i), load(i+1)
		c.VUNPCKLPS(hi, lo, y[i])
		c.VUNPCKHPS(hi, lo, y[i+1])
	}
	z := f.regs(4)
	c.VUNPCKLPD(y[2], y[0], z[0])
	c.VUNPCKHPD(y[2], y[0], z[1])
	c.VUNPCKLPD(y[3], y[1], z[2])
	c.VUNPCKHPD(y[3], y[1], z[3])
	return z
}
