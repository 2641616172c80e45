package vecmath

import "goatb/internal/asm/gen/target"

// sumLanes is the number of interleaved partial sums of every reduction.
const sumLanes = 64

// expSum makes the core of a softmax.
func (v isa) expSum(e element) {
	name := v.name("expSum" + e.name)
	target.Function(v.c, name, "func(dst *float32, src *byte, n int, max float32) float32",
		name+" writes e^(src-max) and returns the sum of what it wrote, in the order of a reduction.")
	dst, src := v.pointer("dst"), v.pointer("src")
	l := v.begin()
	top, exp := v.param("max"), v.exp()
	acc := v.partials()
	step := func() vec {
		y := exp(v.sub(l.load(src, e), top))
		l.store(y, dst, f32)
		return y
	}
	l.reduce(acc, func(i int) { v.c.VADDPS(step(), acc[i], acc[i]) }, func(i int) {
		y := step()
		if v.wide {
			v.c.VADDPS(y, acc[i], l.opmask, acc[i])
		} else {
			v.c.VADDPS(v.and(y, l.mask), acc[i], acc[i])
		}
	})
	v.returnFold(acc, v.c.VADDPS)
}

// partials returns sumLanes partial sums of 0.
func (v isa) partials() []vec {
	acc := make([]vec, sumLanes/v.lanes())
	for i := range acc {
		acc[i] = v.zero()
	}
	return acc
}
