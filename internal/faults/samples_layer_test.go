package faults_test

import (
	"math/rand/v2"

	"goatb/atb"
	"goatb/operation/attention"
	"goatb/operation/cache"
	"goatb/operation/linear"
	"goatb/operation/norm"
	"goatb/operation/rope"
	"goatb/tensor"
)

func linearSamples() []sample {
	plain := func(a, b bool) linear.Linear { return linear.Linear{TransposeA: a, TransposeB: b} }
	int8s := linear.Linear{TransposeB: true, OutDataType: tensor.Float16}
	biased, token := int8s, int8s
	biased.HasBias, token.QuantMode = true, linear.QuantPerToken
	return []sample{
		{"Linear", linear.DefaultLinear(), linear.Linear{HasBias: true}, func(r *rand.Rand, n int64) []operand {
			return []operand{draw(r, n, 8), draw(r, 8, 8), draw(r, 8)}
		}},
		{"Linear of a transposed x", plain(true, false), plain(true, true), func(r *rand.Rand, n int64) []operand {
			return []operand{draw(r, 8, n), draw(r, 8, 8)}
		}},
		{"Linear that accumulates", linear.Linear{EnAccum: true}, nil, func(r *rand.Rand, n int64) []operand {
			return []operand{draw(r, n, 8), draw(r, 8, 5), draw(r, n, 5)}
		}},
		{"Linear einsum", linear.Linear{MatmulType: linear.MatmulEinSum}, nil, func(r *rand.Rand, n int64) []operand {
			return []operand{draw(r, n, 2, 8), draw(r, 2, 8, 5)}
		}},
		{"Linear of int8", int8s, nil, func(r *rand.Rand, n int64) []operand {
			return []operand{bytesOf(r, n, 8), bytesOf(r, 5, 8), draw(r, 5)}
		}},
		{"Linear of int8 with a bias", biased, nil, func(r *rand.Rand, n int64) []operand {
			return []operand{bytesOf(r, n, 8), bytesOf(r, 5, 8), below(r, 1000, 5), draw(r, 5)}
		}},
		{"Linear of int8 per token", token, nil, func(r *rand.Rand, n int64) []operand {
			return []operand{bytesOf(r, n, 8), bytesOf(r, 5, 8), draw(r, 5), draw(r, n)}
		}},
		{"Linear of a deep x", linear.Linear{TransposeB: true}, nil, func(r *rand.Rand, n int64) []operand {
			return []operand{draw(r, n, 20000), draw(r, 3, 20000)}
		}},
	}
}

func normSamples() []sample {
	plain := func(change func(*norm.RMSPlainParam)) norm.RMSNorm {
		p := norm.RMS(norm.Plain, 1e-5)
		change(&p.Norm)
		return p
	}
	residual := func(kind norm.LayerType, change func(*norm.RMSResidualParam)) norm.RMSNorm {
		p := norm.RMS(kind, 1e-5)
		change(&p.PreNorm)
		change(&p.PostNorm)
		return p
	}
	rows := func(weights int, residual bool) func(*rand.Rand, int64) []operand {
		return func(r *rand.Rand, n int64) []operand {
			in := []operand{draw(r, n, 8)}
			if residual {
				in = append(in, draw(r, n, 8))
			}
			for range weights {
				in = append(in, draw(r, 8))
			}
			return in
		}
	}
	scaled := func(in func(*rand.Rand, int64) []operand) func(*rand.Rand, int64) []operand {
		return func(r *rand.Rand, n int64) []operand {
			return append(in(r, n), f32([]float64{0.125}, 1), ints([]int8{3}))
		}
	}
	biased := func(r *rand.Rand, n int64) []operand {
		return []operand{draw(r, n, 8), draw(r, 8), draw(r, n, 8), draw(r, 8)}
	}
	quant := func(p *norm.RMSPlainParam) { p.QuantType = norm.QuantInt8 }
	quantResidual := func(p *norm.RMSResidualParam) { p.QuantType = norm.QuantInt8 }
	asIs := func(*norm.RMSResidualParam) {}
	return []sample{
		{"RmsNorm", norm.RMS(norm.Plain, 1e-5), norm.RMS(norm.Plain, 0.5), rows(1, false)},
		{"RmsNorm gemma", plain(func(p *norm.RMSPlainParam) { p.ModelType = norm.ModelGemma }), norm.RMS(norm.Plain, 1e-5), rows(1, false)},
		{"RmsNorm rstd", plain(func(p *norm.RMSPlainParam) { p.Rstd = true }), nil, rows(1, false)},
		{"RmsNorm quant", plain(quant), nil, scaled(rows(2, false))},
		{"RmsNorm dynamic", plain(func(p *norm.RMSPlainParam) { quant(p); p.DynamicQuant = norm.DynamicSymmetric }), nil, rows(2, false)},
		{"RmsNorm pre", residual(norm.Pre, asIs), nil, rows(1, true)},
		{"RmsNorm pre with bias", residual(norm.Pre, func(p *norm.RMSResidualParam) { p.HasBias = true }), nil, biased},
		{"RmsNorm pre quant", residual(norm.Pre, quantResidual), nil, scaled(rows(2, true))},
		{"RmsNorm post", residual(norm.Post, asIs), norm.RMS(norm.Post, 0.5), rows(1, true)},
		{"RmsNorm post with bias", residual(norm.Post, func(p *norm.RMSResidualParam) { p.HasBias = true }), nil, biased},
		{"RmsNorm post quant", residual(norm.Post, quantResidual), nil, scaled(rows(1, true))},
	}
}

