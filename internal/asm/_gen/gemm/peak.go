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
		step       func(acc, a, b reg.VecVirtual)
	}{
		{"peakFMA256", "256-bit VFMADD231PS", c.YMM, func(acc, a, b reg.VecVirtual) { c.VFMADD231PS(a, b, acc) }},
		{"peakFMA512", "512-bit VFMADD231PS", c.ZMM, func(acc, a, b reg.VecVirtual) { c.VFMADD231PS(a, b, acc) }},
		{"peakDotBF16", "512-bit VDPBF16PS", c.ZMM, func(acc, a, b reg.VecVirtual) { target.VDPBF16PS(c, a, b, acc) }},
		{"peakDot8", "512-bit VPDPBUSD", c.ZMM, func(acc, a, b reg.VecVirtual) { c.VPDPBUSD(a, b, acc) }},
	} {
		target.Function(c, p.name, "func(n int)",
			fmt.Sprintf("%s does %d independent %s instructions n times.", p.name, chains, p.what))
		n := c.Load(c.Param("n"), c.GP64())
		var acc [chains]reg.VecVirtual
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

// read makes a loop that does nothing but read memory.
func read(c *build.Context) {
	target.Function(c, "readAVX2", "func(p *byte, bytes int)",
		"readAVX2 reads memory in order; bytes is a positive multiple of 256.")
	p := operand.Mem{Base: c.Load(c.Param("p"), c.GP64())}
	n := c.Load(c.Param("bytes"), c.GP64())
	sums := registers(c.YMM, 4)
	for _, s := range sums {
		c.VXORPS(s, s, s)
	}
	c.Label("loop")
	for i := range 8 {
		c.VORPS(p.Offset(32*i), sums[i%4], sums[i%4])
	}
	c.PREFETCHT0(p.Offset(4096))
	c.PREFETCHT0(p.Offset(4096 + 64))
	c.PREFETCHT0(p.Offset(4096 + 128))
	c.PREFETCHT0(p.Offset(4096 + 192))
	c.ADDQ(operand.U32(256), p.Base)
	c.SUBQ(operand.U32(256), n)
	c.JNZ(operand.LabelRef("loop"))
	target.Return(c)
}
