package cache

import (
	"goatb/kernel/cache"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// CompressType tells whether every head keeps tokens of its own. Its JSON form
// is ATB's number.
type CompressType int

// Compressions.
const (
	CompressNone CompressType = iota
	// CompressKVHead keeps the last tokens of a sequence, as many as a head's
	// window.
	CompressKVHead
	// CompressKVHeadRope keeps the tokens of a sequence but for a window.
	CompressKVHeadRope
)

// KVCacheConfig tells what is written. Its JSON form is ATB's number.
type KVCacheConfig int

// Configurations of the caches.
const (
	// KeyAndValue writes keys and values.
	KeyAndValue KVCacheConfig = iota
	// KeyOnly writes keys alone.
	KeyOnly
	// KeyAndValueNZ writes keys and values to caches in layout fractal_nz.
	KeyAndValueNZ
)

// ReshapeAndCache writes new keys and values to a paged cache:
//
//	kCache[slot[i] / bs, slot[i] % bs] = key[i]      vCache likewise
//
// A negative slot is passed over. When several tokens name one slot the last
// one stays. A slot behind the cache is an error at execution, and then nothing
// is written.
//
// # Inputs and outputs
//
// n counts tokens, h heads; dk and dv are the sizes of a head. Key, value and
// caches are f32, f16, bf16 or int8, keys as their cache and values as theirs.
//
//	key, value       [n, h, dk], [n, h, dv]
//	kCache, vCache   [blocks, bs, h, dk], [blocks, bs, h, dv]
//	slots            int32 [n]
//
// Outputs are kCache and vCache, updated: pass the same memory to write in
// place.
//
//   - KeyOnly: inputs key, kCache, slots; output kCache.
//   - KeyAndValueNZ: caches [blocks, h*d/L, bs, L] in layout fractal_nz, where L
//     is 32 for int8 and 16 otherwise: element e of token i lies at
//     [slot/bs, e/L, slot%bs, e%L]. Keys and values may have different types.
//   - CompressKVHead: more inputs wins int32 [b*h] and seqLen int32 [b]; slots is
//     [b*h], caches have one head. For sequence s and head j the last
//     wins[s*h+j] of its seqLen[s] tokens go to the slots from slots[s*h+j] on.
//   - CompressKVHeadRope: one more input, offsetIndex int32 [b*h]. All tokens of
//     the sequence but those at positions offset to offset+wins-1 go to
//     consecutive slots, and all of them where the offset is -1.
//
// The tokens of the sequences follow each other in key and value.
//
// Errors: ErrInvalidParam for parameters (Validate); ErrInvalidTensorDimNum and
// ErrInvalidTensorDim for ranks and sizes; ErrRuntimeFail at execution for
// slots, windows, lengths and offsets that do not fit, with position, value and
// range.
//
// Source: ATB operation ReshapeAndCache, with its JSON keys.
type ReshapeAndCache struct {
	// CompressType tells which tokens each head keeps.
	CompressType CompressType `json:"compressType"`
	// KVCacheCfg tells what is written.
	KVCacheCfg KVCacheConfig `json:"kvCacheCfg"`
}

// DefaultReshapeAndCache returns ATB's defaults, which are all zero.
func DefaultReshapeAndCache() ReshapeAndCache { return ReshapeAndCache{} }

// Validate checks the parameters alone.
func (p ReshapeAndCache) Validate() error {
	switch {
	case p.CompressType < CompressNone || p.CompressType > CompressKVHeadRope:
		return status.Errorf(status.ErrInvalidParam, "compressType: want 0 to %d, got %d", CompressKVHeadRope, p.CompressType)
	case p.KVCacheCfg < KeyAndValue || p.KVCacheCfg > KeyAndValueNZ:
		return status.Errorf(status.ErrInvalidParam, "kvCacheCfg: want 0 to %d, got %d", KeyAndValueNZ, p.KVCacheCfg)
	case p.CompressType != CompressNone && p.KVCacheCfg != KeyAndValue:
		return status.Errorf(status.ErrInvalidParam, "compressType %d needs kvCacheCfg 0, got %d", p.CompressType, p.KVCacheCfg)
	}
	return nil
}

// sides lists the inputs that go together: a source and its cache. The inputs
// behind the caches start at slots.
type sides struct {
	source, cache []int
	slots         int
}

func (p ReshapeAndCache) sides() sides {
	if p.KVCacheCfg == KeyOnly {
		return sides{[]int{0}, []int{1}, 2}
	}
	return sides{[]int{0, 1}, []int{2, 3}, 4}
}

// Signature describes the operands.
func (p ReshapeAndCache) Signature() operation.Signature {
	s := operation.Signature{
		Name: "ReshapeAndCacheOperation", Variant: "ReshapeAndCacheOperation",
		In:  operation.Ports("key", "value", "kCache", "vCache", "slots"),
		Out: operation.Ports("kCache", "vCache"),
	}
	const types = " | T=f32,f16,bf16,int8 U=f32,f16,bf16,int8"
	switch {
	case p.KVCacheCfg == KeyOnly:
		s.Variant += "SISO"
		s.In, s.Out = operation.Ports("key", "kCache", "slots"), operation.Ports("kCache")
		s.Native = "T,T,int32->T" + types
	case p.KVCacheCfg == KeyAndValueNZ:
		s.Variant += "Atlas800A2NZ"
		s.Native = "T,U,T@fractal_nz,U@fractal_nz,int32->T@fractal_nz,U@fractal_nz" + types
	case p.CompressType == CompressKVHead:
		s.Variant += "KvHeadCompressAlibi"
		s.In = append(s.In, operation.Ports("wins", "seqLen")...)
		s.Native = "T,U,T,U,int32,int32,int32->T,U" + types
	case p.CompressType == CompressKVHeadRope:
		s.Variant += "KvHeadCompressRope"
		s.In = append(s.In, operation.Ports("wins", "seqLen", "offsetIndex")...)
		s.Native = "T,U,T,U,int32,int32,int32,int32->T,U" + types
	default:
		s.Native = "T,U,T,U,int32->T,U" + types
	}
	return s
}

// Infer returns the descriptors of the caches.
func (p ReshapeAndCache) Infer(q *operation.Query) ([]tensor.Desc, error) {
	var out []tensor.Desc
	for _, i := range p.sides().cache {
		out = append(out, q.In[i])
	}
	return out, nil
}

// Lower copies the caches to the outputs where they lie elsewhere and writes
// the rows there.
func (p ReshapeAndCache) Lower(b *kernelgraph.Builder, q *operation.Query) error {
	x := p.sides()
	source := []kernelgraph.Ref{kernelgraph.Absent, kernelgraph.Absent}
	caches := []kernelgraph.Ref{kernelgraph.Absent, kernelgraph.Absent}
	for i := range x.cache {
		source[i], caches[i] = b.In(x.source[i]), b.Out(i)
		if err := b.Copy(b.In(x.cache[i]), caches[i]); err != nil {
			return err
		}
	}
	call := kernelgraph.Call{Table: cache.Scatter, Params: cache.ScatterParams{Layout: p.layout()}, In: source, Out: caches}
	for i := x.slots; i < len(q.In); i++ {
		call.In = append(call.In, b.In(i))
	}
	if p.CompressType != CompressNone {
		drop := p.CompressType == CompressKVHeadRope
		call.Table, call.Params = cache.Windows, cache.WindowsParams{Drop: drop}
		if !drop {
			call.In = append(call.In, kernelgraph.Absent)
		}
	}
	call.In = append(call.In, caches...)
	return b.Kernel(call)
}

func (p ReshapeAndCache) layout() cache.Layout {
	if p.KVCacheCfg == KeyAndValueNZ {
		return cache.NZ
	}
	return cache.Rows
}
