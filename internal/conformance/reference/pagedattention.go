package reference

import (
	"fmt"
	"math"
)

// pages is a paged cache: vector (slot, head) of a block.
type pages struct {
	v                       []float64
	blockSize, heads, width int64
	slotStride, headStride  int64
}

// pagesOf reads a cache [blocks, slots, heads, width], or [blocks, heads, slots,
// width] with headFirst, or [blocks, slots, heads*width].
func pagesOf(t *Tensor, headNum int64, headFirst bool) pages {
	s := t.Desc.Shape
	p := pages{v: t.Floats(), blockSize: s.Dim(1), heads: headNum}
	if s.Rank() == 3 {
		p.width = s.Dim(2) / headNum
	} else {
		p.heads, p.width = s.Dim(2), s.Dim(3)
	}
	p.slotStride, p.headStride = p.heads*p.width, p.width
	if headFirst {
		p.heads, p.blockSize = s.Dim(1), s.Dim(2)
		p.slotStride, p.headStride = p.width, p.blockSize*p.width
	}
	return p
}

// row returns key or value j of a sequence with the given block table.
func (p *pages) row(table []int64, j, head int64) []float64 {
	i := table[j/p.blockSize]*p.blockSize*p.heads*p.width + j%p.blockSize*p.slotStride + head*p.headStride
	return p.v[i : i+p.width]
}

// dequantise replaces every element by (x+offset)*scale of its channel; slots
// and heads lie as in [blocks, slots, heads, width].
func (p *pages) dequantise(scale, offset []float64) {
	n := int(p.heads * p.width)
	for i := range p.v {
		if offset != nil {
			p.v[i] += offset[i%n]
		}
		p.v[i] *= scale[i%n]
	}
}

// pagedParam holds the JSON parameters of PagedAttentionOperation.
type pagedParam struct {
	HeadNum, KVHeadNum                                     int64
	QKScale                                                float32
	MaskType, QuantType, CompressType, CalcType, ScaleType int
	InputLayout                                            int
	BatchRunStatusEnable, HasQuantOffset                   bool
	MLAVHeadSize                                           int64
}

// pagedCall is a call with its optional operands found.
type pagedCall struct {
	pagedParam
	q    heads
	k, v pages
	// width is the size of an output head.
	width          int64
	tables, lens   []int64
	perTable       int64
	m              mask
	running, qLens []int64
	kScale, vScale []float64
	pScale, logN   []float64
	razor          []float64
}

// read takes the operands in the order in which they come.
func (p *pagedCall) read(c *Input) {
	rest := c.In
	next := func() *Tensor {
		t := &rest[0]
		rest = rest[1:]
		return t
	}
	p.q = packed(next(), p.HeadNum)
	cacheHeads := p.KVHeadNum
	p.k = pagesOf(next(), cacheHeads, p.InputLayout == 1)
	p.v = p.k
	if p.MLAVHeadSize == 0 {
		p.v = pagesOf(next(), cacheHeads, p.InputLayout == 1)
	}
	t := next()
	p.tables, p.perTable = t.Ints(), t.Desc.Dim(1)
	p.lens = next().Ints()
	if p.MaskType != 0 {
		p.m = maskOf(next(), p.HeadNum, false)
	}
	if p.BatchRunStatusEnable {
		p.running = next().Ints()
	}
	if p.QuantType == 1 {
		var offset []float64
		scale := next().Floats()
		if p.HasQuantOffset {
			offset = next().Floats()
		}
		p.k.dequantise(scale, offset)
		scale, offset = next().Floats(), nil
		if p.HasQuantOffset {
			offset = next().Floats()
		}
		p.v.dequantise(scale, offset)
	}
	if p.CalcType == 1 {
		p.qLens = next().Ints()
	}
	if p.CompressType == 2 {
		p.razor = next().Floats()
	}
	if p.QuantType == 2 || p.QuantType == 3 {
		p.kScale, p.vScale = next().Floats(), next().Floats()
		if p.QuantType == 2 {
			p.pScale = next().Floats()
		}
	}
	if p.ScaleType == 1 {
		p.logN = next().Floats()
	}
	p.width = p.v.width
	if p.MLAVHeadSize > 0 {
		p.width = p.MLAVHeadSize
	}
}

