package attention

import (
	"goatb/status"
	"goatb/tensor"
)

// encoder checks the ranks and dimensions of PA_ENCODER in layout BSND.
func (c *selfCheck) encoder() error {
	if err := c.encoderRanks(); err != nil {
		return err
	}
	k, v := &c.In[c.s.key], &c.In[c.s.value]
	if k.Shape.With(-1, 1) != v.Shape.With(-1, 1) {
		return c.BadIn(badDim, c.s.value, "want the key's dimensions but the last, got %s for %s", v.Shape, k.Shape)
	}
	if err := c.maskRule(); err != nil {
		return err
	}
	if i := c.s.slopes; i != absent {
		if err := c.InShape(badDim, i, tensor.ShapeOf(int64(c.p.HeadNum))); err != nil {
			return err
		}
	}
	l := &c.In[c.s.seqLen]
	return c.dim(l.Rank() == 2 && l.Dim(0) != 2, c.s.seqLen, "want [2,batch], got %s", l.Shape)
}

func (c *selfCheck) encoderRanks() error {
	s := &c.s
	if c.p.MLAVHeadSize > 0 {
		if err := firstOf(c.InRank(badSize, s.query, 2, 3, 4), c.InRank(badSize, s.key, 2, 3, 4)); err != nil {
			return err
		}
	} else if err := firstOf(
		c.InRank(badSize, s.query, 2, 3),
		c.InRank(badSize, s.key, c.In[s.query].Rank()),
		c.InRank(badSize, s.value, c.In[s.key].Rank()),
	); err != nil {
		return err
	}
	if s.slopes != absent {
		if err := c.InRank(badSize, s.slopes, 1); err != nil {
			return err
		}
	}
	return c.InRank(badRank, s.seqLen, 1, 2)
}

// maskRule checks the mask of PA_ENCODER and PREFIX_ENCODER.
func (c *selfCheck) maskRule() error {
	i := c.s.mask
	switch {
	case i == absent:
		return nil
	case c.p.MaskType.slopes():
		return c.compressedALiBi(i)
	case c.p.MaskType == SelfMaskNormCompress:
		if err := c.InRank(badSize, i, 2); err != nil {
			return err
		}
		if side, limited := c.Limit("normCompressSide"); limited {
			return c.InShape(badDim, i, tensor.ShapeOf(side, side))
		}
		return nil
	}
	return c.InRank(badSize, i, 2, 3, 4)
}

func (c *selfCheck) compressedALiBi(i int) error {
	m := &c.In[i]
	if _, limited := c.Limit("slopesHighPrecision"); limited && m.DType == tensor.Float16 && c.p.KernelType == KernelDefault {
		return c.BadIn(badParam, i, "an f16 mask of type %s needs kernelType HIGH_PRECISION, got %s", c.p.MaskType, c.p.KernelType)
	}
	switch m.Rank() {
	case 2:
		if side, limited := c.Limit("alibiCompressSide"); limited {
			return c.InShape(badDim, i, tensor.ShapeOf(side, side))
		}
		return nil
	case 3:
		if c.p.MaskType == SelfMaskALiBiCompressLeftAlign {
			return c.BadIn(badDim, i, "want rank 2 for type %s, got %s", c.p.MaskType, m.Shape)
		}
		cols, limited := c.Limit("alibiCompressColumns")
		return c.dim(limited && m.Dim(0) != int64(c.p.HeadNum) && m.Dim(2) != cols, i, "want [%d,rows,%d], got %s", c.p.HeadNum, cols, m.Shape)
	}
	return c.BadIn(badSize, i, "want rank 2 or 3, got %s", m)
}

// cache checks the ranks and dimensions of a contiguous cache in layout BSND.
func (c *selfCheck) cache() error {
	s := &c.s
	cacheRank := 4
	if c.p.BatchRunStatusEnable {
		cacheRank = 3
	}
	if err := c.InRank(badRank, s.query, 2, 4); err != nil {
		return err
	}
	if s.newKey != absent {
		if err := firstOf(c.InRank(badRank, s.newKey, 2, 4), c.InRank(badRank, s.newValue, 2, 4)); err != nil {
			return err
		}
	}
	if err := firstOf(c.InRank(badRank, s.key, cacheRank), c.InRank(badRank, s.value, cacheRank)); err != nil {
		return err
	}
	if err := c.cacheTail(badSize); err != nil {
		return err
	}
	if s.newKey != absent {
		if err := firstOf(c.cacheRow(s.newKey, s.key), c.cacheRow(s.newValue, s.value)); err != nil {
			return err
		}
	}
	k, v := &c.In[s.key], &c.In[s.value]
	if k.Shape.With(-1, 1) != v.Shape.With(-1, 1) {
		return c.BadIn(badDim, s.value, "want the key cache's dimensions but the last, got %s for %s", v.Shape, k.Shape)
	}
	return c.cacheBatch(k.Dim(cacheRank - 3))
}

