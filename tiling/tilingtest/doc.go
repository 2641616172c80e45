// Package tilingtest is the conformance suite of tiling policies. It drives a
// policy as a runner does, on the CPU device, asynchronous and inline, and
// checks what every policy promises:
//
//   - each kernel reads the tiling, the block dim and the key of its own launch,
//     whatever the streams do meanwhile and however many launches are in flight;
//   - a block is not used again before its last reader has finished, a full
//     ring waits and counts, and a policy without rings never waits;
//   - each kernel is enqueued behind its tiling, on whatever stream it runs;
//   - the two halves of a launch may lie on two goroutines: the first one
//     touches no execute stream, the second one no copy stream;
//   - a launch that fails or is never finished gives everything back;
//   - a launch allocates nothing.
//
// A policy is fit for use when Run passes, under -race too.
package tilingtest
