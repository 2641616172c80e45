package attention

// SelfCalcType is the kind of a self attention. Its JSON form is ATB's number.
type SelfCalcType int

// Kinds of self attention.
const (
	SelfUndefined SelfCalcType = iota
	SelfEncoder
	SelfDecoder
	SelfPAEncoder
	SelfPrefixEncoder
	numSelfCalcTypes
)

// String returns ATB's name of the kind.
func (c SelfCalcType) String() string {
	return enumName(int(c), "UNDEFINED", "ENCODER", "DECODER", "PA_ENCODER", "PREFIX_ENCODER")
}

// SelfMaskType is the kind of a mask. Its JSON form is ATB's number.
type SelfMaskType int

// Kinds of masks.
const (
	SelfMaskNone SelfMaskType = iota
	SelfMaskNorm
	SelfMaskALiBi
	SelfMaskNormCompress
	SelfMaskALiBiCompress
	SelfMaskALiBiCompressSqrt
	SelfMaskALiBiCompressLeftAlign
	SelfMaskSlidingWindowNorm
	SelfMaskSlidingWindowCompress
	SelfMaskCausal
	numSelfMaskTypes
)

// String returns ATB's name of the kind.
func (m SelfMaskType) String() string {
	return enumName(int(m), "UNDEFINED", "NORM", "ALIBI", "NORM_COMPRESS", "ALIBI_COMPRESS", "ALIBI_COMPRESS_SQRT",
		"ALIBI_COMPRESS_LEFT_ALIGN", "SLIDING_WINDOW_NORM", "SLIDING_WINDOW_COMPRESS", "CAUSAL")
}

// slopes reports whether the kind has an input of slopes.
func (m SelfMaskType) slopes() bool {
	return m == SelfMaskALiBiCompress || m == SelfMaskALiBiCompressSqrt || m == SelfMaskALiBiCompressLeftAlign
}

// window reports whether the kind shows a sliding window.
func (m SelfMaskType) window() bool {
	return m == SelfMaskSlidingWindowNorm || m == SelfMaskSlidingWindowCompress
}

// KernelType is a hint of precision. Its JSON form is ATB's number.
type KernelType int

// Kernel types.
const (
	KernelDefault KernelType = iota
	KernelHighPrecision
	// KernelExpM8V2 exists on Ascend 310P only and is refused.
	KernelExpM8V2
)

// String returns ATB's name of the kernel type.
func (k KernelType) String() string {
	return enumName(int(k), "DEFAULT", "HIGH_PRECISION", "EXP_M8V2")
}

// ClampType tells whether scores are clamped. Its JSON form is ATB's number.
type ClampType int

// Clamp types.
const (
	ClampNone ClampType = iota
	ClampMinMax
)

// String returns the clamp type's name.
func (c ClampType) String() string { return enumName(int(c), "UNDEFINED", "MIN_MAX") }

// KVCacheConfig tells who writes new keys and values into the cache. Its JSON
// form is ATB's number.
type KVCacheConfig int

// Cache configurations.
const (
	// KVCache says that the operation writes its keys and values into the cache.
	KVCache KVCacheConfig = iota
	// KVBypass says that they are in the cache already.
	KVBypass
)

// String returns the configuration's name.
func (c KVCacheConfig) String() string { return enumName(int(c), "KV_CACHE", "KV_BYPASS") }

// CacheType tells where a position lies in a cache. Its JSON form is ATB's
// number.
type CacheType int

// Cache types.
const (
	CacheNorm CacheType = iota
	// CacheSWA is a ring: position j lies in slot j modulo its length.
	CacheSWA
)

// String returns the cache type's name.
func (c CacheType) String() string { return enumName(int(c), "NORM", "SWA") }
