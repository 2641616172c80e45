package metamorphic

import (
	"slices"

	"goatb/operation/elementwise"
	"goatb/tensor"
)

// lengths are those of sequences: the host's, or what a node adds up.
func (r *recipe) lengths() int {
	if r.rng.IntN(3) > 0 {
		return r.input(rows(tensor.Int32, 1), contexts)
	}
	a, b, sum := r.input(rows(tensor.Int32, 1), halves), r.input(rows(tensor.Int32, 1), halves), r.temp(rows(tensor.Int32, 1))
	r.add("lengths", step{make: spec(elementwise.Of(elementwise.Add)), in: []int{a, b}, out: []int{sum}})
	return sum
}

// counts reports whether a tiling reads what the graph makes: then the host may
// wait for its launch.
func (r *recipe) counts() bool {
	return r.kinds["lengths"] || slices.ContainsFunc(r.steps, func(s step) bool { return s.graph != nil && s.graph.counts() })
}
