package attention

import (
	"goatb/kernel/attention"
	"goatb/operation"
	"goatb/tensor"
)

// params derives the kernel's parameters from descriptors that have passed the
// checks of their ranks, and checks that they agree with each other.
func (c *selfCheck) params() (attention.Params, error) {
	p := c.p
	a := attention.Params{
		Heads: int64(p.HeadNum), KeyHeads: p.keyHeads(), KeySize: c.keySize, ValueSize: c.valueSize,
		QScale: p.QScale, QKScale: p.QKScale,
		Clamp: p.ClampType == ClampMinMax, ClampScaled: p.CalcType == SelfPAEncoder, ClampMin: p.ClampMin, ClampMax: p.ClampMax,
		Batch:  c.In[c.s.seqLen].Dim(-1),
		Causal: p.MaskType != SelfMaskNone && (p.IsTriuMask == 1 || p.MaskType > SelfMaskALiBi),
		Window: int64(p.WindowSize),
		Quant:  [...]attention.Quant{QuantNone: attention.NoQuant, QuantDequantFusion: attention.NoQuant, QuantOffline: attention.Offline, QuantOnline: attention.Online}[p.QuantType],
	}
	err := c.queries(&a)
	if err == nil {
		err = c.keys(&a)
	}
	if err == nil {
		err = c.bias(&a)
	}
	if err == nil {
		err = c.factor(&a)
	}
	return a, err
}

func (c *selfCheck) queries(a *attention.Params) error {
	if c.p.InputLayout == LayoutBNSD {
		c.paddedQuery(a)
		return nil
	}
	return c.packedQuery(a)
}

func (c *selfCheck) keys(a *attention.Params) error {
	switch c.p.CalcType {
	case SelfPAEncoder:
		return c.tokenKeys(a)
	case SelfPrefixEncoder:
		return c.pagedKeys(a)
	}
	return c.cacheKeys(a)
}

// packedQuery locates query rows that follow each other: [n, heads*d],
// [n,heads,d] or [b,s,heads,d].
func (c *selfCheck) packedQuery(a *attention.Params) error {
	a.Query = attention.Strides{Row: a.Heads * a.KeySize, Head: a.KeySize}
	a.Out = attention.Strides{Row: a.Heads * a.ValueSize, Head: a.ValueSize}
	var err error
	a.Rows, err = c.tokens(c.s.query, a.Heads, a.KeySize)
	return err
}

// tokens returns the number of rows of input i, each of `heads` heads of `size`.
func (c *selfCheck) tokens(i int, heads, size int64) (int64, error) {
	d := &c.In[i]
	n, fits := d.Dim(0), d.Dim(-1) == heads*size
	if d.Rank() > 2 {
		n, fits = d.Shape.Product(0, d.Rank()-2), d.Dim(-2) == heads && d.Dim(-1) == size
	}
	if !fits {
		return 0, c.BadIn(badDim, i, "want rows of %d heads of %d, got %s", heads, size, d.Shape)
	}
	return n, nil
}

// paddedQuery locates query rows [b,heads,s,d].
func (c *selfCheck) paddedQuery(a *attention.Params) {
	q := &c.In[c.s.query]
	a.Rows = q.Dim(2)
	a.Query = attention.Strides{Row: a.KeySize, Head: a.Rows * a.KeySize, Batch: a.Heads * a.Rows * a.KeySize}
	a.Out = a.Query
}

// tokenKeys locates the keys and values of PA_ENCODER.
func (c *selfCheck) tokenKeys(a *attention.Params) error {
	a.Source = attention.Tokens
	k := &c.In[c.s.key]
	if c.p.InputLayout == LayoutBNSD {
		a.Slots = k.Dim(2)
		a.Key = attention.Strides{Row: a.KeySize, Head: a.Slots * a.KeySize, Batch: a.KeyHeads * a.Slots * a.KeySize}
		a.Value = a.Key
		return nil
	}
	a.Key = attention.Strides{Row: a.KeyHeads * a.KeySize, Head: a.KeySize}
	a.Value = attention.Strides{Row: a.KeyHeads * a.ValueSize, Head: a.ValueSize}
	var err error
	if a.Slots, err = c.tokens(c.s.key, a.KeyHeads, a.KeySize); err != nil {
		return err
	}
	if c.p.MLAVHeadSize > 0 {
		a.Value = a.Key
		return nil
	}
	_, err = c.tokens(c.s.value, a.KeyHeads, a.ValueSize)
	return err
}

