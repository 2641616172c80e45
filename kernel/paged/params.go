package paged

import (
	"goatb/kernel"
	"goatb/kernel/parts"
	"goatb/tensor"
)

// QuantBlock is the number of positions whose probabilities are quantised
// together.
const QuantBlock = 128

// Positions of the inputs of Attend and Parts. An absent input has an empty
// descriptor; only query, key, block tables are always there.
const (
	InQuery       = iota // [tokens, heads, dk]
	InKey                // [blocks, block size, kv heads, dk], or head major
	InValue              // as the keys with width dv; absent when ValueDim is set
	InTables             // int32 [sequences, columns]
	InMask               // see MaskMode
	InRazor              // f32 [blocks, block size], added to raw scores
	InLogN               // f32 [sequences], factors of the scale
	InKeyScale           // Dequant: f32 or int64 [kv heads*dk]; Offline, Online: f32 [heads]
	InKeyOffset          // int32 [kv heads*dk]
	InValueScale         // as InKeyScale, with dv
	InValueOffset        // int32 [kv heads*dv]
	InProbScale          // Offline: f32 [heads]
	NumInputs
)

// MaskMode tells how the rows of the mask go with the rows of the query. The
// last axis is the position in the context.
type MaskMode uint8

// Mask modes. An axis of 1 serves every sequence, head or position.
const (
	// NoMask: there is none.
	NoMask MaskMode = iota
	// BySequence: [sequences, columns], [sequences, heads, columns] or
	// [sequences, heads, 1, columns]; every axis before the last may be 1.
	BySequence
	// ByToken: [tokens, columns].
	ByToken
	// ByPosition: [positions, columns] or [sequences, positions, columns]. The
	// query rows of a sequence are its last positions.
	ByPosition
	// Causal: there is none, and a query row sees the positions up to its own. The
	// query rows of a sequence are its last positions.
	Causal
)

// Quant tells what is quantised.
type Quant uint8

// Quantisations.
const (
	// NoQuant: nothing.
	NoQuant Quant = iota
	// Dequant: keys and values are int8; (x+offset)*scale by channel.
	Dequant
	// Offline: query, keys and values are int8; probabilities are quantised
	// with given scales.
	Offline
	// Online: as Offline, with scales from each block's largest probability.
	Online
)

// Params are the parameters of the kernels of this package.
type Params struct {
	// Scale multiplies the raw scores.
	Scale float32
	// Heads and KVHeads are the numbers of heads; Heads is a multiple of
	// KVHeads, and query head h reads kv head h/(Heads/KVHeads).
	Heads, KVHeads int64
	// ValueDim says that a value is the front of its key's row, that wide. It
	// is 0 where there is a value cache.
	ValueDim int64
	Mask     MaskMode
	Quant    Quant
	// HeadMajor says that a block holds one head after the other.
	HeadMajor bool
	// PerHead says that every kv head of a sequence has its own context
	// length and row of the block tables, and that the caches have one head.
	PerHead bool
	// QueryLens says that the value tensor behind the context lengths holds
	// the query rows of each sequence; without it each has one.
	QueryLens bool
	// RunStatus says that the last value tensor tells which sequences run;
	// the rows of the others become zero.
	RunStatus bool
}

// isFloat reports whether LoadFloats and StoreFloats take the type.
func isFloat(t tensor.DType) bool {
	return t == tensor.Float32 || t == tensor.Float16 || t == tensor.BFloat16
}

// maxContext bounds every context, so that products of sizes stay in int64.
const maxContext = 1 << 40

// Capacity returns the longest context that columns blocks of blockSize
// positions hold.
func Capacity(columns, blockSize int64) int64 {
	if columns > maxContext/blockSize {
		return maxContext
	}
	return columns * blockSize
}

// Split tells whether Parts and parts.Merge suit a problem better than Attend: a
// long context, and too few query rows for all cores to do them with whole rows of the
// caches, which are read faster than the rows of some heads. maxContext is the longest
// context that table and mask allow.
func Split(a Params, m kernel.Machine, tokens, maxContext, valueDim int64) bool {
	const minParts = 4
	n, cores := parts.Count(maxContext), int64(max(m.Cores, 1))
	if m.Accelerator || cores == 1 || n < minParts {
		return false
	}
	group, rows := a.Heads/a.KVHeads, tokens
	if a.QueryLens {
		rows = ceil(tokens, max(1, rowsWanted/group))
	}
	items := rows * ceil(group, rowsWanted)
	if a.PerHead {
		items *= a.KVHeads
	}
	return items < evenShare*cores && parts.Fits(tokens*a.Heads, n, valueDim)
}
