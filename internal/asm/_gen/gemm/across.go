package gemm

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

// acrossAVX2 makes the loops that pack 32 columns of a matrix whose columns lie side
// by side; see Across.
func acrossAVX2(c *build.Context) {
	across(c, "acrossWordsAVX2", 1, panelBytes, func(rows []operand.Mem) []reg.VecVirtual {
		x := registers(c.YMM, 4)
		for v := range x {
			c.VMOVUPS(rows[0].Offset(32*v), x[v])
		}
		return x
	})
	across(c, "acrossPairsAVX2", 2, panelBytes/2, func(rows []operand.Mem) []reg.VecVirtual {
		var out []reg.VecVirtual
		for half := range 2 {
			a, b := load(c, rows[0].Offset(32*half)), load(c, rows[1].Offset(32*half))
			lo, hi := c.YMM(), c.YMM()
			c.VPUNPCKLWD(b, a, lo)
			c.VPUNPCKHWD(b, a, hi)
			out = append(out, lanes(c, 0x20, lo, hi), lanes(c, 0x31, lo, hi))
		}
		return out
	})
	across(c, "acrossQuadsAVX2", 4, panelBytes/4, func(rows []operand.Mem) []reg.VecVirtual { return quads(c, rows) })
	across(c, "acrossF16AVX2", 1, panelBytes/2, func(rows []operand.Mem) []reg.VecVirtual {
		x := registers(c.YMM, 4)
		for v := range x {
			c.VCVTPH2PS(rows[0].Offset(16*v), x[v])
		}
		return x
	})
	across(c, "acrossBF16AVX2", 1, panelBytes/2, func(rows []operand.Mem) []reg.VecVirtual {
		x := registers(c.YMM, 4)
		for v := range x {
			c.VPMOVZXWD(rows[0].Offset(16*v), x[v])
			c.VPSLLD(operand.U8(16), x[v], x[v])
		}
		return x
	})
}

// quads interleaves the bytes of four rows.
func quads(c *build.Context, rows []operand.Mem) []reg.VecVirtual {
	x := make([]reg.VecVirtual, 4)
	for r := range x {
		x[r] = load(c, rows[r])
	}
	// y holds pairs of columns 0 to 7 and 16 to 23, and of the others; z the words of
	// columns 0 to 3 and 16 to 19 and so on.
	y, z := registers(c.YMM, 4), registers(c.YMM, 4)
	c.VPUNPCKLBW(x[1], x[0], y[0])
	c.VPUNPCKLBW(x[3], x[2], y[1])
	c.VPUNPCKHBW(x[1], x[0], y[2])
	c.VPUNPCKHBW(x[3], x[2], y[3])
	for i := 0; i < 4; i += 2 {
		c.VPUNPCKLWD(y[i+1], y[i], z[i])
		c.VPUNPCKHWD(y[i+1], y[i], z[i+1])
	}
	return []reg.VecVirtual{lanes(c, 0x20, z[0], z[1]), lanes(c, 0x20, z[2], z[3]), lanes(c, 0x31, z[0], z[1]), lanes(c, 0x31, z[2], z[3])}
}

func load(c *build.Context, m operand.Mem) reg.VecVirtual {
	x := c.YMM()
	c.VMOVUPS(m, x)
	return x
}

// lanes takes the lower (0x20) or upper (0x31) halves of two registers.
func lanes(c *build.Context, which uint8, lo, hi reg.VecVirtual) reg.VecVirtual {
	x := c.YMM()
	c.VPERM2I128(operand.U8(which), hi, lo, x)
	return x
}

// across makes a loop that makes a step of a panel of a number of rows, bytes each.
func across(c *build.Context, name string, rows, bytes int, step func(rows []operand.Mem) []reg.VecVirtual) {
	target.Function(c, name, "func(steps int, dst, src *byte, stride int)", name+" packs 32 columns that lie side by side; see Across.")
	n := c.Load(c.Param("steps"), c.GP64())
	dst := operand.Mem{Base: c.Load(c.Param("dst"), c.GP64())}
	src := c.Load(c.Param("src"), c.GP64())
	stride, thrice, far := c.Load(c.Param("stride"), c.GP64()), c.GP64(), c.GP64()
	c.LEAQ(operand.Mem{Base: stride, Index: stride, Scale: 2}, thrice)
	const aheadBits = 4 // 16 rows are fetched before they are packed
	c.MOVQ(stride, far)
	c.SHLQ(operand.U8(aheadBits), far)
	c.ADDQ(src, far)
	c.Label("step")
	for _, row := range fourRows(far, stride, thrice)[:rows] {
		for line := 0; line < bytes; line += lineBytes {
			c.PREFETCHT0(row.Offset(line))
		}
	}
	for v, x := range step(fourRows(src, stride, thrice)[:rows]) {
		c.VMOVUPS(x, dst.Offset(32*v))
	}
	for _, at := range []reg.Register{src, far} {
		if rows > 1 {
			c.LEAQ(operand.Mem{Base: at, Index: stride, Scale: uint8(rows)}, at)
			continue
		}
		c.ADDQ(stride, at)
	}
	c.ADDQ(operand.U32(panelBytes), dst.Base)
	c.DECQ(n)
	c.JNZ(operand.LabelRef("step"))
	target.Return(c)
}

// fourRows returns the addresses of four rows.
func fourRows(at, stride, thrice reg.Register) []operand.Mem {
	return []operand.Mem{
		{Base: at}, {Base: at, Index: stride, Scale: 1}, {Base: at, Index: stride, Scale: 2}, {Base: at, Index: thrice, Scale: 1},
	}
}
