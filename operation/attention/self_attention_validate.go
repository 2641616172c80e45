package attention

import (
	"math"

	"goatb/status"
	"goatb/tensor"
)

// maxMLAVHeadSize is the largest size of a value head that is part of a key.
const maxMLAVHeadSize = 576

// Validate checks the parameters alone.
func (p SelfAttention) Validate() error {
	for _, check := range [...]func(*SelfAttention) error{
		checkSelfRanges, checkSelfQuant, checkSelfMask, checkSelfLayout, checkSelfMLA, checkSelfWindow, checkSelfPrefix,
	} {
		if err := check(&p); err != nil {
			return err
		}
	}
	return nil
}

// refuse returns an error when bad holds.
func refuse(bad bool, format string, args ...any) error {
	if bad {
		return status.Errorf(status.ErrInvalidParam, format, args...)
	}
	return nil
}

// firstOf returns the first error.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkSelfRanges(p *SelfAttention) error {
	return firstOf(
		checkHeads(p.HeadNum, p.KVHeadNum),
		inRange("calcType", int(p.CalcType), int(numSelfCalcTypes)-1),
		inRange("maskType", int(p.MaskType), int(numSelfMaskTypes)-1),
		inRange("kvcacheCfg", int(p.KVCacheCfg), int(KVBypass)),
		inRange("clampType", int(p.ClampType), int(ClampMinMax)),
		inRange("scaleType", int(p.ScaleType), int(ScaleLogN)),
		inRange("quantType", int(p.QuantType), int(QuantOnline)),
		inRange("inputLayout", int(p.InputLayout), int(LayoutBNSD)),
		inRange("cacheType", int(p.CacheType), int(CacheSWA)),
		inRange("kernelType", int(p.KernelType), int(KernelHighPrecision)),
		inRange("isTriuMask", p.IsTriuMask, 1),
		inRange("mlaVHeadSize", p.MLAVHeadSize, maxMLAVHeadSize),
		refuse(p.WindowSize < 0, "windowSize: want at least 0, got %d", p.WindowSize),
		refuse(!finite(p.QScale, p.QKScale), "qScale, qkScale: want finite numbers, got %v, %v", p.QScale, p.QKScale),
		refuse(p.ClampMin != p.ClampMin || p.ClampMax != p.ClampMax, "clampMin, clampMax: got NaN"),
		refuse(p.CalcType == SelfPAEncoder && p.KVCacheCfg == KVBypass, "kvcacheCfg: calcType %s has no cache to bypass", p.CalcType),
	)
}

func finite(values ...float32) bool {
	for _, v := range values {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return false
		}
	}
	return true
}

func checkSelfQuant(p *SelfAttention) error {
	if p.QuantType == QuantNone {
		return nil
	}
	return firstOf(
		refuse(p.QuantType == QuantDequantFusion, "quantType: want NONE, QUANT_OFFLINE or QUANT_ONLINE, got %s", p.QuantType),
		refuse(p.OutDataType != tensor.Float16 && p.OutDataType != tensor.BFloat16, "outDataType: want f16 or bf16 with quantType %s, got %s", p.QuantType, p.OutDataType),
		refuse(p.CalcType != SelfPAEncoder, "quantType: %s needs calcType PA_ENCODER, got %s", p.QuantType, p.CalcType),
		refuse(p.ScaleType != ScaleTOR, "scaleType: want TOR with quantType %s, got %s", p.QuantType, p.ScaleType),
	)
}

func checkSelfMask(p *SelfAttention) error {
	return firstOf(
		refuse(p.MaskType.slopes() && p.CalcType != SelfPAEncoder && p.CalcType != SelfPrefixEncoder,
			"maskType: %s needs calcType PA_ENCODER or PREFIX_ENCODER, got %s", p.MaskType, p.CalcType),
		refuse(p.MaskType == SelfMaskNone && p.IsTriuMask == 1, "isTriuMask: want 0 without a mask, got 1"),
	)
}

func checkSelfLayout(p *SelfAttention) error {
	if p.InputLayout != LayoutBNSD {
		return nil
	}
	err := firstOf(
		refuse(p.ScaleType != ScaleTOR, "scaleType: want TOR with layout BNSD, got %s", p.ScaleType),
		refuse(p.QuantType != QuantNone, "quantType: want NONE with layout BNSD, got %s", p.QuantType),
		refuse(p.CalcType == SelfPrefixEncoder, "calcType: PREFIX_ENCODER needs layout BSND"),
	)
	if err != nil {
		return err
	}
	if p.CalcType == SelfPAEncoder {
		return firstOf(
			refuse(p.MLAVHeadSize != 0, "mlaVHeadSize: want 0 with layout BNSD, got %d", p.MLAVHeadSize),
			refuse(p.KernelType == KernelHighPrecision, "kernelType: want DEFAULT with layout BNSD, got %s", p.KernelType),
			refuse(p.MaskType != SelfMaskNone, "maskType: want none with calcType PA_ENCODER in layout BNSD, got %s", p.MaskType),
		)
	}
	return firstOf(
		refuse(p.KVCacheCfg != KVBypass, "kvcacheCfg: want KV_BYPASS with layout BNSD, got %s", p.KVCacheCfg),
		refuse(p.MaskType == SelfMaskNone, "maskType: want a mask with layout BNSD and a cache"),
	)
}

