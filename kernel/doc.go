// Package kernel defines what a kernel is: a name, a check of what it supports,
// a bound of its scratch memory, a typed tiling function, a compute function
// and a cost. Families of kernels live in the packages below this one.
//
// # Tiling
//
// A tiling is the plan of one launch: how the work is cut into blocks, which
// variant of the kernel runs (the tiling key) and how the data is walked. It is
// computed on the host by the kernel's Tile function and travels to the device
// as bytes; the Run function reads those bytes and nothing else besides its
// operands. A tiling is a fixed struct T without pointers, followed by a tail
// of 64-bit words for per-sequence tables. Host values (sequence lengths) are
// read by Tile only, so a kernel learns them through its tiling.
//
// # Adding a kernel
//
// Define it with Define and put it into its family's Table, best first, the
// plain reference last. Tests use package kerneltest.
package kernel
