package attention

import (
	"iter"

	"goatb/tensor"
)

// PagedMatrix yields every combination of the parameters of a paged attention
// that Validate accepts and Check does not refuse as a whole: mask, calc type,
// quantisation with and without offsets, compression, scale, layout, run
// status, and values inside the keys. All have four query heads and two key
// heads, one with values inside the keys; the latter have size 8.
func PagedMatrix() iter.Seq[PagedAttention] {
	return func(yield func(PagedAttention) bool) {
		for p := range pagedProduct() {
			if p.MaskType != PagedMaskFree && p.Validate() == nil && !yield(p) {
				return
			}
		}
	}
}

// pagedProduct yields all values of all enumerations and switches.
func pagedProduct() iter.Seq[PagedAttention] {
	// The digits of a number in mixed radix are the choices.
	radix := [...]int{
		int(PagedMaskNormCompress) + 1, int(PagedCalcSpec) + 1, int(QuantOnline) + 1, 2,
		int(PagedCompressKVHeadRope) + 1, int(ScaleLogN) + 1, int(LayoutBNSD) + 1, 2, 2,
	}
	total := 1
	for _, r := range radix {
		total *= r
	}
	return func(yield func(PagedAttention) bool) {
		for n := range total {
			var digit [len(radix)]int
			for i, r := range radix {
				digit[i] = n % r
				n /= r
			}
			p := PagedAttention{
				HeadNum: 4, KVHeadNum: 2, QKScale: 0.25,
				MaskType: PagedMaskType(digit[0]), CalcType: PagedCalcType(digit[1]),
				QuantType: QuantType(digit[2]), HasQuantOffset: digit[3] == 1,
				CompressType: PagedCompressType(digit[4]), ScaleType: ScaleType(digit[5]),
				InputLayout: InputLayout(digit[6]), BatchRunStatusEnable: digit[7] == 1,
			}
			if digit[8] == 1 {
				p.KVHeadNum, p.MLAVHeadSize = 1, 8
			}
			if p.int8All() {
				p.OutDataType = tensor.Float16
			}
			if !yield(p) {
				return
			}
		}
	}
}
