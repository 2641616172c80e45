package reuse

import (
	"goatb/operation/attention"
	"goatb/operation/cache"
)

// Sizes of the attention rows.
const (
	heads, kvHeads, headSize = 4, 2, 16
	blockSize                = 4
	columns                  = 7 // blocks of a sequence at most
)

func selfRows() []row {
	self := func(calc attention.SelfCalcType, mask attention.SelfMaskType, scale float32) attention.SelfAttention {
		p := attention.DefaultSelfAttention()
		p.HeadNum, p.KVHeadNum, p.QKScale, p.CalcType, p.MaskType = heads, kvHeads, scale, calc, mask
		return p
	}
	const encoder, decoder = attention.SelfPAEncoder, attention.SelfDecoder
	clamped := self(encoder, attention.SelfMaskNone, 0.25)
	clamped.ClampType, clamped.ClampMin, clamped.ClampMax = attention.ClampMinMax, -0.25, 0.25
	bypass, steep := self(decoder, attention.SelfMaskNone, 0.25), self(decoder, attention.SelfMaskNone, 2)
	bypass.KVCacheCfg, steep.KVCacheCfg = attention.KVBypass, attention.KVBypass
	tokens := func(s *source, n int64) []operand {
		return []operand{s.f16(n*5, heads*headSize), s.f16(n*5, kvHeads*headSize), s.f16(n*5, kvHeads*headSize)}
	}
	masked := func(s *source, n int64) []operand {
		return append(tokens(s, n), s.f16(n*5, n*5), s.shares(n, n*5))
	}
	cached := func(fresh bool) func(*source, int64) []operand {
		return func(s *source, n int64) []operand {
			in := []operand{s.f32(n, heads*headSize)}
			if fresh {
				in = append(in, s.f32(n, kvHeads*headSize), s.f32(n, kvHeads*headSize))
			}
			return append(in, s.f32(2, n, 24, kvHeads*headSize), s.f32(2, n, 24, kvHeads*headSize),
				s.lengths(n, 1, 24), s.lengths(n, 1, 1), s.lengths(1, 0, 1))
		}
	}
	packed := func(s *source, n int64) []operand { return append(tokens(s, n), s.shares(n, n*5)) }
	return []row{
		{"SelfAttention", self(encoder, attention.SelfMaskNone, 0.25), clamped, packed, nil},
		{"SelfAttention causal", self(encoder, attention.SelfMaskCausal, 0.25), self(encoder, attention.SelfMaskCausal, 1), packed, nil},
		{"SelfAttention mask", self(encoder, attention.SelfMaskNorm, 0.25), self(encoder, attention.SelfMaskNorm, 1), masked, nil},
		{"SelfAttention with a cache", self(decoder, attention.SelfMaskNone, 0.25), self(decoder, attention.SelfMaskNone, 1), cached(true), nil},
		{"SelfAttention bypass", bypass, steep, cached(false), nil},
	}
}

func pagedRows() []row {
	paged := func(scale float32) attention.PagedAttention {
		return attention.PagedAttention{HeadNum: heads, KVHeadNum: kvHeads, QKScale: scale}
	}
	masked, sharper := paged(0.25), paged(1)
	masked.MaskType, sharper.MaskType = attention.PagedMaskNorm, attention.PagedMaskNorm
	int8s := paged(0.25)
	int8s.QuantType = attention.QuantDequantFusion
	shared := paged(0.25)
	shared.KVHeadNum, shared.MLAVHeadSize = 1, 8
	in := func(s *source, n int64) []operand {
		return []operand{
			s.f32(n, heads, headSize), s.f32(30, blockSize, kvHeads, headSize), s.f32(30, blockSize, kvHeads, headSize),
			s.below(30, n, columns), s.lengths(n, 1, blockSize*columns),
		}
	}
	return []row{
		{"PagedAttention", paged(0.25), paged(1), in, nil},
		{"PagedAttention mask", masked, sharper, func(s *source, n int64) []operand {
			return append(in(s, n), s.f32(n, 1, blockSize*columns))
		}, nil},
		{"PagedAttention int8", int8s, nil, func(s *source, n int64) []operand {
			o := in(s, n)
			o[1], o[2] = s.int8(30, blockSize, kvHeads, headSize), s.int8(30, blockSize, kvHeads, headSize)
			return append(o, s.f32(kvHeads*headSize), s.f32(kvHeads*headSize))
		}, nil},
		{"PagedAttention of one cache", shared, nil, func(s *source, n int64) []operand {
			o := in(s, n)
			return []operand{o[0], s.f32(30, blockSize, 1, headSize), o[3], o[4]}
		}, nil},
		{"PagedAttention in parts", paged(0.25), nil, func(s *source, n int64) []operand {
			return []operand{
				s.f32(1, heads, headSize), s.f32(3, 1000, kvHeads, headSize), s.f32(3, 1000, kvHeads, headSize),
				s.below(3, 1, n), s.lengths(1, 1500, 1000*n),
			}
		}, nil},
	}
}

func cacheRows() []row {
	const slots = 8 * blockSize
	in := func(s *source, n int64) []operand {
		return []operand{
			s.f32(n, kvHeads, headSize), s.f32(n, kvHeads, headSize),
			s.f32(8, blockSize, kvHeads, headSize), s.f32(8, blockSize, kvHeads, headSize), s.distinct(n, slots),
		}
	}
	return []row{
		{"ReshapeAndCache", cache.DefaultReshapeAndCache(), nil, in, nil},
		{"ReshapeAndCache in place", cache.DefaultReshapeAndCache(), nil, in, map[int]int{0: 2, 1: 3}},
		{"ReshapeAndCache of keys", cache.ReshapeAndCache{KVCacheCfg: cache.KeyOnly}, nil, func(s *source, n int64) []operand {
			return []operand{s.f32(n, kvHeads, headSize), s.f32(8, blockSize, kvHeads, headSize), s.distinct(n, slots)}
		}, nil},
	}
}
