package attention

import (
	"goatb/operation"
	"goatb/tensor"
)

// SelfAttention is scaled dot product attention of packed or padded sequences
// over their own keys, over a cache that it extends, or over a paged prefix.
//
//	S = clamp((qScale*q) . k) * qkScale + bias    q of head h, k of head h/(headNum/kvHeadNum)
//	P = softmax of S over the visible keys
//	O = P . v
//
// PA_ENCODER clamps what is scaled: S = clamp((qScale*q) . k * qkScale) + bias.
// UNDEFINED with a cache that the operation extends itself scales the bias too:
// S = (clamp((qScale*q) . k) + bias) * qkScale.
//
// # Kinds, inputs and shapes
//
// CalcType and KvcacheCfg choose the kind; n counts tokens, b sequences, T keys
// and L query rows of a sequence, dk and dv are the sizes of a head. Operands in
// brackets depend on the parameters.
//
//   - Cached (UNDEFINED, ENCODER, DECODER; KV_CACHE): q, k, v, kCache, vCache,
//     [mask], tokenOffset, seqLen, layerId, [batchStatus], [logN]. q, k and v
//     are [n, heads*d] or [b,s,heads,d]: rows of all sequences follow each other
//     without padding, seqLen[i] of sequence i, in rank 4 too. Caches are
//     [layers,b,maxSeq,kvHeads*d], with batch status [b,maxSeq,kvHeads*d] (then
//     layerId is not read). The new rows are written to positions T-L to T-1,
//     T = tokenOffset[i], and the rows attend to positions 0 to T-1.
//   - Bypass (the same calc types; KV_BYPASS): without k and v, the cache has
//     the rows already. In layout BNSD q is [b,heads,s,dk] and the caches are
//     [layers,b,kvHeads,maxSeq,d].
//   - PA_ENCODER: q, k, v, [mask], seqLen, [slopes], [logN], [qkDescale,
//     qkOffset, vDescale, vOffset, [pScale]]: every sequence attends to itself.
//     q, k and v are [n, heads*d] or [n,heads,d], in layout BNSD [b,heads,s,d].
//     seqLen is [b], or [2,b]: query lengths and key lengths. With MLAVHeadSize
//     there is no v: values are the first MLAVHeadSize columns of the keys.
//   - PREFIX_ENCODER: q, kCache, vCache, blockTables, [mask], qSeqLen, kvSeqLen,
//     [slopes]: caches are [blocks,blockSize,kvHeads,d] or [blocks,blockSize,
//     kvHeads*d], blockTables [b,columns]; the rows are the last qSeqLen[i] of
//     the kvSeqLen[i] positions. Without slopes a row has the bits that
//     PagedAttention gives it alone.
//
// Output: q's tokens with headNum heads of size dv, see Infer. Rows of no
// sequence, of sequences that batchStatus skips, and rows that see no key are 0.
//
// The lengths, layerId and batchStatus are host values.
//
// # Bias and visibility
//
// Query row r has position T-L+r.
//
//   - NORM and ALIBI add the mask's element of row r and column j. Shapes are
//     [S,S] for all, [b,S,S] (NORM) or [heads,S,S] (ALIBI), and [b,heads,S,S];
//     every leading dimension, and the rows, may be 1. IsTriuMask hides the keys
//     after a row's position, whatever the mask holds there.
//   - NORM_COMPRESS and CAUSAL show the keys up to a row's position; the
//     compressed mask stands for that and is not read.
//   - ALIBI_COMPRESS, _SQRT and _LEFT_ALIGN are causal and add slopes[head]
//     times the mask's element of position and key. Beyond its side the first
//     column of an [S,S] or [heads,S,128] mask goes on by distance, as the
//     distance d or its root with the column's sign, and the last row of a
//     left-aligned one by position.
//   - SLIDING_WINDOW_NORM and _COMPRESS show the keys 0 <= position-j <
//     WindowSize; _NORM adds the mask's element besides. A window counts the row's own
//     key; 0 means none.
//
// A mask value of -Inf hides a key: a row of nothing else is 0. Values from
// -65504 down are finite and stand for -3e38: a row of nothing else weighs all
// keys alike and gives the mean of the values. In a bf16 mask of kinds NORM and
// SLIDING_WINDOW_NORM the value 1 stands for -3e38 as well.
//
// # Other parameters
//
// ScaleType LOGN multiplies qkScale by logN[position] (PA_ENCODER) or logN[i]
// (DECODER). Quantised q, k and v are int8: S is multiplied with qkDescale[head];
// online, P is rounded to int8 with the scale 127/max(P) and O is multiplied with
// vDescale[head]*max(P)/127; offline, P is rounded with pScale[head] and O is
// multiplied with vDescale[head]. qkOffset and vOffset are not read. KernelType
// is a hint: everything is computed in f32. With CacheType SWA position j lies
// in slot j modulo maxSeq.
//
// # Types and errors
//
// q, k, v, the caches and the output have one float type (f32, f16, bf16); mask,
// slopes and logN any float type. Profile 910b takes ATB's table. Validate
// reports ErrInvalidParam; InferShape and Setup report ranks
// (ErrInvalidTensorDimNum, ErrInvalidTensorSize), dimensions
// (ErrInvalidTensorDim), and host values that the operands have no room for
// (ErrInvalidParam, a mask or logN that is too small ErrInvalidTensorDim).
//
// Source: ATB operation SelfAttention; page attention of the operation
// specification.
type SelfAttention struct {
	HeadNum              int           `json:"headNum"`
	KVHeadNum            int           `json:"kvHeadNum"`
	QScale               float32       `json:"qScale"`
	QKScale              float32       `json:"qkScale"`
	BatchRunStatusEnable bool          `json:"batchRunStatusEnable"`
	IsTriuMask           int           `json:"isTriuMask"`
	CalcType             SelfCalcType  `json:"calcType"`
	KernelType           KernelType    `json:"kernelType"`
	ClampType            ClampType     `json:"clampType"`
	ClampMin             float32       `json:"clampMin"`
	ClampMax             float32       `json:"clampMax"`
	MaskType             SelfMaskType  `json:"maskType"`
	KVCacheCfg           KVCacheConfig `json:"kvcacheCfg"`
	ScaleType            ScaleType     `json:"scaleType"`
	QuantType            QuantType     `json:"quantType"`
	OutDataType          tensor.DType  `json:"outDataType"`
	InputLayout          InputLayout   `json:"inputLayout"`
	MLAVHeadSize         int           `json:"mlaVHeadSize"`
	WindowSize           int           `json:"windowSize"`
	CacheType            CacheType     `json:"cacheType"`
}

// DefaultSelfAttention returns ATB's defaults; HeadNum must be set.
func DefaultSelfAttention() SelfAttention { return SelfAttention{QScale: 1, QKScale: 1} }

var _ operation.ValueChecker = SelfAttention{}
