package reference

import (
	"fmt"

	"goatb/tensor"
)

// selfParam holds the JSON parameters of SelfAttentionOperation.
type selfParam struct {
	HeadNum, KVHeadNum                int64
	QScale, QKScale                   float32
	CalcType, MaskType, KvcacheCfg    int
	ClampType                         int
	ClampMin, ClampMax                float32
	ScaleType, QuantType, InputLayout int
	MLAVHeadSize, WindowSize          int64
	BatchRunStatusEnable              bool
}

// Calculation and mask types with the meaning that ATB gives them.
const (
	calcPAEncoder = 3
	calcPrefix    = 4

	maskNone     = 0
	maskNorm     = 1
	maskAlibi    = 2
	maskCompress = 3
	maskWindow   = 7
	maskWindowC  = 8
	maskCausal   = 9
)

func selfAttention(c *Input) ([]Tensor, error) {
	p, err := params(c, selfParam{QScale: 1, QKScale: 1})
	if err != nil {
		return nil, err
	}
	if p.KVHeadNum == 0 {
		p.KVHeadNum = p.HeadNum
	}
	switch {
	case p.QuantType != 0, p.InputLayout != 0, p.ScaleType != 0, p.MaskType >= 4 && p.MaskType <= 6:
		return nil, fmt.Errorf("quantType %d, inputLayout %d, scaleType %d, maskType %d: %w", p.QuantType, p.InputLayout, p.ScaleType, p.MaskType, ErrNone)
	case p.CalcType == calcPAEncoder:
		return encoder(c, p), nil
	case p.CalcType == calcPrefix:
		return prefix(c, p), nil
	}
	return cached(c, p), nil
}

// visible says whether key j is seen by the query at position i under the mask
// types that have no mask tensor of their own or stand for a rule.
func (p *selfParam) visible(i, j int64) bool {
	switch p.MaskType {
	case maskCompress, maskCausal:
		return j <= i
	case maskWindow, maskWindowC:
		return j <= i && i-j < p.WindowSize
	}
	return true
}

// masked reads the mask tensor at position at where the mask type has one to
// add, and returns the position behind it.
func (p *selfParam) masked(c *Input, at int, there bool) (mask, int) {
	if !there {
		return mask{}, at
	}
	if p.MaskType != maskNorm && p.MaskType != maskAlibi {
		return mask{}, at + 1
	}
	return maskOf(&c.In[at], p.HeadNum, p.MaskType == maskAlibi), at + 1
}

// clamped applies the clamp of the scores.
func (p *selfParam) clamped(s float64) float64 {
	if p.ClampType == 1 {
		return min(max(s, float64(p.ClampMin)), float64(p.ClampMax))
	}
	return s
}

// encoder does every sequence of a packed batch by itself.
func encoder(c *Input, p selfParam) []Tensor {
	next := 3
	q, k := packed(&c.In[0], p.HeadNum), packed(&c.In[1], p.KVHeadNum)
	v := k
	if p.MLAVHeadSize > 0 {
		v.width, next = p.MLAVHeadSize, 2
	} else {
		v = packed(&c.In[2], p.KVHeadNum)
	}
	m, next := p.masked(c, next, p.MaskType != maskNone && p.MaskType != maskCausal)
	lens := c.In[next].Ints()
	kvLens := lens
	if c.In[next].Desc.Rank() == 2 {
		n := len(lens) / 2
		lens, kvLens = lens[:n], lens[n:]
	}
	out := outputOf(c, p, v.width)
	o := out.Floats()
	qAt, kvAt := int64(0), int64(0)
	for b, n := range lens {
		kv := kvLens[b]
		for r := range n {
			for h := range p.HeadNum {
				kh := h / (p.HeadNum / p.KVHeadNum)
				attend(o[((qAt+r)*p.HeadNum+h)*v.width:][:v.width], q.row(qAt+r, h), kv,
					func(j int64) []float64 { return k.row(kvAt+j, kh) },
					func(j int64) []float64 { return v.row(kvAt+j, kh) },
					func(dot float64, j int64) float64 {
						if !p.visible(r+kv-n, j) {
							return hidden
						}
						return p.clamped(dot*float64(p.QKScale)) + m.at(int64(b), h, r, j)
					})
			}
		}
		qAt, kvAt = qAt+n, kvAt+kv
	}
	return []Tensor{OfFloats(out.Desc, o)}
}

