// Package attention holds the kernels of scaled dot product attention over
// contiguous keys and values, and the kernel that writes new keys and values
// into a cache.
//
// # The computation
//
// For query row r of sequence i and head h, with c = QKScale (times a factor of
// the row or the sequence):
//
//	s_j = clamp(QScale * q.k_j) * c + bias_j      clamp(QScale * c * q.k_j) with ClampScaled,
//	                                              (clamp + bias_j) * c with ScaleBias
//	p   = softmax over the visible j of s
//	o   = sum of p_j * v_j
//
// Everything is float32; the result is rounded once. A row that sees no key, or
// whose every key has the bias -Inf, gives zeros. Keys that a row does not see
// are never multiplied into it, so what they hold does not matter.
//
// # Tiles and parts
//
// A block walks items. An item is a tile of query rows of the heads that share
// a key head. It walks the parts of package parts that its rows see, and within
// a part tiles of 128 keys with an online softmax, so memory does not grow with
// the length of a sequence. Many rows multiply keys and values that are widened
// and packed into panels; few rows multiply them as they lie in memory. Both add the products of a score in order from 0, and
// sum a tile's values in the order of its keys before they join what was summed
// before, so a row's bits depend neither on the number of workers nor on the
// other rows and sequences of the call, nor on the tiling key. They do depend on
// whether there is assembly, which fuses products with sums. bf16 and f16 are
// widened: products of bf16 pairs would round the weights to 8 bits.
//
// Attend does all parts of a row in one kernel. With Parts an item is one part,
// which parts.Merge joins with the others: the same bits by more items. Rounded
// weights need the sum of the whole row, so quantised attention has no parts.
package attention
