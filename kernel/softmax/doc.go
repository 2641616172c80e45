// Package softmax holds the kernels of the softmax over one axis of a
// [outer, length, inner] view: y = e^(x-max) / sum of e^(x-max), computed in
// float32 and rounded once.
//
// A slice whose elements are all -Inf gives zeros, a slice with a NaN or +Inf
// element gives NaN. The sum is taken over chunks of Chunk elements, then over
// the chunks in order, so every kernel here gives the same bits for a slice,
// wherever it lies and however many workers there are.
package softmax

import "goatb/kernel"

// Chunk is the number of elements of a partial sum.
const Chunk = 8192

// View is the parameter of the kernels: the operand as [Outer, Length, Inner],
// the softmax running over Length.
type View struct{ Outer, Length, Inner int64 }

// nanosPerElement estimates one core's time for an element.
func nanosPerElement() float64 { return kernel.Nanos(0.5, 4) }

// chunks returns the number of partial sums of a slice.
func chunks(length int64) int64 { return (length + Chunk - 1) / Chunk }
