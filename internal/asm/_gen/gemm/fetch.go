package gemm

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"

	"goatb/internal/asm/gen/target"
)

// fetch makes a loop that asks for memory and waits for none of it.
func fetch(c *build.Context) {
	target.Function(c, "fetch", "func(at uintptr, lines int)", "fetch asks for cache lines; see Fetch.")
	p := operand.Mem{Base: c.Load(c.Param("at"), c.GP64())}
	n := c.Load(c.Param("lines"), c.GP64())
	c.Label("line")
	c.PREFETCHT1(p)
	c.ADDQ(operand.U8(lineBytes), p.Base)
	c.DECQ(n)
	c.JNZ(operand.LabelRef("line"))
	c.RET()
}
