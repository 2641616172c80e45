package attend

import (
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

// soften makes the scaling of scores with the search for their maximum.
func soften(v isa) {
	c := v.c
	low := c.StaticGlobal("lowest")
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	c.AppendDatum(operand.U32(math.Float32bits(float32(math.Inf(-1)))))
	name := "scaleMax" + v.suffix
	target.Function(c, name, "func(s *float32, n int, scale float32) float32",
		name+" multiplies s with scale and returns the largest of the products other than NaN, -Inf when there is none.")
	s, n := c.GP64(), c.GP64()
	c.Load(c.Param("s"), s)
	c.Load(c.Param("n"), n)
	a, err := c.Param("scale").Resolve()
	if err != nil {
		panic(err)
	}
	scale, lowest := v.reg(), v.reg()
	c.VBROADCASTSS(a.Addr, scale)
	c.VBROADCASTSS(low, lowest)
	const unroll = 4
	top := v.regs(unroll)
	for _, t := range top {
		c.VMOVUPS(lowest, t)
	}
	step := func(i int, k *mask) {
		m, x := operand.Mem{Base: s, Disp: 4 * v.lanes * i}, v.reg()
		v.load(m, k, x)
		c.VMULPS(scale, x, x)
		v.store(x, k, m)
		switch {
		case k == nil:
			c.VMAXPS(top[i], x, top[i])
		case v.wide:
			c.VMAXPS(top[i], x, k.k, top[i])
		default:
			c.VBLENDVPS(k.y, x, lowest, x)
			c.VMAXPS(top[i], x, top[i])
		}
	}
	v.turns(s, n, unroll, step)
	for w := unroll / 2; w > 0; w /= 2 {
		for i := range w {
			c.VMAXPS(top[i], top[i+w], top[i])
		}
	}
	c.Store(v.largest(top[0]).AsX(), c.ReturnIndex(0))
	target.Return(c)
}

// turns walks n f32 from s on: unroll registers in a turn, then single ones,
// then what is left.
func (v isa) turns(s, n reg.GPVirtual, unroll int, step func(i int, k *mask)) {
	c := v.c
	for _, x := range []struct {
		label string
		count int
	}{{"turn", unroll}, {"single", 1}} {
		end := x.label + "End"
		c.SUBQ(operand.I32(x.count*v.lanes), n)
		c.JLT(operand.LabelRef(end))
		c.Label(x.label)
		for i := range x.count {
			step(i, nil)
		}
		c.ADDQ(operand.I32(4*x.count*v.lanes), s)
		c.SUBQ(operand.I32(x.count*v.lanes), n)
		c.JGE(operand.LabelRef(x.label))
		c.Label(end)
		c.ADDQ(operand.I32(x.count*v.lanes), n)
	}
	c.TESTQ(n, n)
	c.JEQ(operand.LabelRef("done"))
	k := v.first(n, v.lanes)
	step(0, &k)
	c.Label("done")
}

// largest returns the largest lane of x.
func (v isa) largest(x vec) vec {
	c := v.c
	y := x
	if v.wide {
		y = c.YMM()
		c.VEXTRACTF64X4(operand.U8(1), x, y)
		c.VMAXPS(x.AsY(), y, y)
	}
	z := c.XMM()
	c.VEXTRACTF128(operand.U8(1), y, z)
	c.VMAXPS(y.AsX(), z, z)
	for _, order := range []uint8{0b1110, 0b0001} {
		upper := c.XMM()
		c.VPERMILPS(operand.U8(order), z, upper)
		c.VMAXPS(z, upper, z)
	}
	return z
}
