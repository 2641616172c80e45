package vecmath

import "goatb/internal/asm/gen/target"

// sumLanes is the number of interleaved partial sums of every reduction.
const sumLanes = 64

// expSum makes the core of a softmax.
func (v isa) expSum() {
	target.Function(v.c, v.name("expSum"), "func(dst, src *float32, n int, max float32) float32",
		v.name("expSum")+" writes e^(src-max) and returns the sum of what it wrote, in the order of a reduction.")
	dst, src := v.pointer("dst"), v.pointer("src")
	l := v.begin()
	top, ends := v.param("max"), v.limits(-104, 89)
	acc := v.partials()
	step := func() vec {
		x := v.sub(l.load(src), top)
		n, e := v.reduce(ends.clamp(v, x))
		y := v.scale(v.add(e, v.nums.f32(1)), n)
		l.store(y, dst)
		return y
	}
	add := func(i int) { v.c.VADDPS(step(), acc[i], acc[i]) }
	l.reduce(acc, add, func(i int) {
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
