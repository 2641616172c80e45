// Package mempool hands out memory that already exists: blocks of a ring for
// tiling data, and offsets of an arena for a graph's intermediates. It moves no
// bytes and runs no kernels.
//
// # Rings
//
// A Ring cuts one device.Buffer into equal blocks and hands them out round
// robin. A block has exactly one owner at any time:
//
//	free      --Take-->              the host, which fills it and enqueues work on it
//	the host  --Release(b, stream)-> the stream, until the work enqueued so far is done
//	the host  --Return(b)-->         free: no device work uses the block
//	a stream  --its event fires-->   free
//
// A Take passes over blocks of the host. One that meets a block of a stream waits
// for the block's own event and counts a stall; one that finds every block with
// the host fails. So nothing that
// a kernel or a copy may still read is ever overwritten, whatever the number of
// launches in flight.
//
// # Arenas
//
// A workspace arena holds items: a size in bytes and a lifetime in node order.
// Items that are live at the same node get disjoint byte ranges. Solver places
// them online, call by call, in four ways known from Ascend Transformer Boost
// (types 0 to 3). Planner sees all items first (type 4, "optimal"): it replays
// types 1 to 3, adds offline heuristics and keeps the smallest arena, so its
// plan is never larger than that of any of types 0 to 3. Where no heuristic
// meets the lower bound, it plans a few of the layers that repeat, puts what lives
// all the time at the bottom, and package mempool/optimal searches for the
// smallest arena.
//
// Guarantees of every plan that Planner returns:
//
//   - it passed Validate: no two items that live together share a byte, every
//     offset is aligned, fixed items are where they were asked to be;
//   - Arena >= LowerBound, and Optimal says only what is proven;
//   - equal items and options give equal plans, unless a Deadline or Threads
//     is among the options.
//
// An item that a node writes and an item that the same node reads last both
// live at that node: an output does not alias an input unless a Program says
// that it may.
//
// A Program adds what graphs of operations have: items that are one memory, or
// may be, and nodes on several streams, with an Order between them. UpperBound
// keeps a plan while sizes change. ReadCSV, WriteCSV and WriteSVG move problems
// and plans in and out.
package mempool