func checkSelfMLA(p *SelfAttention) error {
	if p.MLAVHeadSize == 0 {
		return nil
	}
	return firstOf(
		refuse(p.CalcType != SelfPAEncoder, "mlaVHeadSize: needs calcType PA_ENCODER, got %s", p.CalcType),
		refuse(p.MaskType != SelfMaskNone && p.MaskType != SelfMaskNorm && !p.MaskType.window(),
			"maskType: want none, NORM or a sliding window with mlaVHeadSize, got %s", p.MaskType),
		refuse(p.ScaleType != ScaleTOR, "scaleType: want TOR with mlaVHeadSize, got %s", p.ScaleType),
		refuse(p.ClampType != ClampNone, "clampType: want 0 with mlaVHeadSize, got %s", p.ClampType),
	)
}

func checkSelfWindow(p *SelfAttention) error {
	if p.WindowSize == 0 {
		return firstOf(
			refuse(p.MaskType.window(), "windowSize: want at least 1 with maskType %s, got 0", p.MaskType),
			refuse(p.CacheType == CacheSWA, "cacheType: SWA needs a windowSize"),
		)
	}
	return firstOf(
		refuse(!p.MaskType.window(), "maskType: want a sliding window with windowSize %d, got %s", p.WindowSize, p.MaskType),
		refuse(p.MaskType == SelfMaskSlidingWindowCompress && p.CalcType == SelfDecoder, "maskType: %s does not go with calcType DECODER", p.MaskType),
		refuse(p.BatchRunStatusEnable, "batchRunStatusEnable: want false with a window"),
		refuse(p.KernelType != KernelDefault, "kernelType: want DEFAULT with a window, got %s", p.KernelType),
		refuse(p.ClampType != ClampNone, "clampType: want 0 with a window, got %s", p.ClampType),
		refuse(p.QuantType != QuantNone, "quantType: want NONE with a window, got %s", p.QuantType),
		refuse(p.ScaleType != ScaleTOR, "scaleType: want TOR with a window, got %s", p.ScaleType),
		refuse(p.InputLayout != LayoutBSND, "inputLayout: want BSND with a window, got %s", p.InputLayout),
	)
}

func checkSelfPrefix(p *SelfAttention) error {
	if p.CalcType != SelfPrefixEncoder {
		return nil
	}
	masked := p.MaskType == SelfMaskALiBiCompress || p.MaskType == SelfMaskALiBiCompressSqrt ||
		p.MaskType == SelfMaskNormCompress || p.MaskType == SelfMaskCausal
	return firstOf(
		refuse(p.OutDataType != tensor.Undefined, "outDataType: want undefined with calcType PREFIX_ENCODER, got %s", p.OutDataType),
		refuse(p.QScale != 1, "qScale: want 1 with calcType PREFIX_ENCODER, got %v", p.QScale),
		refuse(p.BatchRunStatusEnable, "batchRunStatusEnable: want false with calcType PREFIX_ENCODER"),
		refuse(p.IsTriuMask != 1, "isTriuMask: want 1 with calcType PREFIX_ENCODER, got %d", p.IsTriuMask),
		refuse(p.KernelType != KernelHighPrecision, "kernelType: want HIGH_PRECISION with calcType PREFIX_ENCODER, got %s", p.KernelType),
		refuse(p.ClampType != ClampNone || p.ClampMin != 0 || p.ClampMax != 0, "clampType: want no clamp and limits 0 with calcType PREFIX_ENCODER"),
		refuse(!masked, "maskType: want NORM_COMPRESS, ALIBI_COMPRESS, ALIBI_COMPRESS_SQRT or CAUSAL with calcType PREFIX_ENCODER, got %s", p.MaskType),
		refuse(p.KVCacheCfg != KVCache, "kvcacheCfg: want KV_CACHE with calcType PREFIX_ENCODER, got %s", p.KVCacheCfg),
		refuse(p.ScaleType != ScaleTOR, "scaleType: want TOR with calcType PREFIX_ENCODER, got %s", p.ScaleType),
		refuse(p.CacheType != CacheNorm, "cacheType: want NORM with calcType PREFIX_ENCODER, got %s", p.CacheType),
	)
}
