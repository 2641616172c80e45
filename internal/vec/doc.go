// Package vec holds the inner loops of kernels: small functions over slices.
// Where package internal/asm/vecmath has a loop for this machine it is used,
// otherwise plain Go that the compiler turns into tight code. None of them
// allocates, but the compiler keeps arrays that are passed to them on the heap.
// Assembly does a call in one piece that cannot be preempted, so
// slices of more than about 100 000 elements are the caller's to cut.
//
// # Order of summation
//
// A sum of floats depends on its order, so every order here is fixed: the
// result depends on the elements and the length alone, never on where the
// slices lie, on which caller asks or on how many rows it asks for.
//
// Dot, Dots, Sum and SumSquares keep 64 partial sums. Partial sum l adds the
// elements l, l+64, l+128, ... in order, starting from +0; then the upper half
// of the partial sums is added to the lower half until one is left.
//
// Mix adds the rows one after the other. The functions of a matrix product
// (Dots4, Dots4BF16, Axpy4, Tile2x4) add the products of one output in the
// order of k, whatever the number of outputs that they compute at once, so they
// can stand in for each other bit by bit. Every product is rounded to float32
// before it is added, on every architecture: nothing is fused. The int8
// functions are exact.
//
// # Bits
//
// Arithmetic, sums, maxima, rotations, conversions and quantisation give the
// same bits in assembly and in plain Go. Elementary functions do not: plain Go
// computes in float64 and rounds once, which is off by less than 0.6 ulp of
// float32, and assembly computes in float32 with fused multiply-adds, the same
// bits at every register width. Its largest errors, in ulp, over all arguments
// that have a finite result:
//
//	Exp       1.1
//	Log       0.9
//	Sin, Cos  2.2
//	Tanh      2.6
//	Sigmoid   2.2
//	Silu      2.2, Swish with scales from 2^-64 to 2^64 2.6
//	SwiGLU    0.5 behind silu(gate) rounded to float32
//	SwiGLUGrad  6, and 4 ulp of dy·up·sigmoid(gate) more for dgate
//	GeluErf   5.2
//	GeluTanh  2.7, and 1.8·|z| more for z = √(8/π)·(x+0.044715·x³) below 0
//	ExpSum    2.0, and 1.3·|src-max| more
//	Soften    2.0, and 1.04·|s·scale-top| more
//
// The gates of f16 and bf16 (Sigmoid, Silu, Swish, SwiGLU, GeluTanh) are off by up
// to 0.65 and 0.54 units in the last place of the result, rounding included; in
// SwiGLU that is behind a silu(gate) that is off by 2^-143 more. They are not the
// same at every width, nor are the softmaxes of 16-bit rows in package floats,
// which have the same errors.
//
// An element's result depends on that element alone.
package vec
