// Package vec holds the inner loops of kernels: small functions over slices,
// in plain Go that the compiler turns into tight code. None of them allocates.
//
// # Order of summation
//
// A sum of floats depends on its order, so every order here is fixed: the
// result depends on the elements and the length alone, never on where the
// slices lie or on which caller asks.
//
// Dot, Sum and SumSquares keep eight partial sums. Over the longest prefix
// whose length is a multiple of eight, partial sum l adds the elements l, l+8,
// l+16, ... in order, starting from +0; then the partial sums are joined as
// ((0+4)+(2+6)) + ((1+5)+(3+7)), and the elements behind the prefix are added
// one after the other.
//
// The functions of a matrix product (Dots4, Dots4BF16, Axpy4, Tile2x4) add the
// products of one output in the order of k, whatever the number of outputs that
// they compute at once, so they can stand in for each other bit by bit. Every
// product is rounded to float32 before it is added, on every architecture:
// nothing is fused. The int8 functions are exact.
package vec
