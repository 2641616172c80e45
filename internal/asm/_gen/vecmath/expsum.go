package vecmath

import "math"

// sumLanes is the number of interleaved partial sums of reductions.
const sumLanes = 64

// sumStep is the number of elements that a softmax adds in float32.
const sumStep = 1024

// expSum makes the core of a softmax.
func (v isa) expSum(e element) {
	name := v.name("expSum" + e.name)
	v.function(name, "func(dst *float32, src *byte, n int, max float32) float32",
		name+" writes e^(src-max) and returns the sum of what it wrote, in the order of a reduction.")
	dst, src := v.pointer("dst"), v.pointer("src")
	l := v.begin()
	top := v.param("max")
	acc := v.partials()
	l.sum(acc, v.sumChains(f32), func() vec {
		y := v.exp2(v.mul(v.sub(l.load(src, e), top), v.nums.f32(math.Log2E)), f32)
		l.store(y, dst, f32)
		return y
	})
	v.returnFold(acc, v.c.VADDPS)
}

// partials returns sumLanes partial sums of 0.
func (v isa) partials() []vec { return v.zeros(sumLanes / v.lanes()) }

// zeros returns n registers of 0.
func (v isa) zeros(n int) []vec {
	acc := make([]vec, n)
	for i := range acc {
		acc[i] = v.zero()
	}
	return acc
}

// sumChains is the number of exponentials with results of type e that a sum
// interleaves.
func (v isa) sumChains(e element) int {
	switch {
	case !v.wide:
		return 1
	case e == f32:
		return 6
	}
	return 8
}
