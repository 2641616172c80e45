package attend

import "github.com/mmcloughlin/avo/operand"

// rowType is an element type of the rows of a cache.
type rowType struct {
	name string
	size int
}

var rowTypes = []rowType{{"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I8", 1}}

// chunk is the number of elements of a row that are transposed at once.
const chunk = 8

// loadChunk reads a chunk of a row as f32 into an AVX2 register.
func (v isa) loadChunk(t rowType, m operand.Mem, k *mask) vec {
	x := v.c.YMM()
	if t.name == "F32" {
		v.load(m, k, x)
	} else {
		v.widen(t, m, x)
	}
	return x
}

// loadChunks reads a chunk of two rows as f32 into the halves of an AVX-512
// register.
func (v isa) loadChunks(t rowType, lo, hi operand.Mem, k *mask) vec {
	c := v.c
	z := c.ZMM()
	switch t.name {
	case "F32":
		if k == nil {
			c.VBROADCASTF64X4(lo, z)
			c.VINSERTF64X4(operand.U8(1), hi, z, z)
			return z
		}
		h := c.YMM()
		c.VXORPS(z, z, z)
		c.VMOVUPS_Z(lo, k.k, z.AsY())
		c.VMOVUPS_Z(hi, k.k, h)
		c.VINSERTF64X4(operand.U8(1), h, z, z)
		return z
	case "I8":
		x := c.XMM()
		if k == nil {
			c.VMOVQ(lo, x)
			c.VPINSRQ(operand.U8(1), hi, x, x)
		} else {
			h := c.XMM()
			c.VMOVDQU8_Z(lo, k.k, x)
			c.VMOVDQU8_Z(hi, k.k, h)
			c.VPUNPCKLQDQ(h, x, x)
		}
		v.widen(t, x, z)
		return z
	}
	y := c.YMM()
	if k == nil {
		c.VBROADCASTI32X4(lo, y)
		c.VINSERTI32X4(operand.U8(1), hi, y, y)
	} else {
		h := c.XMM()
		c.VXORPS(y, y, y)
		c.VMOVDQU16_Z(lo, k.k, y.AsX())
		c.VMOVDQU16_Z(hi, k.k, h)
		c.VINSERTI32X4(operand.U8(1), h, y, y)
	}
	v.widen(t, y, z)
	return z
}

// widen turns elements in memory or a register into f32.
func (v isa) widen(t rowType, from operand.Op, x vec) {
	switch t.name {
	case "F16":
		v.c.VCVTPH2PS(from, x)
	case "BF16":
		v.c.VPMOVZXWD(from, x)
		v.c.VPSLLD(operand.U8(16), x, x)
	case "I8":
		v.c.VPMOVSXBD(from, x)
		v.c.VCVTDQ2PS(x, x)
	}
}

// loadColumns reads a register of elements as f32.
func (v isa) loadColumns(t rowType, m operand.Mem, k *mask) vec {
	c, x := v.c, v.reg()
	switch {
	case t.name == "F32":
		v.load(m, k, x)
	case k == nil || !v.wide: // AVX2 has no masks for these types: rows are whole chunks
		v.widen(t, m, x)
	case t.name == "I8":
		h := c.XMM()
		c.VMOVDQU8_Z(m, k.k, h)
		v.widen(t, h, x)
	default:
		h := v.under()
		c.VMOVDQU16_Z(m, k.k, h)
		v.widen(t, h, x)
	}
	return x
}
