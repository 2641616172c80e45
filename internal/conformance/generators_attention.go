package conformance

import (
	"math/rand/v2"

	"goatb/tensor"
)

// attentionParam holds the JSON parameters that decide which operands an
// attention operation has.
type attentionParam struct {
	HeadNum, KVHeadNum                           int64
	CalcType, MaskType, KvcacheCfg, MLAVHeadSize int
	QuantType, CompressType, ScaleType           int
	BatchRunStatusEnable, HasQuantOffset         bool
	SeqLen                                       []int64
}

// Values of the attention parameters.
const (
	calcDecoder   = 2
	calcPAEncoder = 3
	calcPrefix    = 4

	maskNorm   = 1
	maskAlibi  = 2
	maskWindow = 7
	maskCausal = 9
)

// maskFill draws an additive mask: a bias for linear-bias types, else zeros and
// values that hide a key, never the first.
func maskFill(kind int) filler {
	if kind == maskAlibi {
		return uniform(-1, 0)
	}
	return func(rng *rand.Rand, t *Tensor) {
		cols, i := t.Desc.Dim(-1), int64(-1)
		floats(func(rng *rand.Rand) float32 {
			i++
			if i%cols != 0 && rng.IntN(4) == 0 {
				return -10000
			}
			return 0
		})(rng, t)
	}
}

// evenly gives n items to parts as evenly as can be.
func evenly(n, parts int64) []int64 {
	v := make([]int64, parts)
	for i := range v {
		v[i] = n / parts
		if int64(i) < n%parts {
			v[i]++
		}
	}
	return v
}

// tokensOf counts the rows of a packed operand.
func tokensOf(d *tensor.Desc) int64 {
	n := d.Dim(0)
	if d.Rank() == 4 {
		n *= d.Dim(1)
	}
	return n
}

// cursor walks the operands of a row in order.
type cursor struct {
	in *inputs
	at int
}

// next fills the next operand, when it is there, and returns its descriptor.
func (c *cursor) next(f filler) *tensor.Desc {
	i := c.at
	c.at++
	if i >= len(c.in.descs) || c.in.descs[i].Rank() == 0 || c.in.descs[i].Bytes() == 0 {
		return nil
	}
	if f != nil {
		c.in.fill[i] = f
	}
	return &c.in.descs[i]
}

// selfAttentionData draws lengths that fit the operands.
func selfAttentionData(in *inputs, _ []fill) {
	in.ownOutputs = true
	p := decodeParam(in, attentionParam{})
	unit := uniform(-1, 1)
	c := &cursor{in: in}
	q := c.next(unit)
	if q == nil {
		return
	}
	switch {
	case p.CalcType == calcPAEncoder:
		encoderData(c, &p, q)
	case p.CalcType == calcPrefix:
		prefixData(c, &p, q)
	default:
		cachedData(c, &p, q)
	}
}

func encoderData(c *cursor, p *attentionParam, q *tensor.Desc) {
	c.next(uniform(-1, 1))
	if p.MLAVHeadSize == 0 {
		c.next(uniform(-1, 1))
	}
	if p.MaskType != 0 && p.MaskType != maskCausal {
		c.next(maskFill(p.MaskType))
	}
	lens := c.next(nil)
	if lens == nil {
		return
	}
	values := p.SeqLen
	if len(values) == 0 {
		values = evenly(tokensOf(q), lens.Dim(-1))
	}
	c.in.fill[c.at-1] = integers(values)
}

func prefixData(c *cursor, p *attentionParam, q *tensor.Desc) {
	k := c.next(uniform(-1, 1))
	c.next(uniform(-1, 1))
	table := c.next(nil)
	if k == nil || table == nil || table.Rank() != 2 {
		return
	}
	c.in.fill[c.at-1] = uniform(0, float64(k.Dim(0)))
	if p.MaskType != maskCausal {
		c.next(maskFill(p.MaskType))
	}
	batch := table.Dim(0)
	lens := evenly(tokensOf(q), batch)
	kv := make([]int64, batch)
	for i := range kv {
		kv[i] = max(lens[i], table.Dim(1)*k.Dim(1)/2)
	}
	c.next(integers(lens))
	c.next(integers(kv))
}

