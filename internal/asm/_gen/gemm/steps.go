package gemm

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Weights that stream by are fetched twice: into L2 from memory, some hundred
// nanoseconds ahead, and from there into L1. A core has room for few lines on their
// way into L1, and for more on their way into L2.
const (
	streamFar  = 8192
	streamNear = 3072
)

// fetchStream fetches the lines of a step of some bytes ahead of b.
func fetchStream(c *build.Context, b operand.Mem, at, bytes int) {
	for line := at; line < at+bytes; line += lineBytes {
		c.PREFETCHT1(b.Offset(streamFar + line))
		c.PREFETCHT0(b.Offset(streamNear + line))
	}
}

// eachStep makes the loop over n steps, at least one: turns of unroll steps and then
// single ones.
func eachStep(c *build.Context, n reg.GPVirtual, turn, single func()) {
	c.SUBQ(operand.U8(unroll), n)
	c.JLT(operand.LabelRef("tail"))
	c.Label("turn")
	turn()
	c.SUBQ(operand.U8(unroll), n)
	c.JGE(operand.LabelRef("turn"))
	c.Label("tail")
	c.ADDQ(operand.U8(unroll), n)
	c.JZ(operand.LabelRef("sums"))
	c.Label("single")
	single()
	c.DECQ(n)
	c.JNZ(operand.LabelRef("single"))
	c.Label("sums")
}

// streamSteps multiplies n steps of a row a with those of a panel b that streams by.
func streamSteps(c *build.Context, n reg.GPVirtual, a, b operand.Mem, step func(u int)) {
	advance := func(steps int) {
		c.ADDQ(operand.U8(4*steps), a.Base)
		c.ADDQ(operand.U32(panelBytes*steps), b.Base)
	}
	eachStep(c, n, func() {
		for u := range unroll {
			fetchStream(c, b, panelBytes*u, panelBytes)
			step(u)
		}
		advance(unroll)
	}, func() {
		step(0)
		advance(1)
	})
}