func ropeSamples() []sample {
	return []sample{
		{"Rope", rope.Rope{RotaryCoeff: 2}, rope.Rope{RotaryCoeff: 4}, func(r *rand.Rand, n int64) []operand {
			return []operand{draw(r, n, 8), draw(r, n, 4), draw(r, n, 4), draw(r, n, 4), ints([]int32{int32(n)})}
		}},
		{"Rope of a part", rope.Rope{RotaryCoeff: 2, HeadDim: 8}, nil, func(r *rand.Rand, n int64) []operand {
			return []operand{draw(r, n, 16), draw(r, n, 8), draw(r, n, 4), draw(r, n, 4), ints([]int32{int32(n)})}
		}},
	}
}

// scaledSelf is an attention of two query heads on one key head.
func scaledSelf(calc attention.SelfCalcType, mask attention.SelfMaskType, scale float32) attention.SelfAttention {
	p := t3Self(calc, mask)
	p.HeadNum, p.KVHeadNum, p.QKScale = 2, 1, scale
	return p
}

func selfSamples() []sample {
	tokens := func(extra ...func(*rand.Rand, int64) operand) func(*rand.Rand, int64) []operand {
		return func(r *rand.Rand, n int64) []operand {
			in := []operand{draw(r, n, 8), draw(r, n, 4), draw(r, n, 4)}
			first := int32(r.Int64N(n + 1))
			for i, f := range extra {
				if i == 1 {
					in = append(in, lengths(first, int32(n)-first))
				}
				in = append(in, f(r, n))
			}
			if len(extra) < 2 {
				in = append(in, lengths(first, int32(n)-first))
			}
			return in
		}
	}
	mask := func(r *rand.Rand, n int64) operand { return draw(r, n, n) }
	slopes := func(r *rand.Rand, n int64) operand { return draw(r, 2) }
	cached := func(fresh bool) func(*rand.Rand, int64) []operand {
		return func(r *rand.Rand, n int64) []operand {
			in := []operand{draw(r, 2, 8)}
			if fresh {
				in = append(in, draw(r, 2, 4), draw(r, 2, 4))
			}
			offsets := lengths(int32(1+r.Int64N(n)), int32(1+r.Int64N(n)))
			return append(in, draw(r, 2, 2, n, 4), draw(r, 2, 2, n, 4), offsets, lengths(1, 1), lengths(int32(r.IntN(2))))
		}
	}
	const pa = attention.SelfPAEncoder
	decoder, bypass := scaledSelf(attention.SelfDecoder, attention.SelfMaskNone, 0.5), scaledSelf(attention.SelfDecoder, attention.SelfMaskNone, 0.5)
	bypass.KVCacheCfg = attention.KVBypass
	window := func(size int) attention.SelfAttention {
		p := scaledSelf(pa, attention.SelfMaskSlidingWindowCompress, 0.5)
		p.WindowSize = size
		return p
	}
	clamp := scaledSelf(pa, attention.SelfMaskNone, 0.5)
	clamp.ClampType, clamp.ClampMin, clamp.ClampMax = attention.ClampMinMax, -0.25, 0.25
	prefix := t3Prefix()
	prefix.HeadNum, prefix.KVHeadNum = 2, 1
	return []sample{
		{"SelfAttention", scaledSelf(pa, attention.SelfMaskNone, 0.5), clamp, tokens()},
		{"SelfAttention mask", scaledSelf(pa, attention.SelfMaskNorm, 0.5), scaledSelf(pa, attention.SelfMaskNormCompress, 0.5), tokens(mask)},
		{"SelfAttention causal", scaledSelf(pa, attention.SelfMaskCausal, 0.5), scaledSelf(pa, attention.SelfMaskCausal, 1), tokens()},
		{"SelfAttention window", window(1), window(2), tokens(mask)},
		{"SelfAttention slopes", scaledSelf(pa, attention.SelfMaskALiBiCompress, 0.5), scaledSelf(pa, attention.SelfMaskALiBiCompress, 1), tokens(mask, slopes)},
		{"SelfAttention decoder", decoder, nil, cached(true)},
		{"SelfAttention bypass", bypass, scaledBypass(bypass, 2), cached(false)},
		{"SelfAttention in parts", bypass, scaledBypass(bypass, 2), func(r *rand.Rand, n int64) []operand {
			slots := 2000 + n
			return []operand{draw(r, 1, 8), draw(r, 1, 1, slots, 4), draw(r, 1, 1, slots, 4), lengths(int32(slots)), lengths(1), lengths(0)}
		}},
		{"SelfAttention prefix", prefix, nil, func(r *rand.Rand, n int64) []operand {
			return []operand{draw(r, 2, 8), draw(r, 4, n, 1, 4), draw(r, 4, n, 1, 4), below(r, 4, 2, 2), lengths(1, 1), lengths(int32(1+r.Int64N(2*n)), int32(1+r.Int64N(2*n)))}
		}},
	}
}

