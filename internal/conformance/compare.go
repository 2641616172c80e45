package conformance

import (
	"fmt"
	"math"

	"goatb/tensor"
)

// difference is the outcome of a comparison.
type difference struct {
	// worst is the largest |actual-golden|/max(1,|golden|), at element index.
	worst float64
	index int64
	// why says what is wrong, empty when the outputs match.
	why string
}

// compare applies ATB's rule to one output: NaN and Inf count as 0 on both
// sides, every element must satisfy |actual-golden| <= T*max(1,|golden|), for
// T = 1 the plain difference is at most 1. Beyond the rule an element that is
// not finite where the golden one is finite is wrong.
func compare(actual, golden *Tensor, t float64) difference {
	if actual.Desc.Numel() != golden.Desc.Numel() {
		return difference{why: fmt.Sprintf("want %d elements like %s, got %s", golden.Desc.Numel(), golden.Desc, actual.Desc)}
	}
	if !actual.Desc.DType.IsFloat() && !golden.Desc.DType.IsFloat() {
		return compareInts(actual.Ints(), golden.Ints(), t)
	}
	return compareFloats(actual.Floats(), roundedLike(golden.Floats(), actual.Desc.DType), t)
}

// compareInts compares exactly in int64.
func compareInts(actual, golden []int64, t float64) difference {
	var d difference
	for i, g := range golden {
		if actual[i] == g {
			continue
		}
		// The distance may leave int64; float64 is exact enough to judge it.
		diff := math.Abs(float64(actual[i]) - float64(g))
		diff = max(diff, 1)
		d.note(diff, int64(i))
		if diff > allowed(t, float64(g)) && d.why == "" {
			d.why = fmt.Sprintf("element %d: want %d, got %d", i, g, actual[i])
		}
	}
	return d
}

// allowed is the largest difference from a golden value.
func allowed(t, golden float64) float64 {
	if t == 1 {
		return 1
	}
	return t * max(1, math.Abs(golden))
}

// roundedLike makes infinite what the actual type cannot hold.
func roundedLike(v []float64, t tensor.DType) []float64 {
	limit := math.Inf(1)
	switch t {
	case tensor.Float16:
		limit = 65520 // rounds to infinity from here on
	case tensor.BFloat16:
		limit = 0x1.ffp127
	case tensor.Float32:
		limit = 0x1.ffffffp127
	}
	for i, x := range v {
		if math.Abs(x) >= limit {
			v[i] = math.Copysign(math.Inf(1), x)
		}
	}
	return v
}

func compareFloats(actual, golden []float64, t float64) difference {
	var d difference
	for i, g := range golden {
		a := actual[i]
		if !finite(a) && finite(g) {
			if d.why == "" {
				d.why = fmt.Sprintf("element %d: want %g, got %g", i, g, a)
			}
			d.note(math.MaxFloat64, int64(i))
			continue
		}
		a, g = zeroed(a), zeroed(g)
		diff := math.Abs(a - g)
		relative := diff / max(1, math.Abs(g))
		if t == 1 {
			relative = diff
		}
		d.note(relative, int64(i))
		if diff > allowed(t, g) && d.why == "" {
			d.why = fmt.Sprintf("element %d: want %g, got %g", i, golden[i], actual[i])
		}
	}
	return d
}

func (d *difference) note(worst float64, index int64) {
	if worst > d.worst {
		d.worst, d.index = worst, index
	}
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func zeroed(x float64) float64 {
	if finite(x) {
		return x
	}
	return 0
}
