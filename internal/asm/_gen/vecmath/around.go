package vecmath

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"

	"goatb/internal/asm/gen/target"
)

// aroundFile makes a copy whose stores go around the caches: lines that are
// written whole are not read from memory first.
func aroundFile(c *build.Context) {
	const turn = 2 * lineBytes
	target.Function(c, "copyAroundAVX2", "func(dst, src *byte, n int)",
		"copyAroundAVX2 copies n bytes, a multiple of 128 above 0, to a 64-byte aligned dst.")
	dst, src := operand.Mem{Base: c.Load(c.Param("dst"), c.GP64())}, operand.Mem{Base: c.Load(c.Param("src"), c.GP64())}
	n := c.Load(c.Param("n"), c.GP64())
	c.Label("turn")
	for i := range turn / 32 {
		x := c.YMM()
		c.VMOVDQU(src.Offset(32*i), x)
		c.VMOVNTDQ(x, dst.Offset(32*i))
	}
	c.SUBQ(operand.I8(-turn), dst.Base)
	c.SUBQ(operand.I8(-turn), src.Base)
	c.SUBQ(operand.U32(turn), n)
	c.JNE(operand.LabelRef("turn"))
	c.SFENCE()
	target.Return(c)
}
