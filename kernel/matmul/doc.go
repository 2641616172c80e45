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
// are added in the order of the chunks. Every variant of a level keeps this order,
// whether it walks rows of w, columns of w, packed panels or one chunk at a time. So a
// row of x gives the same bits alone and in any batch, and neither blocks nor
// tiles nor the order in which a block takes its tiles can be seen in a result.
//
// The multiplication and addition of one product are two roundings in plain Go
// and one with assembly, so levels of package internal/cpu differ in bits, and
// nothing else does.
//
// # Kernels
//
// The tables list the best kernels first. An engine (one for each set of loops of
// package internal/asm/gemm) packs groups of rows of x, so that a step of K of all
// rows lies together, and multiplies them with panels of 32 columns of w, tile by
// tile in registers; see sweep.go. Tiles fetch what is packed or multiplied after
// them, see fetch.go. It packs the panels of weights as they are
// stored on the way, and reads those of layout Panels, which Pack makes once for
// constant weights, where they lie: that is as fast as memory gives them for few
// rows, and as fast as the core multiplies for many. Panels of f16 and bf16 are
// widened to f32 by the first tile that takes them, which stores that for the others
// if there are any; bf16 goes through VDPBF16PS only where that is faster, and then
// subnormal elements count as zero.
// Plain Go comes last.
//
// The tiling key of plain Go says how a product walks its operands: "rows" for few
// rows of x and weights whose rows run along K, "columns" for few rows of x and
// weights stored [k,n], "panels" for the rest, with both operands packed into
// panels in scratch memory.
//
// Choose tells whether the work is better cut into two kernels, Partial and Reduce:
// when K is long and there are too few outputs to keep the cores busy.
//
// Int4Product multiplies with weights of int4 in groups with scales, which
// Int4Pack packs.
package matmul
