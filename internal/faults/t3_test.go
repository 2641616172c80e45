package faults_test

import (
	"math"

	"goatb/operation/attention"
)

// The common sample of attention: one head of size 2 and three keys. Over the
// first keys it gives what t3Over says, for q = [1,0].
var (
	t3Q    = []float64{1, 0}
	t3K    = [][]float64{{1, 0}, {0, 1}, {1, 1}}
	t3V    = [][]float64{{1, 2}, {3, 4}, {5, 6}}
	t3Over = [][]float64{{0, 0}, {1, 2}, {1.6604769, 2.6604769}, {3, 4}}
)

const (
	t3Scale = 1 / math.Sqrt2
	// tight bounds the error of float32 sums of a few products near 1.
	tight = 1e-6
)

// t3Paged is the paged attention of the sample.
func t3Paged() attention.PagedAttention {
	p := attention.DefaultPagedAttention()
	p.HeadNum, p.QKScale = 1, t3Scale
	return p
}

// t3Self is a self attention of the sample's scale.
func t3Self(calc attention.SelfCalcType, mask attention.SelfMaskType) attention.SelfAttention {
	p := attention.DefaultSelfAttention()
	p.HeadNum, p.CalcType, p.MaskType, p.QKScale = 1, calc, mask, t3Scale
	return p
}

// t3Prefix is an attention of rows over their own positions in a paged cache.
func t3Prefix() attention.SelfAttention {
	p := t3Self(attention.SelfPrefixEncoder, attention.SelfMaskCausal)
	p.IsTriuMask, p.KernelType = 1, attention.KernelHighPrecision
	return p
}

// sequence is the keys and values of a sequence, a row per position.
type sequence struct{ keys, values [][]float64 }

var t3 = sequence{t3K, t3V}

// pages lays sequences of one head into caches [blocks, size, 1, width] with
// their block table. Blocks are given out from the last one on, each sequence
// has one to spare, and what is not used is NaN.
func pages(size int64, sequences ...sequence) (keys, values, tables operand) {
	columns, width := int64(0), int64(0)
	for _, s := range sequences {
		columns = max(columns, (int64(len(s.keys))+size-1)/size+1)
		if len(s.keys) > 0 {
			width = int64(len(s.keys[0]))
		}
	}
	blocks := columns * int64(len(sequences))
	k, v := repeat(nan, blocks*size*width), repeat(nan, blocks*size*width)
	table := make([]int32, blocks)
	for i, s := range sequences {
		for c := range columns {
			at := int64(i)*columns + c
			table[at] = int32(blocks - 1 - at)
		}
		for j := range s.keys {
			block := int64(table[int64(i)*columns+int64(j)/size])
			at := (block*size + int64(j)%size) * width
			copy(k[at:at+width], s.keys[j])
			copy(v[at:at+width], s.values[j])
		}
	}
	return f32(k, blocks, size, 1, width), f32(v, blocks, size, 1, width), ints(table, int64(len(sequences)), columns)
}

// t3Pages are the operands of a paged attention of n sequences of the sample.
func t3Pages(size int64, contexts ...int32) []operand {
	n := len(contexts)
	var all []sequence
	var q []float64
	for range n {
		all, q = append(all, t3), append(q, t3Q...)
	}
	k, v, tables := pages(size, all...)
	return []operand{f32(q, int64(n), 1, 2), k, v, tables, lengths(contexts...)}
}

// t3Rows are the values of the sample over contexts.
func t3Rows(contexts ...int32) []float64 {
	var out []float64
	for _, n := range contexts {
		out = append(out, t3Over[n]...)
	}
	return out
}
