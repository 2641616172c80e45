package roofline

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"goatb/atb"
	"goatb/operation/linear"
	"goatb/tensor"
)

// BeyondCaches is more memory than caches hold.
const BeyondCaches = 768 << 20

// Cases returns the standard shapes.
func Cases() []Case { return slices.Concat(products(), rows(), attentions()) }

// random makes a tensor of values of -1 to 1, the same few again and again:
// int8 or a float type.
func (b *Bench) random(t atb.DType, dims ...int64) (atb.Tensor, error) {
	return randomTensor(b.C, t, dims...)
}

// randomTensor is Bench.random in a context.
func randomTensor(c *atb.Context, t atb.DType, dims ...int64) (atb.Tensor, error) {
	d := atb.Of(t, dims...)
	n := d.Numel()
	few := make([]float32, min(n, 1<<16))
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range few {
		few[i] = r.Float32()*2 - 1
	}
	if t == tensor.Int8 {
		data := make([]int8, n)
		for i := range data {
			data[i] = int8(127 * few[i%len(few)])
		}
		return atb.FromSlice(c, data, dims...)
	}
	data := make([]float32, n)
	for at := 0; at < len(data); {
		at += copy(data[at:], few)
	}
	return atb.FromFloats(c, t, data, dims...)
}

// products are square ones of row-major matrices, and those of a layer with
// constant weights [4096,4096]: one token, a few, a prefill.
func products() []Case {
	var out []Case
	for _, n := range []int64{512, 1024, 2048} {
		out = append(out, square(n))
	}
	for _, t := range []atb.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Int8} {
		for _, m := range []int64{1, 16, 128} {
			out = append(out, Packed(t, m, 4096, 4096))
		}
	}
	return out
}

func square(n int64) Case {
	return Case{
		Name: "product", Shape: fmt.Sprintf("%dx%dx%d", n, n, n), DType: "f32", Peak: "f32",
		Flops: 2 * float64(n*n*n), Bytes: 12 * float64(n*n),
		Build: func(b *Bench) error {
			x, err := b.random(tensor.Float32, n, n)
			if err != nil {
				return err
			}
			w, err := b.random(tensor.Float32, n, n)
			if err != nil {
				return err
			}
			return b.Add(linear.Linear{}, []atb.Tensor{x, w}, nil)
		},
	}
}

// Packed is a product of m rows with constant weights [n,k] of type t, packed
// beforehand.
func Packed(t atb.DType, m, n, k int64) Case {
	size := float64(t.Size())
	return Case{
		Name: "linear", Shape: fmt.Sprintf("%dx%dx%d", m, n, k), DType: t.String(), Peak: peakOf(t),
		Flops: 2 * float64(m*n*k), Bytes: size*float64(n*k) + size*float64(m*k) + 2*float64(m*n),
		Build: func(b *Bench) error { return b.linears(t, m, n, k) },
	}
}

// Plain is a product of m rows with a matrix of type t as it lies in memory: [n,k]
// transposed, [k,n] otherwise.
func Plain(t atb.DType, m, n, k int64, transposed bool) Case {
	c := Packed(t, m, n, k)
	c.Name = "plain [k,n]"
	if transposed {
		c.Name = "plain [n,k]"
	}
	c.Build = func(b *Bench) error {
		op, in, err := b.product(t, m, n, k)
		if err != nil {
			return err
		}
		if op.TransposeB = transposed; !transposed {
			if in[1], err = b.random(t, k, n); err != nil {
				return err
			}
		}
		return b.Add(op, in, nil)
	}
	return c
}

// peakOf names the peak of products of a type: f16 is multiplied as f32.
func peakOf(t atb.DType) string {
	if t == tensor.Float16 {
		return "f32"
	}
	return t.String()
}

// linears adds products with as many packed weights as go beyond caches. They have
// one output, as the layers of a model use the same memory again and again.
func (b *Bench) linears(t atb.DType, m, n, k int64) error {
	op, in, err := b.product(t, m, n, k)
	if err != nil {
		return err
	}
	w, out := in[1], []atb.Tensor(nil)
	for total := int64(0); total <= b.beyond; total += w.Desc.Bytes() {
		in := slices.Clone(in)
		if in[1], err = linear.PackWeight(ctx(), b.C, w, true); err != nil {
			return err
		}
		if err := b.Add(op, in, out); err != nil {
			return err
		}
		out = b.calls[0].pack.Out
	}
	return nil
}

// product makes the operation of m rows times weights [n,k], and its inputs.
func (b *Bench) product(t atb.DType, m, n, k int64) (op linear.Linear, in []atb.Tensor, err error) {
	op.TransposeB = true
	shapes := [][]int64{{m, k}, {n, k}}
	if t == tensor.Int8 {
		op.OutDataType = tensor.BFloat16
		shapes = append(shapes, []int64{n})
	}
	for i, s := range shapes {
		of := t
		if i == 2 { // the scales
			of = tensor.Float32
		}
		x, err := b.random(of, s...)
		if err != nil {
			return op, nil, err
		}
		in = append(in, x)
	}
	return op, in, nil
}
