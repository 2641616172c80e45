package gemm

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

// quantizeAVX2 makes the loops that turn rows of floats into int16. Their units
// are 16 elements: callers do the rest.
func quantizeAVX2(c *build.Context) {
	largest(c)
	toInt16(c)
}

func largest(c *build.Context) {
	target.Function(c, "largestAVX2", "func(n int, x *float32) float32",
		"largestAVX2 returns the largest absolute value of n elements, a positive multiple of 16, or NaN",
		"if one of them is NaN.")
	n := c.Load(c.Param("n"), c.GP64())
	x := operand.Mem{Base: c.Load(c.Param("x"), c.GP64())}
	sign, word := c.YMM(), c.GP32()
	c.MOVL(operand.U32(0x7fffffff), word)
	c.VMOVD(word, sign.AsX())
	c.VPBROADCASTD(sign.AsX(), sign)
	// Bits of absolute values are ordered as integers, NaN above infinity.
	most := registers(c.YMM, 2)
	for _, m := range most {
		c.VPXOR(m, m, m)
	}
	c.Label("loop")
	for i, m := range most {
		v := c.YMM()
		c.VPAND(x.Offset(32*i), sign, v)
		c.VPMAXUD(v, m, m)
	}
	c.ADDQ(operand.U8(64), x.Base)
	c.SUBQ(operand.U8(16), n)
	c.JNZ(operand.LabelRef("loop"))
	c.VPMAXUD(most[1], most[0], most[0])
	half := c.XMM()
	c.VEXTRACTI128(operand.U8(1), most[0], half)
	c.VPMAXUD(most[0].AsX(), half, half)
	for _, order := range []uint8{0x4e, 0xb1} {
		t := c.XMM()
		c.VPSHUFD(operand.U8(order), half, t)
		c.VPMAXUD(t, half, half)
	}
	c.Store(half, c.ReturnIndex(0))
	target.Return(c)
}

func toInt16(c *build.Context) {
	target.Function(c, "toInt16AVX2", "func(n int, dst *int16, x *float32, factor float32)",
		"toInt16AVX2 stores n elements times factor, rounded to nearest even; n is a positive multiple of 16.")
	n := c.Load(c.Param("n"), c.GP64())
	dst := operand.Mem{Base: c.Load(c.Param("dst"), c.GP64())}
	x := operand.Mem{Base: c.Load(c.Param("x"), c.GP64())}
	f := c.Load(c.Param("factor"), c.XMM())
	factor := c.YMM()
	c.VBROADCASTSS(f, factor)
	c.Label("loop")
	v := registers(c.YMM, 2)
	for i := range v {
		c.VMULPS(x.Offset(32*i), factor, v[i])
		c.VCVTPS2DQ(v[i], v[i])
	}
	packed := reg.VecVirtual(c.YMM())
	c.VPACKSSDW(v[1], v[0], packed)
	c.VPERMQ(operand.U8(0xd8), packed, packed)
	c.VMOVDQU(packed, dst)
	c.ADDQ(operand.U8(64), x.Base)
	c.ADDQ(operand.U8(32), dst.Base)
	c.SUBQ(operand.U8(16), n)
	c.JNZ(operand.LabelRef("loop"))
	target.Return(c)
}
