// Package matmul holds the kernels of matrix products: x[b,m,k] times w with an
// optional bias, addition to an accumulator, or scales of a quantised product.
// Elements are f32, f16 and bf16 with sums in f32, or int8 with exact int32
// sums.
//
// # Operands
//
// Every kernel has the six inputs X, W, Bias, Scale, TokenScale and Acc, absent
// where it does not need them, and one output. What the product does beyond x·w
// follows from which of them are there.
//
// # Order of summation
//
// The sum of an output element is a function of its row of x, its column of w
// and K alone. K is cut into chunks of chunkOf(K) elements. Inside a chunk the
// products are added in the order of k, starting from 0; the sums of the chunks
// are added in the order of the chunks. Every variant keeps this order, whether
// it walks rows of w, columns of w, packed panels or one chunk at a time. So a
// row of x gives the same bits alone and in any batch, and neither blocks nor
// tiles nor the order in which a block takes its tiles can be seen in a result.
//
// # Variants
//
// The tiling key says how a product walks its operands: "rows" for few rows of
// x and weights whose rows run along K, "columns" for few rows of x and weights
// stored [k,n], "panels" for the rest, with both operands packed into panels in
// scratch memory. Choose tells whether the work is better cut into two kernels:
// Partial and Reduce when K is long and there are too few outputs to keep the
// cores busy, Pack and Product when many tiles would pack the same weights.
package matmul
