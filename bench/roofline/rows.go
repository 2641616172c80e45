package roofline

import (
	"fmt"

	"goatb/atb"
	"goatb/operation/activation"
	"goatb/operation/cache"
	"goatb/operation/elementwise"
	"goatb/operation/norm"
	"goatb/operation/rope"
	"goatb/operation/shape"
	"goatb/tensor"
)

// rows are the operations that only move data past a few instructions, on 512
// tokens of 4096 elements.
func rows() []Case {
	const tokens, width = 512, 4096
	var out []Case
	for _, t := range []atb.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
		out = append(out,
			move("rmsnorm", t, 2, plainNorm(), [][]int64{{tokens, width}, {width}}),
			move("softmax", t, 2, shape.Softmax{Axes: []int64{-1}}, [][]int64{{tokens, width}}),
			move("gelu", t, 2, activation.Of(activation.Gelu), [][]int64{{tokens, width}}),
			move("silu", t, 2, activation.Of(activation.Swish), [][]int64{{tokens, width}}),
			move("swiglu", t, 1.5, activation.Of(activation.SwiGLUForward), [][]int64{{tokens, width}}),
			move("add", t, 3, elementwise.Of(elementwise.Add), [][]int64{{tokens, width}, {tokens, width}}),
			move("transpose", t, 2, shape.Transpose{Perm: []int64{1, 0}}, [][]int64{{tokens, width}}),
			turn(t, tokens, width), write(t, tokens, width),
		)
	}
	narrow := elementwise.Of(elementwise.Cast)
	narrow.OutTensorType = tensor.Float16
	cast := move("cast", tensor.Float32, 1.5, narrow, [][]int64{{tokens, width}})
	cast.DType = "f32 to f16"
	return append(out, cast)
}

func plainNorm() norm.RMSNorm {
	n := norm.DefaultRMSNorm()
	n.LayerType = norm.Plain
	return n
}

// move is an operation that reads and writes the elements of its first input
// so many times.
func move(name string, t atb.DType, times float64, s atb.Spec, dims [][]int64) Case {
	first := atb.Of(t, dims[0]...)
	return Case{
		Name: name, Shape: first.Shape.String(), DType: t.String(), Bytes: times * float64(first.Bytes()),
		Build: func(b *Bench) error {
			in := make([]atb.Tensor, len(dims))
			for i, d := range dims {
				var err error
				if in[i], err = b.random(t, d...); err != nil {
					return err
				}
			}
			return b.Add(s, in, nil)
		},
	}
}

// turn is the rotary embedding of queries and keys of 32 and 8 heads.
func turn(t atb.DType, tokens, width int64) Case {
	const head = 128
	keys := width / 4
	return Case{
		Name: "rope", Shape: fmt.Sprintf("[%d,%d]+[%d,%d]", tokens, width, tokens, keys), DType: t.String(),
		Bytes: float64(t.Size()) * float64(2*tokens*(width+keys)+2*tokens*head),
		Build: func(b *Bench) error {
			var in []atb.Tensor
			for _, w := range []int64{width, keys, head, head} {
				x, err := b.random(t, tokens, w)
				if err != nil {
					return err
				}
				in = append(in, x)
			}
			lengths, err := atb.FromSlice(b.C, []int32{int32(tokens)}, 1)
			if err != nil {
				return err
			}
			return b.Add(rope.Rope{RotaryCoeff: 2}, append(in, lengths), nil)
		},
	}
}

// write puts keys and values of 8 heads into a paged cache.
func write(t atb.DType, tokens, width int64) Case {
	const head, block = 128, 128
	heads := width / 4 / head
	return Case{
		Name: "cache write", Shape: fmt.Sprintf("[%d,%d,%d]", tokens, heads, head), DType: t.String(),
		Bytes: 4 * float64(t.Size()) * float64(tokens*heads*head),
		Build: func(b *Bench) error {
			var in []atb.Tensor
			for _, dims := range [][]int64{{tokens, heads, head}, {tokens, heads, head}, {tokens / block, block, heads, head}, {tokens / block, block, heads, head}} {
				x, err := b.random(t, dims...)
				if err != nil {
					return err
				}
				in = append(in, x)
			}
			slots := make([]int32, tokens)
			for i := range slots {
				slots[i] = int32((i*7 + 3) % int(tokens))
			}
			at, err := atb.FromSlice(b.C, slots, tokens)
			if err != nil {
				return err
			}
			return b.Add(cache.DefaultReshapeAndCache(), append(in, at), in[2:4:4])
		},
	}
}
