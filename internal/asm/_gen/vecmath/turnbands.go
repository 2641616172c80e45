package vecmath

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

// bands goes through the squares of a transpose. Squares that lie side by side in
// the input follow each other: processors fetch neighbouring lines together, and
// far apart they would be fetched twice.
type bands struct {
	c                   *build.Context
	edge                int
	dst, src            reg.GPVirtual
	inStride, outStride reg.GPVirtual
}

// beginBands begins a function that transposes squares of edge elements of size
// bytes; more are parameters behind the others, with what they are for.
func beginBands(c *build.Context, name string, edge, size int, more ...string) *bands {
	sig := "func(dst, src *byte, dstStride, srcStride, count, side int"
	doc := []string{
		fmt.Sprintf("%s transposes squares of %d by %d elements of %d bytes: count lie side by side in dst and one", name, edge, edge, size),
		"below the other in src, side one below the other in dst and side by side in src.",
	}
	if len(more) > 0 {
		sig += ", " + more[0]
		doc = append(doc, more[1:]...)
	}
	target.Function(c, name, sig+")", doc...)
	b := &bands{c: c, edge: edge}
	b.dst, b.src = b.param("dst"), b.param("src")
	b.outStride, b.inStride = b.param("dstStride"), b.param("srcStride")
	return b
}

func (b *bands) param(name string) reg.GPVirtual {
	r := b.c.GP64()
	b.c.Load(b.c.Param(name), r)
	return r
}

// each does square for the places of all squares, which it leaves as they are.
func (b *bands) each(square func(dst, src reg.GPVirtual)) {
	c, count, side := b.c, b.param("count"), b.param("side")
	dst, src, left, down := c.GP64(), c.GP64(), c.GP64(), c.GP64()
	c.Label("squares")
	c.MOVQ(b.dst, dst)
	c.MOVQ(b.src, src)
	c.MOVQ(side, left)
	c.Label("square")
	square(dst, src)
	c.IMUL3Q(operand.I32(b.edge), b.outStride, down)
	c.ADDQ(down, dst)
	c.ADDQ(operand.I32(lineBytes), src)
	c.DECQ(left)
	c.JNE(operand.LabelRef("square"))
	c.IMUL3Q(operand.I32(b.edge), b.inStride, down)
	c.ADDQ(down, b.src)
	c.ADDQ(operand.I32(lineBytes), b.dst)
	c.DECQ(count)
	c.JNE(operand.LabelRef("squares"))
}
