// Package faults holds a test for every known fault of ATB and of kindred
// systems that touches what GoATB has built. TestA01 is the test of row A01 of
// the list of known faults, and so on. Every test makes a whole call (context,
// operation, Setup, Execute, Synchronize) on the CPU device under the native
// checks and compares with values from float64 mathematics; a refusal is right
// only for input that is invalid. Memory is poisoned with NaN and lies between
// canaries.
//
// # Covered here
//
//   - A, Ascend users: 01 03 05 07 09 11 13 15 17 19 21 23 25 27 29 31 33 35 37
//     39 41 43 45 47 49 51
//   - B, fixes of ATB: 01 03 05 07 09 11 13 15 17 19 21 23 25 27 29 31 33 35 37 41
//     43
//   - C, plan and run: 01 03 05 07 09 11 13 15 17 19 21 23 25
//   - D, varlen and paged attention: 01 03 05 07 09 11 13 15 17 19 21
//   - E, memory planners: 01 03 05 07 09 11 13 15 17 19 21 23 25 27 29 31
//   - F, caches: 01 03 05 07 09 11 13 15 17 19 21
//   - G, streams and lifetimes: 01 03 07 09 11 13 15 17 19
//   - H, numbers: 01 03 05 07 09 11 13 15 17 19 21 23 25 27
//
// Some rows tell of what GoATB has not; their kind is tested where it exists:
//
//   - Capture and replay in A21 A23 A25 A27 A29 A31 A45 B05 C01 C03 C15 G01 G03
//     G07: policy device-sink captures and replays; the others repeat an Execute
//     after one Setup, hold launches in a stream, and prepare them.
//   - Operations in A43 (paged cache load: the prefix attention reads instead),
//     B09 (communication: an uncached kernel in a graph), B17 (merge: the parts
//     of long softmaxes and paged contexts), B27 (norm backward: every
//     operation), B29 (padding: lengths of attention), B31 (top-p: outputs with
//     an element per row), F03 (where: a broadcasting sum), G11 (grouped product:
//     empty sequences, scratch memory of two streams).
//
// # Covered elsewhere too
//
//   - F01 with one hash for all keys: TestEqualHashes of tilingcache. A19:
//     TestEveryPartOfTheKeyCounts there. F19: TestSharedByGoroutines there.
//   - F07 and B03 with every setting of the caches: TestReuse of
//     operation/catalog; all settings over random graphs: internal/metamorphic.
//   - C01 and C07 as rings alone: TestRingNeverOverwrites of mempool.
//   - A35 A37 B21 C21 C25 as kernel graphs alone: the self attention tests of
//     operation/attention.
//   - B41 for each variable alone: the tests of context.
//   - E, memory planners: the tests of mempool, kernelgraph and context, and
//     internal/metamorphic.
//
// # Not yet
//
//   - B39: no NonZero, nor any output whose shape depends on data.
//   - G05: no recording of launches; the intermediates of a graph cannot be held
//     from outside.
package faults
