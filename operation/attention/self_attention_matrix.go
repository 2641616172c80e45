package attention

import (
	"iter"
	"strings"

	"goatb/tensor"
)

// Combination is a choice of kind, mask, cache, layout and quantisation.
type Combination struct {
	CalcType    SelfCalcType
	MaskType    SelfMaskType
	KVCacheCfg  KVCacheConfig
	CacheType   CacheType
	InputLayout InputLayout
	QuantType   QuantType
	// MLA says that values are the front of the keys, BatchStatus that
	// sequences may be skipped.
	MLA, BatchStatus bool
	ScaleType        ScaleType
}

// String gives the choices that differ from the default, separated by blanks.
func (c Combination) String() string {
	parts := []string{c.CalcType.String(), "mask=" + c.MaskType.String(), c.InputLayout.String()}
	if c.CalcType != SelfPAEncoder && c.CalcType != SelfPrefixEncoder {
		parts = append(parts, c.KVCacheCfg.String())
	}
	for _, x := range [...]struct {
		there bool
		name  string
	}{
		{c.CacheType != CacheNorm, "cache=" + c.CacheType.String()},
		{c.QuantType != QuantNone, c.QuantType.String()},
		{c.MLA, "MLA"}, {c.BatchStatus, "batchStatus"},
		{c.ScaleType != ScaleTOR, c.ScaleType.String()},
	} {
		if x.there {
			parts = append(parts, x.name)
		}
	}
	return strings.Join(parts, " ")
}

// combinationWindow and combinationMLA are the sizes that Spec chooses.
const (
	combinationWindow = 3
	combinationMLA    = 8
)

// Spec returns parameters of the combination over the given heads, with what
// create wants besides: a window for sliding windows, the kernel type and the
// triangular mask of PREFIX_ENCODER, an output type for quantised operands.
func (c Combination) Spec(headNum, kvHeadNum int) SelfAttention {
	p := DefaultSelfAttention()
	p.HeadNum, p.KVHeadNum = headNum, kvHeadNum
	p.CalcType, p.MaskType, p.KVCacheCfg, p.CacheType = c.CalcType, c.MaskType, c.KVCacheCfg, c.CacheType
	p.InputLayout, p.QuantType, p.ScaleType = c.InputLayout, c.QuantType, c.ScaleType
	p.BatchRunStatusEnable = c.BatchStatus
	if c.MLA {
		p.MLAVHeadSize = combinationMLA
	}
	if c.MaskType.window() {
		p.WindowSize = combinationWindow
	}
	if c.QuantType != QuantNone {
		p.OutDataType = tensor.Float16
	}
	if c.CalcType == SelfPrefixEncoder {
		p.IsTriuMask, p.KernelType = 1, KernelHighPrecision
	}
	if c.ScaleType == ScaleLogN && c.CalcType == SelfPAEncoder {
		p.KernelType = KernelHighPrecision
	}
	return p
}

// runs reports whether an operation of the combination can run: create accepts
// its parameters, and InferShape does not refuse it whatever its inputs are.
// Run statuses, which PA_ENCODER accepts without having an input for them, count
// for caches only.
func (c Combination) runs() bool {
	if c.BatchStatus && (c.CalcType == SelfPAEncoder || c.CalcType == SelfPrefixEncoder) {
		return false
	}
	if c.ScaleType == ScaleLogN && c.CalcType != SelfPAEncoder && c.CalcType != SelfDecoder {
		return false
	}
	return c.Spec(2, 1).Validate() == nil
}

// Matrix walks every combination of self attention that can run: what Validate
// leaves of the full cross product, less scale types that InferShape refuses.
func Matrix() iter.Seq[Combination] {
	return func(yield func(Combination) bool) {
		for i := range matrixSize() {
			if c := combination(i); c.runs() && !yield(c) {
				return
			}
		}
	}
}

// matrixAxes are the numbers of choices, in the order of Combination's fields.
var matrixAxes = [...]int{int(numSelfCalcTypes), int(numSelfMaskTypes), 2, 2, 2, int(QuantOnline) + 1, 2, 2, 2}

func matrixSize() int {
	n := 1
	for _, a := range matrixAxes {
		n *= a
	}
	return n
}

// combination decodes choice i of the cross product, the last axis fastest.
func combination(i int) Combination {
	var at [len(matrixAxes)]int
	for k := len(at) - 1; k >= 0; k-- {
		at[k], i = i%matrixAxes[k], i/matrixAxes[k]
	}
	return Combination{
		SelfCalcType(at[0]), SelfMaskType(at[1]), KVCacheConfig(at[2]), CacheType(at[3]), InputLayout(at[4]), QuantType(at[5]),
		at[6] == 1, at[7] == 1, ScaleType(at[8]),
	}
}
