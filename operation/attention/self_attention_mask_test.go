package attention

import (
	"math"
	"slices"

	"goatb/tensor"
)

// planeDims returns the dimensions of a plain mask: batch, heads, rows, columns.
func (d *selfData) planeDims() (batch, heads, rows, cols int64) {
	batch, heads = 1, 1
	rows, cols = slices.Max(d.rows)+1-d.short, slices.Max(d.keys)+1-d.short
	if d.oneRow {
		rows = 1
	}
	switch d.lead {
	case "b", "b1":
		batch = d.batch()
	case "h", "1h":
		heads = d.heads()
	case "bh":
		batch, heads = d.batch(), d.heads()
	}
	return batch, heads, rows, cols
}

// layMask draws the mask. Columns past every length hold NaN, and so do masks
// that are not read.
func (d *selfData) layMask(p *selfPorts) {
	if p.mask == absent {
		return
	}
	switch d.spec.MaskType {
	case SelfMaskNorm, SelfMaskALiBi, SelfMaskSlidingWindowNorm:
		b, h, rows, cols := d.planeDims()
		d.mask = make([]float64, b*h*rows*cols)
		for i := range d.mask {
			d.mask[i] = round(d.maskValue(d.rng), d.maskT)
			if int64(i)%cols >= slices.Max(d.keys) {
				d.mask[i] = math.NaN()
			}
		}
		desc := map[string]tensor.Desc{
			"": tensor.Of(d.maskT, rows, cols), "b": tensor.Of(d.maskT, b, rows, cols), "h": tensor.Of(d.maskT, h, rows, cols),
			"bh": tensor.Of(d.maskT, b, h, rows, cols), "b1": tensor.Of(d.maskT, b, 1, rows, cols),
			"11": tensor.Of(d.maskT, 1, 1, rows, cols), "1h": tensor.Of(d.maskT, 1, h, rows, cols),
		}[d.lead]
		d.put(p.mask, desc, d.mask)
	case SelfMaskALiBiCompress, SelfMaskALiBiCompressSqrt, SelfMaskALiBiCompressLeftAlign:
		d.layCompressed(p)
	case SelfMaskSlidingWindowCompress:
		d.put(p.mask, tensor.Of(d.maskT, 512, 512), slices.Repeat([]float64{math.NaN()}, 512*512))
	default:
		d.put(p.mask, tensor.Of(d.maskT, 128, 128), slices.Repeat([]float64{math.NaN()}, 128*128))
	}
}

// layCompressed draws a mask of distances or positions whose elements differ
// from what goes on beyond its side; what lies above the diagonal must not be
// read.
func (d *selfData) layCompressed(p *selfPorts) {
	heads, rows, cols := int64(1), d.side, d.side
	desc := tensor.Of(d.maskT, rows, cols)
	if d.perHead {
		heads, cols = d.heads(), max(d.side-1, 1)
		desc = tensor.Of(d.maskT, heads, rows, cols)
	}
	d.mask = make([]float64, heads*rows*cols)
	for i := range d.mask {
		r, c := int64(i)/cols%rows, int64(i)%cols
		switch {
		case c > r:
			d.mask[i] = math.NaN()
		case d.spec.MaskType == SelfMaskALiBiCompressLeftAlign:
			d.mask[i] = round(float64(c)*(1+0.25*float64(r%3)), d.maskT)
		case c > 0:
			d.mask[i] = round(-2*d.rng.Float64(), d.maskT)
		case d.spec.MaskType == SelfMaskALiBiCompressSqrt:
			d.mask[i] = round(-math.Sqrt(float64(r))*1.25, d.maskT)
		default:
			d.mask[i] = round(-1.25*float64(r), d.maskT)
		}
	}
	d.put(p.mask, desc, d.mask)
}

func (d *selfData) layFactors(p *selfPorts) {
	random := func(n int64, t tensor.DType, low, high float64) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = round(low+(high-low)*d.rng.Float64(), t)
		}
		return v
	}
	if p.slopes != absent {
		d.slopes = random(d.heads(), tensor.Float32, 0.1, 0.5)
		d.put(p.slopes, tensor.Of(tensor.Float32, d.heads()), d.slopes)
	}
	if p.logN != absent {
		n := slices.Max(d.keys) + 1
		if d.spec.CalcType == SelfDecoder {
			n = d.batch()
		}
		d.logN = random(n, tensor.Float32, 0.5, 1.5)
		d.put(p.logN, tensor.Of(tensor.Float32, n), d.logN)
	}
	if p.keyScale == absent {
		return
	}
	perHead, offsets := tensor.Of(tensor.Float32, d.heads()), tensor.Of(tensor.Int32, d.heads())
	d.keyScale, d.valueScale = random(d.heads(), tensor.Float32, 1e-3, 4e-3), random(d.heads(), tensor.Float32, 0.01, 0.05)
	d.put(p.keyScale, perHead, d.keyScale)
	d.put(p.valueScale, perHead, d.valueScale)
	d.putInts(p.keyOffset, offsets, make([]int64, d.heads()))
	d.putInts(p.valueOffset, offsets, make([]int64, d.heads()))
	if p.pScale != absent {
		d.pScale = random(d.heads(), tensor.Float32, 100, 127)
		d.put(p.pScale, perHead, d.pScale)
	}
}

// visible reports whether the query at position pos sees key j.
func (d *selfData) visible(pos, j int64) bool {
	m := d.spec.MaskType
	causal := m >= SelfMaskNormCompress || (m != SelfMaskNone && d.spec.IsTriuMask == 1)
	if causal && j > pos {
		return false
	}
	return !m.window() || pos-j < int64(d.spec.WindowSize)
}

// bias is what the mask adds to the score of query row r of head h with key j
// of sequence i.
func (d *selfData) bias(i int, h, r, j int64) float64 {
	if d.mask == nil {
		return 0
	}
	switch d.spec.MaskType {
	case SelfMaskALiBiCompress, SelfMaskALiBiCompressSqrt, SelfMaskALiBiCompressLeftAlign:
		return d.slopes[h] * d.compressed(h, d.keys[i]-d.rows[i]+r, j)
	}
	batch, heads, rows, cols := d.planeDims()
	v := d.mask[((int64(i)%batch*heads+h%heads)*rows+r%rows)*cols+j]
	flag := d.maskT == tensor.BFloat16 && d.spec.MaskType != SelfMaskALiBi && v == 1
	if flag || (v <= -65504 && !math.IsInf(v, -1)) {
		return -3e38
	}
	return v
}

// compressed is the bias of slope 1 at a position for key j.
func (d *selfData) compressed(h, pos, j int64) float64 {
	n, cols := d.side, d.side
	plane := d.mask
	if d.perHead {
		cols = max(d.side-1, 1)
		plane = d.mask[h*n*cols : (h+1)*n*cols]
	}
	at := func(r, c int64) float64 { return plane[r*cols+c] }
	dist := pos - j
	switch {
	case d.spec.MaskType == SelfMaskALiBiCompressLeftAlign && j >= n:
		return at(n-1, n-1) + float64(j-n+1)
	case d.spec.MaskType == SelfMaskALiBiCompressLeftAlign:
		return at(min(pos, n-1), j)
	case pos < n && j < cols:
		return at(pos, j)
	case dist < n:
		return at(dist, 0)
	case d.spec.MaskType == SelfMaskALiBiCompressSqrt:
		return -math.Sqrt(float64(dist))
	}
	return -float64(dist)
}
