package attention

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/tensor"
)

// scoreCall makes a call over a cache whose keys reach beyond small masks.
func scoreCall(seed uint64, dtype tensor.DType) *call {
	return newCall(seed, dtype, 4, 2, 24, 24, []int64{1, 3, 2}, []int64{40, 9, 4})
}

func (c *call) position(i int, r int64) int64 { return c.keys[i] - c.rows[i] + r }

func TestScaleClampAndFactors(t *testing.T) {
	factors := []float64{0.5, 1.5, 2}
	for name, x := range map[string]struct {
		change func(a *Params)
		score  func(dot float64, i int) float64
	}{
		"scales": {func(a *Params) {}, func(d float64, _ int) float64 { return d * 0.5 * 0.25 }},
		"clamp": {
			func(a *Params) { a.Clamp, a.ClampMin, a.ClampMax = true, -0.25, 0.5 },
			func(d float64, _ int) float64 { return math.Min(math.Max(d*0.5, -0.25), 0.5) * 0.25 },
		},
		"clamp what is scaled": {
			func(a *Params) { a.Clamp, a.ClampScaled, a.ClampMin, a.ClampMax = true, true, -0.25, 0.125 },
			func(d float64, _ int) float64 { return math.Min(math.Max(d*0.5*0.25, -0.25), 0.125) },
		},
		"factor by batch": {
			func(a *Params) { a.Factor, a.FactorLen = BatchFactor, 3 },
			func(d float64, i int) float64 { return d * 0.5 * 0.25 * factors[i] },
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := scoreCall(11, tensor.Float32)
			c.a.QScale, c.a.QKScale = 0.5, 0.25
			x.change(&c.a)
			c.build(sources[2].layout)
			c.putFloats(InFactor, factors, tensor.Float16)
			c.score = func(dot float64, i int, _, _, _ int64) float64 { return x.score(dot, i) }
			c.check(t, c.run(t))
		})
	}
}

func TestFactorByRow(t *testing.T) {
	c := scoreCall(12, tensor.Float32)
	c.a.Factor, c.a.FactorLen = RowFactor, 40
	c.build(sources[0].layout)
	factors := make([]float64, 40)
	for i := range factors {
		factors[i] = 0.25 + float64(i)/16
	}
	c.putFloats(InFactor, factors, tensor.Float32)
	scale := float64(c.a.QKScale)
	c.score = func(dot float64, i int, _, r, _ int64) float64 { return dot * scale * factors[c.position(i, r)] }
	c.check(t, c.run(t))
}

// TestCompressedBiases has masks of side 6, per head and shared, in all types.
func TestCompressedBiases(t *testing.T) {
	const side = 6
	slopes := []float64{0.5, 0.25, 0.125, 1}
	for _, dtype := range floatTypes {
		for _, bias := range []Bias{Distance, RootDistance, Position} {
			for _, perHead := range []bool{false, true} {
				c := scoreCall(13, dtype)
				c.a.Causal, c.a.Bias, c.a.ScaleBias = true, bias, perHead
				c.a.Mask = Mask{Row: side, Rows: side, Cols: side}
				if perHead {
					c.a.Mask.Head = side * side
				}
				c.build(sources[2].layout)
				mask := make([]float64, 4*side*side)
				for i := range mask {
					mask[i] = roundTo(-c.rng.Float64()*4, dtype)
				}
				c.putFloats(InMask, mask, dtype)
				c.putFloats(InSlopes, slopes, tensor.Float16)
				at := func(h, r, j int64) float64 { return mask[h*c.a.Mask.Head+r*side+j] }
				scale := float64(c.a.QKScale)
				c.score = func(dot float64, i int, h, r, j int64) float64 {
					b := slopes[h] * wantBias(bias, side, c.position(i, r), j, func(r, j int64) float64 { return at(h, r, j) })
					if perHead {
						b *= scale
					}
					return dot*scale + b
				}
				c.check(t, c.run(t))
			}
		}
	}
}

// wantBias is the bias of slope 1 for a mask of negative elements.
func wantBias(b Bias, side, pos, j int64, at func(r, j int64) float64) float64 {
	d := float64(pos - j)
	switch {
	case b == Position && j >= side:
		step := 1.0
		if row := min(pos, side-1); at(row, side-1) < at(row, 0) {
			step = -1
		}
		return at(side-1, side-1) + step*float64(j-side+1)
	case b == Position:
		return at(min(pos, side-1), j)
	case pos < side:
		return at(pos, j)
	case pos-j < side:
		return at(pos-j, 0)
	case b == RootDistance:
		return -math.Sqrt(d)
	}
	return -d
}

