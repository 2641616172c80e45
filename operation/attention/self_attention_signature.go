package attention

import (
	"strings"

	"goatb/operation"
)

// absent is the position of an operand that a kind does not have.
const absent = -1

// selfPorts are the positions of the inputs. keyCache and valueCache are what
// the rows attend to: the caches, or the keys and values of PA_ENCODER, where
// newKey and newValue are absent. With MLAVHeadSize valueCache is keyCache.
type selfPorts struct {
	query, newKey, newValue, key, value, table           int
	mask, offset, seqLen, keySeqLen, layer, status       int
	slopes, logN                                         int
	keyScale, keyOffset, valueScale, valueOffset, pScale int
	count                                                int
}

// cached reports whether the rows attend to a contiguous cache.
func (p *SelfAttention) cached() bool {
	return p.CalcType != SelfPAEncoder && p.CalcType != SelfPrefixEncoder
}

// bypass reports whether the cache is complete already.
func (p *SelfAttention) bypass() bool { return p.cached() && p.KVCacheCfg == KVBypass }

// masked reports whether there is a mask input.
func (p *SelfAttention) masked() bool {
	switch p.MaskType {
	case SelfMaskNone, SelfMaskCausal:
		return false
	case SelfMaskSlidingWindowNorm:
		return p.CalcType != SelfDecoder
	}
	return true
}

func (p *SelfAttention) keyHeads() int64 { return int64(keyHeads(p.HeadNum, p.KVHeadNum)) }

// place gives the next position to dst when the operand is there.
func (s *selfPorts) place(dst *int, there bool) {
	*dst = absent
	if there {
		*dst = s.count
		s.count++
	}
}

// ports returns the positions of the inputs.
func (p *SelfAttention) ports() selfPorts {
	var s selfPorts
	cached, prefix, encoder := p.cached(), p.CalcType == SelfPrefixEncoder, p.CalcType == SelfPAEncoder
	s.place(&s.query, true)
	s.place(&s.newKey, cached && !p.bypass())
	s.place(&s.newValue, cached && !p.bypass())
	s.place(&s.key, true)
	s.place(&s.value, p.MLAVHeadSize == 0)
	if p.MLAVHeadSize > 0 {
		s.value = s.key
	}
	s.place(&s.table, prefix)
	s.place(&s.mask, p.masked())
	s.place(&s.offset, cached)
	s.place(&s.seqLen, true)
	s.place(&s.keySeqLen, prefix)
	s.place(&s.layer, cached)
	s.place(&s.status, cached && p.BatchRunStatusEnable)
	s.place(&s.slopes, p.MaskType.slopes())
	s.place(&s.logN, p.ScaleType == ScaleLogN)
	quant := encoder && p.QuantType != QuantNone
	s.place(&s.keyScale, quant)
	s.place(&s.keyOffset, quant)
	s.place(&s.valueScale, quant)
	s.place(&s.valueOffset, quant)
	s.place(&s.pScale, quant && p.QuantType == QuantOffline)
	return s
}

// Signature describes the inputs of the parameters' kind and the one output.
func (p SelfAttention) Signature() operation.Signature {
	s := p.ports()
	names, types := make([]string, s.count), make([]string, s.count)
	row := "T"
	if p.QuantType != QuantNone {
		row = "int8"
	}
	for _, x := range [...]struct {
		at          int
		name, types string
	}{
		{s.query, "query", row}, {s.value, "value", row}, {s.key, "key", row},
		{s.newKey, "key", row}, {s.newValue, "value", row}, {s.table, "blockTables", "int32"},
		{s.mask, "attentionMask", "M"}, {s.offset, "tokenOffset!", "I"}, {s.seqLen, "seqLen!", "I"},
		{s.keySeqLen, "kvSeqLen!", "I"}, {s.layer, "layerId!", "I"}, {s.status, "batchStatus!", "I"},
		{s.slopes, "slopes", "S"}, {s.logN, "logN", "L"},
		{s.keyScale, "qkDescale", "f32"}, {s.keyOffset, "qkOffset", "int32"},
		{s.valueScale, "vDescale", "f32"}, {s.valueOffset, "vOffset", "int32"}, {s.pScale, "pScale", "f32"},
	} {
		if x.at != absent {
			names[x.at], types[x.at] = x.name, x.types
		}
	}
	if p.CalcType != SelfPAEncoder {
		names[s.key], names[s.value] = "kCache", "vCache"
	}
	if p.CalcType == SelfPrefixEncoder {
		names[s.seqLen] = "qSeqLen!"
	}
	return operation.Signature{
		Name:    "SelfAttentionOperation",
		In:      operation.Ports(names...),
		Out:     operation.Ports("output"),
		Variant: p.variant(),
		Native:  p.native(types),
	}
}

// native writes the combinations that the kernels compute.
func (p *SelfAttention) native(types []string) string {
	out := "T"
	if p.QuantType != QuantNone {
		out = "O"
	}
	masks := "f32,f16,bf16"
	if p.CalcType == SelfPAEncoder {
		masks += ",f32@fractal_nz,f16@fractal_nz,bf16@fractal_nz"
	}
	return strings.Join(types, ",") + "->" + out +
		" | T=f32,f16,bf16 M=" + masks + " I=int32,uint32,int64 S=f32,f16,bf16 L=f32,f16,bf16 O=f16,bf16"
}

// when returns text if there holds.
func when(there bool, text string) string {
	if there {
		return text
	}
	return ""
}

// digit returns "1" if there holds, else "0".
func digit(there bool) string {
	if there {
		return "1"
	}
	return "0"
}

// variant names the row set of profile 910b.
func (p *SelfAttention) variant() string {
	const name = "SelfAttentionOperation"
	quant := when(p.QuantType == QuantOffline, "QuantOffline") + when(p.QuantType == QuantOnline, "QuantOnline")
	switch {
	case p.CalcType == SelfPrefixEncoder:
		return name + "PrefixEncoder" + when(p.MaskType.slopes(), "Slopes") + when(p.MaskType == SelfMaskCausal, "CausalMask")
	case p.CalcType == SelfPAEncoder && p.MLAVHeadSize > 0:
		return name + "MLA" + when(p.masked(), "Mask") + quant
	case p.CalcType == SelfPAEncoder && p.InputLayout == LayoutBNSD:
		return name + "EncoderBNSD"
	case p.CalcType == SelfPAEncoder:
		return name + "Encoder" + when(quant != "", "QKV"+quant) + when(p.ScaleType == ScaleLogN, "Logn1") +
			when(p.MaskType.slopes(), "Slopes1") + when(!p.masked(), "Mask0")
	}
	return name + "Logn" + digit(p.ScaleType == ScaleLogN) + "Kv" + digit(!p.bypass()) + "Mask" + digit(p.masked()) +
		"Slopes" + digit(p.MaskType.slopes()) + "Batch" + digit(p.BatchRunStatusEnable)
}