func scaledBypass(p attention.SelfAttention, scale float32) atb.Spec {
	p.QKScale = scale
	return p
}

func pagedSamples() []sample {
	spec := func(change func(*attention.PagedAttention)) attention.PagedAttention {
		p := t3Paged()
		p.HeadNum, p.KVHeadNum = 2, 1
		change(&p)
		return p
	}
	contexts := func(r *rand.Rand, n int64) operand {
		v := make([]int32, n)
		for i := range v {
			v[i] = int32(r.IntN(5))
		}
		return lengths(v...)
	}
	plain := func(r *rand.Rand, n int64) []operand {
		return []operand{draw(r, n, 2, 4), draw(r, 2*n, 2, 1, 4), draw(r, 2*n, 2, 1, 4), below(r, 2*n, n, 2), contexts(r, n)}
	}
	return []sample{
		{"PagedAttention", spec(func(*attention.PagedAttention) {}), spec(func(p *attention.PagedAttention) { p.QKScale = 2 }), plain},
		{"PagedAttention mask", spec(func(p *attention.PagedAttention) { p.MaskType = attention.PagedMaskNorm }), nil,
			func(r *rand.Rand, n int64) []operand { return append(plain(r, n), draw(r, n, 1, 4)) }},
		{"PagedAttention of int8", spec(func(p *attention.PagedAttention) { p.QuantType = attention.QuantDequantFusion }), nil,
			func(r *rand.Rand, n int64) []operand {
				in := plain(r, n)
				in[1], in[2] = bytesOf(r, 2*n, 2, 1, 4), bytesOf(r, 2*n, 2, 1, 4)
				return append(in, draw(r, 4), draw(r, 4))
			}},
		{"PagedAttention of a shared cache", spec(func(p *attention.PagedAttention) { p.MLAVHeadSize = 2 }), spec(func(p *attention.PagedAttention) { p.MLAVHeadSize, p.QKScale = 2, 2 }),
			func(r *rand.Rand, n int64) []operand {
				in := plain(r, n)
				return append(in[:2:2], in[3:]...)
			}},
		{"PagedAttention in parts", spec(func(*attention.PagedAttention) {}), nil, func(r *rand.Rand, n int64) []operand {
			return []operand{draw(r, 1, 2, 4), draw(r, 3, 1000, 1, 4), draw(r, 3, 1000, 1, 4), ints([]int32{2, 0, 1}, 1, 3), lengths(int32(2000 + n))}
		}},
	}
}

func cacheSamples() []sample {
	slots := func(r *rand.Rand, n, of int64) operand {
		v := make([]int32, n)
		for i, s := range r.Perm(int(of))[:n] {
			v[i] = int32(s)
		}
		return ints(v)
	}
	nz, keyOnly := cache.ReshapeAndCache{KVCacheCfg: cache.KeyAndValueNZ}, cache.ReshapeAndCache{KVCacheCfg: cache.KeyOnly}
	inNZ := func(o operand) operand {
		o.desc.Format = tensor.FractalNZ
		return o
	}
	return []sample{
		{"ReshapeAndCache", cache.DefaultReshapeAndCache(), nil, func(r *rand.Rand, n int64) []operand {
			return []operand{draw(r, n, 2, 4), draw(r, n, 2, 4), draw(r, n, 2, 2, 4), draw(r, n, 2, 2, 4), slots(r, n, 2*n)}
		}},
		{"ReshapeAndCache of keys", keyOnly, nil, func(r *rand.Rand, n int64) []operand {
			return []operand{draw(r, n, 2, 4), draw(r, n, 2, 2, 4), slots(r, n, 2*n)}
		}},
		{"ReshapeAndCache in nz", nz, nil, func(r *rand.Rand, n int64) []operand {
			return []operand{draw(r, n, 2, 8), draw(r, n, 2, 8), inNZ(draw(r, n, 1, 2, 16)), inNZ(draw(r, n, 1, 2, 16)), slots(r, n, 2*n)}
		}},
		{"ReshapeAndCache by head", cache.ReshapeAndCache{CompressType: cache.CompressKVHead}, nil, func(r *rand.Rand, n int64) []operand {
			return []operand{draw(r, n, 2, 4), draw(r, n, 2, 4), draw(r, 2*n, 2, 1, 4), draw(r, 2*n, 2, 1, 4), ints([]int32{0, int32(2 * n)}), ints([]int32{int32(n), 1}), ints([]int32{int32(n)})}
		}},
	}
}
