package attend

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

type vec = reg.VecVirtual

// isa is one width of vector registers.
type isa struct {
	c    *build.Context
	wide bool
	// half says that registers are half as wide as AVX-512's, with its masks.
	half   bool
	suffix string
	// lanes is the number of f32 in a register.
	lanes int
	// counts are the numbers of rows that there are loops for.
	counts []int
	// numbers is a table of the numbers of the lanes, for AVX2.
	numbers operand.Mem
}

func newISA(c *build.Context, wide bool) isa {
	if wide {
		return isa{c: c, wide: true, suffix: "AVX512", lanes: 16, counts: []int{1, 2, 4, 8}}
	}
	table := c.StaticGlobal("laneNumbers")
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 8 {
		c.AppendDatum(operand.U32(i))
	}
	return isa{c: c, suffix: "AVX2", lanes: 8, counts: []int{1, 2, 4}, numbers: table}
}

func (v isa) reg() vec {
	if v.wide && !v.half {
		return v.c.ZMM()
	}
	return v.c.YMM()
}

// under allocates a register of half the width.
func (v isa) under() vec {
	if v.wide && !v.half {
		return v.c.YMM()
	}
	return v.c.XMM()
}

func (v isa) regs(n int) []vec {
	x := make([]vec, n)
	for i := range x {
		x[i] = v.reg()
	}
	return x
}

func (v isa) zero(x vec) { v.c.VXORPS(x, x, x) }

// mulAdd is acc += m·x with one rounding, m being one f32 in memory.
func (v isa) mulAdd(m operand.Mem, x, acc vec) {
	if v.wide {
		v.c.VFMADD231PS_BCST(m, x, acc)
		return
	}
	f := v.reg()
	v.c.VBROADCASTSS(m, f)
	v.c.VFMADD231PS(f, x, acc)
}

// mask selects the first elements of a register.
type mask struct {
	k reg.OpmaskVirtual
	y vec
}

// first makes the mask of the first n elements of at most `most`; n is
// positive and may be more.
func (v isa) first(n reg.Register, most int) mask {
	c := v.c
	if !v.wide {
		x, y := c.XMM(), c.YMM()
		c.VMOVQ(n, x)
		c.VPBROADCASTD(x, y)
		c.VPCMPGTD(v.numbers, y, y)
		return mask{y: y}
	}
	bits, limit := c.GP64(), c.GP64()
	c.MOVQ(operand.I32(most), limit)
	c.CMPQ(n, limit)
	c.CMOVQLT(n, limit)
	c.MOVQ(operand.I32(1<<most-1), bits)
	c.BZHIQ(limit, bits, bits)
	k := c.K()
	c.KMOVW(bits.As32(), k)
	return mask{k: k}
}

// load reads a register of f32, store writes it; all of it without a mask.
func (v isa) load(m operand.Mem, k *mask, x vec) {
	switch {
	case k == nil:
		v.c.VMOVUPS(m, x)
	case v.wide:
		v.c.VMOVUPS_Z(m, k.k, x)
	default:
		v.c.VMASKMOVPS(m, k.y, x)
	}
}

func (v isa) store(x vec, k *mask, m operand.Mem) {
	switch {
	case k == nil:
		v.c.VMOVUPS(x, m)
	case v.wide:
		v.c.VMOVUPS(x, k.k, m)
	default:
		v.c.VMASKMOVPS(x, k.y, m)
	}
}
