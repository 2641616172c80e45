package attention

// PagedMaskType is the kind of a paged attention's mask. Its JSON form is
// ATB's number.
type PagedMaskType int

// Masks of a paged attention.
const (
	PagedMaskNone PagedMaskType = iota
	// PagedMaskNorm has a row per sequence, with SPEC a row per position.
	PagedMaskNorm
	// PagedMaskALiBi has a row per sequence and head.
	PagedMaskALiBi
	// PagedMaskSpec has a row per query row.
	PagedMaskSpec
	// PagedMaskFree and PagedMaskNormCompress exist on Ascend 310P only and
	// are refused.
	PagedMaskFree
	PagedMaskNormCompress
)

// String returns ATB's name of the mask.
func (m PagedMaskType) String() string {
	return enumName(int(m), "UNDEFINED", "NORM", "ALIBI", "SPEC", "MASK_FREE", "NORM_COMPRESS")
}

// PagedCalcType tells how many query rows a sequence has. Its JSON form is
// ATB's number.
type PagedCalcType int

// Kinds of paged attention.
const (
	// PagedCalcUndefined has one query row per sequence.
	PagedCalcUndefined PagedCalcType = iota
	// PagedCalcSpec has qSeqLens query rows per sequence, its last positions.
	PagedCalcSpec
)

// String returns ATB's name of the kind.
func (c PagedCalcType) String() string { return enumName(int(c), "UNDEFINED", "SPEC") }

// PagedCompressType tells whether kv heads have contexts of their own. Its
// JSON form is ATB's number.
type PagedCompressType int

// Compressions of a paged cache.
const (
	PagedCompressNone PagedCompressType = iota
	// PagedCompressKVHead has a block table row and a context length per
	// sequence and kv head.
	PagedCompressKVHead
	// PagedCompressKVHeadRope is PagedCompressKVHead with an offset per cache
	// slot that is added to the raw score.
	PagedCompressKVHeadRope
)

// String returns ATB's name of the compression.
func (c PagedCompressType) String() string {
	return enumName(int(c), "UNDEFINED", "KVHEAD", "KVHEAD_ROPE")
}
