package cache

import (
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

const (
	badRank = status.ErrInvalidTensorDimNum
	badDim  = status.ErrInvalidTensorDim
)

// Check checks ranks and sizes in ATB's order.
func (p ReshapeAndCache) Check(q *operation.Query) error {
	x := p.sides()
	if err := p.checkRanks(q, &x); err != nil {
		return err
	}
	if err := p.checkSides(q, &x); err != nil {
		return err
	}
	if err := p.checkEntries(q, &x); err != nil {
		return err
	}
	if q.Stage == operation.StageInfer {
		return nil
	}
	for i, in := range x.cache {
		if q.Out[i] != q.In[in] {
			return q.BadOut(badDim, i, "want %s as the cache, got %s", q.In[in], q.Out[i])
		}
	}
	return nil
}

func (p ReshapeAndCache) checkRanks(q *operation.Query, x *sides) error {
	for _, i := range x.source {
		if err := q.InRank(badRank, i, 3); err != nil {
			return err
		}
	}
	for _, i := range x.cache {
		if err := q.InRank(badRank, i, 4); err != nil {
			return err
		}
	}
	for i := x.slots; i < len(q.In); i++ {
		if err := q.InRank(badRank, i, 1); err != nil {
			return err
		}
	}
	return nil
}

// checkSides checks key and value against each other and their caches.
func (p ReshapeAndCache) checkSides(q *operation.Query, x *sides) error {
	key, keyCache := &q.In[x.source[0]], &q.In[x.cache[0]]
	for i, in := range x.source {
		s, c := &q.In[in], &q.In[x.cache[i]]
		if s.Dim(0) != key.Dim(0) || s.Dim(1) != key.Dim(1) {
			return q.BadIn(badDim, in, "want %d tokens of %d heads as the key, got %s", key.Dim(0), key.Dim(1), s.Shape)
		}
		if err := p.checkCache(q, s, c, x.cache[i]); err != nil {
			return err
		}
		// The axis of the slots and that of the blocks hold the same numbers
		// in both caches.
		slots := 1
		if p.KVCacheCfg == KeyAndValueNZ {
			slots = 2
		}
		if c.Dim(0) != keyCache.Dim(0) || c.Dim(slots) != keyCache.Dim(slots) {
			return q.BadIn(badDim, x.cache[i], "want %d blocks of %d slots as the key cache, got %s", keyCache.Dim(0), keyCache.Dim(slots), c.Shape)
		}
	}
	return nil
}

// checkCache checks that a token's row fits a slot of its cache.
func (p ReshapeAndCache) checkCache(q *operation.Query, s, c *tensor.Desc, in int) error {
	heads, size := s.Dim(1), s.Dim(2)
	if p.CompressType != CompressNone {
		heads = 1
		if align, ok := q.Limit("compressHeadAlign"); ok && size%align != 0 {
			return q.BadIn(badDim, in, "want heads of a multiple of %d elements, got %d", align, size)
		}
		if key := q.In[0].Dim(2); size != key && p.equalSizes(q) {
			return q.BadIn(badDim, in, "want heads of %d elements as the key, got %d", key, size)
		}
	}
	if p.KVCacheCfg != KeyAndValueNZ {
		if c.Dim(2) != heads || c.Dim(3) != size {
			return q.BadIn(badDim, in, "want slots of [%d,%d], got %s", heads, size, c.Shape)
		}
		return nil
	}
	piece := int64(16)
	if c.DType.Size() == 1 {
		piece = 32
	}
	if align, ok := q.Limit("nzBlockAlign"); ok && c.Dim(2)%align != 0 {
		return q.BadIn(badDim, in, "want blocks of a multiple of %d slots, got %d", align, c.Dim(2))
	}
	if c.Dim(3) != piece || c.Dim(1)*piece != heads*size {
		return q.BadIn(badDim, in, "want slots of %d elements in pieces of %d, got %s", heads*size, piece, c.Shape)
	}
	return nil
}

// equalSizes reports whether the profile wants keys and values of one size
// with compression.
func (p ReshapeAndCache) equalSizes(q *operation.Query) bool {
	_, ok := q.Limit("compressEqualSizes")
	return ok
}

// checkEntries checks the numbers of slots, windows, lengths and offsets.
func (p ReshapeAndCache) checkEntries(q *operation.Query, x *sides) error {
	key := &q.In[x.source[0]]
	if p.CompressType == CompressNone {
		return q.InShape(badDim, x.slots, tensor.ShapeOf(key.Dim(0)))
	}
	const lengths = 6
	entries := tensor.ShapeOf(q.In[lengths].Dim(0) * key.Dim(1))
	for i := x.slots; i < len(q.In); i++ {
		if i == lengths {
			continue
		}
		if err := q.InShape(badDim, i, entries); err != nil {
			return err
		}
	}
	return nil
}
