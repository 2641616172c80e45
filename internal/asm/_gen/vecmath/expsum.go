package vecmath

// sumLanes is the number of interleaved partial sums of every reduction.
const sumLanes = 64

// expSum makes the core of a softmax.
func (v isa) expSum(e element) {
	name := v.name("expSum" + e.name)
	v.function(name, "func(dst *float32, src *byte, n int, max float32) float32",
		name+" writes e^(src-max) and returns the sum of what it wrote, in the order of a reduction.")
	dst, src := v.pointer("dst"), v.pointer("src")
	l := v.begin()
	top, exp := v.param("max"), v.exp()
	acc := v.partials()
	l.sum(acc, v.sumChains(), func() vec {
		y := exp(v.sub(l.load(src, e), top))
		l.store(y, dst, f32)
		return y
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

// sumChains is the number of exponentials that a sum interleaves.
func (v isa) sumChains() int {
	if v.wide {
		return sumLanes / v.lanes()
	}
	return 1
}