// cacheTail checks the ranks of the inputs behind the caches.
func (c *selfCheck) cacheTail(maskCode status.Code) error {
	s := &c.s
	if s.mask != absent {
		if err := c.InRank(maskCode, s.mask, 2, 3, 4); err != nil {
			return err
		}
	}
	for _, i := range [...]int{s.offset, s.seqLen, s.layer, s.status} {
		if i != absent {
			if err := c.InRank(badRank, i, 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// cacheRow checks that the rows of input i are those of a cache.
func (c *selfCheck) cacheRow(i, cache int) error {
	got, want := c.In[i].Dim(-1), c.In[cache].Dim(-1)
	if c.In[i].Rank() == 4 {
		got *= c.In[i].Dim(2)
	}
	if got != want {
		return c.BadIn(badDim, i, "want rows of %d elements as the cache has, got %s", want, c.In[i].Shape)
	}
	align, limited := c.Limit("cacheRowAlign")
	return c.dim(limited && got%align != 0, i, "want rows of a multiple of %d elements, got %s", align, c.In[i].Shape)
}

// cacheBatch checks that there are lengths for every sequence of a cache.
func (c *selfCheck) cacheBatch(batch int64) error {
	for _, i := range [...]int{c.s.offset, c.s.seqLen, c.s.status} {
		if i != absent && c.In[i].Dim(0) != batch {
			return c.BadIn(badDim, i, "want [%d], the batch of the cache, got %s", batch, c.In[i].Shape)
		}
	}
	return nil
}

// prefix checks the ranks and dimensions of PREFIX_ENCODER.
func (c *selfCheck) prefix() error {
	s := &c.s
	err := firstOf(
		c.InRank(badRank, s.query, 2, 3),
		c.InRank(badRank, s.key, 3, 4),
		c.InRank(badRank, s.value, c.In[s.key].Rank()),
		c.InRank(badRank, s.table, 2),
		c.InRank(badRank, s.seqLen, 1),
		c.InRank(badRank, s.keySeqLen, 1),
	)
	if err != nil {
		return err
	}
	if s.slopes != absent {
		if err := c.InRank(badRank, s.slopes, 1); err != nil {
			return err
		}
	}
	if err := c.maskRule(); err != nil {
		return err
	}
	if err := c.prefixLimits(); err != nil {
		return err
	}
	rows := c.In[s.table].Dim(0)
	return firstOf(
		c.dim(c.In[s.seqLen].Dim(0) != rows, s.seqLen, "want [%d], the rows of the block table, got %s", rows, c.In[s.seqLen].Shape),
		c.dim(c.In[s.keySeqLen].Dim(0) != rows, s.keySeqLen, "want [%d], the rows of the block table, got %s", rows, c.In[s.keySeqLen].Shape))
}

// prefixLimits checks the profile's largest sizes of PREFIX_ENCODER.
func (c *selfCheck) prefixLimits() error {
	top, limited := c.Limit("prefixHeadSize")
	if !limited {
		return nil
	}
	align, _ := c.Limit("prefixHeadAlign")
	elements, _ := c.Limit("prefixBlockElements")
	size := c.In[c.s.query].Dim(-1)
	if c.In[c.s.query].Rank() == 2 {
		size /= int64(c.p.HeadNum)
	}
	block := c.In[c.s.key].Dim(1)
	return firstOf(
		c.dim(c.keySize > top || c.keySize%align != 0, c.s.key, "want a head size of at most %d and a multiple of %d, got %d", top, align, c.keySize),
		c.dim(size > top || size%align != 0, c.s.query, "want a head size of at most %d and a multiple of %d, got %d", top, align, size),
		c.dim(block*c.keySize > elements, c.s.key, "want at most %d elements of a head in a block, got %dx%d", elements, block, c.keySize))
}

// encoderBNSD checks the ranks and dimensions of PA_ENCODER in layout BNSD.
func (c *selfCheck) encoderBNSD() error {
	s := &c.s
	if err := firstOf(c.InRank(badRank, s.query, 4), c.InRank(badRank, s.key, 4), c.InRank(badRank, s.seqLen, 1, 2)); err != nil {
		return err
	}
	q, k, l := &c.In[s.query], &c.In[s.key], &c.In[s.seqLen]
	return firstOf(
		c.InShape(badDim, s.value, k.Shape),
		c.dim(l.Rank() == 2 && l.Dim(0) != 2, s.seqLen, "want [2,batch], got %s", l.Shape),
		c.dim(q.Dim(0) != l.Dim(-1), s.query, "want batch %d as the lengths have, got %s", l.Dim(-1), q.Shape),
		c.dim(k.Dim(0) != l.Dim(-1), s.key, "want batch %d as the lengths have, got %s", l.Dim(-1), k.Shape),
		c.dim(k.Dim(3) != q.Dim(3), s.key, "want head size %d as the query has, got %s", q.Dim(3), k.Shape),
		c.headsBNSD(q, k, 1))
}

// cacheBNSD checks the ranks and dimensions of a complete cache in layout BNSD.
func (c *selfCheck) cacheBNSD() error {
	s := &c.s
	if err := firstOf(c.InRank(badRank, s.query, 4), c.InRank(badRank, s.key, 5), c.InRank(badRank, s.value, 5), c.cacheTail(badRank)); err != nil {
		return err
	}
	q, k := &c.In[s.query], &c.In[s.key]
	return firstOf(
		c.InShape(badDim, s.value, k.Shape),
		c.dim(q.Dim(0) != k.Dim(1), s.query, "want batch %d as the cache has, got %s", k.Dim(1), q.Shape),
		c.dim(k.Dim(4) != q.Dim(3), s.key, "want head size %d as the query has, got %s", q.Dim(3), k.Shape),
		c.headsBNSD(q, k, 2),
		c.cacheBatch(k.Dim(1)))
}

// headsBNSD checks the numbers of heads in layout BNSD, those of the keys at
// dimension `at`, and sets the head sizes.
func (c *selfCheck) headsBNSD(q, k *tensor.Desc, at int) error {
	c.keySize, c.valueSize = q.Dim(3), q.Dim(3)
	top, limited := c.Limit("bnsdHeadSize")
	return firstOf(
		c.dim(q.Dim(1) != int64(c.p.HeadNum), c.s.query, "want %d heads, got %s", c.p.HeadNum, q.Shape),
		c.dim(k.Dim(at) != c.p.keyHeads(), c.s.key, "want %d heads, got %s", c.p.keyHeads(), k.Shape),
		c.dim(limited && c.keySize > top, c.s.query, "want head size at most %d, got %d", top, c.keySize))
}
