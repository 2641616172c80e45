package paged

import (
	"math"

	"goatb/device"
	"goatb/internal/vec"
)

var negInf = float32(math.Inf(-1))

// rounds reports whether probabilities are rounded.
func (g *geometry) rounds() bool { return g.Quant == Offline || g.Quant == Online }

// quantise turns scores into probabilities rounded to multiples of a scale,
// relative to the largest score top, and returns the sum of the unrounded
// ones. Online takes for each block of QuantBlock positions the scale that
// makes its largest probability 127; Offline multiplies by a given scale what
// is relative to the largest score up to and with the block, and leaves the
// division to the value's scale. Products are rounded before they are added, so
// the sum has the same bits on every processor whose exponentials have.
func (w *worker) quantise(s []float32, head int64, top float32) float32 {
	var given float32
	if w.t.Quant == Offline {
		given = device.View[float32](w.a.Mem(InProbScale))[head]
	}
	sum, upTo := float32(0), negInf
	for len(s) > 0 {
		b := s[:min(QuantBlock, len(s))]
		s = s[len(b):]
		most := vec.Max(b)
		ref, levels, back := most, float32(127), float32(1)/127
		if w.t.Quant == Offline {
			upTo = max(upTo, most)
			ref, levels, back = upTo, given, 1
		}
		part := vec.ExpSum(b, b, ref)
		if ref == negInf {
			sum += part
			continue
		}
		shift := vec.ExpOf(ref - top)
		sum += float32(part * shift)
		vec.RoundInt8(b, levels)
		vec.Scale(b, b, shift*back)
	}
	return sum
}

// scaleValues multiplies the part's values by the scale of each query head.
func (w *worker) scaleValues() {
	scales, d := device.View[float32](w.a.Mem(InValueScale)), w.t.ValueDim
	for h := range w.heads {
		for r := range w.queryRows {
			for g := range w.group {
				row := (h*w.queryRows+r)*w.group + g
				v := w.part[row*d : (row+1)*d]
				vec.Scale(v, v, scales[w.queryHead(h, g)])
			}
		}
	}
}

// scaleQuery multiplies the query with the scales of the channels of int8 keys,
// which are multiplied as they are. Their offsets add the same to all scores of
// a row, which its softmax does not see. Where integers are multiplied faster, the
// rows become fixed-point numbers.
func (w *worker) scaleQuery() {
	t := w.t
	width, row := padded(t.KeyDim), int64(0)
	for h := range w.heads {
		scale := w.keyChannels.scale[h*t.KeyDim:][:t.KeyDim]
		for range w.queryRows * w.group {
			q := w.query[row*width:][:t.KeyDim]
			vec.Mul(q, q, scale)
			if t.Fixed {
				vec.Fix(q)
			}
			row++
		}
	}
}

// dequantise turns the part's sums of weighted int8 values x into those of
// (x+offset)*scale.
func (w *worker) dequantise() {
	t, row := w.t, int64(0)
	for h := range w.heads {
		for range w.queryRows * w.group {
			v, f := w.part[row*t.ValueDim:][:t.ValueDim], &w.valueChannels
			if len(f.offset) != 0 {
				vec.Axpy(w.partSum[row], f.offset[h*t.ValueDim:][:t.ValueDim], v)
			}
			vec.Mul(v, v, f.scale[h*t.ValueDim:][:t.ValueDim])
			row++
		}
	}
}
