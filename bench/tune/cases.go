package tune

import (
	"slices"

	"goatb/atb"
	"goatb/bench/roofline"
	"goatb/tensor"
)

// Cases returns the grid: products with packed and with plain weights of the shapes
// of tiny, small and large models, for one token, a few and many, and those of
// package roofline whose tilings have a choice too: square products, prefill and
// decoding attention, and a row operation.
func Cases() []roofline.Case {
	var out []roofline.Case
	for _, t := range []atb.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Int8} {
		for _, m := range []int64{1, 16} { // so few outputs that K is all there is to cut
			out = append(out, roofline.Packed(t, m, 32, 8192))
		}
		for _, w := range [][2]int64{{64, 64}, {768, 288}, {2048, 2048}, {4096, 4096}} {
			for _, m := range []int64{1, 5, 16, 48, 128} {
				out = append(out, roofline.Packed(t, m, w[0], w[1]))
			}
		}
		for _, s := range [][3]int64{{16, 1024, 1024}, {128, 1024, 1024}, {300, 700, 1500}} {
			out = append(out, roofline.Plain(t, s[0], s[1], s[2], true), roofline.Plain(t, s[0], s[1], s[2], false))
		}
	}
	names := []string{"product", "prefill", "decode", "rmsnorm", "softmax"}
	for _, c := range roofline.Cases() {
		if slices.Contains(names, c.Name) && c.Flops < 2e10 {
			out = append(out, c)
		}
	}
	return out
}
