package attention

import (
	"goatb/operation"
	"goatb/tensor"
)

// PagedAttention is attention of new tokens over a paged cache of keys and
// values.
//
//	S = (q . k) * qkScale * logN[i] + mask      q of head h, k of head h/(headNum/kvHeadNum)
//	O = softmax(S) . v
//
// Sequence i attends to its first contextLens[i] positions; position j lies in
// block blockTables[i][j/bs], slot j%bs. Scores, softmax and sums are float32,
// the output is rounded once. A context of 0, a sequence that batchRunStatus
// skips and a row that sees no position give zeros. Masks are added as they
// are: a row that a finite value hides as a whole is the softmax of what is
// left of its scores, and only -Inf hides for certain.
//
// # Inputs
//
// n is the number of query rows, b that of sequences; n = b without SPEC.
//
//	query           [n, headNum, dk]         f32 f16 bf16, int8 with QuantOffline and QuantOnline
//	kCache          [blocks, bs, kvHeadNum, dk], in layout BNSD [blocks, kvHeadNum, bs, dk]
//	                                         as query; int8 with QuantDequantFusion
//	vCache          as kCache, last size dv; not with MLAVHeadSize
//	blockTables     [b, columns]             int32
//	contextLens     [b]                      int32, host values
//	mask            with MaskType            f32 f16 bf16
//	batchRunStatus  [b]                      int32, host values: 0 skips the sequence
//	kDescale        [kvHeadNum*dk]           f32 or int64 (f32 bits), QuantDequantFusion
//	kOffset         [kvHeadNum*dk]           int32, with HasQuantOffset
//	vDescale        [kvHeadNum*dv]           as kDescale
//	vOffset         [kvHeadNum*dv]           as kOffset
//	qSeqLens        [b]                      int32, host values, SPEC
//	razorOffset     [blocks, bs]             f32, KVHEAD_ROPE
//	kDescale        [headNum]                f32, QuantOffline and QuantOnline
//	vDescale        [headNum]                f32, QuantOffline and QuantOnline
//	pScale          [headNum]                f32, QuantOffline
//	logN            [b]                      f32, ScaleLogN
//
// Output: [n, headNum, dv] of query's type, of OutDataType with QuantOffline and
// QuantOnline.
//
// # Variants
//
//   - Masks. NORM and ALIBI: [b, columns], [b, headNum or 1, columns] or
//     [b, headNum or 1, 1, columns]; b may be 1. SPEC: [n, columns]. NORM with
//     CalcType SPEC: [positions, columns], where the rows of sequence i are
//     contextLens[i]-qSeqLens[i] to contextLens[i]-1, or [b or 1, positions or
//     1, columns]. Every mask has a column per position of the longest context.
//   - SPEC: sequence i has qSeqLens[i] query rows, one after the other. All see
//     the whole context but for what the mask hides. Query rows behind the last
//     sequence are padding and give zeros.
//   - MLAVHeadSize: a value is the first MLAVHeadSize columns of its key's row;
//     kvHeadNum is 1.
//   - KVHEAD, KVHEAD_ROPE: contextLens, blockTables (and batchRunStatus) have an
//     entry per sequence and kv head, caches have one head; razorOffset is added
//     to q . k.
//   - QuantDequantFusion: k = (int8 + kOffset) * kDescale by channel, v likewise.
//   - QuantOffline, QuantOnline: q . k is multiplied by kDescale[h]. The softmax
//     is rounded to int8 by blocks of 128 positions: QuantOnline relative to the
//     block's largest probability, QuantOffline as round(p * pScale[h]), where p
//     is relative to the largest score of the 512 positions' part so far; the
//     sum is that of the unrounded ones, and vDescale[h] multiplies the result.
//
// Errors: ErrInvalidParam for parameters that exclude each other (Validate);
// ErrInvalidTensorDimNum and ErrInvalidTensorDim for ranks and sizes;
// ErrInvalidParam for host values that do not fit, with the sequence's number;
// ErrRuntimeFail at execution for a block number outside the cache.
//
// Source: ATB operation PagedAttention, with its JSON keys; headNum, qkScale
// and kvHeadNum are required.
type PagedAttention struct {
	// HeadNum is the number of query heads.
	HeadNum int `json:"headNum"`
	// QScale is not used.
	QScale float32 `json:"qScale"`
	// QKScale multiplies the raw scores.
	QKScale float32 `json:"qkScale"`
	// KVHeadNum is the number of key and value heads; 0 means HeadNum.
	KVHeadNum int `json:"kvHeadNum"`
	// MaskType says what the mask's rows are.
	MaskType PagedMaskType `json:"maskType"`
	// BatchRunStatusEnable adds the input batchRunStatus.
	BatchRunStatusEnable bool `json:"batchRunStatusEnable"`
	// QuantType says what is int8.
	QuantType QuantType `json:"quantType"`
	// OutDataType is the output's type for QuantOffline and QuantOnline.
	OutDataType tensor.DType `json:"outDataType"`
	// HasQuantOffset adds the offsets of QuantDequantFusion.
	HasQuantOffset bool `json:"hasQuantOffset"`
	// CompressType gives kv heads contexts of their own.
	CompressType PagedCompressType `json:"compressType"`
	// CalcType SPEC allows several query rows per sequence.
	CalcType PagedCalcType `json:"calcType"`
	// ScaleType LOGN adds the input logN.
	ScaleType ScaleType `json:"scaleType"`
	// InputLayout is the layout of the caches.
	InputLayout InputLayout `json:"inputLayout"`
	// MLAVHeadSize is the size of values that lie in the keys, 0 where there
	// is a value cache.
	MLAVHeadSize int `json:"mlaVHeadSize"`
}

// DefaultPagedAttention returns ATB's defaults: QKScale 1, everything else 0.
// HeadNum must be set.
func DefaultPagedAttention() PagedAttention { return PagedAttention{QKScale: 1} }

var _ operation.ValueChecker = PagedAttention{}

// maxMlaSize is the largest MLAVHeadSize.
const maxMlaSize = 576

func (p PagedAttention) spec() bool     { return p.CalcType == PagedCalcSpec }
func (p PagedAttention) mla() bool      { return p.MLAVHeadSize > 0 }
func (p PagedAttention) compress() bool { return p.CompressType != PagedCompressNone }
func (p PagedAttention) masked() bool   { return p.MaskType != PagedMaskNone }

// int8All reports whether query, keys and values are quantised.
func (p PagedAttention) int8All() bool {
	return p.QuantType == QuantOffline || p.QuantType == QuantOnline
}

// quantOffset reports whether there are offsets of quantised keys and values.
func (p PagedAttention) quantOffset() bool {
	return p.HasQuantOffset && p.QuantType == QuantDequantFusion
}

// kvHeads is the number of key and value heads.
func (p PagedAttention) kvHeads() int64 { return int64(keyHeads(p.HeadNum, p.KVHeadNum)) }

// Infer returns the query's descriptor with the values' head size.
func (p PagedAttention) Infer(q *operation.Query) ([]tensor.Desc, error) {
	x := p.ports()
	out := q.In[x.query]
	out.Shape = out.Shape.With(-1, p.valueSize(q, &x))
	if p.int8All() {
		out.DType = p.OutDataType
	}
	return []tensor.Desc{out}, nil
}

// valueSize is the size of a value.
func (p PagedAttention) valueSize(q *operation.Query, x *pagedPorts) int64 {
	if p.mla() {
		return int64(p.MLAVHeadSize)
	}
	return q.In[x.value].Dim(3)
}