// cachedShapes replaces the operands of a row with caches and new keys by small
// ones that fit together: such rows state shapes that their heads do not divide.
func cachedShapes(in *inputs, p *attentionParam) {
	const layers, batch, maxSeq, width = 4, 3, 10, 8
	const tokens = batch * 3
	hidden, kvHidden := p.HeadNum*width, p.KVHeadNum*width
	if p.KVHeadNum == 0 {
		kvHidden = hidden
	}
	shapes := []tensor.Shape{
		tensor.ShapeOf(tokens, hidden), tensor.ShapeOf(tokens, kvHidden), tensor.ShapeOf(tokens, kvHidden),
		tensor.ShapeOf(layers, batch, maxSeq, kvHidden), tensor.ShapeOf(layers, batch, maxSeq, kvHidden),
		tensor.ShapeOf(batch, maxSeq, maxSeq), tensor.ShapeOf(batch), tensor.ShapeOf(batch),
	}
	for i, s := range shapes {
		in.descs[i].Shape = s
	}
}

func cachedData(c *cursor, p *attentionParam, q *tensor.Desc) {
	if c.in.succeeds && p.KvcacheCfg == 0 && p.MaskType == maskNorm && len(c.in.descs) == 9 {
		cachedShapes(c.in, p)
	}
	if p.KvcacheCfg == 0 {
		c.next(uniform(-1, 1))
		c.next(uniform(-1, 1))
	}
	k := c.next(uniform(-1, 1))
	c.next(uniform(-1, 1))
	room := int64(1)
	if k != nil && k.Rank() >= 3 {
		room = k.Dim(-2)
	}
	if p.MaskType != 0 && p.MaskType != maskCausal && !(p.CalcType == calcDecoder && p.MaskType == maskWindow) {
		if m := c.next(maskFill(p.MaskType)); m != nil {
			room = min(room, m.Dim(-1))
		}
	}
	batch := int64(1)
	if c.at < len(c.in.descs) && c.in.descs[c.at].Rank() == 1 {
		batch = c.in.descs[c.at].Dim(0)
	}
	lens := evenly(tokensOf(q), batch)
	total := make([]int64, batch)
	for i := range total {
		total[i] = min(lens[i]+int64(i)+room/2, room)
	}
	c.next(integers(total))
	c.next(integers(lens))
	c.next(constant(0))
	if p.BatchRunStatusEnable {
		c.next(constant(1))
	}
}

// pagedAttentionData draws block tables and context lengths that fit the cache
// and the mask.
func pagedAttentionData(in *inputs, _ []fill) {
	p := decodeParam(in, attentionParam{})
	unit := uniform(-1, 1)
	if p.QuantType == 2 || p.QuantType == 3 {
		unit = uniform(-6, 6)
	}
	c := &cursor{in: in}
	q := c.next(unit)
	cacheFill := unit
	if p.QuantType != 0 {
		cacheFill = uniform(-6, 6)
	}
	k := c.next(cacheFill)
	if p.MLAVHeadSize == 0 {
		c.next(cacheFill)
	}
	if q == nil || k == nil || k.Rank() != 4 {
		return
	}
	table := c.next(uniform(0, float64(k.Dim(0))))
	lens := c.at
	c.next(nil)
	if table == nil || table.Rank() != 2 || lens >= len(in.descs) {
		return
	}
	blockSize := decodeBlockSize(in, k)
	room := table.Dim(1) * blockSize
	if p.MaskType != 0 {
		if m := c.next(maskFill(p.MaskType)); m != nil {
			room = min(room, m.Dim(-1))
		}
	}
	contexts := make([]int64, max(in.descs[lens].Numel(), 1))
	for i := range contexts {
		contexts[i] = max(room-int64(i)*max(room/16, 1), room/2, 1)
	}
	in.fill[lens] = integers(contexts)
	pagedOptions(c, &p, q, int64(len(contexts)))
}

// decodeBlockSize returns the slots of a block in either layout.
func decodeBlockSize(in *inputs, k *tensor.Desc) int64 {
	if decodeParam(in, struct{ InputLayout int }{}).InputLayout == 1 {
		return k.Dim(2)
	}
	return k.Dim(1)
}

// pagedOptions fills the operands behind the mask.
func pagedOptions(c *cursor, p *attentionParam, q *tensor.Desc, batch int64) {
	if p.BatchRunStatusEnable {
		c.next(integers([]int64{1, 0, 1}))
	}
	if p.QuantType == 1 {
		for range 2 {
			c.next(uniform(0.01, 0.2))
			if p.HasQuantOffset {
				c.next(uniform(-5, 5))
			}
		}
	}
	if p.CalcType == 1 {
		c.next(integers(evenly(q.Dim(0), batch)))
	}
	if p.CompressType == 2 {
		c.next(uniform(-1, 1))
	}
	if p.QuantType == 2 || p.QuantType == 3 {
		c.next(uniform(0.01, 0.05))
		c.next(uniform(0.01, 0.05))
		if p.QuantType == 2 {
			c.next(uniform(100, 127))
		}
	}
	if p.ScaleType == 1 {
		c.next(uniform(0.5, 1.5))
	}
}
