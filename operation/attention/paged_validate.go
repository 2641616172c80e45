package attention

import (
	"goatb/status"
	"goatb/tensor"
)

// Validate checks the parameters alone.
func (p PagedAttention) Validate() error {
	if err := checkHeads(p.HeadNum, p.KVHeadNum); err != nil {
		return err
	}
	for _, e := range [...]struct {
		name   string
		v, top int
	}{
		{"maskType", int(p.MaskType), int(PagedMaskNormCompress)},
		{"quantType", int(p.QuantType), int(QuantOnline)},
		{"compressType", int(p.CompressType), int(PagedCompressKVHeadRope)},
		{"calcType", int(p.CalcType), int(PagedCalcSpec)},
		{"scaleType", int(p.ScaleType), int(ScaleLogN)},
		{"inputLayout", int(p.InputLayout), int(LayoutBNSD)},
		{"mlaVHeadSize", p.MLAVHeadSize, maxMlaSize},
	} {
		if err := inRange(e.name, e.v, e.top); err != nil {
			return err
		}
	}
	if p.int8All() && p.OutDataType != tensor.Float16 && p.OutDataType != tensor.BFloat16 {
		return status.Errorf(status.ErrInvalidParam, "outDataType: want f16 or bf16 with quantType %s, got %s", p.QuantType, p.OutDataType)
	}
	if p.mla() && p.KVHeadNum != 1 {
		return status.Errorf(status.ErrInvalidParam, "kvHeadNum: want 1 with mlaVHeadSize, got %d", p.KVHeadNum)
	}
	return p.checkExclusions()
}

// checkExclusions refuses parameters that ATB does not combine.
func (p PagedAttention) checkExclusions() error {
	spec, quant := p.spec(), p.QuantType != QuantNone
	logN, bnsd := p.ScaleType == ScaleLogN, p.InputLayout == LayoutBNSD
	rope := p.CompressType == PagedCompressKVHeadRope
	for _, r := range [...]struct {
		bad  bool
		what string
	}{
		{p.MaskType == PagedMaskNormCompress, "maskType NORM_COMPRESS exists on Ascend 310P only"},
		{rope && p.masked(), "compressType KVHEAD_ROPE has no mask"},
		{rope && p.BatchRunStatusEnable, "compressType KVHEAD_ROPE has no batchRunStatus"},
		{spec && p.BatchRunStatusEnable, "calcType SPEC has no batchRunStatus"},
		{spec && p.compress(), "calcType SPEC has no compressType"},
		{spec && !p.mla() && p.MaskType != PagedMaskNorm && p.MaskType != PagedMaskSpec, "calcType SPEC needs maskType NORM or SPEC"},
		{spec && quant, "calcType SPEC has no quantType"},
		{p.int8All() && p.HasQuantOffset, "hasQuantOffset needs quantType DEQUANT_FUSION"},
		{p.int8All() && p.compress(), "quantType QUANT_OFFLINE and QUANT_ONLINE have no compressType"},
		{logN && quant, "scaleType LOGN has no quantType"},
		{logN && spec, "scaleType LOGN has no calcType SPEC"},
		{logN && p.compress(), "scaleType LOGN has no compressType"},
		{bnsd && spec, "inputLayout BNSD has no calcType SPEC"},
		{bnsd && p.compress(), "inputLayout BNSD has no compressType"},
		{bnsd && quant, "inputLayout BNSD has no quantType"},
		{bnsd && logN, "inputLayout BNSD has no scaleType LOGN"},
		{p.mla() && p.MaskType == PagedMaskALiBi, "mlaVHeadSize has no maskType ALIBI"},
		{p.mla() && spec && p.MaskType == PagedMaskNorm, "mlaVHeadSize with calcType SPEC has no maskType NORM"},
		{p.mla() && p.compress(), "mlaVHeadSize has no compressType"},
		{p.mla() && p.QuantType == QuantDequantFusion, "mlaVHeadSize has no quantType DEQUANT_FUSION"},
		{p.mla() && logN, "mlaVHeadSize has no scaleType LOGN"},
		{p.mla() && bnsd, "mlaVHeadSize has no inputLayout BNSD"},
	} {
		if r.bad {
			return status.Errorf(status.ErrInvalidParam, "%s", r.what)
		}
	}
	return nil
}
