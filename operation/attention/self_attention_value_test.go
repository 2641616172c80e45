package attention

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/operation"
	"goatb/operation/optest"
	"goatb/tensor"
)

// checkCaches checks that the new rows, and nothing else, were written.
func (d *selfData) checkCaches(t testing.TB, res *optest.Result) {
	t.Helper()
	p := d.spec.ports()
	for i := range d.in {
		want := d.data[i]
		switch {
		case i == p.key && p.newKey != absent:
			want = encode(d.cacheRows(d.k, d.dk, true), d.dtype)
		case i == p.value && p.newValue != absent:
			want = encode(d.cacheRows(d.v, d.dv, true), d.dtype)
		}
		assert.Equal(t, want, res.In[i], "input %d after the run", i)
	}
}

// TestSelfAttentionMatrix has a value test for every combination that can run.
func TestSelfAttentionMatrix(t *testing.T) {
	n := 0
	for c := range Matrix() {
		n++
		t.Run(c.String(), func(t *testing.T) {
			for s, dtype := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
				d := newSelfData(c.Spec(4, 2), uint64(n*8+s))
				d.dtype, d.maskT = dtype, dtype
				if c.QuantType != QuantNone && dtype == tensor.Float32 {
					continue
				}
				if c.QuantType != QuantNone {
					d.spec.OutDataType = dtype
				}
				if c.MaskType == SelfMaskALiBi {
					d.lead = "h"
				}
				d.spec.QScale, d.spec.QKScale = 1, 0.6
				if c.CalcType != SelfPrefixEncoder {
					d.spec.QScale = 0.8
				}
				d.build()
				got, res := d.run(t, operation.Native())
				d.check(t, got)
				d.checkCaches(t, &res)
			}
		})
	}
	assert.Greater(t, n, 170)
}

// TestMatrixIsWhatCreateAccepts compares the matrix with the cross product.
func TestMatrixIsWhatCreateAccepts(t *testing.T) {
	all := slices.Collect(Matrix())
	for i := range matrixSize() {
		c := combination(i)
		accepted := c.Spec(2, 1).Validate() == nil
		if slices.Contains(all, c) {
			require.True(t, accepted, "%s", c)
			continue
		}
		cached := c.CalcType != SelfPAEncoder && c.CalcType != SelfPrefixEncoder
		if accepted {
			require.True(t, c.BatchStatus && !cached || c.ScaleType == ScaleLogN && cached && c.CalcType != SelfDecoder, "%s is accepted and not in the matrix", c)
		}
	}
	seen := map[Combination]bool{}
	for _, c := range all {
		require.False(t, seen[c], "%s comes twice", c)
		seen[c] = true
	}
}

// randomData draws shapes, lengths and options for a combination.
func randomData(c Combination, seed uint64) *selfData {
	rng := rand.New(rand.NewPCG(seed, 7))
	heads := [][2]int{{1, 1}, {3, 1}, {4, 4}, {6, 2}, {2, 0}}[rng.IntN(5)]
	p := c.Spec(heads[0], heads[1])
	if c.MaskType.window() {
		p.WindowSize = []int{1, 2, 7, 40, 500}[rng.IntN(5)]
	}
	if c.MLA {
		p.MLAVHeadSize = []int{1, 5, 64}[rng.IntN(3)]
	}
	if c.CalcType != SelfPrefixEncoder {
		p.QScale = 0.5 + rng.Float32()
		if c.MaskType != SelfMaskNone {
			p.IsTriuMask = rng.IntN(2)
		}
		if !c.MaskType.window() && !c.MLA && rng.IntN(2) == 0 {
			p.ClampType, p.ClampMin, p.ClampMax = ClampMinMax, -0.3, 0.4
		}
	}
	d := newSelfData(p, seed)
	d.dk = []int64{1, 8, 72, 80, 100, 128}[rng.IntN(6)]
	d.dv = d.dk
	if c.MLA {
		d.dv = int64(p.MLAVHeadSize)
		d.dk = d.dv + rng.Int64N(70)
	} else if c.InputLayout == LayoutBSND && c.CalcType != SelfPrefixEncoder {
		d.dv = []int64{1, 16, 33, d.dk}[rng.IntN(4)]
	}
	d.spec.QKScale = float32(1 / float64(d.dk))
	d.drawLengths(rng, c)
	d.drawShapes(rng, c)
	return d
}

func (d *selfData) drawLengths(rng *rand.Rand, c Combination) {
	n := 1 + rng.IntN(4)
	d.rows, d.keys, d.status = nil, nil, nil
	single := rng.IntN(3) == 0
	for range n {
		l := []int64{0, 1, 2, 17, 40}[rng.IntN(5)]
		if single {
			l = rng.Int64N(2)
		}
		k := l
		if c.CalcType != SelfPAEncoder {
			k += []int64{0, 1, 30, 129}[rng.IntN(4)]
		}
		d.rows, d.keys, d.status = append(d.rows, l), append(d.keys, k), append(d.status, int32(rng.IntN(2)))
	}
	if c.CalcType == SelfPAEncoder && rng.IntN(3) == 0 {
		d.pair = true
		for i := range d.keys {
			d.keys[i] = rng.Int64N(60)
		}
		if c.ScaleType == ScaleLogN || c.MaskType.slopes() {
			for i := range d.keys {
				d.keys[i] += d.rows[i]
			}
		}
	}
}

func (d *selfData) drawShapes(rng *rand.Rand, c Combination) {
	leads := []string{"", "b", "bh", "b1", "11"}
	if c.MaskType == SelfMaskALiBi {
		leads = []string{"", "h", "bh", "b1", "1h"}
	}
	d.lead = leads[rng.IntN(len(leads))]
	d.oneRow = rng.IntN(4) == 0
	d.maskT = []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16}[rng.IntN(3)]
	d.side = []int64{2, 5, 31, 300}[rng.IntN(4)]
	d.perHead = c.MaskType != SelfMaskALiBiCompressLeftAlign && rng.IntN(3) == 0
	if c.CalcType == SelfPAEncoder && c.InputLayout == LayoutBSND && rng.IntN(2) == 0 {
		d.queryRank = 3
	}
	if c.CalcType != SelfPAEncoder && c.CalcType != SelfPrefixEncoder && rng.IntN(2) == 0 {
		d.queryRank = 4
	}
}

// TestSelfAttentionRandom runs every combination over random shapes and options.
func TestSelfAttentionRandom(t *testing.T) {
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	n := uint64(0)
	for c := range Matrix() {
		t.Run(c.String(), func(t *testing.T) {
			for range rounds {
				n++
				d := randomData(c, 1000+n)
				d.build()
				got, res := d.run(t, operation.Native())
				d.check(t, got)
				d.checkCaches(t, &res)
			}
		})
	}
}
