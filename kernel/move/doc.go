// Package move holds the kernels that only move bytes: copy, transpose, row
// copies for concatenation, splitting and slicing, and gather.
//
// They do not look at values, so one kernel serves every element type of a
// size. Memory-bound work is cut into blocks of whole rows or byte ranges and
// the result never depends on the number of blocks.
package move

// nanosPerByte estimates the time of one core for a byte read and written.
const nanosPerByte = 0.15
