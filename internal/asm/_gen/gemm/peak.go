package gemm

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"goatb/internal/asm/gen/target"
)

// chains is the number of independent sums of a peak loop: more than the
// latency of any such instruction times the ports that do it.
const chains = 12

// peak makes loops of nothing but multiply-add instructions: they show how fast
// a core can do them at all.
func peak(c *build.Context) {
	for _, p := range []struct {
		name, what string
		reg        func() reg.VecVirtual
		step       func(acc, a, b reg.Register)
	}{
		{"peakFMA256", "256-bit VFMADD231PS", c.YMM, func(acc, a, b reg.Register) { c.VFMADD231PS(a, b, acc) }},
		{"peakFMA512", "512-bit VFMADD231PS", c.ZMM, func(acc, a, b reg.Register) { c.VFMADD231PS(a, b, acc) }},
		{"peakDot8", "512-bit VPDPBUSD", c.ZMM, func(acc, a, b reg.Register) { c.VPDPBUSD(a, b, acc) }},
	} {
		target.Function(c, p.name, "func(n int)",
			fmt.Sprintf("%s does %d independent %s instructions n times.", p.name, chains, p.what))
		n := c.Load(c.Param("n"), c.GP64())
		var acc [chains]reg.Register
		for i := range acc {
			r := p.reg()
			c.VXORPS(r, r, r)
			acc[i] = r
		}
		a := p.reg()
		c.VXORPS(a, a, a)
		c.Label("loop")
		for _, r := range acc {
			p.step(r, a, a)
		}
		c.DECQ(n)
		c.JNZ(operand.LabelRef("loop"))
		target.Return(c)
	}
}