func pagedAttention(c *Input) ([]Tensor, error) {
	var p pagedCall
	var err error
	if p.pagedParam, err = params(c, pagedParam{}); err != nil {
		return nil, err
	}
	if p.KVHeadNum == 0 {
		p.KVHeadNum = p.HeadNum
	}
	if p.MLAVHeadSize > 0 && p.QuantType != 0 {
		return nil, fmt.Errorf("mlaVHeadSize with quantType %d: %w", p.QuantType, ErrNone)
	}
	p.read(c)
	width := p.width
	d := c.In[0].Desc
	d.Shape = d.Shape.With(-1, width)
	out := make([]float64, d.Numel())
	first := int64(0)
	for b := range d.Dim(0) {
		rows := int64(1)
		if p.qLens != nil {
			if b >= int64(len(p.qLens)) {
				break
			}
			rows = p.qLens[b]
		}
		for r := range rows {
			for h := range p.HeadNum {
				p.one(out[((first+r)*p.HeadNum+h)*width:][:width], b, first, r, rows, h)
			}
		}
		first += rows
	}
	return []Tensor{OfFloats(d, out)}, nil
}

// one does head h of row r of batch b, whose rows begin at first.
func (p *pagedCall) one(out []float64, b, first, r, rows, h int64) {
	kh := h / (p.HeadNum / p.KVHeadNum)
	cacheHead, index := kh, b
	if p.CompressType != 0 {
		// Every head of a compressed cache is a batch of its own.
		cacheHead, index = 0, b*p.KVHeadNum+kh
	}
	n := p.lens[index]
	if n == 0 || p.running != nil && p.running[index] == 0 {
		return
	}
	table := p.tables[index*p.perTable : (index+1)*p.perTable]
	scale := float64(p.QKScale)
	if p.logN != nil {
		scale *= p.logN[b]
	}
	score := func(dot float64, j int64) float64 {
		if p.kScale != nil {
			dot *= p.kScale[h]
		}
		if p.razor != nil {
			dot += p.razor[table[j/p.k.blockSize]*p.k.blockSize+j%p.k.blockSize]
		}
		return dot*scale + p.maskAt(b, h, first, r, rows, n, j)
	}
	key := func(j int64) []float64 { return p.k.row(table, j, cacheHead) }
	value := func(j int64) []float64 { return p.v.row(table, j, cacheHead)[:p.width] }
	if p.kScale == nil {
		attend(out, p.q.row(first+r, h), n, key, value, score)
		return
	}
	p.attendQuantised(out, p.q.row(first+r, h), n, h, key, value, score)
}

// maskAt returns the mask of key j. Several rows per batch use the mask's last
// rows of the context, or the tokens' own rows where it has one per token.
func (p *pagedCall) maskAt(b, h, first, r, rows, n, j int64) float64 {
	if p.qLens == nil {
		return p.m.at(b, h, 0, j)
	}
	if p.MaskType == 3 {
		return p.m.at(0, h, first+r, j)
	}
	return p.m.at(b, h, n-rows+r, j)
}

// quantBlock is the number of keys whose probabilities share a scale.
const quantBlock = 128

// attendQuantised walks the keys in blocks with a running maximum and rounds
// the probabilities of a block to int8: by the block's largest (online) or by a
// given scale per head.
func (p *pagedCall) attendQuantised(out, q []float64, n, h int64, key, value func(j int64) []float64, score func(dot float64, j int64) float64) {
	top, sum := math.Inf(-1), 0.0
	for begin := int64(0); begin < n; begin += quantBlock {
		end := min(begin+quantBlock, n)
		s := make([]float64, end-begin)
		newTop := top
		for j := range s {
			dot := 0.0
			for i, k := range key(begin + int64(j)) {
				dot += q[i] * k
			}
			s[j] = score(dot, begin+int64(j))
			newTop = max(newTop, s[j])
		}
		decay := math.Exp(top - newTop)
		if math.IsInf(top, -1) {
			decay = 0
		}
		sum *= decay
		for i := range out {
			out[i] *= decay
		}
		largest := 0.0
		for j := range s {
			s[j] = math.Exp(s[j] - newTop)
			sum += s[j]
			largest = max(largest, s[j])
		}
		step := largest / 127
		if p.pScale != nil {
			step = 1 / p.pScale[h]
		}
		for j, w := range s {
			if step == 0 {
				break
			}
			w = quantise(w/step) * step * p.vScale[h]
			if p.pScale != nil {
				w /= step
			}
			for i, v := range value(begin + int64(j)) {
				out[i] += w * v
			}
		}
		top = newTop
	}
	for i := range out {
		out[i] /= sum
	}
}
