package vecmath

import (
	"math"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"

	"goatb/internal/asm/gen/target"
)

// reduceFile makes sums and maxima. Partial result l of sumLanes covers the
// elements l, l+sumLanes, ...; then the upper half of the partial results joins
// the lower half until one is left. So both widths, and plain Go, give the same
// bits; products are rounded before they are added.
func reduceFile(c *build.Context) {
	nums := newPool("reduce")
	writeTables(c)
	both(c, nums, func(v isa) {
		for _, e := range floats {
			v.reduction("sum", "the sum of a", e, v.c.VADDPS, 0, func(x vec) vec { return x })
			v.reduction("sumSquares", "the sum of the squares of a", e, v.c.VADDPS, 0, func(x vec) vec { return v.mul(x, x) })
			v.reduction("largest", "the largest element of a other than NaN, -Inf when there is none", e, v.c.VMAXPS,
				math.Inf(-1), func(x vec) vec { return x })
			v.reduction("largestAbs", "the largest magnitude in a other than NaN, 0 when there is none", e, v.c.VMAXPS,
				0, func(x vec) vec { return v.and(x, v.nums.u32(math.MaxInt32)) })
		}
	})
	nums.write(c)
}

// reduction makes a function of one array; see fold.
func (v isa) reduction(name, what string, e element, join func(...operand.Op), start float64, f func(x vec) vec) {
	name = v.name(name + e.name)
	v.function(name, "func(a *byte, n int) float32", name+" returns "+what+", in the order of a reduction.")
	a := v.pointer("a")
	l := v.begin()
	l.streams = []stream{{a, e.size, false, aheadBytes}}
	first := v.set(v.nums.f32(start))
	acc := make([]vec, sumLanes/v.lanes())
	for i := range acc {
		acc[i] = v.copy(first)
	}
	l.fold(acc, first, join, func() vec { return f(l.load(a, e)) })
	v.returnFold(acc, join)
}

// returnFold joins the partial results and returns the last one.
func (v isa) returnFold(acc []vec, join func(...operand.Op)) {
	v.c.Store(v.joined(acc, join).AsX(), v.c.ReturnIndex(0))
	target.Return(v.c)
}

// joined joins the partial results into lane 0 of the result.
func (v isa) joined(acc []vec, join func(...operand.Op)) vec {
	for n := len(acc) / 2; n > 0; n /= 2 {
		for i := range n {
			join(acc[i], acc[i+n], acc[i])
		}
	}
	return v.across(acc[0], join)
}

// across joins the lanes of a into lane 0 of the result.
func (v isa) across(a vec, join func(...operand.Op)) vec {
	c := v.c
	y := a
	if v.wide {
		y = c.YMM()
		c.VEXTRACTF64X4(operand.U8(1), a, y)
		low := a.AsY()
		join(low, y, y)
	}
	x := c.XMM()
	c.VEXTRACTF128(operand.U8(1), y, x)
	join(y.AsX(), x, x)
	for _, order := range []uint8{0b1110, 0b0001} {
		upper := c.XMM()
		c.VPERMILPS(operand.U8(order), x, upper)
		join(x, upper, x)
	}
	return x
}
