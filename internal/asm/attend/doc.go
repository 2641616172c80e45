// Package attend holds the inner loops of attention in assembly: products of a
// few rows with the rows of a cache, several heads at a time, as they lie there,
// and of many rows with rows of a cache that are packed into panels.
//
// Elements are widened to f32 in registers. Every sum is one f32 accumulator
// that takes its products in order, each by a fused multiply-add: the scores in
// the order of the width, from 0; the mixed values in the order of the rows of
// the cache, on top of what is there. So a result is the same whatever the rows
// that are done at once and the register width. A tile's sums begin at 0 and may be
// added to what is there.
//
// Where there is VNNI, rows of fixed-point numbers are multiplied with int8 rows:
// sums of integers, which are exact in every order.
package attend
