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
// # Tiles
//
// A block walks items. An item is a tile of query rows of the heads that share
// a key head; it walks tiles of keys with an online softmax, so memory does not
// grow with the length of a sequence. Key tiles begin at multiples of a size
// that depends on the head sizes and the machine's caches alone, and every row
// does its own sums in the order of keys: its bits depend neither on the number
// of workers nor on the other rows and sequences of the call, nor on the
// tiling key.
package attention
