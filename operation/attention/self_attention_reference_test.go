package attention

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/tensor"
)

// expected computes query row r of head h of sequence i in float64, and how far
// each element may be off: by a weight that lies at a boundary of rounding, and
// because scores are rounded to float32, whose error grows with their size.
func (d *selfData) expected(i int, r, h int64) (out, slack []float64) {
	out, slack = make([]float64, d.dv), make([]float64, d.dv)
	if !d.runs(i) {
		return out, slack
	}
	kh := h / (d.heads() / d.keyHeads())
	pos := d.keys[i] - d.rows[i] + r
	scores := map[int64]float64{}
	largest := math.Inf(-1)
	for j := range d.keys[i] {
		if !d.visible(pos, j) {
			continue
		}
		if s := d.score(i, r, h, j); !math.IsInf(s, -1) {
			scores[j] = s
			largest = math.Max(largest, s)
		}
	}
	sum, top := 0.0, 0.0
	for j, s := range scores {
		scores[j] = math.Exp(s - largest)
		sum += scores[j]
	}
	for j := range scores {
		scores[j] /= sum
		top = math.Max(top, scores[j])
	}
	for j, w := range scores {
		weight, step := d.weight(w, top, h)
		for c := range d.dv {
			v := d.v[i][(j*d.keyHeads()+kh)*d.dv+c]
			out[c] += weight * v
			slack[c] += step * math.Abs(v)
			if largest > -1e30 {
				slack[c] += w * math.Abs(v) * math.Abs(largest) * 0x1p-22
			}
		}
	}
	return out, slack
}

// score is the score of query row r with key j.
func (d *selfData) score(i int, r, h, j int64) float64 {
	p := &d.spec
	kh := h / (d.heads() / d.keyHeads())
	s := 0.0
	for c := range d.dk {
		s += d.q[i][(r*d.heads()+h)*d.dk+c] * d.k[i][(j*d.keyHeads()+kh)*d.dk+c]
	}
	s *= float64(p.QScale)
	if d.keyScale != nil {
		s *= d.keyScale[h]
	}
	scale := float64(p.QKScale)
	if d.logN != nil {
		at := int64(i)
		if p.CalcType == SelfPAEncoder {
			at = d.keys[i] - d.rows[i] + r
		}
		scale *= d.logN[at]
	}
	clamp := func(s float64) float64 {
		if p.ClampType == ClampMinMax {
			return math.Min(math.Max(s, float64(p.ClampMin)), float64(p.ClampMax))
		}
		return s
	}
	b := d.bias(i, h, r, j)
	switch {
	case p.CalcType == SelfUndefined && !p.bypass():
		return (clamp(s) + b) * scale
	case p.CalcType == SelfPAEncoder:
		return clamp(s*scale) + b
	}
	return clamp(s)*scale + b
}

// weight rounds a probability as the quantisation does and scales it back; step
// is what one unit of rounding is worth where the probability is at a boundary.
func (d *selfData) weight(w, top float64, h int64) (weight, step float64) {
	scaled, unit := 0.0, 0.0
	switch d.spec.QuantType {
	case QuantOnline:
		scaled, unit = w*127/top, top/127*d.valueScale[h]
	case QuantOffline:
		scaled, unit = w*d.pScale[h], d.valueScale[h]
	default:
		return w, 0
	}
	if frac := scaled - math.Floor(scaled); math.Abs(frac-0.5) < 1e-3 {
		step = unit
	}
	return math.Max(-128, math.Min(127, math.RoundToEven(scaled))) * unit, step
}

// tolerance of a type: one rounding of the output, and for f32 the rounding of
// sums over at most some hundred products.
func tolerance(t tensor.DType) float64 {
	switch t {
	case tensor.Float16:
		return 0x1p-11 + 1e-5
	case tensor.BFloat16:
		return 0x1p-8 + 1e-5
	}
	return 1e-5
}

// check compares a whole output with the reference; rows of no sequence are 0.
func (d *selfData) check(t testing.TB, got []float64) {
	t.Helper()
	outType := d.dtype
	if d.spec.QuantType != QuantNone {
		outType = d.spec.OutDataType
	}
	tol := tolerance(outType)
	seen := make([]bool, len(got))
	token := int64(0)
	padded := d.in[d.spec.ports().query].Dim(-2)
	for i := range d.rows {
		for r := range d.rows[i] {
			for h := range d.heads() {
				want, slack := d.expected(i, r, h)
				at := ((token+r)*d.heads() + h) * d.dv
				if d.spec.InputLayout == LayoutBNSD {
					at = ((int64(i)*d.heads()+h)*padded + r) * d.dv
				}
				for c := range d.dv {
					seen[at+c] = true
					g := got[at+c]
					if math.IsNaN(g) != math.IsNaN(want[c]) || math.Abs(g-want[c]) > tol*math.Max(1, math.Abs(want[c]))+slack[c] {
						require.Failf(t, "output differs", "sequence %d, row %d, head %d, element %d: want %v, got %v", i, r, h, c, want[c], g)
					}
				}
			}
		}
		token += d.rows[i]
	}
	for at, s := range seen {
		if !s {
			require.Zero(t, got[at], "element %d belongs to no sequence", at)
		}
	}
}