func TestPositiveDistances(t *testing.T) {
	c := scoreCall(14, tensor.Float32)
	c.a.Causal, c.a.Bias, c.a.Mask = true, Distance, Mask{Row: 2, Rows: 2, Cols: 2}
	c.build(sources[2].layout)
	c.putFloats(InMask, []float64{0, 0, 1, 0}, tensor.Float32)
	c.putFloats(InSlopes, []float64{-1, -0.5, -0.25, -2}, tensor.Float32)
	scale := float64(c.a.QKScale)
	c.score = func(dot float64, i int, h, r, j int64) float64 {
		return dot*scale + []float64{-1, -0.5, -0.25, -2}[h]*float64(c.position(i, r)-j)
	}
	c.check(t, c.run(t))
}

// TestMaskPlanes has a mask per sequence and head, stored in blocks of columns.
func TestMaskPlanes(t *testing.T) {
	const rows, cols = 3, 48
	for _, blocked := range []bool{false, true} {
		for _, flagged := range []bool{false, true} {
			c := scoreCall(15, tensor.BFloat16)
			c.a.Bias, c.a.ScaleBias, c.a.OneHides = MaskBias, true, flagged
			c.a.Mask = Mask{Batch: 4 * rows * cols, Head: rows * cols, Row: cols, Rows: rows, Cols: cols}
			if blocked {
				c.a.Mask.Row, c.a.Mask.Block = 16, rows*16
			}
			c.build(sources[2].layout)
			mask := make([]float64, 3*4*rows*cols)
			for i := range mask {
				mask[i] = []float64{0, 1, -0.5, -1e5, math.Inf(-1)}[c.rng.IntN(5)]
			}
			c.putFloats(InMask, mask, tensor.Float32)
			scale := float64(c.a.QKScale)
			c.score = func(dot float64, i int, h, r, j int64) float64 {
				at := (int64(i)*4+h)*rows*cols + r*cols + j
				if blocked {
					at = (int64(i)*4+h)*rows*cols + j/16*rows*16 + r*16 + j%16
				}
				m := mask[at]
				if m == -1e5 || (flagged && m == 1) {
					m = -3e38
				}
				return (dot + m) * scale
			}
			c.check(t, c.run(t))
		}
	}
}

// TestQuantisedWeights compares with weights that are rounded in float64; the
// data is such that no weight lies near a boundary of rounding.
func TestQuantisedWeights(t *testing.T) {
	keyScale, valueScale, prob := []float64{1e-4, 2e-4, 5e-5, 1e-4}, []float64{0.01, 0.02, 0.03, 0.04}, []float64{127, 100, 110, 90}
	for _, q := range []Quant{Online, Offline} {
		c := scoreCall(16, tensor.Int8)
		c.a.Quant, c.a.QKScale = q, 0.5
		c.build(sources[0].layout)
		c.putFloats(InKeyScale, keyScale, tensor.Float32)
		c.putFloats(InValueScale, valueScale, tensor.Float32)
		c.putFloats(InProbScale, prob, tensor.Float32)
		c.score = func(dot float64, _ int, h, _, _ int64) float64 { return dot * keyScale[h] * 0.5 }
		c.weigh = func(p, top float64, h int64) float64 {
			scaled, unit := p*127/top, top/127
			if q == Offline {
				scaled, unit = p*prob[h], 1
			}
			require.Greater(t, math.Abs(scaled-math.Floor(scaled)-0.5), 1e-4, "the data has a weight at a boundary of rounding")
			return math.RoundToEven(scaled) * unit * valueScale[h]
		}
		c.check(t, c.run(t))
	}
}

// TestNotANumber keeps NaN and infinite scores to their own rows.
func TestNotANumber(t *testing.T) {
	c := newCall(17, tensor.Float32, 2, 2, 8, 8, []int64{3}, []int64{40}).build(sources[2].layout)
	c.q[0][0] = math.NaN()
	c.q[0][1*16+8] = math.Inf(1)
	c.layQuery()
	got := decode(c.run(t), tensor.Float32)
	for r := range int64(3) {
		for h := range int64(2) {
			bad := r == 0 && h == 0 || r == 1 && h == 1
			for x, want := range c.reference(0, r, h) {
				g := got[c.queryAt(0, r, h, c.a.Out)+int64(x)]
				if bad {
					assert.True(t, math.IsNaN(g))
				} else {
					assert.InDelta(t, want, g, 1e-5)
				}
			}
		}
	}
}