// outputOf makes a zero output [tokens, headNum*width], or of rank 3 where the
// query has rank 3 and [b, s, headNum*width] where it has rank 4.
func outputOf(c *Input, p selfParam, width int64) Tensor {
	d := c.In[0].Desc
	d.DType = tensor.Float64
	switch d.Rank() {
	case 2:
		d.Shape = d.Shape.With(1, p.HeadNum*width)
	case 3:
		d.Shape = d.Shape.With(2, width)
	default:
		d.Shape = tensor.ShapeOf(d.Dim(0), d.Dim(1), p.HeadNum*width)
	}
	return Zeros(d)
}

// cached does attention over a cache [layers, batch, maxSeq, heads*width]; with
// new keys and values given, these come first into the cache.
func cached(c *Input, p selfParam) []Tensor {
	bypass := p.KvcacheCfg == 1
	at := 3
	if bypass {
		at = 1
	}
	kCache, vCache := &c.In[at], &c.In[at+1]
	m, at := p.masked(c, at+2, p.MaskType != maskNone && p.MaskType != maskCausal && !(p.CalcType == 2 && p.MaskType == maskWindow))
	total, lens, layer := c.In[at].Ints(), c.In[at+1].Ints(), c.In[at+2].Ints()[0]
	running := func(b int) bool { return !p.BatchRunStatusEnable || c.In[at+3].Ints()[b] != 0 }
	q, k, v := packed(&c.In[0], p.HeadNum), kCache.Floats(), vCache.Floats()
	s := kCache.Desc.Shape
	batch, maxSeq := s.Dim(-3), s.Dim(-2)
	kWidth, vWidth := s.Dim(-1)/p.KVHeadNum, vCache.Desc.Dim(-1)/p.KVHeadNum
	row := func(b int, t int64) int64 { return (layer*batch+int64(b))*maxSeq + t }
	out := outputOf(c, p, vWidth)
	o := out.Floats()
	first := int64(0)
	for b, n := range lens {
		if !bypass {
			for r := range n {
				copyRow(k, row(b, total[b]-n+r), &c.In[1], first+r)
				copyRow(v, row(b, total[b]-n+r), &c.In[2], first+r)
			}
		}
		for r := range n {
			for h := range p.HeadNum {
				if !running(b) {
					continue
				}
				kh := h / (p.HeadNum / p.KVHeadNum)
				attend(o[((first+r)*p.HeadNum+h)*vWidth:][:vWidth], q.row(first+r, h), total[b],
					func(j int64) []float64 { return k[(row(b, j)*p.KVHeadNum+kh)*kWidth:][:kWidth] },
					func(j int64) []float64 { return v[(row(b, j)*p.KVHeadNum+kh)*vWidth:][:vWidth] },
					func(dot float64, j int64) float64 {
						if !p.visible(total[b]-n+r, j) {
							return hidden
						}
						s := p.clamped(dot * float64(p.QScale))
						if p.CalcType == 0 && !bypass {
							return (s + m.at(int64(b), h, r, j)) * float64(p.QKScale)
						}
						return s*float64(p.QKScale) + m.at(int64(b), h, r, j)
					})
			}
		}
		first += n
	}
	return []Tensor{OfFloats(out.Desc, o)}
}

// copyRow writes a token of a packed tensor over a row of a cache.
func copyRow(cache []float64, row int64, t *Tensor, token int64) {
	x := packed(t, 1)
	copy(cache[row*x.width:(row+1)*x.width], x.row(token, 0))
}

// prefix does causal attention of the last rows of every sequence over paged
// keys and values.
func prefix(c *Input, p selfParam) []Tensor {
	tables := c.In[3].Ints()
	_, at := p.masked(c, 4, p.MaskType != maskCausal)
	qLens, kvLens := c.In[at].Ints(), c.In[at+1].Ints()
	q := packed(&c.In[0], p.HeadNum)
	k, v := pagesOf(&c.In[1], p.KVHeadNum, false), pagesOf(&c.In[2], p.KVHeadNum, false)
	per := c.In[3].Desc.Dim(1)
	out := outputOf(c, p, v.width)
	o := out.Floats()
	first := int64(0)
	for b, n := range qLens {
		table, kv := tables[int64(b)*per:int64(b+1)*per], kvLens[b]
		for r := range n {
			for h := range p.HeadNum {
				kh := h / (p.HeadNum / p.KVHeadNum)
				attend(o[((first+r)*p.HeadNum+h)*v.width:][:v.width], q.row(first+r, h), kv-n+r+1,
					func(j int64) []float64 { return k.row(table, j, kh) },
					func(j int64) []float64 { return v.row(table, j, kh) },
					func(dot float64, _ int64) float64 { return dot * float64(p.QKScale) })
			}
		}
		first += n
	}
	return []Tensor{OfFloats(out.Desc, o)}
}
