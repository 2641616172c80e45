// Package tiling holds the policies that bring tiling data to the device.
//
// A Policy sees one launch of an operation as a Job: kernels with their place
// in a tiling block, a source of tilings, streams and rings. The runner calls
// it in two halves, which may lie in two calls and on two goroutines:
//
//	Begin, Move for each kernel and Send for each group, Flush   the tilings are computed and set out
//	Start, Before for each kernel, then End                      the kernels are enqueued
//
// The first half touches the copy stream and no execute stream, the second half
// the execute streams and not the copy stream: so one goroutine may do the first
// half of a launch while another does the second half of the launch before. A
// policy with a Group has its two halves interleaved by Execute, group by group,
// so that the host tiles the next group while the device runs the last one.
// Abort undoes a launch that failed or was never finished.
//
// A policy has no state of its own; what a launch needs lies in its Job.
package tiling