// pagedKeys locates keys and values in blocks.
func (c *selfCheck) pagedKeys(a *attention.Params) error {
	a.Source = attention.Paged
	k, v := &c.In[c.s.key], &c.In[c.s.value]
	if k.Shape.With(-1, 1) != v.Shape.With(-1, 1) {
		return c.BadIn(badDim, c.s.value, "want the key cache's dimensions but the last, got %s for %s", v.Shape, k.Shape)
	}
	if a.KeySize != a.ValueSize {
		return c.BadIn(badDim, c.s.value, "want head size %d as keys and output have, got %d", a.KeySize, a.ValueSize)
	}
	a.Blocks, a.Slots, a.Columns = k.Dim(0), k.Dim(1), c.In[c.s.table].Dim(1)
	if k.Rank() == 4 && k.Dim(2) != a.KeyHeads {
		return c.BadIn(badDim, c.s.key, "want %d heads, got %s", a.KeyHeads, k.Shape)
	}
	a.Key = pagedStrides(a.Slots, a.KeyHeads, a.KeySize)
	a.Value = pagedStrides(a.Slots, a.KeyHeads, a.ValueSize)
	return nil
}

func pagedStrides(slots, heads, size int64) attention.Strides {
	return attention.Strides{Row: heads * size, Head: size, Batch: slots * heads * size}
}

// cacheKeys locates the keys and values of a contiguous cache.
func (c *selfCheck) cacheKeys(a *attention.Params) error {
	a.Source, a.Status = attention.Cache, c.p.BatchRunStatusEnable
	a.Ring = c.p.CacheType == CacheSWA
	k := &c.In[c.s.key]
	if c.p.InputLayout == LayoutBNSD {
		a.Layers, a.Slots = k.Dim(0), k.Dim(3)
		a.Key = attention.Strides{Row: a.KeySize, Head: a.Slots * a.KeySize, Batch: a.KeyHeads * a.Slots * a.KeySize}
		a.Key.Layer = a.Batch * a.Key.Batch
		a.Value = a.Key
		return nil
	}
	a.Slots = k.Dim(-2)
	if k.Rank() == 4 {
		a.Layers = k.Dim(0)
	}
	a.Key = cacheStrides(a, a.KeySize)
	a.Value = cacheStrides(a, a.ValueSize)
	if c.s.newKey == absent {
		return nil
	}
	a.NewKeys = a.Ring
	a.NewKey = attention.Strides{Row: a.Key.Row, Head: a.Key.Head}
	a.NewValue = attention.Strides{Row: a.Value.Row, Head: a.Value.Head}
	for _, x := range [...]struct {
		i    int
		size int64
	}{{c.s.newKey, a.KeySize}, {c.s.newValue, a.ValueSize}} {
		n, err := c.tokens(x.i, a.KeyHeads, x.size)
		if err != nil {
			return err
		}
		if n != a.Rows {
			return c.BadIn(badDim, x.i, "want %d rows as the query has, got %s", a.Rows, c.In[x.i].Shape)
		}
	}
	return nil
}

func cacheStrides(a *attention.Params, size int64) attention.Strides {
	s := attention.Strides{Row: a.KeyHeads * size, Head: size}
	s.Batch = a.Slots * s.Row
	s.Layer = a.Batch * s.Batch
	return s
}

// factor sets what multiplies the scale.
func (c *selfCheck) factor(a *attention.Params) error {
	i := c.s.logN
	if i == absent {
		return nil
	}
	a.Factor, a.FactorLen = attention.RowFactor, c.In[i].Dim(0)
	if c.p.CalcType != SelfDecoder {
		return nil
	}
	a.Factor = attention.BatchFactor
	if a.FactorLen != a.Batch {
		return c.BadIn(badDim, i, "want one factor for each of %d sequences, got %s", a.Batch, c.In[i].Shape)
	}
	return nil
}

// writeParams derives the parameters of the cache writer from a's.
func writeParams(a *attention.Params) attention.WriteParams {
	return attention.WriteParams{
		Batch: a.Batch, Rows: a.Rows, Slots: a.Slots, Layers: a.Layers,
		Key: a.Key, Value: a.Value, Ring: a.Ring, Status: a.Status, Window: a.Window,
	}
}

// Infer returns the output: the query's descriptor in layout BNSD and for
// PREFIX_ENCODER, otherwise its tokens with headNum heads of the values' size,
// [n, headNum*dv], [n,headNum,dv] or [b,s,headNum*dv]; quantised attention has
// type OutDataType.
func (p SelfAttention) Infer(q *operation.Query) ([]tensor.Desc, error) {
	c := selfCheck{Query: q, p: &p, s: p.ports()}
	if err := c.headSizes(); err != nil {
		return nil, err
	}
	return []tensor.Desc{p.output(&c)}, nil
}

func (p *SelfAttention) output(c *selfCheck) tensor.Desc {
	d := c.In[c.s.query]
	if p.QuantType != QuantNone {
		d.DType = p.OutDataType
	}
	if p.InputLayout == LayoutBNSD || p.CalcType == SelfPrefixEncoder {
		return d
	}
	heads := int64(p.HeadNum)
	switch d.Rank() {
	case 4:
		return d.WithShape(d.Dim(0), d.Dim(1), heads*c.valueSize)
	case 3:
		return d.WithShape(d.Dim(0), d.Dim(1), c.valueSize)
	}
	return d.WithShape(d.Dim(0), heads*c.valueSize)
}
