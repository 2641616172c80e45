package roofline

import (
	"context"
	"fmt"
	"math"

	"goatb/atb"
	"goatb/operation/attention"
	"goatb/tensor"
)

// Heads of the attention cases: 32 queries on 8 keys, of 128 elements.
const (
	queryHeads, keyHeads, headDim = 32, 8, 128
	cacheBlock                    = 128
)

func ctx() context.Context { return context.Background() }

// attentions are prefills of one sequence, and decoding over a paged cache.
func attentions() []Case {
	var out []Case
	for _, t := range []atb.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
		for _, n := range []int64{512, 2048} {
			out = append(out, prefill(t, n))
		}
	}
	for _, t := range []atb.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Int8} {
		for _, batch := range []int64{1, 4} {
			out = append(out, decode(t, batch, 4096))
		}
	}
	return out
}

func scale() float32 { return float32(1 / math.Sqrt(headDim)) }

func prefill(t atb.DType, n int64) Case {
	return Case{
		Name: "prefill", Shape: fmt.Sprintf("[%d,%d+2*%d,%d]", n, queryHeads, keyHeads, headDim), DType: t.String(), Peak: peakOf(t),
		Flops: 4 * float64(n*n) * queryHeads * headDim,
		Bytes: float64(t.Size()) * float64(n) * (2*queryHeads + 2*keyHeads) * headDim,
		Build: func(b *Bench) error {
			var in []atb.Tensor
			for _, heads := range []int64{queryHeads, keyHeads, keyHeads} {
				x, err := b.random(t, n, heads, headDim)
				if err != nil {
					return err
				}
				in = append(in, x)
			}
			s := attention.DefaultSelfAttention()
			s.CalcType, s.HeadNum, s.KVHeadNum, s.QKScale = attention.SelfPAEncoder, queryHeads, keyHeads, scale()
			return b.Add(s, append(in, atb.Host([]int32{int32(n)}, 1)), nil)
		},
	}
}

// decode attends to a paged cache of type t; the queries of an int8 cache, whose
// channels have scales, are f16.
func decode(t atb.DType, batch, length int64) Case {
	queries, blocks := t, batch*length/cacheBlock
	if t == tensor.Int8 {
		queries = tensor.Float16
	}
	bytes := float64(t.Size()) * float64(batch*length) * 2 * keyHeads * headDim
	return Case{
		Name: "decode", Shape: fmt.Sprintf("[%d,%d/%d,%d] of %d", batch, queryHeads, keyHeads, headDim, length), DType: t.String(), Peak: peakOf(queries),
		Flops: 4 * float64(batch*length) * queryHeads * headDim, Bytes: bytes,
		Build: func(b *Bench) error {
			q, err := b.random(queries, batch, queryHeads, headDim)
			if err != nil {
				return err
			}
			tables, lengths := make([]int32, blocks), make([]int32, batch)
			for i := range tables {
				tables[i] = int32((i*5 + 1) % len(tables))
			}
			for i := range lengths {
				lengths[i] = int32(length)
			}
			at, err := atb.FromSlice(b.C, tables, batch, length/cacheBlock)
			if err != nil {
				return err
			}
			s := attention.PagedAttention{HeadNum: queryHeads, KVHeadNum: keyHeads, QKScale: scale()}
			var scales []atb.Tensor
			if t == tensor.Int8 {
				s.QuantType = attention.QuantDequantFusion
				x, err := b.random(tensor.Float32, keyHeads*headDim)
				if err != nil {
					return err
				}
				scales = []atb.Tensor{x, x}
			}
			for total := 0.0; total <= float64(b.beyond); total += bytes {
				in := append([]atb.Tensor{q, {}, {}, at, atb.Host(lengths, batch)}, scales...)
				for i := 1; i <= 2; i++ {
					if in[i], err = b.random(t, blocks, cacheBlock, keyHeads, headDim); err != nil {
						return err
					}
				}
				if err := b.Add(s, in, nil); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
